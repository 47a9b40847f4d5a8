"""The log of every Web API call."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.loopback.wire import JSON


@dataclass(kw_only=True, slots=True)
class Call:
    """One call: `connection` tells the caller's sockets apart; `status` and `response` come when it is answered.

    `fault` names what a test ordered for it.
    """

    method: str
    args: JSON
    at: float
    connection: str
    form: str
    token: str
    status: int | None = None
    response: JSON = field(default_factory=dict)
    fault: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was answered with success."""
        return bool(self.response.get("ok"))

    @property
    def error(self) -> str | None:
        """The error that it was answered with."""
        return self.response.get("error")
