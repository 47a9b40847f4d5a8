"""Looks up members: who is from inside, and which roles they have."""

from __future__ import annotations

import logging
from collections.abc import Collection

import discord
from cachetools import LRUCache

from bot.adapters.discord.channels import MOST_KNOWN
from bot.adapters.discord.parsing import read_roles
from bot.clock import Clock

REMEMBERED = 60.0  # seconds
MOST_SERVERS = 10  # that are asked about one person

log = logging.getLogger(__name__)


class MemberDirectory:
    """Looks up members. `servers` are the ids of those that count as inside; without any, all that the bot is in do."""

    def __init__(self, client: discord.Client, clock: Clock, servers: Collection[str] = ()) -> None:
        self._client = client
        self._clock = clock
        self._servers = frozenset(servers)
        self._known: LRUCache[int, tuple[float, bool, tuple[str, ...]]] = LRUCache(MOST_KNOWN)

    def is_inside(self, server: str) -> bool:
        """Whether a server counts as inside."""
        return not self._servers or server in self._servers

    async def roles(self, person: int) -> tuple[bool, tuple[str, ...]]:
        """Return whether somebody is a member of a server that counts as inside, and their roles there."""
        known = self._known.get(person)
        if known is not None and self._clock.now() - known[0] < REMEMBERED:
            return known[1:]
        inside = [guild for guild in self._client.guilds if self.is_inside(str(guild.id))][:MOST_SERVERS]
        found = [member for guild in inside if (member := await self._fetch_member(guild, person)) is not None]
        roles = tuple(role for member in found for role in read_roles(member))
        self._known[person] = (self._clock.now(), bool(found), roles)
        return bool(found), roles

    async def roles_in(self, server: int, person: int) -> tuple[str, ...]:
        """Return the roles of somebody in one server; none where they cannot be looked up."""
        guild = self._client.get_guild(server)
        member = await self._fetch_member(guild, person) if guild is not None else None
        return read_roles(member) if member is not None else ()

    async def _fetch_member(self, guild: discord.Guild, person: int) -> discord.Member | None:
        """Fetch a member; where that fails, nobody is returned, so that nothing is shown by mistake."""
        try:
            return await guild.fetch_member(person)
        except discord.NotFound:
            return None
        except (discord.HTTPException, discord.RateLimited, OSError) as error:
            log.warning("a member of server %s could not be looked up: %s", guild.id, type(error).__name__)
            return None
