"""Threads: how they begin, who is in them, when they are archived and come back."""

from __future__ import annotations

from tests.fakes.discord.channels import ARCHIVE_AFTER, Channel, Kind, Threading, thread_member
from tests.fakes.discord.checks import HAS_THREAD
from tests.fakes.discord.errors import DiscordError, invalid
from tests.fakes.discord.messages import THREAD_CREATED, THREAD_STARTER, Message
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON


class Threads:
    """What happens to the threads of the world, anyone who does it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def start(
        self, parent: Channel, owner: str, name: str, *, kind: Kind, archive_after: int = 1440, identity: str = ""
    ) -> Channel:
        """Open a thread with its owner in it, and tell everyone."""
        if archive_after not in ARCHIVE_AFTER:
            message = f"Value must be one of {ARCHIVE_AFTER}."
            raise invalid("auto_archive_duration", "BASE_TYPE_CHOICES", message)
        self._refuse_too_many(parent)
        now = self._world.clock.now()
        threading = Threading(owner_id=owner, archive_after=archive_after, archived_at=now, members={owner: now})
        thread = self._world.add_channel(
            Channel(
                id=identity or self._world.ids.next(),
                kind=kind,
                name=name,
                guild_id=parent.guild_id,
                parent_id=parent.id,
                threading=threading,
            )
        )
        self._world.tell("THREAD_CREATE", self.wire(thread) | {"newly_created": True}, thread)
        return thread

    def start_from(self, message: Message, owner: str, name: str, *, archive_after: int = 1440) -> Channel:
        """Open a thread on a message; it has the id of the message, which opens it once more inside."""
        parent = self._world.channels[message.channel_id]
        if parent.kind not in {Kind.TEXT, Kind.NEWS}:
            raise DiscordError(50024)
        if message.thread_id is not None or message.id in self._world.channels:
            raise DiscordError(160004)
        kind = Kind.NEWS_THREAD if parent.kind is Kind.NEWS else Kind.PUBLIC_THREAD
        thread = self.start(parent, owner, name, kind=kind, archive_after=archive_after, identity=message.id)
        message.thread_id = thread.id
        message.flags |= HAS_THREAD
        self._world.changed(message)
        self._notice(thread.id, THREAD_STARTER, message.author.id, "", reply_to=message.id)
        return thread

    def start_alone(
        self, parent: Channel, owner: str, name: str, *, private: bool, archive_after: int = 1440
    ) -> Channel:
        """Open a thread on no message; a public one is announced in its channel."""
        if parent.kind not in {Kind.TEXT, Kind.NEWS}:
            raise DiscordError(50024)
        kind = Kind.PRIVATE_THREAD if private else Kind.PUBLIC_THREAD
        thread = self.start(parent, owner, name, kind=kind, archive_after=archive_after)
        if not private:
            self._notice(parent.id, THREAD_CREATED, owner, name)
        return thread

    def join(self, thread: Channel, user: str) -> None:
        """Take somebody in; the app is told when it is itself."""
        if user in thread.thread.members:
            return
        thread.thread.members[user] = self._world.clock.now()
        if user != self._world.bot.id:
            return
        if thread.kind is Kind.PRIVATE_THREAD:
            self._world.tell("THREAD_CREATE", self.wire(thread), thread)
        member = thread_member(thread, user)
        body: JSON = {"id": thread.id, "guild_id": thread.guild_id, "added_members": [member]}
        body |= {"member_count": len(thread.thread.members), "removed_member_ids": []}
        self._world.tell("THREAD_MEMBERS_UPDATE", body, thread)

    def archive(self, thread: Channel, *, locked: bool | None = None, archived: bool = True) -> None:
        """Put a thread away, or bring it back."""
        thread.thread.archived = archived
        thread.thread.archived_at = self._world.clock.now()
        if locked is not None:
            thread.thread.locked = locked
        self.updated(thread)

    def updated(self, thread: Channel) -> None:
        """Tell everyone what a thread is now."""
        self._world.tell("THREAD_UPDATE", self.wire(thread), thread)

    def before_writing(self, thread: Channel, user: str) -> None:
        """Bring an archived thread back, unless it is locked; anyone who writes takes part."""
        moderator = Permission.MANAGE_THREADS in self._world.permissions(user, thread)
        if thread.thread.locked and not moderator:
            raise DiscordError(160005)
        if thread.thread.archived:
            self.archive(thread, archived=False)
        self.join(thread, user)

    def close(self, channel: Channel) -> JSON:
        """Delete a channel with its threads, or a thread; return what it was."""
        world = self._world
        for thread in [each for each in world.channels.values() if each.parent_id == channel.id and each.is_thread]:
            world.drop(thread)
        wire = channel.wire(bot=world.bot.id)
        gone = {name: wire[name] for name in ("id", "guild_id", "parent_id", "type")} if channel.is_thread else wire
        world.tell("THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE", gone, channel)
        world.drop(channel)
        return wire

    def wire(self, thread: Channel) -> JSON:
        """The thread as the bot receives it."""
        return thread.wire(bot=self._world.bot.id)

    def _refuse_too_many(self, parent: Channel) -> None:
        active = [each for each in self._world.channels.values() if each.is_thread and not each.thread.archived]
        if sum(each.guild_id == parent.guild_id for each in active) >= self._world.rules.most_active_threads:
            raise DiscordError(160006)

    def _notice(self, channel: str, kind: int, author: str, text: str, *, reply_to: str | None = None) -> None:
        world = self._world
        notice = Message(
            id=world.ids.next(),
            channel_id=channel,
            author=world.users[author],
            sent_at=world.clock.now(),
            kind=kind,
            content=text,
            reply_to=reply_to,
        )
        world.add(notice)
