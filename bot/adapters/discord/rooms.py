"""What the places in Discord are in which people write: channels, threads, posts of forums, direct conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import discord
from cachetools import LRUCache

from bot.adapters.discord.refusals import map_post_errors
from bot.messages import MessageHandle, Place

PLATFORM = "discord"
DIRECT = "@me"  # the workspace of direct conversations
MOST_KNOWN = 2_000  # rooms, people, places or edits of which something is remembered
_THREADED = frozenset({discord.ChannelType.text, discord.ChannelType.news})


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelInfo:
    """Where messages are. Of a thread, `channel` is where it hangs; `title` is that of a forum's post.

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
        """The place of what is said here: in this thread, or else in the one that a message begins."""
        thread = str(self.id) if self.is_thread else str(root)
        return Place(platform=PLATFORM, workspace=self.workspace, channel=self.channel, thread=thread, line=line)

    def handle(self, message: int) -> MessageHandle:
        """A message of citebot here."""
        thread = str(self.id) if self.is_thread else ""
        return MessageHandle(
            platform=PLATFORM, workspace=self.workspace, channel=self.channel, id=str(message), thread=thread
        )


class ChannelDirectory:
    """Knows rooms, asking Discord about those that it has not told of: archived threads are among them."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._asked: LRUCache[int, ChannelInfo] = LRUCache(MOST_KNOWN)

    async def of(self, number: int, channel: Any = None) -> ChannelInfo:
        """Return the room with an id; `channel` is what came with an event. Raises `ChatError`s."""
        known = (
            read_channel_info(channel) or read_channel_info(self._client.get_channel(number)) or self._asked.get(number)
        )
        if known is not None:
            return known
        with map_post_errors():
            fetched = await self._client.fetch_channel(number)
        found = read_channel_info(fetched) or ChannelInfo(id=number, workspace=DIRECT, channel=str(number))
        self._asked[number] = found
        return found


def read_channel_info(channel: Any) -> ChannelInfo | None:
    """Read what discord.py tells of a channel; None where that is too little."""
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
