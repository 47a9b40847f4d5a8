"""The endpoints of the bot itself, of users, servers and channels."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.discord.channels import Kind
from tests.fakes.discord.checks import check_thread_name
from tests.fakes.discord.errors import DiscordError
from tests.fakes.discord.intents import Portal
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.requests import Answer, Ask, Endpoint
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON


class PlacesApi:
    """Answers who the bot is and where it can be."""

    def __init__(self, world: World, threads: Threads, portal: Portal, gateway_url: Callable[[], str]) -> None:
        self._world = world
        self._threads = threads
        self._portal = portal
        self._gateway_url = gateway_url

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        table: list[tuple[str, str, str, Callable[[Ask], Answer]]] = [
            ("get_gateway", "GET", "/gateway", self.gateway),
            ("get_gateway_bot", "GET", "/gateway/bot", self.gateway_bot),
            ("get_current_user", "GET", "/users/@me", self.me),
            ("get_current_application", "GET", "/oauth2/applications/@me", self.application),
            ("get_current_application", "GET", "/applications/@me", self.application),
            ("get_current_user_guilds", "GET", "/users/@me/guilds", self.guilds),
            ("create_dm", "POST", "/users/@me/channels", self.create_dm),
            ("get_user", "GET", "/users/{user}", self.user),
            ("get_guild", "GET", "/guilds/{guild}", self.guild),
            ("get_guild_channels", "GET", "/guilds/{guild}/channels", self.guild_channels),
            ("get_guild_roles", "GET", "/guilds/{guild}/roles", self.roles),
            ("list_guild_members", "GET", "/guilds/{guild}/members", self.members),
            ("search_guild_members", "GET", "/guilds/{guild}/members/search", self.search),
            ("get_guild_member", "GET", "/guilds/{guild}/members/{user}", self.member),
            ("get_channel", "GET", "/channels/{channel}", self.channel),
            ("modify_channel", "PATCH", "/channels/{channel}", self.modify),
            ("delete_channel", "DELETE", "/channels/{channel}", self.delete),
        ]
        return [
            Endpoint(name=name, method=method, path=path, answer=answer, major=_major(path))
            for name, method, path, answer in table
        ]

    def gateway(self, ask: Ask) -> JSON:
        """Tell where the gateway is."""
        return {"url": self._gateway_url()}

    def gateway_bot(self, ask: Ask) -> JSON:
        """Tell where the gateway is, and how many sessions may still be started."""
        limit = {"total": 1000, "remaining": 1000, "reset_after": 86_400_000, "max_concurrency": 1}
        return {"url": self._gateway_url(), "shards": 1, "session_start_limit": limit}

    def me(self, ask: Ask) -> JSON:
        """Give the bot."""
        return self._world.bot.wire() | {"verified": True, "mfa_enabled": False, "flags": 0}

    def application(self, ask: Ask) -> JSON:
        """Give the application; its flags tell which privileged intents are switched on."""
        owner = next(iter(self._world.guilds.values())).owner_id
        body: JSON = {"id": self._world.bot.id, "name": self._world.bot.name, "icon": None, "description": ""}
        body |= {
            "bot_public": self._portal.public,
            "bot_require_code_grant": False,
            "verify_key": "00",
            "summary": "",
            "team": None,
        }
        body |= {"owner": self._world.users[owner].wire(), "flags": self._portal.flags, "bot": self._world.bot.wire()}
        return body | {"approximate_guild_count": len(self._world.guilds), "interactions_endpoint_url": None}

    def guilds(self, ask: Ask) -> list[JSON]:
        """List the servers that the bot is in."""
        installed = [each for each in self._world.guilds.values() if each.installed]
        mine = self._world.bot.id
        return [
            {"id": each.id, "name": each.name, "icon": None, "owner": False, "features": []}
            | {"permissions": str(int(each.permissions(mine)))}
            for each in installed
        ]

    def create_dm(self, ask: Ask) -> JSON:
        """Open a direct conversation."""
        return self._world.dm(self._world.user(str(ask.fields.get("recipient_id")))).wire(bot=self._world.bot.id)

    def user(self, ask: Ask) -> JSON:
        """Give a person."""
        return self._world.user(ask.path["user"]).wire()

    def guild(self, ask: Ask) -> JSON:
        """Give a server."""
        guild = self._world.guild(ask.path["guild"])
        counts = {"approximate_member_count": len(guild.members), "approximate_presence_count": 1}
        return guild.wire() | (counts if ask.flag("with_counts") else {})

    def guild_channels(self, ask: Ask) -> list[JSON]:
        """List the channels of a server, without threads."""
        guild, bot = self._world.guild(ask.path["guild"]), self._world.bot.id
        found = [each for each in self._world.channels.values() if each.guild_id == guild.id and not each.is_thread]
        return [each.wire(bot=bot) for each in found]

    def roles(self, ask: Ask) -> list[JSON]:
        """List the roles of a server."""
        return [each.wire() for each in self._world.guild(ask.path["guild"]).roles.values()]

    def members(self, ask: Ask) -> list[JSON]:
        """List members; only with the members intent switched on."""
        guild = self._world.guild(ask.path["guild"])
        if "members" not in self._portal.privileged:
            raise DiscordError(50001)
        after = int(ask.query.get("after", 0))
        later = sorted(
            (each for each in guild.members.values() if int(each.user.id) > after), key=lambda m: int(m.user.id)
        )
        return [each.wire() for each in later[: ask.number("limit", 1)]]

    def search(self, ask: Ask) -> list[JSON]:
        """Find members whose names begin so."""
        guild, start = self._world.guild(ask.path["guild"]), ask.query.get("query", "")
        found = [each for each in guild.members.values() if each.user.name.startswith(start)]
        return [each.wire() for each in found[: ask.number("limit", 1)]]

    def member(self, ask: Ask) -> JSON:
        """Give a member."""
        guild, user = self._world.guild(ask.path["guild"]), self._world.user(ask.path["user"])
        if user.id not in guild.members:
            raise DiscordError(10007)
        return guild.members[user.id].wire()

    def channel(self, ask: Ask) -> JSON:
        """Give a channel or thread."""
        return self._world.channel(ask.path["channel"]).wire(bot=self._world.bot.id)

    def modify(self, ask: Ask) -> JSON:
        """Change a channel, or a thread: rename it, put it away, bring it back, lock it."""
        channel, body = self._world.channel(ask.path["channel"]), ask.fields
        if not channel.is_thread:
            self._world.channel(channel.id, Permission.MANAGE_CHANNELS)
            channel.name = str(body.get("name", channel.name))
            wire = channel.wire(bot=self._world.bot.id)
            self._world.tell("CHANNEL_UPDATE", wire, channel)
            return wire
        self._refuse_others_thread(channel.id, body)
        if "name" in body:
            channel.name = check_thread_name(body["name"])
        thread = channel.thread
        thread.archive_after = int(body.get("auto_archive_duration", thread.archive_after))
        archived, locked = body.get("archived", thread.archived), body.get("locked", thread.locked)
        self._threads.archive(channel, archived=bool(archived), locked=bool(locked))
        return self._threads.wire(channel)

    def delete(self, ask: Ask) -> JSON:
        """Delete a channel or thread; a direct conversation is only closed."""
        channel = self._world.channel(ask.path["channel"])
        if channel.kind is Kind.DM:
            return channel.wire(bot=self._world.bot.id)
        self._world.channel(channel.id, Permission.MANAGE_THREADS if channel.is_thread else Permission.MANAGE_CHANNELS)
        return self._threads.close(channel)

    def _refuse_others_thread(self, identity: str, body: JSON) -> None:
        """A thread's owner may rename it and put it away, whoever may write may bring it back; the rest moderates."""
        channel, bot = self._world.channels[identity], self._world.bot.id
        if channel.thread.owner_id == bot and not body.get("locked") and not channel.thread.locked:
            return
        if set(body) <= {"archived"} and not body["archived"] and not channel.thread.locked:
            return
        self._world.channel(identity, Permission.MANAGE_THREADS)


def _major(path: str) -> tuple[str, ...]:
    return tuple(name for name in ("channel", "guild") if f"/{name}s/{{{name}}}" in path)
