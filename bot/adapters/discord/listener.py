"""Takes in what people write, edit, delete and react to in Discord, and what they wrote while citebot was down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import discord
from cachetools import LRUCache

from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.channels import DIRECT, MOST_KNOWN, PLATFORM, ChannelDirectory, ChannelInfo
from bot.adapters.discord.members import MemberDirectory
from bot.adapters.discord.parsing import STOP_REACTIONS, parse_question, read_roles
from bot.adapters.discord.reply_targets import ReplyTargets
from bot.adapters.inbound import MessageSink, deliver_with_retry
from bot.clock import Clock
from bot.errors import ChatError
from bot.messages import ButtonPress, IncomingMessage, MessageKey

LATE_EDIT = 900.0  # seconds; what is told of an older edit is a preview, a pin, or anything but the edit
LOOKS_BACK = 900.0  # seconds; what was said longer ago is not answered any more
MOST_DIRECT = 20  # direct conversations that are looked through

MOST_PLACES, MOST_MESSAGES = 50, 100

Written = discord.TextChannel | discord.VoiceChannel | discord.Thread

log = logging.getLogger(__name__)


class DiscordListener:
    """Hears what is written. What happens in one channel is heard in its order."""

    def __init__(
        self,
        *,
        client: discord.Client,
        channels: ChannelDirectory,
        reply_targets: ReplyTargets,
        members: MemberDirectory,
        conversations: MessageSink,
        clock: Clock,
    ) -> None:
        self._client = client
        self._channels = channels
        self._reply_targets = reply_targets
        self._members = members
        self._conversations = conversations
        self._clock = clock
        self._edits: LRUCache[int, float] = LRUCache(MOST_KNOWN)
        self._direct: LRUCache[int, None] = LRUCache(MOST_DIRECT)
        self._newest = 0  # of the messages heard, as are the two below
        self._lost_after = 0
        self._since = 0
        self._caught_up: set[int] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def on_message(self, message: discord.Message) -> None:
        """Hear a message."""
        self._newest = max(self._newest, message.id)
        if not message.author.bot:
            await self._receive(message)

    def on_connection_lost(self) -> None:
        """Hear that the gateway is lost; what is said from now on may have to be looked for."""
        self._lost_after = self._lost_after or self._newest

    def on_resumed(self) -> None:
        """Hear that the gateway has told of everything in between."""
        self._lost_after = 0

    def on_ready(self) -> None:
        """Hear that another session has begun."""
        self._since, self._lost_after = self._lost_after, 0
        self._caught_up.clear()
        self._newest = max(self._newest, self._make_id(0.0))

    async def read_missed_direct(self) -> None:
        """Look for what was said in direct conversations before the session began: after a restart, in known ones."""
        if self._since:
            await self._read_missed(list(self._direct), self._since)
            return

        async def look() -> None:
            known = await self._conversations.list_recent_channels(PLATFORM, DIRECT, most=MOST_DIRECT)
            await self._read_missed([int(channel) for channel in known], self._make_id(LOOKS_BACK))

        await deliver_with_retry(look, self._clock)

    async def read_missed_in(self, guild: discord.Guild) -> None:
        """Look for what was said in a server before it was there for the session: after a restart, for mentions alone.

        What was said in a thread without one may have been left to others then; that is not judged again.
        """
        since = 0 if guild.id in self._caught_up else self._since
        self._caught_up.add(guild.id)
        after = max(since, self._make_id(LOOKS_BACK))
        await self._read_missed(find_channels_with_news(guild, after), since)

    async def _read_missed(self, places: Sequence[int], since: int) -> None:
        async for message in read_missed_messages(self._client, places, max(since, self._make_id(LOOKS_BACK))):
            if not message.author.bot and (since or self._client.user in message.mentions):
                await self._receive(message)

    def _make_id(self, seconds: float) -> int:
        """The id that a message of so long ago would have."""
        return discord.utils.time_snowflake(datetime.fromtimestamp(self._clock.now() - seconds, UTC))

    async def _receive(self, message: discord.Message) -> None:
        async def deliver() -> None:
            channel = await self._channels.find(message.channel.id, message.channel)
            question = parse_question(message, channel, self._client.user)
            if channel.is_direct:
                self._direct[channel.id] = None
            if question is not None:
                self._expect(channel, question)
                await self._conversations.receive(await self._resolve_author(question, channel, message.author))

        # Who has joined a thread decides what comes after.
        async with self._lock(message.channel.id):
            await deliver_with_retry(deliver, self._clock)

    async def on_edit(self, message: discord.Message) -> None:
        """Hear that a person has changed a message; previews and pins change messages as well."""
        if message.author.bot or not self._is_news(message):
            return

        async def deliver() -> None:
            channel = await self._channels.find(message.channel.id, message.channel)
            question = parse_question(message, channel, self._client.user)
            if question is not None:
                self._expect(channel, question)
                await self._conversations.handle_edit(await self._resolve_author(question, channel, message.author))

        await self._wait_for_earlier(message.channel.id)
        await deliver_with_retry(deliver, self._clock)

    async def on_deletion(self, channel_id: int, messages: Iterable[int]) -> None:
        """Hear that messages are gone."""

        async def deliver() -> None:
            channel = await self._channels.find(channel_id)
            for message in messages:
                key = MessageKey(
                    platform=PLATFORM, workspace=channel.workspace, channel=channel.channel, message=str(message)
                )
                await self._conversations.handle_deletion(key)

        await self._wait_for_earlier(channel_id)
        await deliver_with_retry(deliver, self._clock)

    async def on_reaction(self, reaction: discord.RawReactionActionEvent) -> None:
        """Hear a reaction that means something."""
        own = self._client.user
        if reaction.emoji.name not in STOP_REACTIONS or own is None or reaction.message_author_id not in {None, own.id}:
            return
        if reaction.user_id == own.id:
            return

        async def deliver() -> None:
            channel = await self._channels.find(reaction.channel_id)
            roles = read_roles(reaction.member) if reaction.member else ()
            press = ButtonPress(
                handle=channel.handle(reaction.message_id), action="stop", author=str(reaction.user_id), roles=roles,
                external=not channel.is_direct and not self._members.is_inside(channel.workspace),
            )  # fmt: skip
            await self._conversations.handle_press(press)

        await deliver_with_retry(deliver, self._clock)

    def on_thread_deletion(self, thread: int) -> None:
        """Hear that a thread is gone."""
        self._reply_targets.close(str(thread))

    def _expect(self, channel: ChannelInfo, question: IncomingMessage) -> None:
        if channel.threaded:
            self._reply_targets.expect(question.place, question.text)

    async def _resolve_author(
        self, question: IncomingMessage, channel: ChannelInfo, author: discord.abc.User
    ) -> IncomingMessage:
        """Find out whether it comes from outside, and which roles the author has where that was not told."""
        if not channel.is_direct:
            question = replace(question, external=not self._members.is_inside(channel.workspace))
            if isinstance(author, discord.Member):
                return question
            return replace(question, roles=await self._members.roles_in(int(channel.workspace), author.id))
        inside, roles = await self._members.roles(int(question.author))
        return replace(question, external=not inside, roles=roles)

    def _is_news(self, message: discord.Message) -> bool:
        """Whether this tells of an edit for the first time."""
        if message.edited_at is None:
            return False
        at = message.edited_at.timestamp()
        if self._edits.get(message.id) == at or self._clock.now() - at > LATE_EDIT:
            return False
        self._edits[message.id] = at
        return True

    def _lock(self, channel: int) -> asyncio.Lock:
        return self._locks.setdefault(channel, asyncio.Lock())

    async def _wait_for_earlier(self, channel: int) -> None:
        """Wait until everything that was said before in a channel has been heard."""
        async with self._lock(channel):
            pass


async def read_missed_messages(
    client: discord.Client, places: Sequence[int], after: int
) -> AsyncIterator[discord.Message]:
    """Give the messages of places after an id, place by place, oldest first; what cannot be read is left out."""
    if len(places) > MOST_PLACES:
        log.warning("%d places have new messages; %d of them are read", len(places), MOST_PLACES)
    since = discord.Object(after)
    for number in places[:MOST_PLACES]:
        try:
            with map_post_errors():
                found = _channel(client, number).history(limit=MOST_MESSAGES, after=since, oldest_first=True)
                messages = [message async for message in found]
        except ChatError as error:
            log.warning("a place was not looked through: %s", error)
            continue
        for message in messages:
            yield message


def find_channels_with_news(guild: discord.Guild, after: int) -> Sequence[int]:
    """Return the places in a server that Discord says have newer messages, and that may be read."""
    channels: list[Written] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
    return [each.id for each in channels if (each.last_message_id or 0) > after and _is_open(each)]


def _is_open(channel: Written) -> bool:
    may = channel.permissions_for(channel.guild.me)
    return may.view_channel and may.read_message_history


def _channel(client: discord.Client, number: int) -> discord.abc.Messageable:
    """The channel as it is known, so that its messages know their server."""
    known = client.get_channel(number)
    return known if isinstance(known, discord.abc.Messageable) else client.get_partial_messageable(number)
