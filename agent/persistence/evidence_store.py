"""The text of evidence, stored beside the checkpoints, and the claim by which a run may write in a conversation."""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from agent.errors import CheckpointError, CheckpointOvertaken, CheckpointUnreachable
from agent.persistence.database import Database, DatabaseErrors, Statement
from agent.persistence.migrations import load_conversation_schema, run_statement
from agent.persistence.sqlite import SqliteDatabase
from agent.text.storable import make_storable

OVERTAKEN = "Another process has continued this conversation. Ask again if no reply comes."
ERRORS = DatabaseErrors(failed=CheckpointError, unreachable=CheckpointUnreachable)

# With the clock of the database in the braces. Numbers go up over all conversations: none ever comes back.
_COUNT = "UPDATE claims SET newest = newest + 1"
_TAKE = """INSERT INTO conversations (thread, claim, checkpoints, used_at)
    SELECT CAST(? AS TEXT), newest, NULL, {clock} FROM claims WHERE true
    ON CONFLICT (thread) DO UPDATE SET claim = excluded.claim, used_at = excluded.used_at
    RETURNING thread, claim, checkpoints"""
_USE = "UPDATE conversations SET used_at = {clock} WHERE thread = ? AND claim = ? RETURNING thread"


@dataclass(frozen=True, slots=True)
class RunClaim:
    """Lets a run write in a conversation until another run claims it.

    The number is unique to this claim and never returns, even after the conversation was forgotten.
    With a counter in the row, a run that wakes up late could find its own number.
    """

    thread: str
    number: int

    @property
    def checkpoints(self) -> str:
        """The checkpoint thread of this claim only: an overtaken run writes where nobody reads."""
        return f"{self.thread}#{self.number}"


def name_unclaimed(thread: str) -> str:
    """Name the checkpoint thread of an unclaimed conversation: earlier versions used the conversation's own name.

    If that name looks like a claim, they had none.
    """
    return thread if split_checkpoints(thread) == (thread, 0) else f"{thread}#"


def split_checkpoints(name: str) -> tuple[str, int]:
    """Return the conversation of a checkpoint thread, and the number of its claim; 0 for earlier versions."""
    thread, _, number = name.rpartition("#")
    return (thread, int(number)) if thread and number.isdecimal() else (name, 0)


class RunStore(ABC):
    """The rows and evidence of conversations, which runs write under their claims; every statement may be run twice."""

    checkpoint_tables: ClassVar[Sequence[str]] = ()  # of LangGraph

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write_all(
        self, statements: Sequence[Statement], *, claim: RunClaim | None = None
    ) -> list[tuple[Any, ...]]:
        """Run statements in one transaction, all or none, and return the rows of the last.

        With a claim, it must be the newest of its conversation, and another run that claims it meanwhile waits; else
        raises `CheckpointOvertaken`. Raises `CheckpointError`.
        """
        use = None if claim is None else (_USE.format(clock=self._database.clock), (claim.thread, claim.number))
        outcome = await self._database.run_all(statements, only_if=use)
        if outcome is None:
            raise CheckpointOvertaken(OVERTAKEN)
        return outcome.rows

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query; raises `CheckpointError`."""
        return await self._database.rows(sql, values)

    async def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in a separate transaction; raises `CheckpointError`."""
        await self._database.write(sql, values)

    async def shrink(self) -> None:
        """Release the space of deleted data, if the database does not do so itself."""
        await self._database.shrink()

    async def claim_run(self, thread: str, *, after: RunClaim | None = None) -> RunClaim:
        """Claim a conversation for a run, which ends storage under earlier claims; raises `CheckpointError`.

        `after` is the expected previous claim; raises `CheckpointOvertaken` if that is not the
        newest.
        """
        claim, _ = await self.take(thread, after)
        return claim

    async def take(self, thread: str, after: RunClaim | None) -> tuple[RunClaim, str]:
        """Make a claim, and name the checkpoint thread that the conversation had before; raises `CheckpointError`."""
        statements: list[Statement] = [(_COUNT, ()), (_TAKE.format(clock=self._database.clock), (thread,))]
        ((name, number, checkpoints),) = await self.write_all(statements, claim=after)
        return RunClaim(name, number), checkpoints or name_unclaimed(name)

    async def find_claim(self, thread: str) -> RunClaim | None:
        """Return the newest claim of a conversation, by any process; raises `CheckpointError`."""
        rows = await self.rows("SELECT thread, claim FROM conversations WHERE thread = ?", (thread,))
        return RunClaim(*rows[0]) if rows else None

    async def check_claim(self, claim: RunClaim) -> None:
        """Raise `CheckpointOvertaken` if a claim is no longer the newest; raises `CheckpointError`."""
        await self.write_all([], claim=claim)

    @abstractmethod
    async def forget(self, thread: str, claim: RunClaim | None = None) -> None:
        """Delete everything stored for a conversation, but only under its claim if there is one."""

    def make_deletions(self, checkpoints: str) -> list[Statement]:
        """Return the statements that delete a checkpoint thread, for a transaction with others."""
        return [(f"DELETE FROM {table} WHERE thread_id = ?", (checkpoints,)) for table in self.checkpoint_tables]  # noqa: S608 - constants


class EvidenceStore:
    """Evidence of all conversations in a table, from the first tool call of a turn to its end."""

    def __init__(self, database: RunStore) -> None:
        self._database = database

    def of(self, thread: str, claim: RunClaim | None = None) -> ThreadEvidence:
        """Return the evidence of one conversation, under the claim of a run if there is one."""
        return ThreadEvidence(self._database, thread, claim)

    async def drop(self, claim: RunClaim) -> None:
        """Forget the evidence of a conversation under the claim of a run."""
        await self._database.write_all([("DELETE FROM evidence WHERE thread = ?", (claim.thread,))], claim=claim)


class ThreadEvidence:
    """Evidence of one conversation in the table."""

    def __init__(self, database: RunStore, thread: str, claim: RunClaim | None) -> None:
        self._database = database
        self._thread = thread
        self._claim = claim

    async def keep(self, key: str, text: str) -> None:
        """Store a text; raises `CheckpointOvertaken` for a run that has lost its thread."""
        sql = (
            "INSERT INTO evidence (thread, key, text) VALUES (?, ?, ?) "
            "ON CONFLICT (thread, key) DO UPDATE SET text = excluded.text"
        )
        await self._database.write_all([(sql, (self._thread, key, make_storable(text)))], claim=self._claim)

    async def texts(self, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the texts that are there."""
        wanted = frozenset(keys)
        if not wanted:
            return {}
        rows = await self._database.rows("SELECT key, text FROM evidence WHERE thread = ?", (self._thread,))
        return {key: text for key, text in rows if key in wanted}


_IN_MEMORY = Path(":memory:")


class MemoryStore(RunStore):
    """The evidence of one question; a crash loses it, and nobody resumes it."""

    async def forget(self, thread: str, claim: RunClaim | None = None) -> None:
        """Do nothing: no conversation is remembered."""


@asynccontextmanager
async def open_memory_store() -> AsyncIterator[MemoryStore]:
    """Open a database with the tables that a question needs, and close it at the end."""
    database = SqliteDatabase(await asyncio.to_thread(_create_tables), _IN_MEMORY, "conversation", ERRORS)
    try:
        yield MemoryStore(database)
    finally:
        await database.close()


def _create_tables() -> sqlite3.Connection:
    connection = sqlite3.connect(_IN_MEMORY, isolation_level=None, check_same_thread=False)
    for statement in load_conversation_schema().list_statements():
        run_statement(connection, statement)
    return connection
