"""Places to write: channels, threads, forums, direct conversations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from tests.fakes.discord.guilds import User
from tests.fakes.discord.ids import iso, time_of
from tests.fakes.discord.permissions import Overwrite
from tests.fakes.loopback.wire import JSON

ARCHIVE_AFTER = (60, 1440, 4320, 10080)  # minutes


class Kind(IntEnum):
    """The types of channels."""

    TEXT = 0
    DM = 1
    VOICE = 2
    CATEGORY = 4
    NEWS = 5
    NEWS_THREAD = 10
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


@dataclass(kw_only=True, slots=True)
class Threading:
    """What a thread has beside other channels; `messages` does not count the one that it was started from."""

    owner_id: str
    archive_after: int
    archived_at: float
    archived: bool = False
    locked: bool = False
    invitable: bool = True
    messages: int = 0
    members: dict[str, float] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)


@dataclass(kw_only=True, slots=True)
class Channel:
    """A channel; of a thread `parent_id` is where it hangs, of a direct conversation `recipient` is the person."""

    id: str
    kind: Kind
    name: str = ""
    guild_id: str | None = None
    parent_id: str | None = None
    position: int = 0
    topic: str | None = None
    overwrites: list[Overwrite] = field(default_factory=list)
    threading: Threading | None = None
    recipient: User | None = None
    last_message_id: str | None = None

    @property
    def thread(self) -> Threading:
        """What makes it a thread; only for threads."""
        assert self.threading is not None, f"{self.name} is no thread"
        return self.threading

    @property
    def is_thread(self) -> bool:
        """Whether it is a thread, public or private."""
        return self.threading is not None

    @property
    def holds_text(self) -> bool:
        """Whether messages can be in it."""
        return self.kind not in {Kind.FORUM, Kind.CATEGORY}

    def wire(self, *, bot: str) -> JSON:
        """The channel as the bot receives it."""
        body: JSON = {"id": self.id, "type": int(self.kind), "last_message_id": self.last_message_id, "flags": 0}
        if self.recipient is not None:
            return body | {"recipients": [self.recipient.wire()]}
        body |= {"guild_id": self.guild_id, "name": self.name, "parent_id": self.parent_id, "rate_limit_per_user": 0}
        if self.is_thread:
            return body | self._thread_wire(bot)
        body |= {"position": self.position, "topic": self.topic, "nsfw": False}
        return body | {"permission_overwrites": [each.wire() for each in self.overwrites]} | self._extras()

    def _extras(self) -> JSON:
        if self.kind is Kind.VOICE:
            return {"bitrate": 64000, "user_limit": 0}
        return {"available_tags": [], "default_forum_layout": 0} if self.kind is Kind.FORUM else {}

    def _thread_wire(self, bot: str) -> JSON:
        thread = self.thread
        metadata: JSON = {"archived": thread.archived, "locked": thread.locked, "invitable": thread.invitable}
        metadata |= {"auto_archive_duration": thread.archive_after, "archive_timestamp": iso(thread.archived_at)}
        metadata |= {"create_timestamp": iso(time_of(self.id))}
        body: JSON = {"owner_id": thread.owner_id, "thread_metadata": metadata, "applied_tags": list(thread.tags)}
        body |= {"message_count": thread.messages, "total_message_sent": thread.messages}
        body |= {"member_count": min(len(thread.members), 50)}
        return body | ({"member": thread_member(self, bot)} if bot in thread.members else {})


def thread_member(channel: Channel, user: str) -> JSON:
    """How somebody takes part in a thread."""
    joined = iso(channel.thread.members[user])
    return {"id": channel.id, "user_id": user, "join_timestamp": joined, "flags": 1}
