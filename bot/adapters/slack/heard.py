"""What people do in Slack that concerns citebot, and where they do it: values, and how Slack's fields become them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.adapters.slack.client import BotIdentity
from bot.messages import ButtonPress, IncomingMessage, MessageHandle, MessageKey, Place

PLATFORM = "slack"

Body = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageReceived:
    """Somebody wrote; `team` is the organisation of who did."""

    message: IncomingMessage
    team: str
    answer_to: str = ""  # a response URL, where there is one


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageEdited:
    """Somebody changed what they wrote."""

    message: IncomingMessage
    team: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageDeleted:
    """Somebody deleted what they wrote."""

    key: MessageKey


@dataclass(frozen=True, kw_only=True, slots=True)
class ButtonPressed:
    """Somebody pressed a button, or did what means the same; `place` is where."""

    press: ButtonPress
    place: Place
    answer_to: str = ""


PlatformEvent = MessageReceived | MessageEdited | MessageDeleted | ButtonPressed


def make_place(channel: object, own: BotIdentity, *, thread: str = "") -> Place:
    """A place in the workspace."""
    return Place(platform=PLATFORM, workspace=own.team, channel=str(channel or ""), thread=thread)


def make_message_key(channel: object, ts: str, own: BotIdentity) -> MessageKey:
    """What tells a message from all others."""
    return MessageKey(platform=PLATFORM, workspace=own.team, channel=str(channel or ""), message=ts)


def make_message_handle(place: Place, ts: str) -> MessageHandle:
    """A message that citebot has sent."""
    return MessageHandle(
        platform=place.platform, workspace=place.workspace, channel=place.channel, id=ts, thread=place.thread
    )


def parse_timestamp(ts: str) -> float:
    """Read the time that a timestamp or a trigger begins with."""
    whole = ts.partition(".")[0]
    return float(whole) if whole.isascii() and whole.isdecimal() and len(whole) < 13 else 0.0
