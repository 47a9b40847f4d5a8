"""Reads what Slack delivers, of whichever kind. Pure functions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.heard import Body, PlatformEvent
from bot.adapters.slack.presses import parse_button_presses, parse_reaction, parse_stop_press
from bot.adapters.slack.slash import parse_slash_command
from bot.adapters.slack.writings import parse_message_event, parse_question

log = logging.getLogger(__name__)

_Reader = Callable[[Body, Body, BotIdentity], PlatformEvent | Iterable[PlatformEvent] | None]
_READERS: Mapping[str, _Reader] = {
    "app_mention": parse_question,
    "message": parse_message_event,
    "reaction_added": parse_reaction,
    "agent_session_stopped": parse_stop_press,
}


def parse_delivery(body: Body, own: BotIdentity) -> tuple[PlatformEvent, ...]:
    """Read one delivery; what is nothing to answer gives nothing, and so does what Slack would not send."""
    try:
        return _read(body, own)
    except (AttributeError, KeyError, TypeError) as error:
        log.warning("a delivery of Slack has another form than its kind: %s", type(error).__name__)
        return ()


def _read(body: Body, own: BotIdentity) -> tuple[PlatformEvent, ...]:
    if "command" in body:
        return (parse_slash_command(body, own),)
    if body.get("type") == "block_actions":
        return tuple(parse_button_presses(body, own))
    event = body.get("event") or {}
    reader = _READERS.get(str(event.get("type", "")))
    found = reader(event, body, own) if reader is not None else None
    if found is None:
        return ()
    return tuple(found) if isinstance(found, Iterable) else (found,)
