"""An observer of conversations that remembers everything."""

from __future__ import annotations

from bot.messages import SendMethod
from bot.monitoring.observer import Stage, TurnOutcome


class FakeObserver:
    """What was reached, how long after the question; what ended, and how; which calls were to wait."""

    def __init__(self) -> None:
        self.stages: list[tuple[Stage, float]] = []
        self.outcomes: list[TurnOutcome] = []
        self.limits: list[SendMethod] = []

    def measure_stage(self, platform: str, stage: Stage, seconds: float) -> None:
        self.stages.append((stage, seconds))

    def count_outcome(self, platform: str, outcome: TurnOutcome) -> None:
        self.outcomes.append(outcome)

    def count_rate_limit(self, platform: str, method: SendMethod) -> None:
        self.limits.append(method)
