"""Faults that a test orders of the Web API, beside what every platform suffers."""

from __future__ import annotations

from tests.fakes.loopback import faults
from tests.fakes.loopback.faults import Fault


class Faults(faults.Faults):
    """Faults by the names of methods."""

    def error(self, method: str, error: str, *, times: int | None = 1, skip: int = 0, after: bool = False) -> None:
        """Answer `ok: false` with the name of an error."""
        self.order(Fault(method=method, kind="error", error=error, times=times, skip=skip, after=after))

    def ratelimited(self, method: str, *, retry_after: int = 1, times: int | None = 1, skip: int = 0) -> None:
        """Answer 429 with a Retry-After."""
        self.order(Fault(method=method, kind="ratelimited", retry_after=retry_after, times=times, skip=skip))
