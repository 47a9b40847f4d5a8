"""Slack as a chat platform: posts, edits, streams, uploads files, and finds messages sent before a crash."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import aiohttp
from cachetools import LRUCache

from bot.adapters.file_downloads import download_file, get_origin
from bot.adapters.slack import api_errors
from bot.adapters.slack.channels import find_last_author, find_reply, has_file_after, read_thread
from bot.adapters.slack.client import BotIdentity, SlackClient
from bot.adapters.slack.ephemeral import EphemeralStream, SlackEphemeralMessages, is_ephemeral
from bot.adapters.slack.rendering import Block, make_fallback_text, render_blocks, render_context
from bot.errors import ChatError, EditRefused, PlatformUnreachable, StreamRefused
from bot.messages import (
    AttachedFile,
    Attachment,
    Capabilities,
    MessageContent,
    MessageHandle,
    Place,
    PlaceLink,
    RateLimit,
    SendMethod,
    ThreadMessage,
)
from bot.ports import LiveStream
from bot.replies.paging import show_without_file

log = logging.getLogger(__name__)

_MAX_TITLE = 200


class SlackStream:
    """An open stream. Its step carries the nonce from the beginning, its metadata only once the stream ends."""

    def __init__(self, client: SlackClient, handle: MessageHandle, *, nonce: str, metadata: Block, status: str) -> None:
        self._client = client
        self._handle = handle
        self._nonce = nonce
        self._metadata = metadata
        self._status = status
        self._has_shown_places = False  # once: Slack does not say whether it would add them to the ones before

    @property
    def handle(self) -> MessageHandle:
        """The message."""
        return self._handle

    async def append(self, text: str, content: MessageContent) -> None:
        """Add text and show the step; without a status, the last step stays. If nothing changes, nothing is sent."""
        status = content.status or self._status
        found = () if self._has_shown_places else content.found
        step = make_step(self._nonce, status, found=found) if found or status != self._status else ()
        chunks = [*make_text_chunk(text), *step]
        if chunks:
            await self._client.send(
                lambda: self._client.web.chat_appendStream(
                    channel=self._handle.channel, ts=self._handle.id, chunks=chunks
                ),
                api_errors.map_stream_error,
            )
        self._status = status
        self._has_shown_places = self._has_shown_places or bool(found)

    async def finish(self, text: str, content: MessageContent) -> None:
        """Add the last text, and end with footer and buttons."""
        chunks = [*make_text_chunk(text), *make_step(self._nonce, self._status, done=True)]
        await self._client.send(
            lambda: self._client.web.chat_stopStream(
                channel=self._handle.channel,
                ts=self._handle.id,
                chunks=chunks or None,
                blocks=render_context(content) or None,
                metadata=self._metadata,
            ),
            api_errors.map_stream_error,
        )


def make_text_chunk(text: str) -> Sequence[Any]:
    """Make a piece of text for a stream."""
    return [{"type": "markdown_text", "text": text}] if text else []


def make_step(nonce: str, status: str, *, found: Sequence[PlaceLink] = (), done: bool = False) -> Sequence[Any]:
    """Return the one line of progress, with the places found so far as its sources."""
    words = status.replace("`", "")
    title = (words.removesuffix("…").strip() if done else words)[:_MAX_TITLE]
    if not title:
        return []
    step: dict[str, Any] = {"type": "task_update", "id": nonce, "title": title}
    step["status"] = "complete" if done else "in_progress"
    if sources := [{"type": "url", "url": place.url, "text": place.name} for place in found if place.url]:
        step["sources"] = sources
    if names := ", ".join(place.name for place in found if not place.url):
        step["details"] = f"Found {names}"
    return [step]


Streaming = Literal["auto", "off"]
EVENT_TYPE = "citebot_reply"
FILES = "https://files.slack.com"
_REMEMBERED = 2_000
_DIRECT = "D"  # the prefix of the ids of direct conversations

# https://docs.slack.dev/apis/web-api/rate-limits: per method and workspace, posts per channel.
RATES: Mapping[SendMethod, RateLimit] = {
    "post": RateLimit(calls=1, seconds=1.0, per="channel"),
    "edit": RateLimit(calls=50),
    "withdraw": RateLimit(calls=50),
    "stream_start": RateLimit(calls=20),
    "stream_append": RateLimit(calls=100),
    "stream_stop": RateLimit(calls=20),
}
MAX_UNITS = 11_000  # of all blocks together; Slack refuses a little above 12,000


class SlackPlatform:
    """A `ChatPlatform` over the Web API of one workspace."""

    def __init__(
        self,
        client: SlackClient,
        identity: BotIdentity,
        ephemeral: SlackEphemeralMessages,
        *,
        streaming: Streaming = "auto",
        rates: Mapping[SendMethod, RateLimit] = RATES,
    ) -> None:
        self.capabilities = Capabilities(
            whispers=True, max_units=MAX_UNITS, utf16=False, escapes=True, rates=rates, streams=streaming == "auto"
        )
        self._client = client
        self._identity = identity
        self._ephemeral = ephemeral
        self._askers: LRUCache[Place, tuple[str, str]] = LRUCache(_REMEMBERED)
        # The attachments of messages sent or changed here.
        self._attached: LRUCache[tuple[str, str], Attachment | None] = LRUCache(_REMEMBERED)

    def remember_asker(self, place: Place, user: str, team: str) -> None:
        """Remember who asked last in a thread: Slack wants to know the reader of a stream."""
        self._askers[place] = user, team

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Send a message, marked with the nonce; a file follows it in the thread."""
        if is_ephemeral(place):
            return await self._ephemeral.post(place, self._inline_file(content), nonce=nonce)
        await self._show_direct_status(place, content.status)
        answer = await self._client.send(
            lambda: self._client.web.chat_postMessage(
                channel=place.channel,
                thread_ts=place.thread or None,
                text=make_fallback_text(content.text or content.status),
                blocks=render_blocks(content),
                metadata=make_metadata(nonce),
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        handle = place.make_handle(answer["ts"])
        self._attached[handle.channel, handle.id] = None
        await self._attach(handle, content)
        return handle

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Replace all of a message; first end a stream left open in it."""
        if is_ephemeral(handle):
            await self._ephemeral.edit(handle, self._inline_file(content))
            return
        try:
            await self._update(handle, content)
        except EditRefused as refused:
            if "streaming_state_conflict" not in str(refused):
                raise
            await self._end_stream(handle)
            await self._update(handle, content)
        await self._attach(handle, content)

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; a missing one is no error."""
        if is_ephemeral(handle):
            await self._ephemeral.withdraw(handle)
            return
        try:
            await self._client.send(
                lambda: self._client.web.chat_delete(channel=handle.channel, ts=handle.id), api_errors.map_edit_error
            )
        except EditRefused as refused:
            if "message_not_found" not in str(refused):
                raise

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce, or the stream that was begun just before a crash."""
        if is_ephemeral(place):
            return None
        ts = await find_reply(self._client, place, own=self._identity, event_type=EVENT_TYPE, nonce=nonce)
        return place.make_handle(ts) if ts else None

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:
        """Begin a stream; `StreamRefused` if the workspace has none."""
        if is_ephemeral(place):
            return EphemeralStream(self._ephemeral, await self._ephemeral.post(place, content, nonce=nonce))
        await self._show_direct_status(place, content.status)
        user, team = await self._find_asker(place)
        answer = await self._client.send(
            lambda: self._client.web.chat_startStream(
                channel=place.channel,
                thread_ts=place.thread,
                recipient_user_id=user,
                recipient_team_id=team,
                chunks=make_step(nonce, content.status) or None,
            ),
            api_errors.map_stream_start_error,
        )
        handle = place.make_handle(answer["ts"])
        self._attached[handle.channel, handle.id] = None
        return SlackStream(self._client, handle, nonce=nonce, metadata=make_metadata(nonce), status=content.status)

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, oldest first."""
        if not place.thread or is_ephemeral(place):
            return ()
        return await read_thread(self._client, place, own=self._identity, before=before, limit=limit)

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Download a file attached to a message, with the bot's token."""
        web = self._client.web
        if web.session is None:
            raise PlatformUnreachable("There is no session to fetch with.")
        return await download_file(
            web.session, file,
            origins={FILES, get_origin(web.base_url)}, most=most,
            headers={"Authorization": f"Bearer {web.token}"}, proxy=web.proxy,
        )  # fmt: skip

    async def hint(self, place: Place, status: str) -> None:
        """Show a status below the thread if Slack supports it; failing is no error."""
        if not place.thread or is_ephemeral(place):
            return
        try:
            await self._client.send(
                lambda: self._client.web.assistant_threads_setStatus(
                    channel_id=place.channel, thread_ts=place.thread, status=status
                )
            )
        except ChatError as error:
            log.debug("no status is shown: %s", error)

    async def _show_direct_status(self, place: Place, status: str) -> None:
        """Show in a DM immediately that work is in progress; the next message clears it."""
        if status and place.channel.startswith(_DIRECT):
            await self.hint(place, status.replace("`", ""))

    async def _update(self, handle: MessageHandle, content: MessageContent) -> None:
        # Blocks are always sent: the documentation contradicts itself on whether Slack keeps the old ones without.
        await self._client.send(
            lambda: self._client.web.chat_update(
                channel=handle.channel,
                ts=handle.id,
                text=make_fallback_text(content.text or content.status),
                blocks=render_blocks(content),
                metadata=make_metadata(""),
            ),
            api_errors.map_edit_error,
        )

    async def _end_stream(self, handle: MessageHandle) -> None:
        try:
            await self._client.send(
                lambda: self._client.web.chat_stopStream(channel=handle.channel, ts=handle.id),
                api_errors.map_stream_error,
            )
        except ChatError as error:
            log.info("a stream was not ended: %s", error)

    async def _find_asker(self, place: Place) -> tuple[str, str]:
        """Return the last asker in a thread, which is read after a restart."""
        if place not in self._askers:
            found = await find_last_author(self._client, place, own=self._identity)
            if found is None:
                raise StreamRefused("Nobody is known for whom the stream could be.")
            self.remember_asker(place, *found)
        return self._askers[place]

    def _inline_file(self, content: MessageContent) -> MessageContent:
        return show_without_file(content, "only you see this, but Slack shows files to everybody.", self.capabilities)

    async def _attach(self, handle: MessageHandle, content: MessageContent) -> None:
        """Send the file of a content after its message, once; after a failure, put its beginning into the message."""
        message = handle.channel, handle.id
        if content.file is None or self._attached.get(message) == content.file:
            return
        is_there = message not in self._attached and await self._was_attached(handle, content.file)
        self._attached[message] = content.file
        if is_there:
            return
        try:
            await upload_file(self._client, handle, content.file)
        except ChatError as error:
            log.warning("a file was not attached: %s", error)
            await self._update(handle, show_without_file(content, str(error), self.capabilities))

    async def _was_attached(self, handle: MessageHandle, file: Attachment) -> bool:
        """Whether an earlier process sent a file after its message, and was killed before it noted that."""
        place = Place(
            platform=handle.platform, workspace=handle.workspace, channel=handle.channel,
            thread=handle.thread or handle.id,
        )  # fmt: skip
        try:
            return await has_file_after(
                self._client, place, own=self._identity, ts=handle.id, name=file.name, size=len(file.content)
            )
        except ChatError as error:  # twice is better than never
            log.warning("it is not known whether a file was attached already: %s", error)
            return False


def make_metadata(nonce: str) -> Block:
    """The metadata that marks a message as a reply; its nonce identifies the reply."""
    return {"event_type": EVENT_TYPE, "event_payload": {"nonce": nonce}}


async def upload_file(client: SlackClient, handle: MessageHandle, file: Attachment) -> None:
    """Upload a file and show it in the thread of a message."""
    data = file.content
    where = await client.send(
        lambda: client.web.files_getUploadURLExternal(filename=file.name, length=len(data), alt_txt=file.alt or None)
    )
    session = client.web.session
    if session is None:
        raise PlatformUnreachable("There is no session to upload with.")
    try:
        async with session.post(str(where["upload_url"]), data=data, proxy=client.web.proxy) as answer:
            if answer.status != 200:
                raise PlatformUnreachable(f"Slack answered an upload with the status {answer.status}.")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise PlatformUnreachable(f"Slack does not answer ({type(error).__name__}).") from error
    await client.send(
        lambda: client.web.files_completeUploadExternal(
            files=[{"id": where["file_id"], "title": file.name}],
            channel_id=handle.channel,
            thread_ts=handle.thread or handle.id,
        )
    )
