"""Faults that a test orders of the REST API, beside what every platform suffers; calls go by their names."""

from __future__ import annotations

from tests.fakes.loopback import faults
from tests.fakes.loopback.faults import Fault


class Faults(faults.Faults):
    """Faults by the names of calls; `"*"` means every call."""

    def refuse(
        self, name: str, code: int, *, status: int = 400, times: int | None = 1, skip: int = 0, after: bool = False
    ) -> None:
        """Answer with one of Discord's error codes; the status is its own where the fake knows it."""
        fault = Fault(method=name, kind="error", code=code, status=status, times=times, skip=skip, after=after)
        self.order(fault)

    def ratelimited(
        self, name: str, *, retry_after: float = 0.01, times: int | None = 1, skip: int = 0, stray: bool = False
    ) -> None:
        """Answer 429 of a limit that no header tells of; `stray` without `Via`, as a ban by Cloudflare comes."""
        fault = Fault(method=name, kind="ratelimited", retry_after=retry_after, times=times, skip=skip, stray=stray)
        self.order(fault)
