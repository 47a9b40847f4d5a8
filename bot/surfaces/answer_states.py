"""The state of an answer today: what of the code that it cites and rests on has changed since."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from bot.living.edits import describe_changes
from bot.storage.living_answers import FollowedPlace, LivingAnswer, LivingAnswerStore
from bot.surfaces.ask_events import SurfaceValue
from indexer import TELLING_FATES


class PlaceState(SurfaceValue):
    """The lines behind a mark of an answer, where they are at the followed commit."""

    mark: int
    repository: str
    path: str
    first_line: int
    last_line: int
    state: Literal["unchanged", "moved", "changed", "gone"]


class AnswerState(SurfaceValue):
    """The state of an answer. It is `outdated` since a commit if its content has changed, not if lines moved.

    `summary` describes the changes in Markdown, and `changes` lists them with links to the differences. `commits` are
    those of the answer.
    """

    run_id: str
    state: Literal["current", "outdated"]
    since: str = ""
    summary: str = ""
    changes: tuple[str, ...] = ()
    places: tuple[PlaceState, ...] = ()
    commits: dict[str, str]


async def read_state(store: LivingAnswerStore, answer: LivingAnswer, hosts: Collection[str]) -> AnswerState:
    """Read the state of an answer, whose reader may ask about all of its repositories."""
    places = [
        PlaceState(
            mark=one.cited.mark, repository=one.cited.repository, path=one.now.path, first_line=one.now.start_line,
            last_line=one.now.end_line, state=_name_fate(one),
        )
        for one in await store.list_places(answer.run_id)
    ]  # fmt: skip
    return AnswerState(
        run_id=answer.run_id, state="outdated" if answer.changes else "current", since=answer.since,
        summary=describe_changes(answer, hosts), changes=answer.changes[1:], places=tuple(places),
        commits=dict(answer.commits),
    )  # fmt: skip


def _name_fate(place: FollowedPlace) -> Literal["unchanged", "moved", "changed", "gone"]:
    if place.now.fate in TELLING_FATES:
        return "gone" if place.now.fate == "gone" else "changed"
    return "moved" if place.has_moved else "unchanged"
