"""The state of Discord: people, servers, channels and messages; every change becomes an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.discord.channels import Channel, Kind
from tests.fakes.discord.checks import Rules
from tests.fakes.discord.errors import DiscordError
from tests.fakes.discord.guilds import Guild, Member, Role, User
from tests.fakes.discord.ids import Snowflakes
from tests.fakes.discord.messages import THREAD_STARTER, Message
from tests.fakes.discord.payloads import event_message
from tests.fakes.discord.permissions import ALL, EVERYONE, Permission, in_channel
from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON

DIRECT = ALL  # in a direct conversation there is nothing to forbid


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened; without a `guild_id` in a direct conversation, or to the bot itself."""

    name: str
    data: JSON
    guild_id: str | None
    about_bot: bool = False  # it comes whatever the app asked for
    open_text: bool = True  # its text reaches the app without the message-content intent


class World:
    """Holds everything. `publish` is called with each event that the bot may see."""

    def __init__(self, *, clock: Clock, changes: Changes, rules: Rules, publish: Callable[[Event], None]) -> None:
        self.clock = clock
        self.rules = rules
        self.ids = Snowflakes(clock.now)
        self.users: dict[str, User] = {}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.ephemerals: list[Message] = []
        self.typing: dict[str, float] = {}  # channel: when the bot last said that it types
        self.uploads: dict[str, bytes] = {}  # attachment: content
        self._messages: dict[str, dict[str, Message]] = {}
        self._publish = publish
        self._changes = changes
        self.bot = self.add_user("citebot", is_bot=True)

    def add_user(self, name: str, *, is_bot: bool = False) -> User:
        """Make an account."""
        user = User(id=self.ids.next(), name=name, is_bot=is_bot)
        self.users[user.id] = user
        return user

    def add_guild(self, name: str, owner: User) -> Guild:
        """Open a server with its owner and the bot in it; the bot has a role of its own."""
        now, identity = self.clock.now(), self.ids.next()
        guild = Guild(id=identity, name=name, owner_id=owner.id, created=now)
        guild.roles[identity] = Role(id=identity, name="@everyone", permissions=EVERYONE)
        own = Role(id=self.ids.next(), name=self.bot.name, permissions=EVERYONE, position=1, bot_id=self.bot.id)
        guild.roles[own.id] = own
        guild.members[owner.id] = Member(user=owner, joined=now)
        guild.members[self.bot.id] = Member(user=self.bot, joined=now, roles=[own.id])
        self.guilds[identity] = guild
        return guild

    def add_channel(self, channel: Channel) -> Channel:
        """Open a channel without telling anyone."""
        self.channels[channel.id] = channel
        self._messages[channel.id] = {}
        return channel

    def drop(self, channel: Channel) -> None:
        """Forget a channel and what is in it."""
        del self.channels[channel.id], self._messages[channel.id]

    def dm(self, user: User) -> Channel:
        """The direct conversation of the bot with a person, opened when there is none yet."""
        for channel in self.channels.values():
            if channel.recipient is not None and channel.recipient.id == user.id:
                return channel
        return self.add_channel(Channel(id=self.ids.next(), kind=Kind.DM, recipient=user))

    def user(self, identity: str) -> User:
        """A person by id."""
        if identity not in self.users:
            raise DiscordError(10013)
        return self.users[identity]

    def guild(self, identity: str) -> Guild:
        """A server that the bot is in."""
        guild = self.guilds.get(identity)
        if guild is None or not guild.installed:
            raise DiscordError(10004)
        return guild

    def channel(self, identity: str, *needed: Permission) -> Channel:
        """A channel in which the bot may do what is needed."""
        channel = self.channels.get(identity)
        if channel is None or (channel.guild_id and not self.guilds[channel.guild_id].installed):
            raise DiscordError(10003)
        if not self.sees(self.bot.id, channel):
            raise DiscordError(50001)
        mine = self.permissions(self.bot.id, channel)
        if any(each not in mine for each in needed):
            raise DiscordError(50013)
        return channel

    def message(self, channel: str, identity: str) -> Message:
        """One message of a channel; 10008 if there is none."""
        found = self._messages.get(channel, {}).get(identity)
        if found is None:
            raise DiscordError(10008)
        return found

    def find(self, identity: str) -> Message:
        """One message by its id alone, for people: they see what they mean."""
        for messages in self._messages.values():
            if identity in messages:
                return messages[identity]
        return next(each for each in self.ephemerals if each.id == identity)

    def all(self, channel: str) -> list[Message]:
        """Every message of a channel, oldest first."""
        return list(self._messages[channel].values())

    def threads_of(self, guild: str) -> list[Channel]:
        """The active threads of a server that the bot sees."""
        found = [each for each in self.channels.values() if each.guild_id == guild and each.is_thread]
        return [each for each in found if not each.thread.archived and self.sees(self.bot.id, each)]

    def permissions(self, user: str, channel: Channel) -> Permission:
        """What a person may do in a channel; a thread has those of its parent."""
        if channel.guild_id is None:
            return DIRECT
        guild = self.guilds[channel.guild_id]
        if user not in guild.members:
            return Permission(0)
        place = self.channels[channel.parent_id] if channel.is_thread and channel.parent_id else channel
        base = guild.permissions(user)
        return in_channel(base, place.overwrites, guild.id, set(guild.members[user].roles), user)

    def sees(self, user: str, channel: Channel) -> bool:
        """Whether a person can open a channel; a private thread shows to its members and moderators."""
        may = self.permissions(user, channel)
        if channel.kind is Kind.PRIVATE_THREAD and user not in channel.thread.members:
            return Permission.MANAGE_THREADS in may
        return Permission.VIEW_CHANNEL in may

    def open_text(self, message: Message) -> bool:
        """Whether an app reads the text without the message-content intent."""
        direct = self.channels[message.channel_id].guild_id is None
        return direct or self.bot.id in {message.author.id, message.application_id, *message.mentioned.users}

    def add(self, message: Message) -> None:
        """Put a message into its channel and tell everyone."""
        message.note_version()
        channel = self.channels[message.channel_id]
        self._messages[channel.id][message.id] = message
        channel.last_message_id = message.id
        if channel.is_thread and message.kind != THREAD_STARTER:
            channel.thread.messages += 1
        self.tell_message("MESSAGE_CREATE", message)

    def whisper(self, message: Message) -> None:
        """Show a message to one person only; nobody else hears of it."""
        message.note_version()
        self.ephemerals.append(message)
        self.touch()

    def changed(self, message: Message) -> None:
        """Tell everyone that a message is not what it was; of an ephemeral one only its reader hears."""
        message.note_version()
        if message.for_user is None:
            self.tell_message("MESSAGE_UPDATE", message)
        self.touch()

    def remove(self, message: Message) -> None:
        """Delete a message."""
        if message.for_user is not None:
            self.ephemerals.remove(message)
            self.touch()
            return
        channel = self.channels[message.channel_id]
        del self._messages[channel.id][message.id]
        place = {"guild_id": channel.guild_id} if channel.guild_id else {}
        self.tell("MESSAGE_DELETE", {"id": message.id, "channel_id": channel.id, **place}, channel)

    def tell_message(self, name: str, message: Message) -> None:
        """Publish a message."""
        channel = self.channels[message.channel_id]
        self.tell(name, event_message(self, message), channel, open_text=self.open_text(message))

    def tell(self, name: str, data: JSON, channel: Channel, *, open_text: bool = True) -> None:
        """Publish what happened in a channel, if the bot can see it."""
        installed = channel.guild_id is None or self.guilds[channel.guild_id].installed
        if installed and self.sees(self.bot.id, channel):
            self._publish(Event(name=name, data=data, guild_id=channel.guild_id, open_text=open_text))
        self.touch()

    def tell_guild(self, name: str, data: JSON, guild: Guild) -> None:
        """Publish what happened in a server."""
        about_bot = data.get("user", {}).get("id") == self.bot.id
        self.send(Event(name=name, data=data, guild_id=guild.id, about_bot=about_bot))

    def send(self, event: Event) -> None:
        """Publish an event that the bot gets wherever it happened."""
        self._publish(event)
        self.touch()

    def touch(self) -> None:
        """Wake those who wait for a change."""
        self._changes.tell()
