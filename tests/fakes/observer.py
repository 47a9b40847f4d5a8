"""An observer of conversations that remembers everything."""

from __future__ import annotations

from bot.messages import SendMethod
from bot.observing import Outcome, Stage


class FakeObserver:
    """What was reached, how long after the question; what ended, and how; which calls were to wait."""

    def __init__(self) -> None:
        self.stages: list[tuple[Stage, float]] = []
        self.outcomes: list[Outcome] = []
        self.limits: list[SendMethod] = []

    def reached(self, platform: str, stage: Stage, seconds: float) -> None:
        self.stages.append((stage, seconds))

    def ended(self, platform: str, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def limited(self, platform: str, method: SendMethod) -> None:
        self.limits.append(method)
