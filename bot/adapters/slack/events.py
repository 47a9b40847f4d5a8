"""Reads what Slack delivers, of whichever kind. Pure functions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from bot.adapters.slack.client import Identity
from bot.adapters.slack.heard import Body, Heard
from bot.adapters.slack.presses import presses, reaction, stopped
from bot.adapters.slack.slash import command
from bot.adapters.slack.writings import asked, message

log = logging.getLogger(__name__)

_Reader = Callable[[Body, Body, Identity], Heard | Iterable[Heard] | None]
_READERS: Mapping[str, _Reader] = {
    "app_mention": asked,
    "message": message,
    "reaction_added": reaction,
    "agent_session_stopped": stopped,
}


def read(body: Body, own: Identity) -> tuple[Heard, ...]:
    """Read one delivery; what is nothing to answer gives nothing, and so does what Slack would not send."""
    try:
        return _read(body, own)
    except (AttributeError, KeyError, TypeError) as error:
        log.warning("a delivery of Slack has another form than its kind: %s", type(error).__name__)
        return ()


def _read(body: Body, own: Identity) -> tuple[Heard, ...]:
    if "command" in body:
        return (command(body, own),)
    if body.get("type") == "block_actions":
        return tuple(presses(body, own))
    event = body.get("event") or {}
    reader = _READERS.get(str(event.get("type", "")))
    found = reader(event, body, own) if reader is not None else None
    if found is None:
        return ()
    return tuple(found) if isinstance(found, Iterable) else (found,)
