"""The workspace: its people, channels and messages, stored in a database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent import Database, DatabaseErrors, Schema, open_sqlite
from agent.text.storable import make_storable
from bot.clock import Clock
from bot.errors import EditRefused, FileUnreadable, PlatformUnreachable, PostRefused, StreamRefused
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
from bot.storage.answer_records import read_content, write_content

PLATFORM, WORKSPACE, BOT, GIT = "local", "demo", "citebot", "git"
FILE = "workspace.sqlite"
DIRECT = "dm-"  # begins the id of the channel in which one person talks to citebot
MAX_SHOWN = 300  # messages of a channel or thread
_ERRORS = DatabaseErrors(failed=PlatformUnreachable, unreachable=PlatformUnreachable)
_COLUMNS = "id, channel, thread, author, reader, text, content, files, reactions, at, edited_at, is_deleted, version"
_NEXT = "(SELECT coalesce(max(version), 0) + 1 FROM messages)"
_INSERT = (
    "INSERT INTO messages (channel, thread, author, reader, text, content, files, reactions, nonce, at, edited_at, "  # noqa: S608 - constants
    f"is_deleted, version) VALUES (?, ?, ?, ?, ?, ?, ?, '{{}}', ?, ?, 0, 0, {_NEXT}) RETURNING {_COLUMNS}, 0"
)
ABLE = Capabilities(max_units=12_000, utf16=False, rates={}, whispers=True, edit_every=0.15)
FILE_ADDRESS = "local:"  # begins the address of an attached file


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """A participant; a guest is from another organization."""

    id: str
    name: str
    about: str
    is_guest: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Channel:
    """A channel, or a person's direct conversation with citebot; in some, questions need a mention of it."""

    id: str
    name: str
    about: str
    takes_mentions: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether one person talks to citebot here."""
        return self.id.startswith(DIRECT)


PEOPLE = (
    Person(id="ann", name="Ann", about="Maintainer: may reindex and approve goal runs"),
    Person(id="bob", name="Bob", about="Developer: may ask, but not reindex"),
    Person(id="eve", name="Eve", about="Guest from another organization: citebot does not answer", is_guest=True),
)


CHANNELS = (
    Channel(
        id="general", name="general", about="Mention @citebot to ask. It continues in the thread.", takes_mentions=True
    ),
    Channel(id="help", name="help", about="Ask without a mention: citebot answers if it finds something."),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFile:
    """A file attached to a message of a person."""

    id: int
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredMessage:
    """One message. `thread` is 0 outside threads; only a `reader` can see it; `content` is citebot's."""

    id: int
    channel: str
    thread: int
    author: str
    reader: str
    text: str
    at: float
    version: int
    content: MessageContent | None = None
    files: tuple[StoredFile, ...] = ()
    reactions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    edited_at: float = 0.0
    is_deleted: bool = False
    replies: int = 0


class Workspace:
    """People, channels and messages; waiters hear of each change."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        people: Sequence[Person] = PEOPLE,
        channels: Sequence[Channel] = CHANNELS,
    ) -> None:
        self.people = {person.id: person for person in people}
        self._channels = channels
        self._database = database
        self._clock = clock
        self._changed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(cls, home: Path, clock: Clock, **parts: Any) -> AsyncIterator[Workspace]:
        """Open the workspace of a data folder."""
        schema = Schema.load("workspace", "bot.adapters.local")
        opening = open_sqlite(home / FILE, schema, _ERRORS, prepare=lambda _: None, synchronous="NORMAL")
        async with opening as database:
            yield cls(database, clock, **parts)

    def list_channels(self, person: str) -> Sequence[Channel]:
        """List the channels that a person sees: all channels, and their conversation with citebot."""
        direct = Channel(id=f"{DIRECT}{person}", name=BOT, about="Only you and citebot see this.")
        return [*self._channels, direct]

    def find_channel(self, person: str, channel: str) -> Channel | None:
        """Find a channel that a person sees."""
        return next((each for each in self.list_channels(person) if each.id == channel), None)

    async def add(
        self,
        channel: str,
        author: str,
        *,
        thread: int = 0,
        reader: str = "",
        text: str = "",
        content: MessageContent | None = None,
        files: Sequence[tuple[str, str, bytes]] = (),
        nonce: str = "",
    ) -> StoredMessage:
        """Add a message; files are given by name, type and content."""
        ids = [await self._keep_file(data) for _, _, data in files]
        listed = [
            {"id": number, "name": name, "media_type": media_type, "size": len(data)}
            for number, (name, media_type, data) in zip(ids, files, strict=True)
        ]
        row = await self._database.row(
            _INSERT,
            (channel, thread, author, reader, make_storable(text), _encode(content), json.dumps(listed), nonce,
             self._clock.now()),
        )  # fmt: skip
        if row is None:
            raise PlatformUnreachable("The workspace could not keep the message.")
        added = _read(row)
        for number in ids:
            await self._database.write("UPDATE files SET message = ? WHERE id = ?", (added.id, number))
        await self._touch(thread)
        return added

    async def rewrite(self, message: int, text: str) -> None:
        """Change a person's message."""
        await self._change(message, "text = ?, edited_at = ?", make_storable(text), self._clock.now())

    async def show(self, message: int, content: MessageContent) -> bool:
        """Change the content of one of citebot's messages; False if the message is gone."""
        return await self._change(message, "content = ?", _encode(content))

    async def delete(self, message: int) -> None:
        """Delete a message with its files; open pages notice its empty row."""
        await self._database.write("DELETE FROM files WHERE message = ?", (message,))
        await self._change(message, "text = '', content = '', files = '[]', reactions = '{}', is_deleted = 1")

    async def react(self, message: StoredMessage, person: str, sign: str) -> bool:
        """Add a reaction, or remove it; return whether it is now set."""
        there = [each for each in message.reactions.get(sign, ()) if each != person]
        is_new = person not in message.reactions.get(sign, ())
        kept = {**message.reactions, sign: [*there, person] if is_new else there}
        await self._change(message.id, "reactions = ?", json.dumps({sign: who for sign, who in kept.items() if who}))
        return is_new

    async def find(self, message: int, person: str = "") -> StoredMessage | None:
        """Find a message by number; for a person, only a visible one."""
        found = await self._list("m.id = ?", (message,), person)
        return next((each for each in found if not person or self._is_visible(each, person)), None)

    async def find_by_nonce(self, nonce: str) -> StoredMessage | None:
        """Find citebot's message with a nonce."""
        return next(iter(await self._list("m.nonce = ? AND NOT m.is_deleted", (nonce,))), None)

    async def list_messages(self, channel: str, thread: int, person: str) -> Sequence[StoredMessage]:
        """List the newest messages of a channel, outside of threads, or those of a thread; the oldest first.

        Includes a deleted message while it has replies.
        """
        found = await self._list("m.channel = ? AND m.thread = ? ORDER BY m.id DESC", (channel, thread), person)
        return [
            each for each in reversed(found) if self._is_visible(each, person) and (not each.is_deleted or each.replies)
        ]

    async def list_changes(self, after: int, person: str) -> Sequence[StoredMessage]:
        """List the changes after a version that a person can see, deletions included."""
        found = await self._list("m.version > ? ORDER BY m.version", (after,), person)
        return [each for each in found if self._is_visible(each, person)]

    async def list_all(self) -> Sequence[StoredMessage]:
        """List all existing messages."""
        return await self._list("NOT m.is_deleted ORDER BY m.id")

    async def list_newest(self, channel: str, author: str, person: str) -> Sequence[StoredMessage]:
        """List somebody's messages in a channel and its threads that a person can see, newest first."""
        where = "m.channel = ? AND m.author = ? AND NOT m.is_deleted ORDER BY m.id DESC"
        found = await self._list(where, (channel, author), person)
        return [each for each in found if self._is_visible(each, person)]

    async def read_version(self) -> int:
        """Return the version of the newest change."""
        row = await self._database.row("SELECT coalesce(max(version), 0) FROM messages")
        return int(row[0]) if row else 0

    async def read_file(self, number: int) -> tuple[int, bytes] | None:
        """Return the message of a file, and its contents."""
        row = await self._database.row("SELECT message, content FROM files WHERE id = ?", (number,))
        return (int(row[0]), bytes(row[1])) if row else None

    def watch(self) -> asyncio.Event:
        """Return an event that is set at the next change."""
        return self._changed

    def _is_visible(self, message: StoredMessage, person: str) -> bool:
        return message.reader in {"", person} and self.find_channel(person, message.channel) is not None

    async def _list(self, where: str, values: Sequence[object] = (), person: str = "") -> list[StoredMessage]:
        columns = ", ".join(f"m.{name}" for name in _COLUMNS.split(", "))
        replies = "SELECT count(*) FROM messages r WHERE r.thread = m.id AND NOT r.is_deleted AND r.reader IN ('', ?)"
        rows = await self._database.rows(
            f"SELECT {columns}, ({replies}) FROM messages m WHERE {where} LIMIT {MAX_SHOWN}",  # noqa: S608 - constants
            (person, *values),
        )
        return [_read(row) for row in rows]

    async def _change(self, message: int, what: str, *values: object) -> bool:
        row = await self._database.row(
            f"UPDATE messages SET {what}, version = {_NEXT} WHERE id = ? AND NOT is_deleted RETURNING thread",  # noqa: S608 - constants
            (*values, message),
        )
        await self._touch(int(row[0]) if row and "is_deleted" in what else 0)
        return row is not None

    async def _touch(self, thread: int) -> None:
        """Signal a change; the parent message of a thread shows the number of replies."""
        if thread:
            await self._database.write(f"UPDATE messages SET version = {_NEXT} WHERE id = ?", (thread,))  # noqa: S608
        self._changed.set()
        self._changed = asyncio.Event()

    async def _keep_file(self, data: bytes) -> int:
        row = await self._database.row("INSERT INTO files (message, content) VALUES (0, ?) RETURNING id", (data,))
        return int(row[0]) if row else 0


def _encode(content: MessageContent | None) -> str:
    return "" if content is None else make_storable(json.dumps(write_content(content)))


def _read(row: Sequence[Any]) -> StoredMessage:
    number, channel, thread, author, reader, text, content, files, reactions, at, edited_at, is_deleted = row[:12]
    return StoredMessage(
        id=number, channel=channel, thread=thread, author=author, reader=reader, text=text, at=at,
        edited_at=edited_at, is_deleted=bool(is_deleted), version=row[12], replies=row[13],
        content=read_content(json.loads(content)) if content else None,
        files=tuple(StoredFile(**each) for each in json.loads(files)), reactions=json.loads(reactions),
    )  # fmt: skip


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
        return place.make_handle(added.id)

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Change all of a message."""
        if not await self._workspace.show(read_number(handle.id), content):
            raise EditRefused("The message is gone.")

    async def withdraw(self, handle: MessageHandle) -> None:
        """Delete a message; a missing one is no error."""
        await self._workspace.delete(read_number(handle.id))

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        """Find the message that was sent with a nonce."""
        found = await self._workspace.find_by_nonce(nonce)
        return place.make_handle(found.id) if found is not None else None

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
        """Return the contents of an attached file."""
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
    """Parse the number of a message; 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
