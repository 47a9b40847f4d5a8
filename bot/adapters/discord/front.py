"""Takes in what people write, edit, delete and react to in Discord, and brings it to the conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from weakref import WeakValueDictionary

import discord

from bot.adapters.discord.hearing import Conversations, heard
from bot.adapters.discord.members import Members
from bot.adapters.discord.recent import Recent
from bot.adapters.discord.rooms import PLATFORM, Room, Rooms
from bot.adapters.discord.spots import Spots
from bot.adapters.discord.writings import asked, roles_of
from bot.clock import Clock
from bot.messages import IncomingMessage, MessageKey, Press

STOPPING = frozenset({"❌"})  # reactions that mean: stop
LATE_EDIT = 900.0  # seconds; what is told of an older edit is a preview, a pin, or anything but the edit


class Front:
    """Hears what is written. What happens in one channel is heard in its order."""

    def __init__(
        self,
        *,
        client: discord.Client,
        rooms: Rooms,
        spots: Spots,
        members: Members,
        conversations: Conversations,
        clock: Clock,
    ) -> None:
        self._client = client
        self._rooms = rooms
        self._spots = spots
        self._members = members
        self._conversations = conversations
        self._clock = clock
        self._edits: Recent[int, float] = Recent()
        self._orders: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def said(self, message: discord.Message) -> None:
        """Hear a message."""
        if message.author.bot:
            return

        async def hear() -> None:
            room = await self._rooms.of(message.channel.id, message.channel)
            question = asked(message, room, self._client.user)
            if question is None:
                return
            self._expect(room, question)
            await self._conversations.receive(await self._judged(question, room))

        # Who has joined a thread decides what comes after.
        async with self._order(message.channel.id):
            await heard(hear, self._clock)

    async def edited(self, message: discord.Message) -> None:
        """Hear that a person has changed a message; previews and pins change messages as well."""
        if message.author.bot or not self._is_news(message):
            return

        async def hear() -> None:
            room = await self._rooms.of(message.channel.id, message.channel)
            question = asked(message, room, self._client.user)
            if question is not None:
                self._expect(room, question)
                await self._conversations.edited(await self._judged(question, room))

        await self._after(message.channel.id)
        await heard(hear, self._clock)

    async def deleted(self, channel: int, messages: Iterable[int]) -> None:
        """Hear that messages are gone."""

        async def hear() -> None:
            room = await self._rooms.of(channel)
            for message in messages:
                key = MessageKey(
                    platform=PLATFORM, workspace=room.workspace, channel=room.channel, message=str(message)
                )
                await self._conversations.deleted(key)

        await self._after(channel)
        await heard(hear, self._clock)

    async def reacted(self, reaction: discord.RawReactionActionEvent) -> None:
        """Hear a reaction that means something."""
        own = self._client.user
        if reaction.emoji.name not in STOPPING or own is None or reaction.message_author_id not in {None, own.id}:
            return
        if reaction.user_id == own.id:
            return

        async def hear() -> None:
            room = await self._rooms.of(reaction.channel_id)
            roles = roles_of(reaction.member) if reaction.member else ()
            press = Press(
                handle=room.handle(reaction.message_id), action="stop", author=str(reaction.user_id), roles=roles,
                external=not room.is_direct and not self._members.is_inside(room.workspace),
            )  # fmt: skip
            await self._conversations.press(press)

        await heard(hear, self._clock)

    def thread_deleted(self, thread: int) -> None:
        """Hear that a thread is gone."""
        self._spots.close(str(thread))

    def _expect(self, room: Room, question: IncomingMessage) -> None:
        if room.threaded:
            self._spots.expect(question.place, question.text)

    async def _judged(self, question: IncomingMessage, room: Room) -> IncomingMessage:
        """Find out whether it comes from outside, and in a direct conversation which roles the author has."""
        if not room.is_direct:
            return replace(question, external=not self._members.is_inside(room.workspace))
        inside, roles = await self._members.roles(int(question.author))
        return replace(question, external=self._members.are_chosen and not inside, roles=roles)

    def _is_news(self, message: discord.Message) -> bool:
        """Whether this tells of an edit for the first time."""
        if message.edited_at is None:
            return False
        at = message.edited_at.timestamp()
        if self._edits.get(message.id) == at or self._clock.now() - at > LATE_EDIT:
            return False
        self._edits.put(message.id, at)
        return True

    def _order(self, channel: int) -> asyncio.Lock:
        return self._orders.setdefault(channel, asyncio.Lock())

    async def _after(self, channel: int) -> None:
        """Wait until everything that was said before in a channel has been heard."""
        async with self._order(channel):
            pass
