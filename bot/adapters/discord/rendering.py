"""Turns contents into Discord's Markdown and buttons, and Discord's text into plain Markdown. Pure functions."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import cast, get_args

import discord

from bot.markdown.formatting import to_one_line
from bot.messages import Attachment, ButtonAction, MessageContent, PlaceLink

OwnUser = discord.ClientUser | None

PREFIX = "citebot"
SOMEBODY, CHANNEL = "someone", "channel"  # names are missing here
_STYLES: Mapping[ButtonAction, discord.ButtonStyle] = {
    "stop": discord.ButtonStyle.danger,
    "approve": discord.ButtonStyle.primary,
}

LONGEST_NAME = 90  # Discord takes 100, and does not say of what
UNNAMED = "Question"

_USER = re.compile(r"<@!?(\d{1,20})>")
_ROLE = re.compile(r"<@&(\d{1,20})>")
_CHANNEL = re.compile(r"<#(\d{1,20})>")
_EMOJI = re.compile(r"<a?(:\w{2,32}:)\d{1,20}>")


def render_text(content: MessageContent) -> str:
    """Write a content as the text of one message."""
    below = [f"-# *{content.status}*"] if content.status else []
    below += [f"-# Found {', '.join(map(_format_place, content.found))}"] if content.found else []
    below += [f"-# {content.footer}"] if content.footer else []
    return "\n".join([content.text.rstrip("\n"), *below] if content.text.strip() else below)


def _format_place(place: PlaceLink) -> str:
    return f"[`{place.name}`]({place.url})" if place.url else f"`{place.name}`"


def render_buttons(content: MessageContent, nonce: str = "") -> discord.ui.View | None:
    """Lay the buttons out; they carry the nonce of the message, which Discord itself does not keep."""
    if not content.buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in content.buttons:
        item: discord.ui.Button[discord.ui.View] = discord.ui.Button(
            label=button.label[:80],
            style=_STYLES.get(button.action, discord.ButtonStyle.secondary),
            custom_id=f"{PREFIX}:{button.action}:{button.value[:50]}:{nonce}"[:100],
        )
        view.add_item(item)
    view.stop()  # presses arrive as events, also after a restart: discord.py need not remember the view
    return view


def render_file(attachment: Attachment) -> discord.File:
    """Make a file of an attachment."""
    source = io.BytesIO(attachment.content)
    return discord.File(source, filename=attachment.name, description=attachment.alt or None)


def parse_button(custom_id: str) -> tuple[ButtonAction, str] | None:
    """Parse a pressed button and its value; None for other components."""
    prefix, _, rest = custom_id.partition(":")
    action, _, value = rest.partition(":")
    if prefix != PREFIX or action not in get_args(ButtonAction):
        return None
    return cast("ButtonAction", action), value.partition(":")[0]


def has_nonce(message: discord.Message, nonce: str) -> bool:
    """Whether a message was sent with a nonce, which its buttons carry."""
    found = (child for row in message.components for child in getattr(row, "children", ()))
    return any(str(getattr(child, "custom_id", "")).rstrip("+").endswith(f":{nonce}") for child in found)


def to_plain_markdown(text: str, *, own: frozenset[int], users: Mapping[int, str], places: Mapping[int, str]) -> str:
    """Return the words as typed, without mentions of the bot: `own` are the ids of its user and its role.

    `users` and `places` are the names of mentioned people and channels; no ids are kept.
    """

    def person(found: re.Match[str]) -> str:
        number = int(found[1])
        return "" if number in own else f"@{users.get(number) or SOMEBODY}"

    text = _ROLE.sub(person, _USER.sub(person, text))
    text = _CHANNEL.sub(lambda found: f"#{places.get(int(found[1])) or CHANNEL}", text)
    return _EMOJI.sub(r"\1", text).strip()


def make_thread_name(question: str) -> str:
    """Name a thread after its first question."""
    words = to_one_line(question).replace("`", "").replace("*", "").strip()
    if not any(char.isalnum() for char in words):
        return UNNAMED
    name = words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1].rstrip()}…"
    return name.encode("utf-16-le")[: 2 * LONGEST_NAME].decode("utf-16-le", "ignore")


def read_text(message: discord.Message, own: OwnUser, text: str) -> str:
    """Return the text of a message as typed, without mentions of the bot."""
    users = {user.id: user.display_name for user in message.mentions}
    users |= {role.id: role.name for role in message.role_mentions}
    places = {channel.id: getattr(channel, "name", "") for channel in message.channel_mentions}
    return to_plain_markdown(text, own=list_own_ids(message, own), users=users, places=places)


def list_own_ids(message: discord.Message, own: OwnUser) -> frozenset[int]:
    """Return the ids that mention the bot: its own, and its role's, which people choose by mistake."""
    role = message.guild.self_role if message.guild else None
    return frozenset(user.id for user in (own, role) if user is not None)
