"""Reads channels and threads: what was said before, and what was sent before a crash."""

from __future__ import annotations

from collections.abc import Sequence

import discord

from bot.adapters.discord.looks import has_nonce
from bot.adapters.discord.refusals import map_post_errors
from bot.adapters.discord.rooms import ChannelInfo
from bot.adapters.discord.writings import read_text
from bot.messages import LONGEST_QUOTED, ThreadMessage

MOST_SEARCHED = 300  # messages that are looked through for one that was sent before a crash

_READ = frozenset({discord.MessageType.default, discord.MessageType.reply, discord.MessageType.chat_input_command})


async def read_thread(client: discord.Client, room: ChannelInfo, *, before: int, limit: int) -> Sequence[ThreadMessage]:
    """Read the newest messages of a thread before the one named, oldest first; the title of a forum's post is one."""
    channel = client.get_partial_messageable(room.id)
    with map_post_errors():
        newest = [each async for each in channel.history(limit=limit, before=discord.Object(before))]
    read = [said for each in reversed(newest) if (said := _read(each, client)) is not None]
    if room.title:
        read.insert(0, ThreadMessage(id=str(room.id), author="title", text=room.title))
    return read


async def find_reply(client: discord.Client, channel: int, *, nonce: str, after: int) -> int:
    """Return the message of citebot's own that was sent with a nonce; 0 without one.

    Discord keeps no nonce: the buttons of a message bear it. What has no buttons is found by sending it again within
    a few minutes, with the same nonce.
    """
    own = client.user.id if client.user else 0
    place = client.get_partial_messageable(channel)
    since = discord.Object(after) if after else None
    with map_post_errors():
        async for message in place.history(limit=MOST_SEARCHED, after=since, oldest_first=False):
            if message.author.id == own and has_nonce(message, nonce):
                return message.id
    return 0


def _read(message: discord.Message, client: discord.Client) -> ThreadMessage | None:
    if message.type is discord.MessageType.thread_starter_message:
        resolved = message.reference.resolved if message.reference else None
        if not isinstance(resolved, discord.Message):
            return None
        message = resolved
    elif message.type not in _READ:
        return None
    own = client.user is not None and message.author.id == client.user.id
    return ThreadMessage(
        id=str(message.id),
        author=message.author.display_name,
        text=read_text(message, client.user, message.content[:LONGEST_QUOTED]),
        own=own,
    )
