"""Slack's native stream: a message that takes text piece by piece and shows the step that the work is at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.adapters.slack import refusals
from bot.adapters.slack.blocks import Block, below
from bot.adapters.slack.client import Calls
from bot.messages import Content, MessageHandle

_LONGEST_TITLE = 200


class SlackStream:
    """A stream that is open. Its step bears the nonce from the beginning, its metadata once the stream ends."""

    def __init__(self, calls: Calls, handle: MessageHandle, *, nonce: str, metadata: Block, status: str) -> None:
        self._calls = calls
        self._handle = handle
        self._nonce = nonce
        self._metadata = metadata
        self._status = status

    @property
    def handle(self) -> MessageHandle:
        """The message."""
        return self._handle

    async def append(self, text: str, *, status: str) -> None:
        """Add text and show the step; where both are as before, nothing is sent. The step named last stays."""
        status = status or self._status
        chunks = [*said(text), *(step(self._nonce, status) if status != self._status else ())]
        if chunks:
            await self._calls.send(
                lambda: self._calls.client.chat_appendStream(
                    channel=self._handle.channel, ts=self._handle.id, chunks=chunks
                ),
                refusals.of_stream,
            )
        self._status = status

    async def finish(self, text: str, content: Content) -> None:
        """Add the last text, and end with footer and buttons."""
        chunks = [*said(text), *step(self._nonce, self._status, done=True)]
        await self._calls.send(
            lambda: self._calls.client.chat_stopStream(
                channel=self._handle.channel,
                ts=self._handle.id,
                chunks=chunks or None,
                blocks=below(content) or None,
                metadata=self._metadata,
            ),
            refusals.of_stream,
        )


def said(text: str) -> Sequence[Any]:
    """A piece of text for a stream."""
    return [{"type": "markdown_text", "text": text}] if text else []


def step(nonce: str, status: str, *, done: bool = False) -> Sequence[Any]:
    """The one line that says what is going on."""
    words = status.replace("`", "")
    title = (words.removesuffix("…").strip() if done else words)[:_LONGEST_TITLE]
    state = "complete" if done else "in_progress"
    return [{"type": "task_update", "id": nonce, "title": title, "status": state}] if title else []
