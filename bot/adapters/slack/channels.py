"""Reads Slack's threads, and tells whether people of other organisations can read a channel."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from bot.adapters.slack.client import BotIdentity, Fields, SlackClient
from bot.adapters.slack.rendering import to_plain_markdown
from bot.clock import Clock
from bot.errors import PlatformUnreachable, PostRefused
from bot.messages import LONGEST_QUOTED, Place, ThreadMessage

PLATFORM = "slack"
PAGE = 50  # to read as many messages of 40,000 characters keeps everybody waiting for some hundredths of a second
MOST_PAGES = 100

REMEMBERED = 600.0  # seconds
PATIENCE = 2.0  # Slack wants its acknowledgement within three seconds

log = logging.getLogger(__name__)


async def read_thread(
    client: SlackClient, place: Place, *, own: BotIdentity, before: str, limit: int
) -> Sequence[ThreadMessage]:
    """Read the newest messages of a thread before a timestamp, oldest first."""
    newest: deque[Fields] = deque(maxlen=limit)
    async for message in read_messages(client, place, latest=before):
        if message.get("subtype") != "tombstone":
            newest.append(message)
    return tuple(_read(message, own) for message in newest)


async def find_reply(client: SlackClient, place: Place, *, own: BotIdentity, event_type: str, nonce: str) -> str:
    """Return the timestamp of the reply that bears a nonce; empty without one.

    Slack takes no metadata for a stream before its end: until then the nonce is the name of its step. A message of
    one's own that has neither a mark nor any text is a stream that was begun and that nobody noted.
    """
    begun = ""
    async for message in read_messages(client, place):
        if not is_own(message, own):
            continue
        metadata = message.get("metadata") or {}
        marked = metadata.get("event_type") == event_type
        if metadata.get("event_payload", {}).get("nonce") == nonce or nonce in json.dumps(message.get("blocks", [])):
            return str(message["ts"])
        if place.thread and not marked and not message.get("text") and not message.get("subtype"):
            begun = str(message["ts"])
    return begun


async def find_last_author(client: SlackClient, place: Place, *, own: BotIdentity) -> tuple[str, str] | None:
    """Return who wrote last in a thread, and their team."""
    found = None
    async for message in read_messages(client, place):
        if message.get("user") and not message.get("bot_id") and not message.get("subtype"):
            found = str(message["user"]), str(message.get("team") or own.team)
    return found


async def read_messages(client: SlackClient, place: Place, *, latest: str = "") -> AsyncIterator[Fields]:
    """Read a thread, oldest first and each message once; without a thread the newest page of the channel."""
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await _page(client, place, latest, cursor)
        for message in page.get("messages", ()):
            if message["ts"] not in seen:
                seen.add(message["ts"])
                yield message
        cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
        if cursor is None or not place.thread:
            return


def is_own(message: Fields, own: BotIdentity) -> bool:
    """Whether the app wrote a message."""
    return message.get("user") == own.user or (bool(own.bot) and message.get("bot_id") == own.bot)


async def _page(client: SlackClient, place: Place, latest: str, cursor: str | None) -> Fields:
    wanted: dict[str, Any] = {
        "channel": place.channel,
        "limit": PAGE,
        "latest": latest or None,
        "cursor": cursor,
        "include_all_metadata": True,
    }
    if place.thread:
        return await client.read(lambda: client.web.conversations_replies(ts=place.thread, **wanted))
    return await client.read(lambda: client.web.conversations_history(**wanted))


def _read(message: Fields, own: BotIdentity) -> ThreadMessage:
    return ThreadMessage(
        id=str(message["ts"]),
        author=str(message.get("user") or message.get("username") or message.get("bot_id") or ""),
        text=to_plain_markdown(str(message.get("text", ""))[:LONGEST_QUOTED], own=own.user),
        own=is_own(message, own),
    )


class SharedChannels:
    """Knows which channels are shared with other organisations. What cannot be found out counts as shared."""

    def __init__(self, client: SlackClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[bool, float]] = {}

    async def is_shared(self, channel: str) -> bool:
        """Whether people from outside read a channel, or will soon; raises `PlatformUnreachable` if Slack is mute."""
        known = self._known.get(channel)
        if known is not None and self._clock.now() - known[1] < REMEMBERED:
            return known[0]
        shared = await self._ask(channel)
        self._known[channel] = shared, self._clock.now()
        return shared

    async def _ask(self, channel: str) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._client.send(lambda: self._client.web.conversations_info(channel=channel))
        except TimeoutError as error:
            raise PlatformUnreachable("Slack does not say in time who reads the channel.") from error
        except PostRefused as error:
            log.warning("a channel counts as shared with others: %s", error)
            return True
        described = answer.get("channel") or {}
        outside = described.get("is_ext_shared", not described.get("is_im"))
        return bool(outside or described.get("is_pending_ext_shared"))
