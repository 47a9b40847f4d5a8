"""The replies to what is asked for outside chats: kept in the database, where anyone who asked reads them."""

from __future__ import annotations

from collections.abc import Sequence

from bot.errors import FileUnreadable, InboxError, PlatformUnreachable, StreamRefused
from bot.messages import SURFACE, AttachedFile, Capabilities, MessageContent, MessageHandle, Place, ThreadMessage
from bot.ports import LiveStream
from bot.storage.shared_answers import ShareableAnswer, ShareableAnswerStore


class SurfaceReplies:
    """A platform without people: a message is a row, which the API and the page read, in whichever process."""

    capabilities = Capabilities(max_units=1_000_000, utf16=False, rates={}, edit_every=0.5)

    def __init__(self, contents: ShareableAnswerStore) -> None:
        self._contents = contents

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Keep a message under its nonce."""
        handle = _make_handle(place, nonce)
        await self.edit(handle, content)
        return handle

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Keep what a message shows from now on."""
        place = Place(platform=SURFACE, workspace="", channel="", thread=handle.thread)
        try:
            await self._contents.keep(handle.id, place.key(), ShareableAnswer(content=content, repositories=()))
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error

    async def withdraw(self, handle: MessageHandle) -> None:
        """Drop a message."""
        try:
            await self._contents.drop(handle.id)
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message of a nonce."""
        try:
            is_there = await self._contents.read(nonce) is not None
        except InboxError as error:
            raise PlatformUnreachable(str(error)) from error
        return _make_handle(place, nonce) if is_there else None

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:  # noqa: ARG002
        """Refuse: a row is replaced as a whole."""
        raise StreamRefused("There are no streams here.")

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:  # noqa: ARG002
        """Return nothing: there is no thread around a goal run."""
        return ()

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:  # noqa: ARG002
        """Refuse: nothing comes with a request."""
        raise FileUnreadable("There are no files here.")

    async def hint(self, place: Place, status: str) -> None:
        """Show nothing: the message has the status."""


def _make_handle(place: Place, nonce: str) -> MessageHandle:
    return MessageHandle(platform=SURFACE, workspace="", channel="", id=nonce, thread=place.thread)
