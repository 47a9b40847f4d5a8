"""Finds where to reply: in a thread, started on the question if necessary, else below the question."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import discord
from cachetools import LRUCache

from bot.adapters.discord.api_errors import (
    GONE,
    THREAD_EXISTS,
    THREADLESS,
    UNKNOWN_CHANNEL,
    map_post_errors,
    read_error_code,
)
from bot.adapters.discord.channels import MAX_KNOWN
from bot.adapters.discord.connection import ANSWER_SECONDS, CallPacer
from bot.adapters.discord.rendering import UNNAMED, make_thread_name, to_plain_markdown
from bot.errors import PlatformUnreachable, PostRefused
from bot.messages import Place

ARCHIVE_AFTER: Final = 1_440  # minutes; for that long a thread stays in the list

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyTarget:
    """A channel or thread to write in, and the message to reply to, 0 for none; `begun` marks a new thread."""

    channel: int
    reply_to: int = 0
    begun: bool = False


class ReplyTargets:
    """Finds the channel or thread of a place, and starts the thread when a reply needs it."""

    def __init__(self, client: discord.Client, pacer: CallPacer, mask: Callable[[str], str] = str) -> None:
        self._client = client
        self._pacer = pacer
        self._mask = mask
        self._known: LRUCache[Place, ReplyTarget] = LRUCache(MAX_KNOWN)
        self._names: LRUCache[Place, str] = LRUCache(MAX_KNOWN)
        self._closed: LRUCache[str, bool] = LRUCache(MAX_KNOWN)
        self._unanswered: LRUCache[Place, bool] = LRUCache(MAX_KNOWN)  # a thread was asked for there, in vain

    def expect(self, place: Place, question: str) -> None:
        """Note that the thread of a place will be started, and the question that names it.

        The name outlives a deleted question; a secret in it does not.
        """
        self._names[place] = make_thread_name(self._mask(question))

    def close(self, thread: str) -> None:
        """Note a deleted thread, which is not started again."""
        self._closed[thread] = True

    async def find_or_start(self, place: Place) -> ReplyTarget:
        """Return where to write, starting the thread if necessary; raises `ChatError`s."""
        if place.thread in self._closed:
            raise PostRefused("The thread was deleted.")
        target = self._known.get(place) or await self._find_target(place)
        if target is None:
            target = await self._start_thread(place)
        self._known[place] = target
        return target

    async def find_channel(self, place: Place) -> int:
        """Return the channel or thread that the messages of a place are in, starting none."""
        target = self._known.get(place) or await self._find_target(place)
        return target.channel if target else int(place.channel)

    def reply_below(self, place: Place) -> ReplyTarget:
        """Write below the question from now on: no thread can be used."""
        target = ReplyTarget(channel=int(place.channel), reply_to=int(place.thread or 0))
        self._known[place] = target
        return target

    async def _find_target(self, place: Place) -> ReplyTarget | None:
        """Find the thread of a place, if any; only Discord knows archived ones."""
        if not place.thread:
            return ReplyTarget(channel=int(place.channel))
        thread = int(place.thread)
        if isinstance(self._client.get_channel(thread), discord.Thread):
            return ReplyTarget(channel=thread)
        if place in self._names:
            return None
        try:
            with map_post_errors():
                await self._client.fetch_channel(thread)
        except PostRefused as refused:
            if read_error_code(refused) == UNKNOWN_CHANNEL:
                return None
            raise
        return ReplyTarget(channel=thread)

    async def _start_thread(self, place: Place) -> ReplyTarget:
        """Start the thread on the question; after a refusal or two failures, reply to the question."""
        if not self._can_start_thread(place):
            return self.reply_below(place)
        try:
            name = self._names.get(place) or await self._fetch_name(place)
            await self._pacer.acquire()
            with map_post_errors():
                async with asyncio.timeout(ANSWER_SECONDS):
                    # The method of discord.py needs a known server, which after a restart it is not at once.
                    await self._client.http.start_thread_with_message(
                        int(place.channel), int(place.thread), name=name, auto_archive_duration=ARCHIVE_AFTER
                    )
        except PostRefused as refused:
            code = read_error_code(refused)
            if code == THREAD_EXISTS:
                return ReplyTarget(channel=int(place.thread))
            if code not in THREADLESS:
                raise
            log.info("a reply is sent in the channel: %s", refused)
            return self.reply_below(place)
        except PlatformUnreachable as away:
            if self._unanswered.pop(place, False):
                log.warning("a reply is sent in the channel: %s", away)
                return self.reply_below(place)
            self._unanswered[place] = True
            raise
        self._names.pop(place, None)
        return ReplyTarget(channel=int(place.thread), begun=True)

    def _can_start_thread(self, place: Place) -> bool:
        """Whether the bot may start threads and write in them, as far as known: refusals count towards a ban."""
        channel = self._client.get_channel(int(place.channel))
        if not isinstance(channel, discord.abc.GuildChannel):
            return True
        may = channel.permissions_for(channel.guild.me)
        threaded = channel.type in {discord.ChannelType.text, discord.ChannelType.news}
        return threaded and may.create_public_threads and may.send_messages_in_threads

    async def _fetch_name(self, place: Place) -> str:
        """Name the thread after a restart, by fetching the question."""
        own = frozenset({self._client.user.id}) if self._client.user else frozenset()
        channel = self._client.get_partial_messageable(int(place.channel))
        try:
            with map_post_errors():
                question = await channel.fetch_message(int(place.thread))
        except PostRefused as refused:
            if read_error_code(refused) in GONE:
                raise
            return UNNAMED
        return make_thread_name(self._mask(to_plain_markdown(question.content, own=own, users={}, places={})))
