"""The durable inbox: every message is stored before it is acknowledged, and handled once by one process."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agent.text.storable import make_storable
from bot.clock import Clock
from bot.messages import IncomingMessage, MessageHandle, MessageKey, Place
from bot.storage.database import Database
from bot.storage.message_states import (
    ASK_TO_STOP,
    BURY,
    CLAIM,
    EXCUSE,
    FREE,
    NOTE_HANDLES,
    OVER,
    POSTPONE,
    RELEASE,
    RENEW,
    REVISE,
    SETTLE,
    WITHDRAW,
    EndedState,
    MessageState,
)

LEASE_SECONDS = 30.0

_COLUMNS = "id, conversation, body, state, run_id, handles, tries, claims, deaths, received_at"
_KEY = "platform = :platform AND workspace = :workspace AND channel = :channel AND message = :message"


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxEntry:
    """A message in the inbox: the run that answers it, the messages that the reply consists of, how often it was tried.

    `conversation` is what the agent remembers it under. `token` is the number of its newest claim, which the holder
    shows for all it does; beyond one, an earlier claim was not brought to its end, or was for the message as it was
    before an edit. `deaths` is in how many processes it was under way when they died. An entry that is over keeps no
    text.
    """

    id: int
    message: IncomingMessage
    conversation: str
    state: MessageState
    run_id: str
    handles: tuple[MessageHandle, ...]
    tries: int
    token: int
    deaths: int
    received_at: float


class Inbox:
    """The table `inbox`, shared by all processes that answer; `owner` is the name of this one.

    What may be done to a message, when and by whom, is in `message_states`. A holder whose lease was lost changes
    nothing any more.
    """

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self._database = database
        self._clock = clock
        self.owner = owner

    async def store(self, message: IncomingMessage, conversation: str) -> InboxEntry | None:
        """Store a message; None if it was delivered before."""
        row = await self._fetch_row(
            "INSERT INTO inbox (platform, workspace, channel, message, conversation, body, state, run_id, received_at, "
            "updated_at) VALUES (:platform, :workspace, :channel, :message, :conversation, :body, 'received', :run_id, "
            f":now, :now) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}",
            **_make_key_values(message.key), conversation=conversation, body=_serialize_message(message),
            run_id=uuid.uuid4().hex, now=self._clock.now(),
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def revise(self, message: IncomingMessage, *, run_id: str = "") -> InboxEntry | None:
        """Put an edited message back to the beginning, under a new run; its reply is kept, to be written again.

        None if the message is not known, was withdrawn, or has come under another run than the one given.
        """
        statement = REVISE.make_statement(f"{_KEY} AND :run_id IN ('', run_id)")
        row = await self._fetch_row(
            f"{statement} RETURNING {_COLUMNS}",
            **_make_key_values(message.key), body=_serialize_message(message), tail=uuid.uuid4().hex[20:],
            run_id=run_id, now=self._clock.now(),
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def find(self, key: MessageKey) -> InboxEntry | None:
        """Find a message."""
        row = await self._fetch_row(f"SELECT {_COLUMNS} FROM inbox WHERE {_KEY}", **_make_key_values(key))
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
        row = await self._fetch_row(
            f"{CLAIM.make_statement('id = :id')} RETURNING {_COLUMNS}",
            owner=self.owner, until=now + LEASE_SECONDS, now=now, id=entry_id, beside=beside,
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def list_unfinished(self) -> Sequence[InboxEntry]:
        """Return the messages that no process is at, oldest first."""
        rows = await self._fetch_rows(
            f"SELECT {_COLUMNS} FROM inbox WHERE {FREE} ORDER BY id",
            now=self._clock.now(), owner=self.owner, beside=True,
        )  # fmt: skip
        return [_make_entry(row) for row in rows]

    async def owners(self) -> Sequence[str]:
        """Name the processes that hold messages."""
        rows = await self._database.rows("SELECT DISTINCT owner FROM inbox WHERE state = 'running' AND owner <> ''")
        return [str(owner) for (owner,) in rows]

    async def take_from(self, owner: str) -> None:
        """Free everything that a process held, once it is known to have ended."""
        await self._change(BURY.make_statement("owner = :dead"), owner=self.owner, dead=owner)

    async def take_expired(self) -> None:
        """Free what other processes held whose leases have run out: they have died, or do nothing any more."""
        await self._change(BURY.make_statement("lease_until < :now"), owner=self.owner, now=self._clock.now())

    async def excuse(self, held: Collection[InboxEntry]) -> None:
        """Note that this process ends in order: if it is killed meanwhile, these messages are not the cause."""
        if held:
            await self._change(EXCUSE.make_statement(holds=len(held)), **_make_claim_values(held))

    async def note_handles(self, entry: InboxEntry, handles: Sequence[MessageHandle]) -> None:
        """Store which messages the reply consists of."""
        listed = json.dumps([dataclasses.asdict(handle) for handle in handles])
        await self._change(NOTE_HANDLES.make_statement(), handles=listed, **_make_claim_values([entry]))

    async def settle(self, entry: InboxEntry, state: EndedState) -> bool:
        """Note that a message is over; False if it was edited, or taken by another process, meanwhile."""
        return await self._change(
            SETTLE.make_statement(), state=state, now=self._clock.now(), **_make_claim_values([entry])
        )

    async def withdraw(self, key: MessageKey) -> InboxEntry | None:
        """Note that a message was deleted by its author; None if it is not known."""
        row = await self._fetch_row(
            f"{WITHDRAW.make_statement(_KEY)} RETURNING {_COLUMNS}", **_make_key_values(key), now=self._clock.now()
        )
        return _make_entry(row) if row else None

    async def release(self, entry: InboxEntry) -> None:
        """Hand a message over to whichever process comes next; this was no try."""
        await self._change(RELEASE.make_statement(), **_make_claim_values([entry]))

    async def postpone(self, entry: InboxEntry, seconds: float) -> None:
        """Let a message be tried again after a while."""
        await self._change(POSTPONE.make_statement(), until=self._clock.now() + seconds, **_make_claim_values([entry]))

    async def ask_to_stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """Ask the other processes to stop what they answer in a conversation; False if they answer nothing.

        With a message, also what its author has asked anywhere in its channel.
        """
        place = asked_like.place if asked_like is not None else Place(platform="", workspace="", channel="")
        meant = (
            "owner NOT IN ('', :owner) AND lease_until >= :now AND (conversation = :conversation OR "
            "(platform = :platform AND workspace = :workspace AND channel = :channel "
            "AND json_extract(body, '$.author') = :author))"
        )
        return await self._change(
            ASK_TO_STOP.make_statement(meant), owner=self.owner, now=self._clock.now(), conversation=conversation,
            platform=place.platform, workspace=place.workspace, channel=place.channel,
            author=asked_like.author if asked_like is not None else "",
        )  # fmt: skip

    async def beat(self, held: Collection[InboxEntry]) -> tuple[frozenset[str], frozenset[str]]:
        """Renew the leases of messages; return the runs that this process still holds, and those asked to stop."""
        if not held:
            return frozenset(), frozenset()
        rows = await self._fetch_rows(
            f"{RENEW.make_statement(holds=len(held))} RETURNING run_id, stop",
            until=self._clock.now() + LEASE_SECONDS, **_make_claim_values(held),
        )  # fmt: skip
        return frozenset(str(run) for run, _ in rows), frozenset(str(run) for run, stop in rows if stop)

    async def check(self) -> None:
        """Write a row that means nothing; raises `InboxError` if nothing can be stored."""
        await self._database.check()
        await self._database.write("INSERT OR REPLACE INTO pulse (id, at) VALUES (1, ?)", (self._clock.now(),))

    async def forget_old(self, before: float) -> int:
        """Drop what was over before a time; return how many messages."""
        over = ", ".join(f"'{state}'" for state in OVER)
        return await self._database.write(f"DELETE FROM inbox WHERE state IN ({over}) AND updated_at < ?", (before,))

    async def _fetch_rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        return await self._database.rows(sql, cast("Any", values))

    async def _fetch_row(self, sql: str, **values: object) -> tuple[Any, ...] | None:
        return await self._database.row(sql, cast("Any", values))

    async def _change(self, sql: str, **values: object) -> bool:
        return await self._database.write(sql, cast("Any", values)) > 0


def _make_key_values(key: MessageKey) -> Mapping[str, str]:
    return {"platform": key.platform, "workspace": key.workspace, "channel": key.channel, "message": key.message}


def _make_claim_values(held: Collection[InboxEntry]) -> Mapping[str, object]:
    """Show what a process holds, for a move of the holder."""
    values: dict[str, object] = {}
    for number, entry in enumerate(held):
        values |= {f"id{number}": entry.id, f"token{number}": entry.token, f"run{number}": entry.run_id}
    return values


def _serialize_message(message: IncomingMessage) -> str:
    clean = dataclasses.replace(message, text=make_storable(message.text))
    return json.dumps(dataclasses.asdict(clean))


def _make_entry(row: Sequence[Any]) -> InboxEntry:
    entry_id, conversation, body, state, run_id, handles, tries, token, deaths, received_at = row
    fields = json.loads(body)
    several = {name: tuple(fields.get(name, ())) for name in ("roles", "about")}
    message = IncomingMessage(**fields | several | {"place": Place(**fields["place"])})
    return InboxEntry(
        id=entry_id,
        message=message,
        conversation=conversation,
        state=cast("MessageState", state),
        run_id=run_id,
        handles=tuple(MessageHandle(**handle) for handle in json.loads(handles)),
        tries=tries,
        token=token,
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
