"""The durable inbox: every message is stored before it is acknowledged, and handled once by one process."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from agent import Database
from agent.text.storable import make_storable
from bot.clock import Clock
from bot.errors import InboxError
from bot.messages import AttachedFile, GoalOrder, IncomingMessage, MessageHandle, MessageKey, Place
from bot.storage.message_states import (
    ANSWER,
    ASK_TO_STOP,
    BEGIN,
    BURY,
    CLAIM,
    EXCUSE,
    FREE,
    HAND_ON,
    HELD,
    NOTE_HANDLES,
    OPEN,
    OVER,
    POSTPONE,
    RELEASE,
    RENEW,
    REVISE,
    SETTLE,
    WITHDRAW,
    EndedState,
    MessageState,
    Move,
    list_states,
    name_claims,
)

LEASE_SECONDS = 30.0

log = logging.getLogger(__name__)

# The age is in the clock of leases: those of the processes that store a message and claim it may differ. Their own
# clocks say only when a message was over (`updated_at`), of which weeks are waited for.
_COLUMNS = (
    "id, conversation, body, state, run_id, handles, tries, claims, owner, deaths, edited_at, "
    "lease_clock() - received_at"
)
_KEY = "platform = :platform AND workspace = :workspace AND channel = :channel AND message = :message"


@dataclass(frozen=True, kw_only=True, slots=True)
class InboxEntry:
    """A message in the inbox: its run, the messages of its reply, and the number of tries.

    `conversation` is its key in the agent's memory. `token` is the number of its newest claim, which the holder must
    show; above one, an earlier claim was not finished, or was for the message before an edit. `owner` is the process
    that holds it, if any. `deaths` counts the processes that died while answering it, `age` the seconds since it was
    received or revised. A finished entry keeps no text.
    """

    id: int
    message: IncomingMessage
    conversation: str
    state: MessageState
    run_id: str
    handles: tuple[MessageHandle, ...]
    tries: int
    token: int
    owner: str
    deaths: int
    age: float


class Inbox:
    """The table `inbox`, shared by all processes that answer; `owner` is the name of this one.

    `message_states` defines the moves of a message. A holder that lost its lease can change nothing.
    """

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self._database = database
        self._clock = clock
        self.owner = owner

    async def store(self, message: IncomingMessage, conversation: str) -> InboxEntry | None:
        """Store a message; None if it was delivered before."""
        row = await self._fetch_row(
            "INSERT INTO inbox (platform, workspace, channel, message, conversation, body, state, run_id, edited_at, "
            "received_at, updated_at) VALUES (:platform, :workspace, :channel, :message, :conversation, :body, "
            f"'received', :run_id, :edited_at, lease_clock(), :now) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}",
            **_make_key_values(message.key), conversation=conversation, body=_serialize_message(message),
            run_id=uuid.uuid4().hex, edited_at=message.edited_at, now=self._clock.now(),
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def revise(self, message: IncomingMessage, *, run_id: str = "") -> InboxEntry | None:
        """Reset an edited message under a new run; its reply is kept and rewritten.

        None if the message is unknown, was withdrawn, or has come under another run than the one
        given, or if the edit is known: processes that share the inbox may hear of one edit each.
        """
        is_news = "(:edited_at = 0 OR edited_at < :edited_at OR :run_id <> '')"
        statement = REVISE.make_statement(f"{_KEY} AND :run_id IN ('', run_id) AND {is_news}")
        row = await self._fetch_row(
            f"{statement} RETURNING {_COLUMNS}",
            **_make_key_values(message.key), body=_serialize_message(message), tail=uuid.uuid4().hex[20:],
            run_id=run_id, edited_at=message.edited_at, now=self._clock.now(),
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def find(self, key: MessageKey) -> InboxEntry | None:
        """Find a message."""
        row = await self._fetch_row(f"SELECT {_COLUMNS} FROM inbox WHERE {_KEY}", **_make_key_values(key))
        return _make_entry(row) if row else None

    async def channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return the recently used channels, the last one first."""
        rows = await self._database.rows(
            "SELECT channel FROM inbox WHERE platform = ? AND workspace = ? "
            "GROUP BY channel ORDER BY max(received_at) DESC LIMIT ?",
            (platform, workspace, most),
        )
        return [str(channel) for (channel,) in rows]

    async def find_by_reply(self, handle: MessageHandle) -> InboxEntry | None:
        """Find the message that one of citebot's messages replies to."""
        row = await self._database.row(
            f"SELECT {_COLUMNS} FROM inbox WHERE platform = ? AND workspace = ? AND has_handle(handles, ?, ?)",
            (handle.platform, handle.workspace, handle.channel, handle.id),
        )
        return _make_entry(row) if row else None

    async def get(self, entry_id: int) -> InboxEntry | None:
        """Return a message by its number."""
        row = await self._fetch_row(f"SELECT {_COLUMNS} FROM inbox WHERE id = :id", id=entry_id)
        return _make_entry(row) if row else None

    async def list_newest(self, platform: str, *, most: int) -> Sequence[InboxEntry]:
        """Return the messages of a platform, the newest first."""
        rows = await self._fetch_rows(
            f"SELECT {_COLUMNS} FROM inbox WHERE platform = :platform ORDER BY id DESC LIMIT :most",
            platform=platform, most=most,
        )  # fmt: skip
        return [_make_entry(row) for row in rows]

    async def count_before(self, entry: InboxEntry) -> int:
        """Count the messages to be answered before one that still waits; else 0."""
        rows = await self._fetch_rows(
            f"SELECT state, count(*) FROM inbox WHERE state IN ({list_states(OPEN)}) AND id < :id GROUP BY state",
            id=entry.id,
        )
        found = {str(state): int(number) for state, number in rows}
        return sum(found.values()) if "received" in found else 0

    async def claim(self, entry_id: int, *, beside: bool = False, risky: bool = True) -> InboxEntry | None:
        """Claim a message for this process; None if another process has it or its conversation, or it is over.

        A message `beside` a conversation, such as a command, is claimed regardless of its owner.
        Unless it is `risky`, a death of this process does not count against it.
        """
        known = await self._database.row("SELECT conversation FROM inbox WHERE id = ?", (entry_id,))
        if known is None:
            return None
        values = {
            "owner": self.owner, "seconds": LEASE_SECONDS, "now": self._clock.now(), "id": entry_id, "beside": beside,
            "risky": risky,
        }  # fmt: skip
        row = await self._database.row(
            f"{CLAIM.make_statement('id = :id')} RETURNING {_COLUMNS}", values, lock=str(known[0])
        )
        return _make_entry(row) if row else None

    async def begin_run(self, entry: InboxEntry) -> bool:
        """Note that a message's run begins, and that its conversation no longer waits for a person.

        False if the message was edited, or taken by another process, meanwhile: then its run must
        not begin here.
        """
        return await self._change(
            BEGIN.make_statement(),
            conversation=entry.conversation,
            now=self._clock.now(),
            **_make_claim_values([entry]),
        )

    async def is_current(self, conversation: str, run_id: str) -> bool:
        """Whether a run's message was neither edited nor deleted since; also if it is unknown."""
        row = await self._fetch_row(
            "SELECT 1 FROM inbox WHERE conversation = :conversation AND substr(run_id, 1, 20) = substr(:run_id, 1, 20) "
            "AND (run_id <> :run_id OR state = 'withdrawn')",
            conversation=conversation, run_id=run_id,
        )  # fmt: skip
        return row is None

    async def list_unfinished(self) -> Sequence[InboxEntry]:
        """Return the messages without a process, oldest first."""
        rows = await self._fetch_rows(
            f"SELECT {_COLUMNS} FROM inbox WHERE {FREE} ORDER BY id",
            owner=self.owner,
            beside=True,
        )
        return [_make_entry(row) for row in rows]

    async def owners(self) -> Sequence[str]:
        """Name the processes that hold messages."""
        rows = await self._database.rows(
            f"SELECT DISTINCT owner FROM inbox WHERE state IN ({list_states(HELD)}) AND owner <> ''"
        )
        return [str(owner) for (owner,) in rows]

    async def take_from(self, owner: str) -> None:
        """Free all messages of a process that is known to have ended."""
        await self._change(BURY.make_statement("owner = :dead"), owner=self.owner, dead=owner)

    async def take_expired(self) -> None:
        """Free messages whose leases have expired, because their processes have died or stalled."""
        await self._change(BURY.make_statement("lease_until < lease_clock()"), owner=self.owner)

    async def excuse(self, held: Collection[InboxEntry]) -> None:
        """Note that this process shuts down in order: if it is killed meanwhile, these messages are not the cause."""
        if held:
            await self._change(EXCUSE.make_statement(holds=len(held)), **_make_claim_values(held))

    async def note_handles(self, entry: InboxEntry, handles: Sequence[MessageHandle]) -> bool:
        """Store the messages of a reply; False if the message was edited, or claimed by another process.

        Until another claim, messages posted too late can be noted too.
        """
        listed = json.dumps([dataclasses.asdict(handle) for handle in handles])
        return await self._change(NOTE_HANDLES.make_statement(), handles=listed, **_make_claim_values([entry]))

    async def settle(self, entry: InboxEntry, state: EndedState) -> bool:
        """Settle a message; False if it was edited, or taken by another process, meanwhile."""
        return await self._change(
            SETTLE.make_statement(), state=state, now=self._clock.now(),
            erased=_serialize_message(entry.message, erased=True, keeps_line=state == "paused"),
            **_make_claim_values([entry]),
        )  # fmt: skip

    async def withdraw(self, key: MessageKey) -> InboxEntry | None:
        """Note that a message was deleted by its author; None if it is unknown."""
        known = await self.find(key)
        if known is None:
            return None
        row = await self._fetch_row(
            f"{WITHDRAW.make_statement(_KEY)} RETURNING {_COLUMNS}", **_make_key_values(key),
            erased=_serialize_message(known.message, erased=True), now=self._clock.now(),
        )  # fmt: skip
        return _make_entry(row) if row else None

    async def release(self, entry: InboxEntry) -> None:
        """Release a message for the next process; this does not count as a try."""
        await self._change(RELEASE.make_statement(), **_make_claim_values([entry]))

    async def hand_on(self, entry: InboxEntry) -> None:
        """Leave a message with a begun reply to the process that answers it."""
        await self._change(HAND_ON.make_statement(), **_make_claim_values([entry]))

    async def postpone(self, entry: InboxEntry, seconds: float) -> None:
        """Let a message be retried after a while."""
        await self._change(POSTPONE.make_statement(), seconds=seconds, **_make_claim_values([entry]))

    async def ask_to_stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """Ask the other processes to stop their answers in a conversation; False if there are none.

        With a message, also its author's questions anywhere in its channel.
        """
        place = asked_like.place if asked_like is not None else Place(platform="", workspace="", channel="")
        rows = await self._fetch_rows(
            f"SELECT {_COLUMNS} FROM inbox WHERE owner NOT IN ('', :owner) AND lease_until >= lease_clock() AND "
            "(conversation = :conversation OR "
            "(platform = :platform AND workspace = :workspace AND channel = :channel))",
            owner=self.owner, conversation=conversation,
            platform=place.platform, workspace=place.workspace, channel=place.channel,
        )  # fmt: skip
        author = asked_like.author if asked_like is not None else None
        under_way = [_make_entry(row) for row in rows]
        meant = [entry for entry in under_way if conversation == entry.conversation or author == entry.message.author]
        if not meant:
            return False
        return await self._change(ASK_TO_STOP.make_statement(name_claims(len(meant))), **_make_claim_values(meant))

    async def beat(self, held: Collection[InboxEntry]) -> tuple[frozenset[str], frozenset[str]]:
        """Renew the leases of messages; return the runs that this process still holds, and those asked to stop."""
        return await self._prolong(RENEW, held) if held else (frozenset(), frozenset())

    async def still_holds(self, entry: InboxEntry, *, is_answered: bool = False) -> bool:
        """Whether this process still owns a message; deaths do not count against an answered one.

        Raises `InboxError` if others may have claimed it and the database does not answer. Without
        other processes, they have not.
        """
        try:
            held, _ = await self._prolong(ANSWER if is_answered else RENEW, [entry])
        except InboxError as error:
            if self._database.is_remote:
                raise
            log.warning("a message is replied to without asking the database: %s", error)
            return True
        return entry.run_id in held

    async def _prolong(self, move: Move, held: Collection[InboxEntry]) -> tuple[frozenset[str], frozenset[str]]:
        rows = await self._fetch_rows(
            f"{move.make_statement(holds=len(held))} RETURNING run_id, stop",
            seconds=LEASE_SECONDS, **_make_claim_values(held),
        )  # fmt: skip
        return frozenset(str(run) for run, _ in rows), frozenset(str(run) for run, stop in rows if stop)

    async def check(self) -> None:
        """Write a meaningless row; raises `InboxError` if nothing can be stored."""
        await self._database.check()
        await self._database.write(
            "INSERT INTO pulse (id, at) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at = excluded.at",
            (self._clock.now(),),
        )

    async def forget_old(self, before: float) -> int:
        """Drop messages that ended before a time; return their number."""
        return await self._database.write(
            f"DELETE FROM inbox WHERE state IN ({list_states(OVER)}) AND updated_at < ?", (before,)
        )

    async def _fetch_rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        return await self._database.rows(sql, values)

    async def _fetch_row(self, sql: str, **values: object) -> tuple[Any, ...] | None:
        return await self._database.row(sql, values)

    async def _change(self, sql: str, **values: object) -> bool:
        return await self._database.write(sql, values) > 0


def _make_key_values(key: MessageKey) -> Mapping[str, str]:
    return {"platform": key.platform, "workspace": key.workspace, "channel": key.channel, "message": key.message}


def _make_claim_values(held: Collection[InboxEntry]) -> Mapping[str, object]:
    """Return a process's claim values for a holder's move."""
    values: dict[str, object] = {}
    for number, entry in enumerate(held):
        values |= {f"id{number}": entry.id, f"token{number}": entry.token, f"run{number}": entry.run_id}
    return values


def _serialize_message(message: IncomingMessage, *, erased: bool = False, keeps_line: bool = False) -> str:
    """Serialize a message; a finished one without its text, its order, and its author's address."""
    place = message.place if keeps_line or not erased else dataclasses.replace(message.place, line="")
    clean = dataclasses.replace(
        message,
        text="" if erased else make_storable(message.text),
        place=place,
        files=() if erased else message.files,
        quoted=() if erased else tuple(map(make_storable, message.quoted)),
        order=None if erased else message.order,
    )
    fields = dataclasses.asdict(clean)
    for name in (
        "files",
        "quoted",
        "order",
        "anew",
    ):  # the version before does not know them, and has none to read as long as it runs
        if not fields[name]:
            del fields[name]
    del fields["edited_at"]  # which has a column
    return json.dumps(fields)


def _make_entry(row: Sequence[Any]) -> InboxEntry:
    entry_id, conversation, body, state, run_id, handles, tries, token, owner, deaths, edited_at, age = row
    known = {field.name for field in dataclasses.fields(IncomingMessage)}
    fields = {name: value for name, value in json.loads(body).items() if name in known}  # a newer version may add some
    several = {name: tuple(fields.get(name, ())) for name in ("roles", "about", "quoted")}
    files = tuple(AttachedFile(**file) for file in fields.get("files", ()))
    order = GoalOrder(**fields["order"]) if fields.get("order") else None
    more = {"order": order, "files": files, "place": Place(**fields["place"]), "edited_at": edited_at}
    message = IncomingMessage(**fields | several | more)
    return InboxEntry(
        id=entry_id,
        message=message,
        conversation=conversation,
        state=cast("MessageState", state),
        run_id=run_id,
        handles=tuple(MessageHandle(**handle) for handle in json.loads(handles)),
        tries=tries,
        token=token,
        owner=owner,
        deaths=deaths,
        age=age,
    )


def make_process_name() -> str:
    """Return a name unique to this process, past and future."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


def is_process_dead(owner: str, own: str) -> bool:
    """Whether the named process has certainly ended; False if this machine cannot tell."""
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
    """Whether a process has ended but was not reaped: it takes signals like a living one."""
    try:
        status = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # there is none, or a system that says nothing of this kind
        return False
    return status.rpartition(")")[2].split()[:1] == ["Z"]
