"""Finds out whether Discord can be used as it is set up: switches in the portal, servers, invitations."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import discord

from bot.adapters.discord.api_errors import map_post_errors
from bot.adapters.discord.connection import NO_CONTENT, PORTAL

HOW_TO_ADD = (
    f"{PORTAL} > New Application > Bot: Reset Token, set DISCORD_TOKEN to the token it shows, and switch Message "
    "Content "
    "Intent on. Then `citebot doctor` shows the address that invites the bot to a server."
)
WITHOUT_CONTENT = (
    "Message Content Intent is not asked for: citebot answers mentions, direct messages and commands, and has to be "
    "mentioned in threads as well."
)

ANYBODY = (
    "Anybody can invite the bot to a server of their own and ask it there. Open the app at "
    f"{PORTAL}, choose Bot, and switch Public Bot off; or set DISCORD_SERVERS to the ids of your servers."
)


async def list_problems(client: discord.Client, *, message_content: bool, servers: Collection[str]) -> Sequence[str]:
    """List the problems, each as a sentence that says where to click; raises `ChatError`s."""
    with map_post_errors():
        found = [str(guild.id) async for guild in client.fetch_guilds(with_counts=False)]
    flags = client.application_flags
    granted = flags.gateway_message_content or flags.gateway_message_content_limited
    content = WITHOUT_CONTENT if not message_content else "" if granted else NO_CONTENT
    nowhere = "" if found else f"The bot is not in any server. Invite it: {make_invite_url(client)}"
    missing = [
        f"The bot is not in the server {server}. Invite it: {make_invite_url(client)}"
        for server in servers
        if found and server not in found
    ]
    public = ANYBODY if client.application is not None and client.application.bot_public and not servers else ""
    return [sentence for sentence in (content, public, nowhere, *missing) if sentence]


def make_invite_url(client: discord.Client) -> str:
    """The address at which the manager of a server lets the bot in, with what it needs there."""
    needed = discord.Permissions(
        view_channel=True, send_messages=True, send_messages_in_threads=True, create_public_threads=True,
        read_message_history=True, attach_files=True, add_reactions=True,
    )  # fmt: skip
    scopes = ("bot", "applications.commands")
    return discord.utils.oauth_url(client.application_id or 0, permissions=needed, scopes=scopes)
