"""Brings the client to Discord and keeps it there: patient with what is away, plain about what is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
import discord

from bot.clock import Clock
from bot.errors import ChatError, SettingsError, Unreachable

PORTAL = "https://discord.com/developers/applications"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LOGIN_TRIES = 6

BAD_TOKEN = (
    f"Discord refuses the token. Open the app at {PORTAL}, choose Bot > Reset Token, and set DISCORD_TOKEN to what "
    "it shows."
)
NO_CONTENT = (
    f"Discord does not let this app read messages. Open the app at {PORTAL}, choose Bot > Privileged Gateway Intents, "
    "and switch Message Content Intent on. Or do without: with DISCORD_MESSAGE_CONTENT=off citebot answers mentions, "
    "direct messages and commands, and has to be mentioned in threads as well."
)
_CLOSED: Mapping[int, str] = {
    4004: BAD_TOKEN,
    4011: "Discord wants this app, which is in very many servers, to be split into shards; citebot is one process.",
    4013: "Discord does not know what citebot asks for (intents). Update citebot.",
    4014: NO_CONTENT,
}
_AWAY = (aiohttp.ClientError, TimeoutError, OSError, discord.DiscordServerError, discord.GatewayNotFound)

C = TypeVar("C", bound=discord.Client)

log = logging.getLogger(__name__)


class _NotYet(ChatError):
    """Discord is away; it may be back in a moment."""


@asynccontextmanager
async def logged_in(make: Callable[[], C], token: str, clock: Clock) -> AsyncIterator[C]:
    """Log a client in, trying again with a new one while Discord is away; raises what `_log_in` raises."""
    pause = FIRST_PAUSE
    for tries_left in reversed(range(LOGIN_TRIES)):
        client = make()
        try:
            await _log_in(client, token)
            yield client
        except _NotYet as error:
            if tries_left == 0:
                raise Unreachable(str(error)) from error
            log.warning("%s Next try in %g seconds.", error, pause)
        else:
            return
        finally:
            await client.close()
        await clock.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _log_in(client: discord.Client, token: str) -> None:
    """Find out who the token belongs to; `SettingsError` where it is refused."""
    try:
        await client.login(token)
    except discord.LoginFailure as error:
        raise SettingsError(BAD_TOKEN) from error
    except _AWAY as error:
        raise _NotYet(f"Discord cannot be reached ({type(error).__name__}).") from error
    except discord.HTTPException as error:
        raise ChatError(f"Discord does not let citebot in: {error.text or error.status}.") from error


async def stay(client: discord.Client, clock: Clock) -> None:
    """Hear what happens, until this is cancelled; `SettingsError` where Discord does not allow it."""
    pause = FIRST_PAUSE
    try:
        while True:
            try:
                await client.connect()
            except discord.PrivilegedIntentsRequired as error:
                raise SettingsError(NO_CONTENT) from error
            except discord.ConnectionClosed as error:
                said = f"Discord has closed the connection for good (code {error.code})."
                raise SettingsError(_CLOSED.get(error.code, said)) from error
            except AttributeError:
                # Where the first connection fails, discord.py looks for the state of one that never was.
                if client.ws is not None:
                    raise
            except _AWAY as error:
                log.info("the gateway is away: %s", type(error).__name__)
            log.warning("the gateway of Discord cannot be reached; next try in %g seconds", pause)
            await clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
    finally:
        await _leave(client)


async def _leave(client: discord.Client) -> None:
    """Hear nothing more; messages can still be sent."""
    if client.ws is not None and client.ws.open:
        async with asyncio.timeout(5):
            await client.ws.close(code=1000)
