"""Reads Slack's threads, and checks whether outsiders can read a channel."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from cachetools import LRUCache

from bot.adapters.slack.client import BotIdentity, Fields, SlackClient
from bot.adapters.slack.rendering import to_plain_markdown
from bot.clock import Clock
from bot.errors import PlatformUnreachable, PostRefused
from bot.messages import LONGEST_QUOTED, Place, ThreadMessage

PLATFORM = "slack"
PAGE = 25  # parsing as many messages of 40,000 characters blocks the event loop for some hundredths of a second
MAX_PAGES = 200

REMEMBERED = 600.0  # seconds
MAX_TOLD = 10_000  # channels
WAIT_SECONDS = 2.0  # seconds; Slack expects its acknowledgement within three

log = logging.getLogger(__name__)


async def read_thread(
    client: SlackClient, place: Place, *, own: BotIdentity, before: str, limit: int
) -> Sequence[ThreadMessage]:
    """Read the newest messages of a thread before a timestamp, oldest first."""
    newest: deque[Fields] = deque(maxlen=limit)
    async for message in read_messages(client, place, latest=before):
        if message.get("subtype") != "tombstone":
            newest.append(message)
    return tuple(
        ThreadMessage(
            id=str(message["ts"]),
            author=str(message.get("user") or message.get("username") or message.get("bot_id") or ""),
            text=to_plain_markdown(str(message.get("text", ""))[:LONGEST_QUOTED], own=own.user),
            own=is_own(message, own),
        )
        for message in newest
    )


async def find_reply(client: SlackClient, place: Place, *, own: BotIdentity, event_type: str, nonce: str) -> str:
    """Return the timestamp of the reply with a nonce; empty without one.

    Slack accepts no metadata for a stream before its end: until then the nonce is the id of its
    step. A message of the app without metadata and text is a stream begun just before a crash.
    """
    unfinished = ""
    async for message in read_messages(client, place):
        if not is_own(message, own):
            continue
        metadata = message.get("metadata") or {}
        marked = metadata.get("event_type") == event_type
        if metadata.get("event_payload", {}).get("nonce") == nonce or nonce in json.dumps(message.get("blocks", [])):
            return str(message["ts"])
        if place.thread and not marked and not message.get("text") and not message.get("subtype"):
            unfinished = str(message["ts"])
    return unfinished


async def has_file_after(client: SlackClient, place: Place, *, own: BotIdentity, ts: str, name: str, size: int) -> bool:
    """Whether the app has posted a file of this name and size in a thread after a message."""
    async for message in read_messages(client, place):
        files = (message.get("files") or ()) if str(message["ts"]) > ts and is_own(message, own) else ()
        if any(file.get("name") == name and file.get("size") == size for file in files):
            return True
    return False


async def find_last_author(client: SlackClient, place: Place, *, own: BotIdentity) -> tuple[str, str] | None:
    """Return the last author in a thread, and their team."""
    found = None
    async for message in read_messages(client, place):
        if message.get("user") and not message.get("bot_id") and not message.get("subtype"):
            found = str(message["user"]), str(message.get("team") or own.team)
    return found


async def read_messages(client: SlackClient, place: Place, *, latest: str = "") -> AsyncIterator[Fields]:
    """Read a thread, oldest first and each message once; without a thread, the newest page of the channel."""
    known: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        wanted: dict[str, Any] = {
            "channel": place.channel,
            "limit": PAGE,
            "latest": latest or None,
            "cursor": cursor,
            "include_all_metadata": True,
        }
        if place.thread:
            page = await client.read(partial(client.web.conversations_replies, ts=place.thread, **wanted))
        else:
            page = await client.read(partial(client.web.conversations_history, **wanted))
        for message in page.get("messages", ()):
            if message["ts"] not in known:
                known.add(message["ts"])
                yield message
        cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
        if cursor is None or not place.thread:
            return


def is_own(message: Fields, own: BotIdentity) -> bool:
    """Whether the app wrote a message."""
    return message.get("user") == own.user or (bool(own.bot) and message.get("bot_id") == own.bot)


class SharedChannels:
    """The channels shared with other organisations; an unknown one counts as shared."""

    def __init__(self, client: SlackClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[bool | None, float]] = {}
        self._told: LRUCache[str, bool] = LRUCache(MAX_TOLD)

    async def is_shared(self, channel: str, *, told: bool | None = None) -> bool:
        """Whether outsiders can read a channel, or will soon; raises `PlatformUnreachable` if Slack does not answer.

        `told` is the event's statement about its channel. It counts if Slack's description of the
        channel has none.
        """
        if told is not None:
            self._told[channel] = told
        known = self._known.get(channel)
        if known is None or self._clock.now() - known[1] >= REMEMBERED:
            known = await self._fetch_is_shared(channel), self._clock.now()
            self._known[channel] = known
        return self._told.get(channel, True) if known[0] is None else known[0]

    async def _fetch_is_shared(self, channel: str) -> bool | None:
        """Read Slack's description; None if it does not say."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                answer = await self._client.send(lambda: self._client.web.conversations_info(channel=channel))
        except TimeoutError as error:
            raise PlatformUnreachable("Slack did not say in time who can read the channel.") from error
        except PostRefused as error:
            log.warning("a channel is treated as shared with outsiders: %s", error)
            return True
        described = answer.get("channel") or {}
        if described.get("is_pending_ext_shared") or described.get("is_ext_shared"):
            return True
        return False if "is_ext_shared" in described or described.get("is_im") else None
