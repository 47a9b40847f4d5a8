"""The endpoints of messages: create, edit, delete, get, list, typing, reactions."""

from __future__ import annotations

from tests.fakes.discord.channels import Channel
from tests.fakes.discord.errors import DiscordError, invalid, too_long
from tests.fakes.discord.intents import Portal
from tests.fakes.discord.messages import Message
from tests.fakes.discord.payloads import message_wire, without_text
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.posts import Posts
from tests.fakes.discord.requests import Ask, Endpoint
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON

MESSAGES, MESSAGE = "/channels/{channel}/messages", "/channels/{channel}/messages/{message}"


class MessageApi:
    """Answers what concerns messages."""

    def __init__(self, world: World, portal: Portal, threads: Threads, posts: Posts) -> None:
        self._portal = portal
        self._world = world
        self._threads = threads
        self._posts = posts
        self._deleted: dict[tuple[str, str], float] = {}  # channel and nonce: when the message was deleted

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        by = ("channel",)
        return [
            Endpoint(name="create_message", method="POST", path=MESSAGES, answer=self.create, major=by),
            Endpoint(name="get_channel_messages", method="GET", path=MESSAGES, answer=self.history, major=by),
            Endpoint(name="get_channel_message", method="GET", path=MESSAGE, answer=self.get, major=by),
            Endpoint(name="edit_message", method="PATCH", path=MESSAGE, answer=self.edit, major=by),
            Endpoint(name="delete_message", method="DELETE", path=MESSAGE, answer=self.delete, major=by),
            Endpoint(
                name="trigger_typing_indicator",
                method="POST",
                path="/channels/{channel}/typing",
                answer=self.type,
                major=by,
            ),
        ]

    def create(self, ask: Ask) -> JSON:
        """Post to a channel or thread."""
        channel = self._writable(ask)
        _check_nonce(ask.fields)
        if (earlier := self._earlier(channel, ask.fields)) is not None:
            return message_wire(self._world, earlier)
        message = self._posts.compose(channel, ask.fields, ask.files)
        if channel.is_thread:
            self._threads.before_writing(channel, self._world.bot.id)
        self._world.typing.pop(channel.id, None)
        self._world.add(message)
        return message_wire(self._world, message)

    def edit(self, ask: Ask) -> JSON:
        """Change one of the bot's messages."""
        message = self._message(ask)
        if message.author.id != self._world.bot.id:
            raise DiscordError(50005)
        if ask.files:
            self._world.channel(message.channel_id, Permission.ATTACH_FILES)
        self._refuse_archived(message.channel_id)
        self._posts.count_old_edit(message)
        self._posts.revise(message, ask.fields, ask.files)
        self._world.changed(message)
        return message_wire(self._world, message)

    def delete(self, ask: Ask) -> None:
        """Take a message away: the bot's own, or anyone's where it may manage messages."""
        message = self._message(ask)
        if message.author.id != self._world.bot.id:
            self._world.channel(message.channel_id, Permission.MANAGE_MESSAGES)
        self._world.remove(message)
        if message.enforced:
            self._deleted[message.channel_id, str(message.nonce)] = self._world.clock.now()

    def get(self, ask: Ask) -> JSON:
        """Give one message."""
        channel = self._world.channel(ask.path["channel"], Permission.READ_MESSAGE_HISTORY)
        return self._readable(self._world.message(channel.id, ask.path["message"]))

    def history(self, ask: Ask) -> list[JSON]:
        """List messages, newest first; none without the right to read the history."""
        channel = self._world.channel(ask.path["channel"])
        if not channel.holds_text:
            raise DiscordError(50008)
        limit = ask.number("limit", 50)
        if not 1 <= limit <= 100:
            raise invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
        if Permission.READ_MESSAGE_HISTORY not in self._world.permissions(self._world.bot.id, channel):
            return []
        return [self._readable(each) for each in _page(self._world.all(channel.id), ask, limit)]

    def type(self, ask: Ask) -> None:
        """Show for ten seconds that the bot types."""
        channel = self._writable(ask)
        self._world.typing[channel.id] = now = self._world.clock.now()
        body: JSON = {"channel_id": channel.id, "user_id": self._world.bot.id, "timestamp": int(now)}
        if channel.guild_id:
            member = self._world.guilds[channel.guild_id].members[self._world.bot.id].wire()
            body |= {"guild_id": channel.guild_id, "member": member}
        self._world.tell("TYPING_START", body, channel)

    def _writable(self, ask: Ask) -> Channel:
        channel = self._world.channel(ask.path["channel"])
        if not channel.holds_text:
            raise DiscordError(50008)
        if channel.recipient is not None and not channel.recipient.takes_dms:
            raise DiscordError(50007)
        needed = [Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES]
        needed += [Permission.ATTACH_FILES] if ask.files else []
        needed += [Permission.EMBED_LINKS] if ask.fields.get("embeds") else []
        return self._world.channel(channel.id, *needed)

    def _message(self, ask: Ask, *needed: Permission) -> Message:
        channel = self._world.channel(ask.path["channel"], *needed)
        return self._world.message(channel.id, ask.path["message"])

    def _readable(self, message: Message) -> JSON:
        wire = message_wire(self._world, message)
        wire.pop("nonce", None)  # told only to whom sends, and when it is sent
        open_text = "message_content" in self._portal.privileged or self._world.open_text(message)
        return wire if open_text else without_text(wire)

    def _refuse_archived(self, channel: str) -> None:
        threading = self._world.channels[channel].threading
        if threading is not None and threading.archived:
            raise DiscordError(50083)

    def _earlier(self, channel: Channel, body: JSON) -> Message | None:
        if not body.get("enforce_nonce") or body.get("nonce") is None:
            return None
        since = self._world.clock.now() - self._world.rules.nonce_lifetime
        if self._deleted.get((channel.id, str(body["nonce"])), 0.0) >= since:
            raise DiscordError(10008)
        mine = (each for each in self._world.all(channel.id) if each.author.id == self._world.bot.id)
        return next((each for each in mine if each.nonce == str(body["nonce"]) and each.sent_at >= since), None)


def _check_nonce(body: JSON) -> None:
    if len(str(body.get("nonce") or "")) > 25:
        raise too_long("nonce", 25)


def _page(messages: list[Message], ask: Ask, limit: int) -> list[Message]:
    """Cut out what was asked for, newest first."""
    if (after := ask.query.get("after")) is not None:
        return [each for each in messages if int(each.id) > int(after)][:limit][::-1]
    if (around := ask.query.get("around")) is not None:
        older = [each for each in messages if int(each.id) <= int(around)][-(limit // 2 + 1) :]
        newer = [each for each in messages if int(each.id) > int(around)][: limit // 2]
        return (older + newer)[::-1][:limit]
    before = ask.query.get("before")
    found = [each for each in messages if before is None or int(each.id) < int(before)]
    return found[::-1][:limit]
