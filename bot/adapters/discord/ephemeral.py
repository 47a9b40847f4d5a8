"""Answers for only the person who used a command, sent with the interaction's token while it is valid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import discord

from bot.adapters.discord.api_errors import InteractionExpired, map_edit_errors, map_post_errors
from bot.adapters.discord.rendering import render_buttons, render_file, render_text
from bot.clock import Clock
from bot.errors import EditRefused, PostRefused
from bot.messages import ONE_PERSON, MessageContent, MessageHandle, Place

LIFETIME = 840.0  # seconds; Discord takes answers for a quarter of an hour
_ORIGINAL = cast("Any", "@original")  # Discord's name for the first answer, whatever its id


@dataclass(frozen=True, kw_only=True, slots=True)
class InteractionToken:
    """The interaction, the person and the token that an answer to one person needs."""

    interaction: int
    user: int
    token: str

    def __str__(self) -> str:
        return f"{self.interaction}.{self.user}.{self.token}"

    @classmethod
    def parse(cls, written: str) -> InteractionToken:
        """Parse the output of `str`; `InteractionExpired` if it was dropped, as when a reply is settled."""
        if not written:
            raise InteractionExpired("How this person is reached was kept until the reply was settled.")
        interaction, user, token = written.split(".", 2)
        return cls(interaction=int(interaction), user=int(user), token=token)


def is_ephemeral(handle: MessageHandle) -> bool:
    """Whether only one person sees a message."""
    return handle.thread.startswith(ONE_PERSON)


class DiscordEphemeralMessages:
    """Sends and edits private messages. Once the token has expired, the rest goes into a direct message."""

    def __init__(self, client: discord.Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message to one person; the first one replaces the deferred answer."""
        token = InteractionToken.parse(place.line)
        try:
            message = await self._send_ephemeral(token, content, nonce)
        except InteractionExpired:
            return await self._send_directly(place, token, content, nonce)
        return place.make_handle(message.id, f"{ONE_PERSON} {token}")

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Edit such a message; `EditRefused` once the token has expired."""
        with _map_token_errors():
            webhook = self._make_webhook(InteractionToken.parse(handle.line))
            await self._edit(webhook, int(handle.id), content)

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete such a message."""
        with _map_token_errors():
            await self._make_webhook(InteractionToken.parse(handle.line)).delete_message(int(handle.id))

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the first answer of an interaction, if it was given; others leave no trace."""
        if not nonce.endswith(".0"):
            return None
        token = InteractionToken.parse(place.line)
        try:
            with map_post_errors():
                message = await self._make_webhook(token).fetch_message(_ORIGINAL)
        except (InteractionExpired, PostRefused):
            return None
        if message.flags.loading:
            return None
        return place.make_handle(message.id, f"{ONE_PERSON} {token}")

    async def _send_ephemeral(
        self, token: InteractionToken, content: MessageContent, nonce: str
    ) -> discord.WebhookMessage:
        with map_post_errors():
            webhook = self._make_webhook(token)
            if nonce.endswith(".0"):
                return await self._edit(webhook, _ORIGINAL, content, nonce)
            view = render_buttons(content, nonce) or discord.utils.MISSING
            files = [render_file(content.file)] if content.file else discord.utils.MISSING
            return await webhook.send(
                render_text(content), ephemeral=True, suppress_embeds=True, wait=True, view=view, files=files
            )

    async def _edit(
        self, webhook: discord.Webhook, message: int, content: MessageContent, nonce: str = ""
    ) -> discord.WebhookMessage:
        files = [render_file(content.file)] if content.file else []
        return await webhook.edit_message(
            message, content=render_text(content), view=render_buttons(content, nonce), attachments=files
        )

    async def _send_directly(
        self, place: Place, token: InteractionToken, content: MessageContent, nonce: str
    ) -> MessageHandle:
        with map_post_errors():
            channel = await self._client.create_dm(discord.Object(token.user))
            view = render_buttons(content, nonce) or discord.utils.MISSING
            files = [render_file(content.file)] if content.file else []
            message = await channel.send(
                render_text(content), nonce=nonce, suppress_embeds=True, view=view, files=files
            )
        return place.make_handle(message.id, str(channel.id))

    def _make_webhook(self, token: InteractionToken) -> discord.Webhook:
        begun = discord.utils.snowflake_time(token.interaction).timestamp()
        if self._clock.now() - begun > LIFETIME:
            raise InteractionExpired("Discord accepts answers to a command for 15 minutes only.")
        data = {"id": str(self._client.application_id), "type": discord.WebhookType.application.value}
        # discord.py needs the state for buttons and to mention nobody; after a restart it has no other source.
        state = self._client._connection  # noqa: SLF001
        return discord.Webhook.from_state(cast("Any", data | {"token": token.token}), state)


@contextmanager
def _map_token_errors() -> Iterator[None]:
    try:
        with map_edit_errors():
            yield
    except InteractionExpired as error:
        raise EditRefused(str(error)) from error
