"""Discord's channels, threads, forum posts and direct messages, and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import discord
from cachetools import LRUCache

from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.rendering import has_nonce, read_text
from bot.messages import LONGEST_QUOTED, MessageHandle, Place, ThreadMessage

PLATFORM = "discord"
DIRECT = "@me"  # the workspace of direct conversations
MAX_KNOWN = 2_000  # channels, people, places or edits of which something is remembered
_THREADED = frozenset({discord.ChannelType.text, discord.ChannelType.news})

MAX_SEARCHED = 300  # messages that are looked through for one that was sent before a crash

_READ = frozenset({discord.MessageType.default, discord.MessageType.reply, discord.MessageType.chat_input_command})


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelInfo:
    """A place of messages. For a thread, `channel` is its parent; `title` is that of a forum's post.

    `threaded` says that a message here can begin a thread.
    """

    id: int
    workspace: str
    channel: str
    is_thread: bool = False
    threaded: bool = False
    title: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether it is a conversation with one person."""
        return self.workspace == DIRECT

    def place(self, root: int | str = "", *, line: str = "") -> Place:
        """The place of a message here: in this thread, or else in the one that a message begins."""
        thread = str(self.id) if self.is_thread else str(root)
        return Place(platform=PLATFORM, workspace=self.workspace, channel=self.channel, thread=thread, line=line)

    def handle(self, message: int) -> MessageHandle:
        """Return the handle of a citebot message here."""
        return self.place().make_handle(message)


class ChannelDirectory:
    """Looks up channels, fetching those that the gateway did not announce, such as archived threads."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._fetched: LRUCache[int, ChannelInfo] = LRUCache(MAX_KNOWN)

    async def find(self, id_: int, channel: Any = None) -> ChannelInfo:
        """Return the channel with an id; `channel` is the event's. Raises `ChatError`s."""
        known = read_channel_info(channel) or read_channel_info(self._client.get_channel(id_)) or self._fetched.get(id_)
        if known is not None:
            return known
        with map_post_errors():
            fetched = await self._client.fetch_channel(id_)
        found = read_channel_info(fetched) or ChannelInfo(id=id_, workspace=DIRECT, channel=str(id_))
        self._fetched[id_] = found
        return found


def read_channel_info(channel: Any) -> ChannelInfo | None:
    """Read a discord.py channel; None if it lacks information."""
    if isinstance(channel, discord.Thread):
        title = channel.name if isinstance(channel.parent, discord.ForumChannel) else ""
        return ChannelInfo(
            id=channel.id, workspace=str(channel.guild.id), channel=str(channel.parent_id), is_thread=True, title=title
        )
    if isinstance(channel, discord.abc.GuildChannel):
        threaded = channel.type in _THREADED
        return ChannelInfo(id=channel.id, workspace=str(channel.guild.id), channel=str(channel.id), threaded=threaded)
    if isinstance(channel, discord.DMChannel):
        return ChannelInfo(id=channel.id, workspace=DIRECT, channel=str(channel.id))
    return None


async def read_thread(
    client: discord.Client, channel: ChannelInfo, *, before: int, limit: int
) -> Sequence[ThreadMessage]:
    """Read the newest messages of a thread before the one named, oldest first; the title of a forum's post is one."""
    history = client.get_partial_messageable(channel.id).history(limit=limit, before=discord.Object(before))
    with map_post_errors():
        newest = [message async for message in history]
    messages = [read for message in reversed(newest) if (read := _parse_thread_message(message, client)) is not None]
    if channel.title:
        messages.insert(0, ThreadMessage(id=str(channel.id), author="title", text=channel.title))
    return messages


async def find_reply(client: discord.Client, channel: int, *, nonce: str, after: int) -> int:
    """Return citebot's message with a nonce; 0 without one.

    Discord keeps no nonce, so the buttons of a message carry it. A message without buttons is found
    by sending it again with the same nonce, within a few minutes.
    """
    own = client.user.id if client.user else 0
    place = client.get_partial_messageable(channel)
    since = discord.Object(after) if after else None
    with map_post_errors():
        async for message in place.history(limit=MAX_SEARCHED, after=since, oldest_first=False):
            if message.author.id == own and has_nonce(message, nonce):
                return message.id
    return 0


def _parse_thread_message(message: discord.Message, client: discord.Client) -> ThreadMessage | None:
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
