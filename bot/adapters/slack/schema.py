"""The shape of Slack's deliveries, as far as citebot and Bolt depend on it; other fields are ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 100  # of a form; a slash command has some fifteen

Text = str | None
Timestamp = Annotated[str, Field(pattern=r"^\d{1,12}\.\d{1,9}$")]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Named(_Shape):
    id: Text = None
    team_id: Text = None
    enterprise_id: Text = None
    app_installed_team_id: Text = None


class _Item(_Shape):
    type: Text = None
    channel: Text = None
    channel_id: Text = None
    ts: Timestamp | None = None
    thread_ts: Text = None
    user: Text = None
    user_id: Text = None
    user_team: Text = None
    team: Text = None
    team_id: Text = None
    enterprise: Text = None
    enterprise_id: Text = None
    subtype: Text = None
    text: Text = None
    bot_id: Text = None
    execution_id: Text = None


class _Event(_Item):
    type: str
    channel_type: Text = None
    deleted_ts: Timestamp | None = None
    item_user: Text = None
    reaction: Text = None
    tab: Text = None
    streaming_message_ts: list[Timestamp] | None = None
    message: _Item | None = None
    previous_message: _Item | None = None
    item: _Item | None = None
    assistant_thread: _Item | None = None
    function_data: _Item | None = None
    authorizations: None = None
    view: None = None


class _Action(_Shape):
    action_id: Text = None
    block_id: Text = None
    type: Text = None
    value: Text = None


class _Container(_Shape):
    type: Text = None
    channel_id: Text = None
    message_ts: Timestamp | None = None
    thread_ts: Text = None


class _Delivery(_Shape):
    type: Text = None
    event: _Event = _Event(type="")
    event_id: Text = None
    challenge: Text = None
    minute_rate_limited: int | None = None
    command: Text = None
    text: Text = None
    callback_id: Text = None
    trigger_id: Text = None
    response_url: Text = None
    user_name: Text = None
    user_id: Text = None
    channel_id: Text = None
    team_id: Text = None
    enterprise_id: Text = None
    user: Text | _Named = None
    team: Text | _Named = None
    channel: Text | _Named = None
    enterprise: Text | _Named = None
    view: _Named | None = None
    message: _Item | None = None
    previous_message: _Item | None = None
    item: _Item | None = None
    assistant_thread: _Item | None = None
    function_data: _Item | None = None
    container: _Container | None = None
    actions: list[_Action] | None = None
    authorizations: list[_Named] | None = None


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
        delivery = _Delivery.model_validate(body)
        json.dumps(body, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValidationError, ValueError, RecursionError):
        return False
    return "command" not in body or None not in (delivery.command, delivery.user_id, delivery.channel_id)
