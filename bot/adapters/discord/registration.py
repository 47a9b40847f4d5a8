"""Registers citebot's commands with Discord, when they are not what is registered already."""

from __future__ import annotations

import logging
from typing import Any, cast

import discord

from bot.adapters.discord.refusals import map_post_errors
from bot.adapters.discord.slash import commands_differ, describe_commands
from bot.clock import Clock
from bot.errors import ChatError, PlatformUnreachable, RateLimited

PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)  # seconds between tries where Discord does not answer

log = logging.getLogger(__name__)


async def keep_registering(client: discord.Client, clock: Clock) -> None:
    """Bring the commands up to date, a few times where Discord does not answer or asks to wait."""
    for pause in (*PAUSES, None):
        try:
            await register_commands(client)
        except (RateLimited, PlatformUnreachable) as error:
            if pause is None:
                log.warning("the commands were not registered: %s Restart citebot to try again.", error)
                return
            wait = max(pause, error.retry_after) if isinstance(error, RateLimited) else pause
            log.warning("the commands are not registered yet: %s Trying again in %g seconds.", error, wait)
            await clock.sleep(wait)
        except ChatError as error:
            log.warning("the commands were not registered: %s", error)
            return
        else:
            return


async def register_commands(client: discord.Client) -> bool:
    """Bring the commands up to date; True where that took a change. Without it the ones from before go on working."""
    application, wanted = client.application_id or 0, describe_commands()
    with map_post_errors():
        present = await client.http.get_global_commands(application)
        if not commands_differ(wanted, cast("Any", present)):
            return False
        await client.http.bulk_upsert_global_commands(application, cast("Any", list(wanted)))
    return True
