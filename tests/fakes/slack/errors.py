"""Errors of the fake Slack."""

from __future__ import annotations

from typing import Any


class SlackError(Exception):
    """An answer with `ok: false`; `details` stand beside the error's name."""

    def __init__(self, name: str, **details: Any) -> None:
        super().__init__(name)
        self.name = name
        self.details = details

    @property
    def body(self) -> dict[str, Any]:
        """What the caller gets."""
        return {"ok": False, "error": self.name, **self.details}


def invalid(name: str, *complaints: str) -> SlackError:
    """Say no with the complaints that Slack puts into `response_metadata`."""
    return SlackError(name, response_metadata={"messages": [f"[ERROR] {complaint}" for complaint in complaints]})
