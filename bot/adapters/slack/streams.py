"""Slack's native stream: a message that takes text piece by piece and shows the step that the work is at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.adapters.slack import api_errors
from bot.adapters.slack.client import SlackClient
from bot.adapters.slack.rendering import Block, render_context
from bot.messages import MessageContent, MessageHandle, PlaceLink

_LONGEST_TITLE = 200


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
        """Add text and show the step; without a status, the last step stays. Nothing is sent where nothing changes."""
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
    """A piece of text for a stream."""
    return [{"type": "markdown_text", "text": text}] if text else []


def make_step(nonce: str, status: str, *, found: Sequence[PlaceLink] = (), done: bool = False) -> Sequence[Any]:
    """The one line that says what is in progress, and the places that were found as its sources."""
    words = status.replace("`", "")
    title = (words.removesuffix("…").strip() if done else words)[:_LONGEST_TITLE]
    if not title:
        return []
    step: dict[str, Any] = {"type": "task_update", "id": nonce, "title": title}
    step["status"] = "complete" if done else "in_progress"
    if sources := [{"type": "url", "url": place.url, "text": place.name} for place in found if place.url]:
        step["sources"] = sources
    if names := ", ".join(place.name for place in found if not place.url):
        step["details"] = f"Found {names}"
    return [step]
