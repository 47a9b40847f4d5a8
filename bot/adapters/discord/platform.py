"""Discord as a chat platform: posts, edits, and finds messages sent before a crash."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence

import aiohttp
import discord

from bot.adapters.discord.api_errors import (
    ARCHIVED,
    FORBIDDEN,
    GONE,
    UNKNOWN_MESSAGE,
    map_edit_errors,
    map_post_errors,
    read_error_code,
)
from bot.adapters.discord.channels import ChannelDirectory, find_reply, read_thread
from bot.adapters.discord.connection import ANSWER_SECONDS, CallPacer
from bot.adapters.discord.ephemeral import DiscordEphemeralMessages, is_ephemeral
from bot.adapters.discord.rendering import render_buttons, render_file, render_text
from bot.adapters.discord.reply_targets import ReplyTarget, ReplyTargets
from bot.adapters.file_downloads import download_file
from bot.clock import Clock
from bot.errors import ChatError, EditRefused, PostRefused, RateLimited, StreamRefused
from bot.messages import (
    AttachedFile,
    Capabilities,
    MessageContent,
    MessageHandle,
    Place,
    RateLimit,
    SendMethod,
    ThreadMessage,
)
from bot.ports import LiveStream
from bot.replies.paging import show_without_file

# Discord announces its limits in its answers, and discord.py waits for them. These rates keep it from having to.
RATES: Mapping[SendMethod, RateLimit] = {
    "post": RateLimit(calls=5, seconds=5.0, per="thread"),
    "edit": RateLimit(calls=5, seconds=5.0, per="thread"),
    "withdraw": RateLimit(calls=5, seconds=1.0, per="thread"),
}
MAX_UNITS = 1_950  # Discord takes 2,000, and does not say of what
MAX_PARTS = 8
LONGEST_NONCE = 25
FILES = ("https://cdn.discordapp.com", "https://media.discordapp.net")
OLD = 3_600.0  # seconds, after which Discord allows only a few more edits of a message

log = logging.getLogger(__name__)


class DiscordPlatform:
    """A `ChatPlatform` over the REST API."""

    def __init__(
        self,
        client: discord.Client,
        *,
        channels: ChannelDirectory,
        reply_targets: ReplyTargets,
        ephemeral: DiscordEphemeralMessages,
        pacer: CallPacer,
        clock: Clock,
        session: aiohttp.ClientSession,
        origins: Collection[str] = (),
        rates: Mapping[SendMethod, RateLimit] = RATES,
    ) -> None:
        self.capabilities = Capabilities(max_units=MAX_UNITS, utf16=True, rates=rates, max_parts=MAX_PARTS)
        self._client = client
        self._channels = channels
        self._reply_targets = reply_targets
        self._ephemeral = ephemeral
        self._pacer = pacer
        self._clock = clock
        self._session = session
        self._origins = {*FILES, *origins}

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message; Discord returns an existing one with this nonce."""
        if place.line:
            return await self._ephemeral.post(place, content, nonce=nonce)
        target = await self._reply_targets.find_or_start(place)
        try:
            message = await self._send_with_fallback(target, content, nonce)
        except PostRefused as refused:
            if not target.begun or read_error_code(refused) not in FORBIDDEN:
                raise
            target = self._reply_targets.reply_below(place)
            message = await self._send_with_fallback(target, content, nonce)
        return _handle(place, target.channel, message.id)

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Replace all of a message; an archived thread is reopened for it."""
        if is_ephemeral(handle):
            await self._ephemeral.edit(handle, content)
            return
        try:
            await self._edit_with_fallback(handle, content)
        except EditRefused as refused:
            if read_error_code(refused) != ARCHIVED:
                raise
            with map_edit_errors():
                thread = await self._client.fetch_channel(int(handle.thread))
                if isinstance(thread, discord.Thread):
                    await thread.edit(archived=False)
            await self._edit_with_fallback(handle, content)
        except RateLimited:
            sent_at = discord.utils.snowflake_time(int(handle.id)).timestamp()
            if self._clock.now() - sent_at > OLD:
                raise EditRefused("The message is too old to be changed at the moment.") from None
            raise

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; a missing one is no error."""
        if is_ephemeral(handle):
            await self._ephemeral.withdraw(handle)
            return
        try:
            await self._pacer.acquire()
            with map_edit_errors():
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._get_message(handle).delete()
        except EditRefused as refused:
            if read_error_code(refused) not in GONE:
                raise

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce."""
        if place.line:
            return await self._ephemeral.find_reply(place, nonce)
        channel = await self._reply_targets.find_channel(place)
        after = int(place.thread or 0)
        found = await find_reply(self._client, channel, nonce=nonce, after=after)
        return _handle(place, channel, found) if found else None

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:  # noqa: ARG002
        """Refuse: Discord has no streams."""
        raise StreamRefused("Discord has no streams.")

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""
        if not place.thread:
            return ()
        channel = await self._channels.find(int(place.thread))
        return await read_thread(self._client, channel, before=int(before), limit=limit)

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Fetch a file that came with a message; Discord's addresses of files need no token."""
        return await download_file(self._session, file, origins=self._origins, most=most)

    async def hint(self, place: Place, status: str) -> None:
        """Show that the bot is typing; failing is no error."""
        if place.line or not status:
            return
        try:
            with map_post_errors():
                await self._client.get_partial_messageable(await self._reply_targets.find_channel(place)).typing()
        except ChatError as error:
            log.debug("the typing indicator is not shown: %s", error)

    async def _send_with_fallback(self, target: ReplyTarget, content: MessageContent, nonce: str) -> discord.Message:
        try:
            return await self._send(target, content, nonce)
        except PostRefused as refused:
            if read_error_code(refused) == UNKNOWN_MESSAGE and len(nonce) < LONGEST_NONCE:
                # A message with this nonce was sent and deleted a moment ago, and Discord sends no other.
                return await self._send_with_fallback(target, content, f"{nonce}+")
            if content.file is None:
                raise
            # Files need a permission of their own; the text is worth sending without one.
            log.warning("a file was not attached: %s", refused)
            return await self._send(target, show_without_file(content, str(refused), self.capabilities), nonce)

    async def _send(self, target: ReplyTarget, content: MessageContent, nonce: str) -> discord.Message:
        channel = self._client.get_partial_messageable(target.channel)
        reference = None
        if target.reply_to:
            reference = discord.MessageReference(
                message_id=target.reply_to, channel_id=target.channel, fail_if_not_exists=False
            )
        await self._pacer.acquire()
        with map_post_errors():
            async with asyncio.timeout(ANSWER_SECONDS):
                return await channel.send(
                    render_text(content),
                    nonce=nonce,
                    suppress_embeds=True,
                    view=render_buttons(content, nonce) or discord.utils.MISSING,
                    files=[render_file(content.file)] if content.file else [],
                    reference=reference,  # type: ignore[arg-type] # None is what discord.py begins with
                )

    async def _edit_with_fallback(self, handle: MessageHandle, content: MessageContent) -> None:
        try:
            await self._edit(handle, content)
        except EditRefused as refused:
            if content.file is None or read_error_code(refused) not in FORBIDDEN:
                raise
            log.warning("a file was not attached: %s", refused)
            await self._edit(handle, show_without_file(content, str(refused), self.capabilities))

    async def _edit(self, handle: MessageHandle, content: MessageContent) -> None:
        files = [render_file(content.file)] if content.file else []
        await self._pacer.acquire()
        with map_edit_errors():
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._get_message(handle).edit(
                    content=render_text(content), view=render_buttons(content), attachments=files
                )

    def _get_message(self, handle: MessageHandle) -> discord.PartialMessage:
        channel = self._client.get_partial_messageable(int(handle.thread or handle.channel))
        return channel.get_partial_message(int(handle.id))


def _handle(place: Place, channel: int, message: int) -> MessageHandle:
    """Return a handle for a message of citebot; `thread` is its thread, if it is not in the channel itself."""
    thread = str(channel) if str(channel) != place.channel else ""
    return place.make_handle(message, thread)
