"""Receives messages, edits, deletions and reactions in Discord, including missed messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import discord
from cachetools import LRUCache

from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.channels import DIRECT, MAX_KNOWN, PLATFORM, ChannelDirectory, ChannelInfo
from bot.adapters.discord.parsing import REACTIONS, parse_question, read_roles
from bot.adapters.discord.reply_targets import ReplyTargets
from bot.adapters.inbound import deliver_with_retry
from bot.clock import Clock
from bot.conversations.dispatcher import Conversations
from bot.errors import ChatError
from bot.messages import ButtonPress, IncomingMessage

log = logging.getLogger(__name__)

REMEMBERED = 60.0  # seconds
MAX_SERVERS = 10  # that are asked about one person


class MemberDirectory:
    """Looks up members. `servers` are the ids of those that count as inside; by default, all of the bot's servers."""

    def __init__(self, client: discord.Client, clock: Clock, servers: Collection[str] = ()) -> None:
        self._client = client
        self._clock = clock
        self._servers = frozenset(servers)
        self._known: LRUCache[int, tuple[float, bool, tuple[str, ...]]] = LRUCache(MAX_KNOWN)

    def is_inside(self, server: str) -> bool:
        """Whether a server counts as inside."""
        return not self._servers or server in self._servers

    async def roles(self, person: int) -> tuple[bool, tuple[str, ...]]:
        """Return whether somebody is a member of a server that counts as inside, and their roles there."""
        known = self._known.get(person)
        if known is not None and self._clock.now() - known[0] < REMEMBERED:
            return known[1:]
        inside = [guild for guild in self._client.guilds if self.is_inside(str(guild.id))][:MAX_SERVERS]
        found = [member for guild in inside if (member := await self._fetch_member(guild, person)) is not None]
        roles = tuple(role for member in found for role in read_roles(member))
        self._known[person] = (self._clock.now(), bool(found), roles)
        return bool(found), roles

    async def roles_in(self, server: int, person: int) -> tuple[str, ...]:
        """Return somebody's roles in one server; none if they cannot be looked up."""
        guild = self._client.get_guild(server)
        member = await self._fetch_member(guild, person) if guild is not None else None
        return read_roles(member) if member is not None else ()

    async def _fetch_member(self, guild: discord.Guild, person: int) -> discord.Member | None:
        """Fetch a member; after a failure, return nobody, so that nothing is shown by mistake."""
        try:
            return await guild.fetch_member(person)
        except discord.NotFound:
            return None
        except (discord.HTTPException, discord.RateLimited, OSError) as error:
            log.warning("a member of server %s could not be looked up: %s", guild.id, type(error).__name__)
            return None


LATE_EDIT = 900.0  # seconds; an event about an older edit is a preview, a pin, or anything but the edit
LOOKS_BACK = 900.0  # seconds; older messages are not answered any more
MAX_DIRECT = 20  # direct conversations that are looked through

MAX_CHANNELS, MAX_MESSAGES = 50, 100

ReadableChannel = discord.TextChannel | discord.VoiceChannel | discord.Thread


class DiscordListener:
    """Delivers people's actions in Discord to the conversations; the events of a channel keep their order."""

    def __init__(
        self,
        *,
        client: discord.Client,
        channels: ChannelDirectory,
        reply_targets: ReplyTargets,
        members: MemberDirectory,
        conversations: Conversations,
        clock: Clock,
    ) -> None:
        self._client = client
        self._channels = channels
        self._reply_targets = reply_targets
        self._members = members
        self._conversations = conversations
        self._clock = clock
        self._edits: LRUCache[int, float] = LRUCache(MAX_KNOWN)
        self._direct: LRUCache[int, None] = LRUCache(MAX_DIRECT)
        self._newest = 0  # the newest message id so far; the two below are message ids as well
        self._lost_after = 0
        self._since = 0
        self._caught_up: set[int] = set()
        self._locks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def on_message(self, message: discord.Message) -> None:
        """Handle a message."""
        self._newest = max(self._newest, message.id)
        if not message.author.bot:
            await self._receive(message)

    def on_connection_lost(self) -> None:
        """Remember where the connection was lost: later messages may be missing."""
        self._lost_after = self._lost_after or self._newest

    def on_resumed(self) -> None:
        """Forget the loss: the gateway has delivered everything in between."""
        self._lost_after = 0

    def on_ready(self) -> None:
        """Begin another session, which may have missed messages."""
        self._since, self._lost_after = self._lost_after, 0
        self._caught_up.clear()
        self._newest = max(self._newest, self._make_id(0.0))

    async def read_missed_direct(self) -> None:
        """Read the direct messages from before the session: after a restart, only in recent conversations."""
        if self._since:
            await self._read_missed(list(self._direct), self._since)
            return

        async def look() -> None:
            known = await self._conversations.list_recent_channels(PLATFORM, DIRECT, most=MAX_DIRECT)
            await self._read_missed([int(channel) for channel in known], self._make_id(LOOKS_BACK))

        await deliver_with_retry(look, self._clock)

    async def read_missed_in(self, guild: discord.Guild) -> None:
        """Read the messages of a server from before the session: after a restart, only mentions count.

        Other messages in a thread may have been meant for others then; that is not judged again.
        """
        since = 0 if guild.id in self._caught_up else self._since
        self._caught_up.add(guild.id)
        after = max(since, self._make_id(LOOKS_BACK))
        await self._read_missed(find_channels_with_news(guild, after), since)

    async def _read_missed(self, channels: Sequence[int], since: int) -> None:
        async for message in read_missed_messages(self._client, channels, max(since, self._make_id(LOOKS_BACK))):
            if not message.author.bot and (since or self._client.user in message.mentions):
                await self._receive(message)

    def _make_id(self, seconds: float) -> int:
        """Return the id of a message from so long ago."""
        return discord.utils.time_snowflake(datetime.fromtimestamp(self._clock.now() - seconds, UTC))

    async def _receive(self, message: discord.Message) -> None:
        async def deliver() -> None:
            channel = await self._channels.find(message.channel.id, message.channel)
            question = parse_question(message, channel, self._client.user)
            if channel.is_direct:
                self._direct[channel.id] = None
            if question is not None and self._may_be_for_us(question):
                self._expect(channel, question)
                await self._conversations.receive(await self._resolve_author(question, channel, message.author))

        # A joined thread counts for later messages.
        async with self._lock(message.channel.id):
            await deliver_with_retry(deliver, self._clock)

    async def on_edit(self, message: discord.Message) -> None:
        """Handle an edit by a person; previews and pins change messages as well."""
        if message.author.bot or not self._is_news(message):
            return

        async def deliver() -> None:
            channel = await self._channels.find(message.channel.id, message.channel)
            question = parse_question(message, channel, self._client.user)
            if question is not None and self._may_be_for_us(question):
                self._expect(channel, question)
                await self._conversations.handle_edit(await self._resolve_author(question, channel, message.author))

        await self._wait_for_earlier(message.channel.id)
        await deliver_with_retry(deliver, self._clock)

    async def on_deletion(self, channel_id: int, messages: Iterable[int]) -> None:
        """Handle deleted messages."""

        async def deliver() -> None:
            channel = await self._channels.find(channel_id)
            for message in messages:
                await self._conversations.handle_deletion(channel.place().name_message(message))

        await self._wait_for_earlier(channel_id)
        await deliver_with_retry(deliver, self._clock)

    async def on_reaction(self, reaction: discord.RawReactionActionEvent) -> None:
        """Handle a reaction that stops or watches an answer or approves a proposal, and its removal."""
        own, action = self._client.user, REACTIONS.get(reaction.emoji.name)
        if reaction.event_type == "REACTION_REMOVE":
            action = "unwatch" if action == "watch" else None
        if action is None or own is None or reaction.message_author_id not in {None, own.id}:
            return
        if reaction.user_id == own.id:
            return

        async def deliver() -> None:
            channel = await self._channels.find(reaction.channel_id)
            roles = read_roles(reaction.member) if reaction.member else ()
            press = ButtonPress(
                handle=channel.handle(reaction.message_id), action=action, author=str(reaction.user_id), roles=roles,
                external=not channel.is_direct and not self._members.is_inside(channel.workspace), is_reaction=True,
            )  # fmt: skip
            text = await self._conversations.handle_press(press)
            if text and action in {"approve", "watch"}:
                await self._tell_directly(reaction.user_id, text)

        await deliver_with_retry(deliver, self._clock)

    async def _tell_directly(self, person: int, text: str) -> None:
        """Tell a person something in private, because a reaction has no answer."""
        try:
            with map_post_errors():
                channel = await self._client.create_dm(discord.Object(person))
                await channel.send(text, suppress_embeds=True)
        except ChatError as error:
            log.info("a person was not told what came of a reaction: %s", error)

    def on_thread_deletion(self, thread: int) -> None:
        """Handle a deleted thread."""
        self._reply_targets.close(str(thread))

    def _may_be_for_us(self, question: IncomingMessage) -> bool:
        """Whether to look further into a message that names nobody."""
        return question.kind != "overheard" or self._conversations.overhears(question.place)

    def _expect(self, channel: ChannelInfo, question: IncomingMessage) -> None:
        if channel.threaded:
            self._reply_targets.expect(question.place, question.text)

    async def _resolve_author(
        self, question: IncomingMessage, channel: ChannelInfo, author: discord.abc.User
    ) -> IncomingMessage:
        """Find out whether a question comes from outside, and the author's roles if the event lacks them."""
        if not channel.is_direct:
            question = replace(question, external=not self._members.is_inside(channel.workspace))
            if isinstance(author, discord.Member):
                return question
            return replace(question, roles=await self._members.roles_in(int(channel.workspace), author.id))
        inside, roles = await self._members.roles(int(question.author))
        return replace(question, external=not inside, roles=roles)

    def _is_news(self, message: discord.Message) -> bool:
        """Whether this is the first event about an edit."""
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
        """Wait until all earlier messages in a channel have been taken in."""
        async with self._lock(channel):
            pass


async def read_missed_messages(
    client: discord.Client, channels: Sequence[int], after: int
) -> AsyncIterator[discord.Message]:
    """Yield the newest messages of channels after an id, oldest first; unreadable channels are skipped.

    In a busy channel, the previous process received most messages after the id, so only the newest
    are missing.
    """
    if len(channels) > MAX_CHANNELS:
        log.warning("%d channels have new messages; %d of them are read", len(channels), MAX_CHANNELS)
    since = discord.Object(after)
    for number in channels[:MAX_CHANNELS]:
        known = client.get_channel(number)  # its messages know their server
        channel = known if isinstance(known, discord.abc.Messageable) else client.get_partial_messageable(number)
        try:
            with map_post_errors():
                history = channel.history(limit=MAX_MESSAGES, after=since, oldest_first=False)
                messages = [message async for message in history]
        except ChatError as error:
            log.warning("the missed messages of a channel were not read: %s", error)
            continue
        for message in reversed(messages):
            yield message


def find_channels_with_news(guild: discord.Guild, after: int) -> Sequence[int]:
    """Return the channels of a server with newer messages that citebot may read: threads last, the newest first."""

    def may_read(channel: ReadableChannel) -> bool:
        may = channel.permissions_for(channel.guild.me)
        return may.view_channel and may.read_message_history

    def has_news(channels: Iterable[ReadableChannel]) -> list[int]:
        found = [channel for channel in channels if (channel.last_message_id or 0) > after and may_read(channel)]
        return [each.id for each in sorted(found, key=lambda each: each.last_message_id or 0, reverse=True)]

    return [*has_news([*guild.text_channels, *guild.voice_channels]), *has_news(guild.threads)]
