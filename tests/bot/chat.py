"""Messages and places that the tests of the conversation core share."""

from __future__ import annotations

import dataclasses
from typing import Any

from bot.messages import IncomingMessage, MessageHandle, Place

PLACE = Place(platform="fake", workspace="W", channel="C", thread="1")
NOW = 1_000.0


def message(text: str = "where is send?", **changes: Any) -> IncomingMessage:
    """A mention by Ann that begins a thread."""
    plain = IncomingMessage(
        place=PLACE, id="1", author="ann", author_name="Ann", text=text, kind="mention", sent_at=NOW
    )
    return dataclasses.replace(plain, **changes)


def handle(number: str = "r1") -> MessageHandle:
    """A message that citebot has sent."""
    return MessageHandle(platform="fake", workspace="W", channel="C", id=number, thread="1")
