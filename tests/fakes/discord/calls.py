"""The log of every REST call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback.wire import JSON


@dataclass(kw_only=True, slots=True)
class Call:
    """One call, by the name that Discord's documentation gives it, in words_with_underscores.

    `status` and `response` come when it is answered; status 0 is a connection that was interrupted. `fault` names what
    a test ordered for it.
    """

    name: str
    method: str
    path: str
    args: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    files: tuple[str, ...]
    at: float
    token: str
    status: int | None = None
    response: Any = field(default_factory=dict)
    fault: str | None = None

    @property
    def fields(self) -> JSON:
        """The body, where it is an object."""
        return self.body if isinstance(self.body, dict) else {}

    @property
    def code(self) -> int | None:
        """Discord's code of the error that it was answered with."""
        return self.response.get("code") if isinstance(self.response, dict) and (self.status or 0) >= 400 else None
