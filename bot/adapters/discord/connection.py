"""Logs the client in, keeps it connected, and keeps its calls below Discord's rate limit for bots."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import aiohttp
import discord
from discord.backoff import ExponentialBackoff
from discord.gateway import ReconnectWebSocket

from bot.adapters.discord.api_errors import map_error
from bot.clock import Clock
from bot.errors import ChatError, PlatformUnreachable, RateLimited, SettingsError

PORTAL = "https://discord.com/developers/applications"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# Discord allows fifty calls in a second; the rest is for what discord.py calls on its own.
MAX_CALLS, CALL_SECONDS = 40, 1.0
ANSWER_SECONDS = 45.0  # a call that takes longer has no answer; discord.py waits for limits within it
FAREWELL = 5.0  # seconds in which the gateway may answer that it is left

BAD_TOKEN = (
    f"Discord refuses the token. Open the app at {PORTAL}, choose Bot > Reset Token, and set DISCORD_TOKEN to "
    "the token it shows."
)
NO_CONTENT = (
    f"Discord does not let this app read messages. Open the app at {PORTAL}, choose Bot > Privileged Gateway Intents, "
    "and switch Message Content Intent on. Or do without: with DISCORD_MESSAGE_CONTENT=off citebot answers mentions, "
    "direct messages and commands, and has to be mentioned in threads as well."
)
AWAY = "Discord cannot be reached ({}). Check the network and DISCORD_API_BASE_URL; discordstatus.com lists outages."
_CLOSED: Mapping[int, str] = {
    4004: BAD_TOKEN,
    4011: "Discord requires sharding for an app in this many servers; citebot is one process.",
    4013: "Discord does not know the intents that citebot requests. Update citebot.",
    4014: NO_CONTENT,
}
AWAY_ERRORS = (aiohttp.ClientError, TimeoutError, OSError, discord.DiscordServerError, discord.GatewayNotFound)

C = TypeVar("C", bound=discord.Client)

log = logging.getLogger(__name__)


class ReconnectBackoff(ExponentialBackoff[Literal[False]]):
    """discord.py's pauses, which grow to a quarter of an hour, limited to a minute."""

    def delay(self) -> float:
        """Return the seconds until the next try."""
        return min(super().delay(), LONGEST_PAUSE)


@asynccontextmanager
async def log_in(client: C, token: str) -> AsyncIterator[C]:
    """Log in as the token's owner. Raises `RateLimited` if Discord, or Cloudflare before it, asks for a long wait."""
    try:
        try:
            await client.login(token)
        except discord.LoginFailure as error:
            raise SettingsError(BAD_TOKEN) from error
        except AWAY_ERRORS as error:
            raise PlatformUnreachable(AWAY.format(type(error).__name__)) from error
        except discord.RateLimited as error:
            raise RateLimited(error.retry_after) from error
        except discord.HTTPException as error:
            if error.status == 429:
                raise map_error(error) from error
            raise ChatError(f"Discord denies access: {error.text or error.status}.") from error
        yield client
    finally:
        await client.close()


async def stay_connected(client: discord.Client, clock: Clock) -> None:
    """Receive events until cancelled; raises a `SettingsError` if Discord does not allow it."""
    pause = FIRST_PAUSE
    try:
        while True:
            began = clock.now()
            away = await _connect_client(client)
            if clock.now() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            log.warning("the gateway of Discord cannot be reached (%s); next try in %g seconds", away, pause)
            await clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
    finally:
        await _leave(client)


async def _connect_client(client: discord.Client) -> str:
    """Stay connected for as long as possible; return the reason for the end."""
    try:
        await client.connect()
    except discord.PrivilegedIntentsRequired as error:
        raise SettingsError(NO_CONTENT) from error
    except discord.ConnectionClosed as error:
        reason = f"Discord has closed the connection for good (code {error.code})."
        raise SettingsError(_CLOSED.get(error.code, reason)) from error
    except (*AWAY_ERRORS, ReconnectWebSocket) as error:
        return type(error).__name__
    except Exception as error:
        # It is not documented what it raises for a malformed frame, be it no JSON or compressed in another way.
        log.exception("a frame from Discord could not be read; connecting again")
        client.dispatch("disconnect")
        await _leave(client, code=4000)
        return type(error).__name__
    return "it was closed"


async def _leave(client: discord.Client, *, code: int = 1000) -> None:
    """Receive no more events; messages can still be sent."""
    if client.ws is None or not client.ws.open:
        return
    try:
        async with asyncio.timeout(FAREWELL):
            await client.ws.close(code=code)
    except TimeoutError:
        log.info("the gateway of Discord was left without its answer")


class CallPacer:
    """Limits calls per second, in order: refusals count towards a ban."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=MAX_CALLS)
        self._lock = asyncio.Lock()

    async def acquire(self) -> None:
        """Wait until one more call may be made."""
        async with self._lock:
            if len(self._recent) == MAX_CALLS:
                await self._clock.sleep(self._recent[0] + CALL_SECONDS - self._clock.now())
            self._recent.append(self._clock.now())
