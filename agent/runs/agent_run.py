"""A run: one question on its way to an answer, either new or as the newest checkpoint of its conversation has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.questions.attachments import NOTHING_ATTACHED, Attachments
from agent.state import AgentState


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """What a run asks of a person; the `id` is that of this one question, and of no other."""

    id: str
    request: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One question on its way to an answer; `state` is how far it has come, and empty for a new one.

    `pause` is what it asks of a person, as long as the step that takes the reply in is not saved, and `reply` what the
    person said to the newest pause; `is_undecided` says that they said neither yes nor no. Without a repository it is
    about the default one. `question` is empty once the run is over.
    """

    id: str
    thread: str
    repositories: tuple[str, ...]
    question: str
    attachments: Attachments = NOTHING_ATTACHED
    reply: str | None = None
    is_undecided: bool = False
    pause: Pause | None = None
    state: AgentState = field(default_factory=AgentState)
    is_finished: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it can only continue with the reply of a person."""
        return self.pause is not None and self.reply is None
