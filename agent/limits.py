"""The budget of one turn for models and rounds, checked in one place before each call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.errors import BudgetExceeded

MAX_ROUNDS = 8  # answers of the model that writes the answer, before and after a plan; the last may call no tools
MAX_PLAN = 8  # steps
MAX_GOAL_ITERATIONS = 20  # of plan, act, evaluate, unless a goal run is given another number
APPROVAL_CALLS = 30  # model calls that a plan may take before a person is asked


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnLimits:
    """The limits of a turn.

    `iterations` are rounds of the router, and of plan, execute, refine; `executor_steps` are
    answers of the model within one step of a plan.
    """

    seconds: float = 120.0
    tokens: int = 200_000
    calls: int = 40
    iterations: int = 10
    executor_steps: int = 5

    @property
    def nodes(self) -> int:
        """The most nodes of the graph from one pause to the next, some ten more than the longest path."""
        return 20 + self.iterations * (2 * self.executor_steps + 3)

    def count_plan_calls(self, steps: Sequence[str]) -> int:
        """Return the most model calls that a plan may take: its rounds, and a judgement for each step."""
        return len(steps) * (self.executor_steps + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenUsage:
    """The token cost of calls; `cached_tokens` of the input came from the provider's cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total(self) -> int:
        """The tokens of both directions."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


class Budget:
    """Counts a turn's spending from its creation; every try of a call counts."""

    def __init__(self, ceilings: TurnLimits | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceilings = ceilings or TurnLimits()
        self.calls = 0
        self.usage = TokenUsage()
        self._clock = clock
        self._began = clock()

    @property
    def seconds_left(self) -> float:
        """The remaining seconds of the turn; 0 when the time is up."""
        return max(0.0, self.ceilings.seconds - (self._clock() - self._began))

    def begin_call(self) -> None:
        """Count a call about to be made; `BudgetExceeded` if the turn may make no more."""
        if self.seconds_left <= 0:
            raise BudgetExceeded(f"This question has taken its {self.ceilings.seconds:g} seconds.")
        if self.calls >= self.ceilings.calls:
            raise BudgetExceeded(f"This question used up its {self.ceilings.calls} calls of a language model.")
        if self.usage.total >= self.ceilings.tokens:
            raise BudgetExceeded(f"This question has used its {self.ceilings.tokens:,} tokens.")
        self.calls += 1

    @property
    def is_low(self) -> bool:
        """Whether the next call should be the last one."""
        return self.is_short_of(2)

    def is_short_of(self, calls: int) -> bool:
        """Whether little room for calls, time or text is left."""
        limits = self.ceilings
        is_late = self.seconds_left <= 0.25 * limits.seconds
        return is_late or self.calls + calls > limits.calls or self.usage.total >= 0.75 * limits.tokens

    def spend(self, usage: TokenUsage) -> None:
        """Count the cost of a call."""
        self.usage += usage
