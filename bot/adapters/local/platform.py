"""The workspace as a chat platform: replies are messages of it that grow by edits."""

from __future__ import annotations

from collections.abc import Sequence

from bot.adapters.local.workspace import BOT, PLATFORM, StoredMessage, Workspace
from bot.errors import EditRefused, FileUnreadable, PostRefused, StreamRefused
from bot.messages import (
    ONE_PERSON,
    AttachedFile,
    Capabilities,
    MessageContent,
    MessageHandle,
    Place,
    ThreadMessage,
)
from bot.ports import LiveStream

ABLE = Capabilities(max_units=12_000, utf16=False, rates={}, whispers=True, edit_every=0.15)
FILE_ADDRESS = "local:"  # begins the address of an attached file


class LocalPlatform:
    """A `ChatPlatform` over the workspace."""

    def __init__(self, workspace: Workspace, capabilities: Capabilities = ABLE) -> None:
        self.capabilities = capabilities
        self._workspace = workspace

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Add a message to a channel or thread, or one that a single person sees."""
        is_private = place.thread.startswith(ONE_PERSON)
        reader = place.thread.removeprefix(ONE_PERSON) if is_private else ""
        thread = 0 if is_private else read_number(place.thread)
        root = await self._workspace.find(thread) if thread else None
        if thread and root is None:
            raise PostRefused("There is no such thread.")
        added = await self._workspace.add(
            place.channel, BOT, thread=thread, reader=reader, content=content, nonce=nonce
        )
        return make_handle(place, added.id)

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Change all of a message."""
        if not await self._workspace.show(read_number(handle.id), content):
            raise EditRefused("The message is gone.")

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; one that is gone already is no error."""
        await self._workspace.delete(read_number(handle.id))

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce."""
        found = await self._workspace.find_by_nonce(nonce)
        return make_handle(place, found.id) if found is not None else None

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> LiveStream:  # noqa: ARG002
        """Refuse: replies grow by edits here."""
        raise StreamRefused("Replies grow by edits here.")

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        """Read the newest messages of a thread before the one named, the one that began it included."""
        thread = read_number(place.thread)
        root = await self._workspace.find(thread) if thread else None
        if root is None:
            return ()
        below = await self._workspace.list_messages(place.channel, thread, "")
        earlier = [each for each in (root, *below) if each.id < read_number(before) and not each.is_deleted]
        return [self._read_message(each) for each in earlier[-limit:]]

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Return what an attached file holds."""
        found = await self._workspace.read_file(read_number(file.url.removeprefix(FILE_ADDRESS)))
        if found is None or len(found[1]) > most:
            raise FileUnreadable("The file is gone." if found is None else "The file is too large.")
        return found[1]

    async def hint(self, place: Place, status: str) -> None:
        """Show nothing: the reply has its own status."""

    def _read_message(self, message: StoredMessage) -> ThreadMessage:
        person = self._workspace.people.get(message.author)
        text = message.content.text if message.content is not None else message.text
        return ThreadMessage(
            id=str(message.id), author=person.name if person else message.author, text=text,
            own=message.author == BOT,
        )  # fmt: skip


def read_number(text: str) -> int:
    """Read the number of a message; 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def make_handle(place: Place, message: int) -> MessageHandle:
    """A message that citebot has sent."""
    return MessageHandle(
        platform=PLATFORM, workspace=place.workspace, channel=place.channel, id=str(message), thread=place.thread
    )
