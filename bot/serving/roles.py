"""Assigns the duties of a process by its role: all of them, or a part where several processes share the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bot.errors import SettingsError
from bot.settings import Settings

Role = Literal["all", "front", "answer", "index"]

NOT_SHARED = (
    "`--role {role}` is for several processes that share their work, and needs {missing} (docs/cluster.md). "
    "Set what is missing, or serve with all roles."
)
SHARED_ALONE = (
    "SEGMENTS_URL names an object store in which processes share indexes, which also needs DATABASE_URL, the address "
    "of the Postgres they share (docs/cluster.md). Set that as well, or unset SEGMENTS_URL."
)
_NEEDED = {
    "database_url": "DATABASE_URL, the address of the Postgres they share",
    "segments_url": "SEGMENTS_URL, the address of the object store with their indexes",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Duties:
    """The duties of a process: to receive, to answer, to index."""

    takes_events: bool = False
    answers: bool = False
    indexes: bool = False

    @property
    def is_on_platforms(self) -> bool:
        """Whether it receives from platforms, or sends to them."""
        return self.takes_events or self.answers


DUTIES: Mapping[Role, Duties] = {
    "all": Duties(takes_events=True, answers=True, indexes=True),
    "front": Duties(takes_events=True),
    "answer": Duties(answers=True),
    "index": Duties(indexes=True),
}


def assign_duties(role: Role, settings: Settings) -> Duties:
    """Return what a process of a role does; raises `SettingsError` if others could not do the rest."""
    missing = [meaning for name, meaning in _NEEDED.items() if getattr(settings, name) is None]
    if role != "all" and missing:
        raise SettingsError(NOT_SHARED.format(role=role, missing=", and ".join(missing)))
    if settings.segments_url is not None and settings.database_url is None:
        raise SettingsError(SHARED_ALONE)
    return DUTIES[role]
