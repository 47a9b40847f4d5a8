"""Brings the client to Discord and keeps it there: patient with what is away, plain about what is refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

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

log = logging.getLogger(__name__)


async def log_in(client: discord.Client, token: str, clock: Clock) -> None:
    """Find out who the token belongs to; `SettingsError` where it is refused, `Unreachable` where Discord is away."""
    pause = FIRST_PAUSE
    for tries_left in reversed(range(LOGIN_TRIES)):
        try:
            await client.login(token)
        except discord.LoginFailure as error:
            raise SettingsError(BAD_TOKEN) from error
        except _AWAY as error:
            if tries_left == 0:
                raise Unreachable(f"Discord cannot be reached ({type(error).__name__}). Try again later.") from error
            log.warning("Discord cannot be reached (%s); next try in %g seconds", type(error).__name__, pause)
            await clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        except discord.HTTPException as error:
            raise ChatError(f"Discord does not let citebot in: {error.text or error.status}.") from error
        else:
            return


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
