"""The ways that a platform offers for replies, as all replies on it share them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from bot.clock import Clock
from bot.messages import Place, SendMethod
from bot.ports import ChatPlatform
from bot.send_budget import SendBudget


@dataclass
class ReplyTransport:
    """What the replies of one platform share: the budget, and the workspaces that turned out to have no streams."""

    platform: ChatPlatform
    budget: SendBudget
    clock: Clock
    without_streams: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, platform: ChatPlatform, clock: Clock, on_hold: Callable[[SendMethod], None] = lambda _: None) -> Self:
        """Begin with a budget of the platform's own rates."""
        return cls(platform=platform, budget=SendBudget(platform.capabilities.rates, clock, on_hold), clock=clock)

    def may_stream(self, place: Place) -> bool:
        """Whether a stream can begin here now; counts it."""
        offered = self.platform.capabilities.streams and place.workspace not in self.without_streams
        return offered and self.budget.try_take("stream_start", place)
