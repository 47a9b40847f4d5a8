"""Setting the scene: people, servers, channels, threads, and who may do what where."""

from __future__ import annotations

from tests.fakes.discord.channels import Channel, Kind
from tests.fakes.discord.guilds import Guild, Member, Role
from tests.fakes.discord.payloads import guild_create
from tests.fakes.discord.permissions import NONE, Overwrite, Permission
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World


class Places:
    """Verbs that set the scene. Everything goes by ids; without a server, the first one is meant."""

    world: World
    threads: Threads
    guild_id: str

    def add_user(self, name: str, *, guild: str | None = None, is_bot: bool = False, outside: bool = False) -> str:
        """Make an account, a member of the server unless `outside`; return the id."""
        user = self.world.add_user(name, is_bot=is_bot)
        if not outside:
            self.join_guild(user.id, guild)
        return user.id

    def join_guild(self, user: str, guild: str | None = None) -> None:
        """Make somebody a member."""
        place = self.world.guilds[guild or self.guild_id]
        member = Member(user=self.world.users[user], joined=self.world.clock.now())
        place.members[user] = member
        self.world.tell_guild("GUILD_MEMBER_ADD", member.wire() | {"guild_id": place.id}, place)

    def add_guild(self, name: str) -> str:
        """Open another server, with an owner and the bot in it; return the id."""
        guild = self.world.add_guild(name, self.world.add_user(f"owner of {name}"))
        self._tell_arrival(guild)
        return guild.id

    def remove_bot(self, guild: str | None = None) -> None:
        """Take the bot out of a server."""
        place = self.world.guilds[guild or self.guild_id]
        self.world.tell_guild("GUILD_DELETE", {"id": place.id}, place)
        place.installed = False

    def add_channel(
        self, name: str, *, kind: Kind = Kind.TEXT, guild: str | None = None, private: bool = False, bot: bool = True
    ) -> str:
        """Open a channel; a private one shows to the bot alone, until others are allowed. Return the id."""
        place = self.world.guilds[guild or self.guild_id]
        channel = Channel(id=self.world.ids.next(), kind=kind, name=name, guild_id=place.id)
        channel.position = len(self.world.channels)
        if private:
            channel.overwrites.append(Overwrite(target=place.id, kind=0, deny=Permission.VIEW_CHANNEL))
            channel.overwrites += (
                [Overwrite(target=self.world.bot.id, kind=1, allow=Permission.VIEW_CHANNEL)] if bot else []
            )
        elif not bot:
            channel.overwrites.append(Overwrite(target=self.world.bot.id, kind=1, deny=Permission.VIEW_CHANNEL))
        self.world.add_channel(channel)
        self.world.tell("CHANNEL_CREATE", channel.wire(bot=self.world.bot.id), channel)
        return channel.id

    def add_forum(self, name: str, *, guild: str | None = None) -> str:
        """Open a forum; return the id."""
        return self.add_channel(name, kind=Kind.FORUM, guild=guild)

    def delete_channel(self, channel: str) -> None:
        """Delete a channel or thread."""
        self.threads.close(self.world.channels[channel])

    def deny(self, channel: str, who: str, *permissions: Permission) -> None:
        """Deny a member or role something in a channel."""
        overwrite = self._overwrite(channel, who)
        for each in permissions:
            overwrite.allow, overwrite.deny = overwrite.allow & ~each, overwrite.deny | each
        self._tell_channel(channel)

    def add_role(self, name: str, *permissions: Permission, guild: str | None = None, mentionable: bool = False) -> str:
        """Make a role; return the id."""
        place = self.world.guilds[guild or self.guild_id]
        role = Role(id=self.world.ids.next(), name=name, permissions=NONE, mentionable=mentionable)
        for each in permissions:
            role.permissions |= each
        role.position = len(place.roles)
        place.roles[role.id] = role
        self.world.tell_guild("GUILD_ROLE_CREATE", {"guild_id": place.id, "role": role.wire()}, place)
        return role.id

    def give_role(self, user: str, role: str) -> None:
        """Give a member a role."""
        place = next(guild for guild in self.world.guilds.values() if role in guild.roles)
        place.members[user].roles.append(role)
        body = place.members[user].wire() | {"guild_id": place.id}
        self.world.tell_guild("GUILD_MEMBER_UPDATE", body, place)

    def archive(self, thread: str, *, locked: bool = False) -> None:
        """Put a thread away, as time or a moderator does."""
        self.threads.archive(self.world.channels[thread], locked=locked)

    @property
    def owner(self) -> str:
        """Who owns the first server, and may do everything there."""
        return self.world.guilds[self.guild_id].owner_id

    @property
    def bot_id(self) -> str:
        """The bot's user, and its application."""
        return self.world.bot.id

    @property
    def bot_role(self) -> str:
        """The bot's own role in the first server, which people mention by mistake."""
        return self.world.guilds[self.guild_id].members[self.world.bot.id].roles[0]

    def _tell_arrival(self, guild: Guild) -> None:
        self.world.tell_guild("GUILD_CREATE", guild_create(self.world, guild), guild)

    def _overwrite(self, channel: str, who: str) -> Overwrite:
        place = self.world.channels[channel]
        found = next((each for each in place.overwrites if each.target == who), None)
        if found is None:
            found = Overwrite(target=who, kind=1 if who in self.world.users else 0)
            place.overwrites.append(found)
        return found

    def _tell_channel(self, channel: str) -> None:
        place = self.world.channels[channel]
        self.world.tell("CHANNEL_UPDATE", place.wire(bot=self.world.bot.id), place)
