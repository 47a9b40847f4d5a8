"""Contents as Discord shows them: Markdown with small print below it, and buttons."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import cast, get_args

import discord

from bot.messages import Attachment, Button, ButtonAction, MessageContent

PREFIX = "citebot"
_STYLES: Mapping[ButtonAction, discord.ButtonStyle] = {
    "stop": discord.ButtonStyle.danger,
    "approve": discord.ButtonStyle.primary,
}


def render_text(content: MessageContent) -> str:
    """Write a content as the text of one message."""
    below = [f"-# *{content.status}*"] if content.status else []
    below += [f"-# {content.footer}"] if content.footer else []
    return "\n".join([content.text.rstrip("\n"), *below] if content.text.strip() else below)


def render_buttons(content: MessageContent, nonce: str = "") -> discord.ui.View | None:
    """Lay the buttons out; they bear the nonce of the message, which Discord itself does not keep."""
    if not content.buttons:
        return None
    view = discord.ui.View(timeout=None)
    for button in content.buttons:
        view.add_item(_button(button, nonce))
    view.stop()  # presses are heard as events, also after a restart: discord.py shall not remember the view
    return view


def render_file(attachment: Attachment) -> discord.File:
    """Make a file of an attachment."""
    return discord.File(io.BytesIO(attachment.text.encode("utf-8", "replace")), filename=attachment.name)


def parse_button(custom_id: str) -> tuple[ButtonAction, str] | None:
    """Read which button was pressed, and the value that came with it; None for what is no button of a reply."""
    prefix, _, rest = custom_id.partition(":")
    action, _, value = rest.partition(":")
    if prefix != PREFIX or action not in get_args(ButtonAction):
        return None
    return cast("ButtonAction", action), value.partition(":")[0]


def has_nonce(message: discord.Message, nonce: str) -> bool:
    """Whether a message was sent with a nonce, as its buttons tell."""
    found = (child for row in message.components for child in getattr(row, "children", ()))
    return any(str(getattr(child, "custom_id", "")).rstrip("+").endswith(f":{nonce}") for child in found)


def _button(button: Button, nonce: str) -> discord.ui.Button[discord.ui.View]:
    return discord.ui.Button(
        label=button.label[:80],
        style=_STYLES.get(button.action, discord.ButtonStyle.secondary),
        custom_id=f"{PREFIX}:{button.action}:{button.value[:50]}:{nonce}"[:100],
    )
