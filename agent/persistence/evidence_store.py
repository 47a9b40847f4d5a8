"""The text of evidence, kept beside the checkpoints, and the claim by which a run may write in a conversation."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from agent.errors import CheckpointOvertaken
from agent.text.storable import make_storable

# With the clock of the database in the braces. A claim that is made twice, as where a connection broke, is one claim.
TAKE = (
    "INSERT INTO run_tokens (thread_id, token, used_at) VALUES (?, ?, {clock}) "
    "ON CONFLICT (thread_id) DO UPDATE SET token = excluded.token, used_at = excluded.used_at"
)
# Who claims the thread meanwhile waits for the end of the transaction, and finds what was written in it.
USE = "UPDATE run_tokens SET used_at = {clock} WHERE thread_id = ? AND token = ? RETURNING thread_id"
DROP = "DELETE FROM run_tokens WHERE thread_id = ?"
Statement = tuple[str, Sequence[Any]]  # SQL, and the values for it


class RunClaim(NamedTuple):
    """What lets a run write in a thread until somebody else claims that.

    The token is of this one claim and never comes back, also not after the thread was forgotten: a number that is
    counted up in the row would start over with it, and could be that of a run which woke up late.
    """

    thread_id: str
    token: str

    def check(self, *, is_current: bool) -> None:
        """Raise `CheckpointOvertaken` where the thread is not, or no longer, under this claim."""
        if not is_current:
            raise CheckpointOvertaken("Another process has continued this conversation. Ask again if no reply comes.")


def make_claim(thread_id: str) -> RunClaim:
    """Make a claim that nobody else has; it holds once it is written down."""
    return RunClaim(thread_id, secrets.token_hex(16))


class SqlExecutor(ABC):
    """A database that takes the dialect of SQLite, with `?` for values; every statement may be run twice."""

    clock: ClassVar[str]  # the time of the database in seconds since the epoch, in SQL

    @abstractmethod
    async def write_all(self, statements: Sequence[Statement], *, claim: RunClaim | None = None) -> None:
        """Run statements in one transaction: all of them, or none; raises `CheckpointError`.

        With a claim, only as long as that is the newest of its thread; else raises `CheckpointOvertaken`.
        """

    @abstractmethod
    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a query; raises `CheckpointError`."""

    async def write(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement in a transaction of its own; raises `CheckpointError`."""
        await self.write_all([(sql, values)])

    async def claim_run(self, thread_id: str) -> RunClaim:
        """Claim a thread for a run: under an earlier claim nothing is written any more; raises `CheckpointError`."""
        claim = make_claim(thread_id)
        await self.write_all([self.make_take_statement(claim)])
        return claim

    async def find_claim(self, thread_id: str) -> RunClaim | None:
        """Return the newest claim of a thread, whoever has made it; raises `CheckpointError`."""
        rows = await self.rows("SELECT token FROM run_tokens WHERE thread_id = ?", (thread_id,))
        return RunClaim(thread_id, *rows[0]) if rows else None

    def make_take_statement(self, claim: RunClaim) -> Statement:
        """Return the statement that makes a claim, for a transaction with others."""
        return TAKE.format(clock=self.clock), claim


class EvidenceStore:
    """Evidence of all conversations in a table, from the first tool call of a turn to its end."""

    def __init__(self, database: SqlExecutor) -> None:
        self._database = database

    def of(self, thread: str, claim: RunClaim | None = None) -> ThreadEvidence:
        """Return the evidence of one conversation, which is kept only under the claim of a run, where there is one."""
        return ThreadEvidence(self._database, thread, claim)

    async def drop(self, thread: str, claim: RunClaim | None = None) -> None:
        """Forget the evidence of a conversation, where there is a claim only under that."""
        await self._database.write_all([self.make_drop_statement(thread)], claim=claim)

    def make_drop_statement(self, thread: str) -> Statement:
        """Return the statement that forgets the evidence of a conversation, for a transaction with others."""
        return "DELETE FROM evidence WHERE thread = ?", (thread,)


def make_forget_statements(thread: str) -> Sequence[Statement]:
    """Return the statements that forget what there is of a conversation beside its checkpoints."""
    return [("DELETE FROM evidence WHERE thread = ?", (thread,)), (DROP, (thread,))]


class ThreadEvidence:
    """Evidence of one conversation in the table."""

    def __init__(self, database: SqlExecutor, thread: str, claim: RunClaim | None) -> None:
        self._database = database
        self._thread = thread
        self._claim = claim

    async def keep(self, key: str, text: str) -> None:
        """Keep a text; raises `CheckpointOvertaken` for a run that has lost its thread."""
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
