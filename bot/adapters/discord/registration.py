"""Registers citebot's commands with Discord, when they are not what is registered already."""

from __future__ import annotations

import logging
from typing import Any, cast

import discord

from bot.adapters.discord.refusals import posting
from bot.adapters.discord.slash import differ, registered
from bot.errors import ChatError

log = logging.getLogger(__name__)


async def register(client: discord.Client) -> bool:
    """Bring the commands up to date; True where that took a change. Without it the ones from before go on working."""
    application, wanted = client.application_id or 0, registered()
    try:
        with posting():
            present = await client.http.get_global_commands(application)
            if not differ(wanted, cast("Any", present)):
                return False
            await client.http.bulk_upsert_global_commands(application, cast("Any", list(wanted)))
    except ChatError as error:
        log.warning("the commands were not registered: %s", error)
        return False
    return True
