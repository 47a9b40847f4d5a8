"""The endpoints of the bot itself, of users, servers and channels."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.discord.errors import DiscordError
from tests.fakes.discord.intents import Portal
from tests.fakes.discord.requests import Answer, Ask, Endpoint
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON


class PlacesApi:
    """Answers who the bot is and where it can be."""

    def __init__(self, world: World, threads: Threads, portal: Portal) -> None:
        self._world = world
        self._threads = threads
        self._portal = portal

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        table: list[tuple[str, str, str, Callable[[Ask], Answer]]] = [
            ("get_current_user", "GET", "/users/@me", self.me),
            ("get_current_application", "GET", "/oauth2/applications/@me", self.application),
            ("get_current_application", "GET", "/applications/@me", self.application),
            ("get_current_user_guilds", "GET", "/users/@me/guilds", self.guilds),
            ("create_dm", "POST", "/users/@me/channels", self.create_dm),
            ("get_guild_member", "GET", "/guilds/{guild}/members/{user}", self.member),
            ("get_channel", "GET", "/channels/{channel}", self.channel),
            ("modify_channel", "PATCH", "/channels/{channel}", self.modify),
        ]
        return [
            Endpoint(name=name, method=method, path=path, answer=answer, major=_major(path))
            for name, method, path, answer in table
        ]

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
        """Put a thread away, bring it back, lock it."""
        channel, body = self._world.channel(ask.path["channel"]), ask.fields
        thread = channel.thread
        archived, locked = body.get("archived", thread.archived), body.get("locked", thread.locked)
        self._threads.archive(channel, archived=bool(archived), locked=bool(locked))
        return self._threads.wire(channel)


def _major(path: str) -> tuple[str, ...]:
    return tuple(name for name in ("channel", "guild") if f"/{name}s/{{{name}}}" in path)
