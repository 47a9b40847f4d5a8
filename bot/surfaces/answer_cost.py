"""Adds up an answer's cost: its model calls, their tokens, and dollars where prices are known."""

from __future__ import annotations

from collections.abc import Mapping

from agent import AgentEvent
from bot.settings import PriceTable
from bot.surfaces.ask_events import AnswerCost

_MILLION = 1_000_000


class CostMeter:
    """Adds up what the events of a run tell of its calls."""

    def __init__(self, prices: Mapping[str, PriceTable]) -> None:
        self._prices = prices
        self._calls = self._input = self._output = 0
        self._dollars = 0.0
        self._is_priced = True

    def take(self, event: AgentEvent) -> None:
        """Add an event."""
        if event.kind != "model_end":
            return
        read, written = (int(event.payload.get(name) or 0) for name in ("input_tokens", "output_tokens"))
        price = self._prices.get(str(event.payload["model"]))
        self._calls, self._input, self._output = self._calls + 1, self._input + read, self._output + written
        if price is None:
            self._is_priced = False
        else:
            self._dollars += (read * price.input + written * price.output) / _MILLION

    def measure(self, seconds: float) -> AnswerCost:
        """Return what there is by now."""
        return AnswerCost(
            seconds=round(seconds, 3),
            model_calls=self._calls,
            input_tokens=self._input,
            output_tokens=self._output,
            dollars=round(self._dollars, 6) if self._is_priced else None,
        )
