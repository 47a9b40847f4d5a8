"""The shape of Slack's deliveries, as far as citebot and Bolt depend on it; other fields are ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100  # of a form; a slash command has some fifteen

# The fields on which citebot and Bolt depend, wherever they are: texts, texts or objects, objects, lists, timestamps.
_TEXTS = frozenset({
    "action_id", "app_installed_team_id", "block_id", "bot_id", "callback_id", "challenge", "channel_id",
    "channel_type",
    "command", "enterprise_id", "event_id", "execution_id", "id", "item_user", "reaction", "response_url", "subtype",
    "tab", "team_id", "thread_ts", "trigger_id", "type", "user_id", "user_name", "user_team", "value",
})  # fmt: skip
_TEXTS_OR_OBJECTS = frozenset({"channel", "enterprise", "team", "text", "user"})
_OBJECTS = frozenset({
    "assistant_thread", "container", "event", "function_data", "item", "message", "previous_message", "view",
})  # fmt: skip
_LISTS = {"actions": "event", "authorizations": "event", "streaming_message_ts": "ts"}  # with what each item is like
_TIMESTAMPS = frozenset({"deleted_ts", "message_ts", "ts"})
_TIMESTAMP = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")


def parse_body(text: str, content_type: str) -> Mapping[str, Any] | None:
    """Parse the body of a request: JSON, a form, or JSON in a form; None if it is none of them."""
    try:
        if content_type == FORM:
            fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS))
            found = json.loads(fields["payload"]) if "payload" in fields else fields
        else:
            found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def is_well_formed(body: Mapping[str, Any]) -> bool:
    """Whether a delivery has the shape that Slack gives it, and its texts can be stored."""
    try:
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return False
    event = body.get("event", {"type": ""})
    has_type = isinstance(event, dict) and isinstance(event.get("type"), str)
    is_whole = "command" not in body or None not in map(body.get, ("command", "user_id", "channel_id"))
    return has_type and is_whole and _fits("event", body)


def _fits(name: str, value: Any) -> bool:
    """Whether a field has one of the forms that it may have; a missing one is null in some deliveries."""
    if value is None:
        return True
    if name in _TIMESTAMPS:
        return isinstance(value, str) and _TIMESTAMP.fullmatch(value) is not None
    if name in _LISTS:
        return isinstance(value, list) and all(each is not None and _fits(_LISTS[name], each) for each in value)
    if name in _OBJECTS or (name in _TEXTS_OR_OBJECTS and not isinstance(value, str)):
        return isinstance(value, dict) and all(_fits(inner, each) for inner, each in value.items())
    return name not in _TEXTS or isinstance(value, str)
