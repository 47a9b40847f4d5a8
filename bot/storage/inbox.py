"""The durable inbox: every message is stored before it is acknowledged, and handled once by one process."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from agent.text.storable import make_storable
from bot.clock import Clock
from bot.messages import IncomingMessage, MessageHandle, MessageKey, Place
from bot.storage.database import Database

EntryState = Literal["received", "running", "done", "closed", "withdrawn"]
EndedState = Literal["done", "closed", "withdrawn"]

LEASE_SECONDS = 30.0

_COLUMNS = "id, conversation, body, state, run_id, handles, tries, claims, deaths, received_at"
_KEY = "platform = ? AND workspace = ? AND channel = ? AND message = ?"
# A conversation belongs to the process that answers in it; what another one holds is left alone until its lease ends.
_FREE = """(state = 'received' OR (state = 'running' AND (owner = '' OR lease_until < :now)))
    AND (:beside OR NOT EXISTS (SELECT 1 FROM inbox other
        WHERE other.conversation = inbox.conversation AND other.id <> inbox.id
        AND other.state = 'running' AND other.owner NOT IN ('', :owner) AND other.lease_until >= :now))"""

_BURY = "UPDATE inbox SET owner = '', deaths = deaths + under_way, under_way = 0 WHERE state = 'running'"


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxEntry:
    """A message in the inbox: the run that answers it, the messages that the reply consists of, how often it was tried.

    `conversation` is what the agent remembers it under. Once `claims` exceeds one, an earlier claim was not brought to
    its end, or was for the message as it was before an edit. `deaths` is in how many processes it was under way
    when they died. An entry that is over keeps no text.
    """

    id: int
    message: IncomingMessage
    conversation: str
    state: EntryState
    run_id: str
    handles: tuple[MessageHandle, ...]
    tries: int
    claims: int
    deaths: int
    received_at: float


class Inbox:
    """The table `inbox`, shared by all processes that answer; `owner` is the name of this one."""

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self._database = database
        self._clock = clock
        self.owner = owner

    async def store(self, message: IncomingMessage, conversation: str) -> InboxEntry | None:
        """Store a message; None if it was delivered before."""
        key, now = message.key, self._clock.now()
        row = await self._database.row(
            "INSERT INTO inbox (platform, workspace, channel, message, conversation, body, state, run_id, received_at, "
            "updated_at) VALUES (?, ?, ?, ?, ?, ?, 'received', ?, ?, ?) ON CONFLICT DO NOTHING "
            f"RETURNING {_COLUMNS}",
            (*_make_key_values(key), conversation, _serialize_message(message), uuid.uuid4().hex, now, now),
        )
        return _make_entry(row) if row else None

    async def revise(self, message: IncomingMessage, *, run_id: str = "") -> InboxEntry | None:
        """Put an edited message back to the beginning, under a new run; its reply is kept, to be written again.

        Runs of one message begin alike, so that its reply is known by the same nonce. None if the message is not
        known, was withdrawn, or has come under another run than the one given.
        """
        row = await self._database.row(
            "UPDATE inbox SET body = ?, state = 'received', run_id = substr(run_id, 1, 20) || ?, tries = 0, "
            "deaths = 0, under_way = 0, owner = '', stop = 0, received_at = ?, updated_at = ? "
            f"WHERE {_KEY} AND state <> 'withdrawn' AND ? IN ('', run_id) RETURNING {_COLUMNS}",
            (
                _serialize_message(message),
                uuid.uuid4().hex[20:],
                self._clock.now(),
                self._clock.now(),
                *_make_key_values(message.key),
                run_id,
            ),
        )
        return _make_entry(row) if row else None

    async def find(self, key: MessageKey) -> InboxEntry | None:
        """Find a message."""
        row = await self._database.row(f"SELECT {_COLUMNS} FROM inbox WHERE {_KEY}", _make_key_values(key))
        return _make_entry(row) if row else None

    async def channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return where something was asked lately, the last one first."""
        rows = await self._database.rows(
            "SELECT channel FROM inbox WHERE platform = ? AND workspace = ? "
            "GROUP BY channel ORDER BY max(received_at) DESC LIMIT ?",
            (platform, workspace, most),
        )
        return [str(channel) for (channel,) in rows]

    async def find_by_reply(self, handle: MessageHandle) -> InboxEntry | None:
        """Find the message that one of citebot's own is the reply to, or a part of it."""
        row = await self._database.row(
            f"SELECT {_COLUMNS} FROM inbox WHERE platform = ? AND workspace = ? AND EXISTS (SELECT 1 FROM "
            "json_each(handles) WHERE json_extract(value, '$.id') = ? AND json_extract(value, '$.channel') = ?)",
            (handle.platform, handle.workspace, handle.id, handle.channel),
        )
        return _make_entry(row) if row else None

    async def claim(self, entry_id: int, *, beside: bool = False) -> InboxEntry | None:
        """Take a message for this process; None if another process has it, or its conversation, or it is over.

        A message `beside` a conversation, such as a command, is taken whoever has the conversation.
        """
        now = self._clock.now()
        row = await self._fetch_rows(
            "UPDATE inbox SET state = 'running', owner = :owner, lease_until = :until, tries = tries + 1, "
            "claims = claims + 1, under_way = 1, stop = 0, updated_at = :now "
            f"WHERE id = :id AND {_FREE} RETURNING {_COLUMNS}",
            owner=self.owner, until=now + LEASE_SECONDS, now=now, id=entry_id, beside=beside,
        )  # fmt: skip
        return _make_entry(row[0]) if row else None

    async def list_unfinished(self) -> Sequence[InboxEntry]:
        """Return the messages that no process is at, oldest first."""
        rows = await self._fetch_rows(
            f"SELECT {_COLUMNS} FROM inbox WHERE {_FREE} ORDER BY id",
            now=self._clock.now(), owner=self.owner, beside=True,
        )  # fmt: skip
        return [_make_entry(row) for row in rows]

    async def owners(self) -> Sequence[str]:
        """Name the processes that hold messages."""
        rows = await self._database.rows("SELECT DISTINCT owner FROM inbox WHERE state = 'running' AND owner <> ''")
        return [str(owner) for (owner,) in rows]

    async def take_from(self, owner: str) -> None:
        """Free everything that a process held, once it is known to have ended."""
        await self._database.write(f"{_BURY} AND owner = ?", (owner,))

    async def take_expired(self) -> None:
        """Free what other processes held whose leases have run out: they have died, or do nothing any more."""
        await self._database.write(
            f"{_BURY} AND owner NOT IN ('', ?) AND lease_until < ?", (self.owner, self._clock.now())
        )

    async def excuse(self, runs: Collection[str]) -> None:
        """Note that this process ends in order: if it is killed meanwhile, these messages are not the cause."""
        await self._database.write(
            "UPDATE inbox SET under_way = 0 WHERE owner = ? AND run_id IN (SELECT value FROM json_each(?))",
            (self.owner, json.dumps(list(runs))),
        )

    async def note_handles(self, entry: InboxEntry, handles: Sequence[MessageHandle]) -> None:
        """Store which messages the reply consists of."""
        listed = json.dumps([dataclasses.asdict(handle) for handle in handles])
        await self._database.write(
            "UPDATE inbox SET handles = ? WHERE id = ? AND run_id = ?", (listed, entry.id, entry.run_id)
        )

    async def settle(self, entry: InboxEntry, state: EndedState) -> bool:
        """Note that a message is over; False if it was edited, or taken by another process, meanwhile."""
        changed = await self._database.write(
            "UPDATE inbox SET state = ?, body = json_set(body, '$.text', ''), owner = '', updated_at = ? "
            "WHERE id = ? AND run_id = ? AND owner = ?",
            (state, self._clock.now(), entry.id, entry.run_id, self.owner),
        )
        return changed > 0

    async def withdraw(self, key: MessageKey) -> InboxEntry | None:
        """Note that a message was deleted by its author; None if it is not known."""
        row = await self._database.row(
            "UPDATE inbox SET state = 'withdrawn', body = json_set(body, '$.text', ''), stop = 1, updated_at = ? "
            f"WHERE {_KEY} AND state <> 'withdrawn' RETURNING {_COLUMNS}",
            (self._clock.now(), *_make_key_values(key)),
        )
        return _make_entry(row) if row else None

    async def release(self, entry: InboxEntry) -> None:
        """Hand a message over to whichever process comes next; this was no try."""
        await self._database.write(
            "UPDATE inbox SET owner = '', under_way = 0, tries = max(0, tries - 1) "
            "WHERE id = ? AND run_id = ? AND owner = ?",
            (entry.id, entry.run_id, self.owner),
        )

    async def postpone(self, entry: InboxEntry, seconds: float) -> None:
        """Let a message be tried again after a while."""
        await self._database.write(
            "UPDATE inbox SET under_way = 0, lease_until = ? WHERE id = ? AND run_id = ? AND owner = ?",
            (self._clock.now() + seconds, entry.id, entry.run_id, self.owner),
        )

    async def ask_to_stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """Ask the other processes to stop what they answer in a conversation; False if they answer nothing.

        With a message, also what its author has asked anywhere in its channel.
        """
        place = asked_like.place if asked_like is not None else Place(platform="", workspace="", channel="")
        changed = await self._database.write(
            "UPDATE inbox SET stop = 1 WHERE state = 'running' AND owner NOT IN ('', ?) AND lease_until >= ? "
            "AND (conversation = ? OR (platform = ? AND workspace = ? AND channel = ? "
            "AND json_extract(body, '$.author') = ?))",
            (
                self.owner, self._clock.now(), conversation, place.platform, place.workspace, place.channel,
                asked_like.author if asked_like is not None else "",
            ),
        )  # fmt: skip
        return changed > 0

    async def beat(self, runs: Collection[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Renew the leases of runs; return those that this process still holds, and those asked to stop."""
        rows = await self._database.rows(
            "UPDATE inbox SET lease_until = ? WHERE owner = ? AND state = 'running' "
            "AND run_id IN (SELECT value FROM json_each(?)) RETURNING run_id, stop",
            (self._clock.now() + LEASE_SECONDS, self.owner, json.dumps(list(runs))),
        )
        return frozenset(str(run) for run, _ in rows), frozenset(str(run) for run, stop in rows if stop)

    async def check(self) -> None:
        """Write a row that means nothing; raises `InboxError` if nothing can be stored."""
        await self._database.check()
        await self._database.write("INSERT OR REPLACE INTO pulse (id, at) VALUES (1, ?)", (self._clock.now(),))

    async def forget_old(self, before: float) -> int:
        """Drop what was over before a time; return how many messages."""
        return await self._database.write(
            "DELETE FROM inbox WHERE state NOT IN ('received', 'running') AND updated_at < ?", (before,)
        )

    async def _fetch_rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        return await self._database.rows(sql, cast("Any", values))


def _make_key_values(key: MessageKey) -> tuple[str, str, str, str]:
    return key.platform, key.workspace, key.channel, key.message


def _serialize_message(message: IncomingMessage) -> str:
    clean = dataclasses.replace(message, text=make_storable(message.text))
    return json.dumps(dataclasses.asdict(clean))


def _make_entry(row: Sequence[Any]) -> InboxEntry:
    entry_id, conversation, body, state, run_id, handles, tries, claims, deaths, received_at = row
    fields = json.loads(body)
    several = {name: tuple(fields.get(name, ())) for name in ("roles", "about")}
    message = IncomingMessage(**fields | several | {"place": Place(**fields["place"])})
    return InboxEntry(
        id=entry_id,
        message=message,
        conversation=conversation,
        state=cast("EntryState", state),
        run_id=run_id,
        handles=tuple(MessageHandle(**handle) for handle in json.loads(handles)),
        tries=tries,
        claims=claims,
        deaths=deaths,
        received_at=received_at,
    )


def make_process_name() -> str:
    """Return a name for this process that no other has, before or after it."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def is_process_dead(owner: str, own: str) -> bool:
    """Whether the process of that name is known to have ended; False if this machine cannot tell."""
    host, _, rest = owner.rpartition("/")[0].rpartition("/")
    if owner == own or host != socket.gethostname() or not rest.isdecimal():
        return False
    if int(rest) == os.getpid() or _is_unburied(rest):  # or an earlier process that had this number
        return True
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _is_unburied(pid: str) -> bool:
    """Whether a process has ended and its parent has not noticed yet: it takes signals like a living one."""
    try:
        status = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # there is none, or a system that says nothing of this kind
        return False
    return status.rpartition(")")[2].split()[:1] == ["Z"]
