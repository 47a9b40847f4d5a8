"""Faults that a test orders: the next calls of a method are refused, fail, break off, or hang."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from tests.fakes.loopback.changes import Changes

Kind = Literal["error", "http", "ratelimited", "reset", "hang"]
ANY = "*"


class Gate:
    """Holds calls until it is released."""

    def __init__(self, changes: Changes) -> None:
        self.waiting = 0
        self._open = asyncio.Event()
        self._changes = changes

    def release(self) -> None:
        """Let all calls through, also those to come."""
        self._open.set()

    async def hold(self) -> None:
        """Wait for the release."""
        self.waiting += 1
        self._changes.tell()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
            self._changes.tell()


@dataclass(kw_only=True, slots=True)
class Fault:
    """What happens to a call. With `after`, the call takes effect first and only its answer is lost."""

    method: str
    kind: Kind
    times: int | None = 1
    skip: int = 0
    after: bool = False
    error: str = "fatal_error"
    code: int = 0
    status: int = 500
    retry_after: float = 1
    stray: bool = False  # the answer lacks the marks of the platform, as one of a proxy before it does
    gate: Gate | None = None

    def is_for(self, method: str) -> bool:
        """Whether this call counts."""
        return self.times != 0 and self.method in {method, ANY}


@dataclass
class Faults:
    """The faults on order, first come first served. `times=None` lasts until `clear`; `"*"` means every method."""

    changes: Changes
    ordered: list[Fault] = field(default_factory=list)

    def http(
        self, method: str, status: int = 500, *, times: int | None = 1, skip: int = 0, after: bool = False
    ) -> None:
        """Answer with an HTTP status and no JSON."""
        self.order(Fault(method=method, kind="http", status=status, times=times, skip=skip, after=after))

    def reset(self, method: str, *, times: int | None = 1, skip: int = 0, after: bool = False) -> None:
        """Break the connection off before, or after the call took effect."""
        self.order(Fault(method=method, kind="reset", times=times, skip=skip, after=after))

    def hang(self, method: str, *, times: int | None = 1, skip: int = 0, after: bool = False) -> Gate:
        """Hold the call until the gate is released, before or after it took effect; then continue as usual."""
        gate = Gate(self.changes)
        self.order(Fault(method=method, kind="hang", times=times, skip=skip, after=after, gate=gate))
        return gate

    def take(self, method: str) -> Fault | None:
        """The fault for this call, used up by it; others that wait for a later call count it too."""
        chosen: Fault | None = None
        for fault in self.ordered:
            if not fault.is_for(method):
                continue
            if fault.skip > 0:
                fault.skip -= 1
            elif chosen is None:
                chosen = fault
        if chosen is not None and chosen.times is not None:
            chosen.times -= 1
        return chosen

    def clear(self) -> None:
        """Forget all orders and let held calls continue."""
        for fault in self.ordered:
            if fault.gate is not None:
                fault.gate.release()
        self.ordered.clear()

    def order(self, fault: Fault) -> None:
        """Add a fault."""
        self.ordered.append(fault)
