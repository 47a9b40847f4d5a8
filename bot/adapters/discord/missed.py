"""Finds what people wrote while nobody listened: Discord delivers it only to a session that goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence

import discord

from bot.adapters.discord.refusals import map_post_errors
from bot.errors import ChatError

MOST_PLACES, MOST_MESSAGES = 50, 100

Written = discord.TextChannel | discord.VoiceChannel | discord.Thread

log = logging.getLogger(__name__)


async def read_missed_messages(
    client: discord.Client, places: Sequence[int], after: int
) -> AsyncIterator[discord.Message]:
    """Give the messages of places after an id, place by place, oldest first; what cannot be read is left out."""
    if len(places) > MOST_PLACES:
        log.warning("%d places have new messages; %d of them are read", len(places), MOST_PLACES)
    since = discord.Object(after)
    for number in places[:MOST_PLACES]:
        try:
            with map_post_errors():
                found = _channel(client, number).history(limit=MOST_MESSAGES, after=since, oldest_first=True)
                messages = [message async for message in found]
        except ChatError as error:
            log.warning("a place was not looked through: %s", error)
            continue
        for message in messages:
            yield message


def find_channels_with_news(guild: discord.Guild, after: int) -> Sequence[int]:
    """Return the places in a server that Discord says have newer messages, and that may be read."""
    channels: list[Written] = [*guild.text_channels, *guild.voice_channels, *guild.threads]
    return [each.id for each in channels if (each.last_message_id or 0) > after and _is_open(each)]


def _is_open(channel: Written) -> bool:
    may = channel.permissions_for(channel.guild.me)
    return may.view_channel and may.read_message_history


def _channel(client: discord.Client, number: int) -> discord.abc.Messageable:
    """The channel as it is known, so that its messages know their server."""
    known = client.get_channel(number)
    return known if isinstance(known, discord.abc.Messageable) else client.get_partial_messageable(number)
