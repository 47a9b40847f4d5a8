"""The observer that conversations report to: stages of replies, outcomes of turns, rate limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bot.clock import Clock
from bot.messages import MessageContent, SendMethod

# The first message of the reply is there; it shows text of the answer; it is final.
Stage = Literal["sign_of_life", "first_text", "settled"]

# `unsaid`: no reply could be sent; `given_up`: interrupted too often, or too old; `set_aside`: in progress in processes
# that died; `superseded`: edited, deleted or taken by another process; `handed_over`: the next process continues it;
# `silent`: asked of nobody in particular, and nothing was found.
TurnOutcome = Literal[
    "answered", "paused", "blocked", "failed", "refused", "stopped", "late", "given_up", "set_aside", "unsaid",
    "superseded", "handed_over", "command", "silent",
]  # fmt: skip

# Why an event of a platform was lost: it could not be read; the platform held it back.
Loss = Literal["malformed", "rate_limited"]
CountLoss = Callable[[Loss], None]


def ignore_loss(_: Loss) -> None:
    """Count nothing."""


class ConversationObserver(Protocol):
    """Counts events of conversations. Methods return immediately and never raise."""

    def measure_stage(self, platform: str, stage: Stage, seconds: float) -> None:
        """Record the time from a question to a stage of its reply."""

    def count_outcome(self, platform: str, outcome: TurnOutcome) -> None:
        """Count the end of a try at a message."""

    def count_rate_limit(self, platform: str, method: SendMethod) -> None:
        """Count a platform's request to wait before the next call of this kind."""


class NullObserver:
    """An observer that does nothing."""

    def measure_stage(self, platform: str, stage: Stage, seconds: float) -> None:
        """Do nothing."""

    def count_outcome(self, platform: str, outcome: TurnOutcome) -> None:
        """Do nothing."""

    def count_rate_limit(self, platform: str, method: SendMethod) -> None:
        """Do nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerLoad:
    """The numbers of questions being answered, and of those waiting."""

    under_way: int
    waiting: int


@dataclass(kw_only=True)
class ReplyTimer:
    """Reports to an observer when the reply to one message reaches each stage, once, from `begin` on."""

    observer: ConversationObserver
    clock: Clock
    platform: str
    since: float
    _left: set[Stage] = field(default_factory=set)

    def begin(self) -> None:
        """Start timing: the message is a question."""
        self._left = {"sign_of_life", "first_text", "settled"}

    def record_content(self, content: MessageContent) -> None:
        """Record that the reply shows a content."""
        self._reach("sign_of_life")
        if content.text:
            self._reach("first_text")

    def record_final_content(self) -> None:
        """Record that the reply shows its final content."""
        self._reach("settled")

    def _reach(self, stage: Stage) -> None:
        if stage in self._left:
            self._left.remove(stage)
            self.observer.measure_stage(self.platform, stage, max(0.0, self.clock.now() - self.since))
