"""The arguments of one Web API call, whichever way they came: query, form, multipart or JSON."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.errors import SlackError, invalid

# Methods that read forms and queries only: a JSON body is ignored, as Slack does.
FORM_ONLY = frozenset({
    "conversations.info",
    "conversations.replies",
    "files.completeUploadExternal",
    "files.getUploadURLExternal",
    "users.conversations",
})  # fmt: skip


async def read_arguments(request: web.Request, method: str) -> tuple[JSON, str]:
    """Return the arguments and the form in which they came: query, form or json."""
    found: JSON = dict(request.query)
    if request.content_type == "application/json":
        body = await _json(request)
        return (found, "json") if method in FORM_ONLY else ({**found, **body}, "json")
    if request.content_type in {"application/x-www-form-urlencoded", "multipart/form-data"}:
        return {**found, **dict(await request.post())}, "form"
    return found, "query"


async def _json(request: web.Request) -> JSON:
    try:
        body = json.loads(await request.text() or "{}")
    except ValueError as error:
        raise SlackError("invalid_json") from error
    if not isinstance(body, dict):
        raise SlackError("json_not_object")
    return body


class Args:
    """Arguments by name, read as what they should be."""

    def __init__(self, values: JSON) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def has(self, name: str) -> bool:
        """Whether the caller gave it, empty or not."""
        return name in self._values

    def text(self, name: str, default: str = "") -> str:
        """A string; numbers are written out."""
        return str(self._values.get(name, default))

    def optional(self, name: str) -> str | None:
        """A string, or nothing if it is missing or empty."""
        return self.text(name) or None

    def required(self, name: str) -> str:
        """A string that must not be empty."""
        value = self.text(name)
        if not value:
            raise invalid("invalid_arguments", f"missing required field: {name}")
        return value

    def flag(self, name: str) -> bool | None:
        """True or false in any of the ways that forms write it."""
        if name not in self._values:
            return None
        return str(self._values[name]).lower() in {"1", "true"}

    def number(self, name: str, *, default: int, most: int, refusal: str = "invalid_limit") -> int:
        """A whole number between 1 and the most."""
        try:
            value = int(self._values.get(name, default))
        except ValueError as error:
            raise SlackError(refusal) from error
        if not 1 <= value <= most:
            raise SlackError(refusal)
        return value

    def value(self, name: str, *, refusal: str) -> Any:
        """A JSON value, or a string holding one, as forms must send it."""
        value = self._values.get(name)
        if not isinstance(value, str) or not value:
            return value or None
        try:
            return json.loads(value)
        except ValueError as error:
            raise SlackError(refusal) from error

    def items(self, name: str, *, refusal: str) -> list[JSON] | None:
        """A list of objects; nothing if it is missing, an empty list where it was given as such."""
        if not self.has(name):
            return None
        found = self.value(name, refusal=refusal) or []
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise SlackError(refusal)
        return found
