"""The endpoints of threads: start, change, members, lists."""

from __future__ import annotations

from tests.fakes.discord.channels import Channel, Kind, thread_member
from tests.fakes.discord.checks import check_thread_name
from tests.fakes.discord.errors import DiscordError, invalid
from tests.fakes.discord.payloads import message_wire
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.posts import Posts
from tests.fakes.discord.requests import Ask, Endpoint
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON

THREADS, MEMBERS = "/channels/{channel}/threads", "/channels/{channel}/thread-members"


class ThreadApi:
    """Answers what concerns threads."""

    def __init__(self, world: World, threads: Threads, posts: Posts) -> None:
        self._world = world
        self._threads = threads
        self._posts = posts

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        table = [
            ("start_thread_from_message", "POST", "/channels/{channel}/messages/{message}/threads", self.from_message),
            ("start_thread_without_message", "POST", THREADS, self.alone),
            ("join_thread", "PUT", MEMBERS + "/@me", self.join),
            ("leave_thread", "DELETE", MEMBERS + "/@me", self.leave),
            ("add_thread_member", "PUT", MEMBERS + "/{user}", self.add),
            ("list_thread_members", "GET", MEMBERS, self.members),
            ("get_thread_member", "GET", MEMBERS + "/{user}", self.member),
            ("list_public_archived_threads", "GET", THREADS + "/archived/public", self.archived_public),
            ("list_private_archived_threads", "GET", THREADS + "/archived/private", self.archived_private),
            (
                "list_joined_private_archived_threads",
                "GET",
                "/channels/{channel}/users/@me/threads/archived/private",
                self.archived_joined,
            ),
        ]
        found = [
            Endpoint(name=name, method=method, path=path, answer=answer, major=("channel",))
            for name, method, path, answer in table
        ]
        active = "/guilds/{guild}/threads/active"
        return [
            *found,
            Endpoint(name="list_active_guild_threads", method="GET", path=active, answer=self.active, major=("guild",)),
        ]

    def from_message(self, ask: Ask) -> JSON:
        """Start a thread on a message."""
        channel = self._world.channel(ask.path["channel"])
        if channel.is_thread or channel.guild_id is None:
            raise DiscordError(50024)
        self._world.channel(channel.id, Permission.CREATE_PUBLIC_THREADS, Permission.READ_MESSAGE_HISTORY)
        message = self._world.message(channel.id, ask.path["message"])
        name, archive_after = check_thread_name(ask.fields.get("name")), _archive_after(ask.fields)
        bot = self._world.bot.id
        return self._threads.wire(self._threads.start_from(message, bot, name, archive_after=archive_after))

    def alone(self, ask: Ask) -> JSON:
        """Start a thread on no message, private unless told otherwise; in a forum, a post."""
        parent = self._world.channel(ask.path["channel"])
        name, bot = check_thread_name(ask.fields.get("name")), self._world.bot.id
        if parent.kind is Kind.FORUM:
            return self._post(parent, name, ask)
        if parent.is_thread or parent.guild_id is None:
            raise DiscordError(50024)
        private = ask.fields.get("type", Kind.PRIVATE_THREAD) == Kind.PRIVATE_THREAD
        needed = Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS
        self._world.channel(parent.id, needed)
        archive_after = _archive_after(ask.fields)
        thread = self._threads.start_alone(parent, bot, name, private=private, archive_after=archive_after)
        return self._threads.wire(thread)

    def join(self, ask: Ask) -> None:
        """Take part in a thread."""
        self._threads.join(self._thread(ask), self._world.bot.id)

    def leave(self, ask: Ask) -> None:
        """Take part no more."""
        self._thread(ask).thread.members.pop(self._world.bot.id, None)

    def add(self, ask: Ask) -> None:
        """Take somebody in."""
        self._threads.join(self._thread(ask), self._world.user(ask.path["user"]).id)

    def members(self, ask: Ask) -> list[JSON]:
        """List who takes part."""
        thread = self._thread(ask)
        return [thread_member(thread, user) for user in thread.thread.members]

    def member(self, ask: Ask) -> JSON:
        """Tell how somebody takes part."""
        thread, user = self._thread(ask), ask.path["user"].replace("@me", self._world.bot.id)
        if user not in thread.thread.members:
            raise DiscordError(10007)
        return thread_member(thread, user)

    def archived_public(self, ask: Ask) -> JSON:
        """List archived public threads, the last archived first."""
        return self._archived(ask, Kind.PUBLIC_THREAD, Permission.READ_MESSAGE_HISTORY)

    def archived_private(self, ask: Ask) -> JSON:
        """List archived private threads, to a moderator."""
        return self._archived(ask, Kind.PRIVATE_THREAD, Permission.MANAGE_THREADS)

    def archived_joined(self, ask: Ask) -> JSON:
        """List archived private threads that the bot takes part in."""
        return self._archived(ask, Kind.PRIVATE_THREAD, Permission.READ_MESSAGE_HISTORY)

    def active(self, ask: Ask) -> JSON:
        """List the active threads of a server."""
        return self._listed(self._world.threads_of(self._world.guild(ask.path["guild"]).id))

    def _post(self, forum: Channel, name: str, ask: Ask) -> JSON:
        self._world.channel(forum.id, Permission.SEND_MESSAGES)
        if not isinstance(ask.fields.get("message"), dict):
            raise invalid("message", "BASE_TYPE_REQUIRED", "This field is required")
        identity = self._world.ids.next()
        place = Channel(id=identity, kind=Kind.PUBLIC_THREAD, guild_id=forum.guild_id, parent_id=forum.id)
        self._world.channels[identity] = place  # so that the first message can be judged where it will stand
        try:
            message = self._posts.compose(place, ask.fields["message"], ask.files, identity=identity)
        finally:
            del self._world.channels[identity]
        archive_after = _archive_after(ask.fields)
        bot = self._world.bot.id
        thread = self._threads.start(
            forum, bot, name, kind=Kind.PUBLIC_THREAD, archive_after=archive_after, identity=identity
        )
        self._world.add(message)
        return self._threads.wire(thread) | {"message": message_wire(self._world, message)}

    def _archived(self, ask: Ask, kind: Kind, needed: Permission) -> JSON:
        parent = self._world.channel(ask.path["channel"], needed)
        found = [each for each in self._world.channels.values() if each.parent_id == parent.id and each.kind is kind]
        put_away = [each for each in found if each.thread.archived and self._world.sees(self._world.bot.id, each)]
        ordered = sorted(put_away, key=lambda each: each.thread.archived_at, reverse=True)
        limit = ask.number("limit", 50)
        return self._listed(ordered[:limit]) | {"has_more": len(ordered) > limit}

    def _listed(self, threads: list[Channel]) -> JSON:
        bot = self._world.bot.id
        joined = [thread_member(each, bot) for each in threads if bot in each.thread.members]
        return {"threads": [self._threads.wire(each) for each in threads], "members": joined}

    def _thread(self, ask: Ask) -> Channel:
        thread = self._world.channel(ask.path["channel"])
        if not thread.is_thread:
            raise DiscordError(50024)
        return thread


def _archive_after(body: JSON) -> int:
    return int(body.get("auto_archive_duration") or 1440)
