"""The run journal: which questions are being answered, wait for a person, or were broken off."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal, cast

from agent.persistence.evidence_store import SqlExecutor, Statement

RunStatus = Literal["running", "paused", "completed", "failed"]

_COLUMNS = "id, thread, repository, question, reply, reply_to, status, tries, started_at, updated_at"


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One question on its way to an answer; `reply` is what a person said to the pause `reply_to`.

    Its fields are the columns of the journal, in their order; of several repositories, the column has one a line.
    `question` is empty once the run is over. Times are in seconds since the epoch.
    """

    id: str
    thread: str
    repositories: tuple[str, ...]
    question: str
    reply: str | None = None
    reply_to: str | None = None
    status: RunStatus = "running"
    tries: int = 1
    started_at: float
    updated_at: float

    @property
    def is_new(self) -> bool:
        """Whether nothing can have been done for it: one that is taken up again is tried a second time."""
        return self.status == "running" and self.tries == 1 and self.reply is None


class RunStore:
    """The table `agent_executions`; of the finished runs of a conversation the last one is kept."""

    def __init__(self, database: SqlExecutor, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    async def begin(
        self,
        run_id: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        question: str,
        reply: str | None = None,
        reply_to: str | None = None,
    ) -> AgentRun:
        """Record a run before anything is done for it, and give up what the conversation had left unfinished."""
        now = self._clock()
        run = AgentRun(
            id=run_id, thread=thread, repositories=tuple(repositories), question=question, reply=reply,
            reply_to=reply_to, started_at=now, updated_at=now,
        )  # fmt: skip
        return await self._database.run_transaction(lambda db: _add(db, run))

    async def begin_unless_paused(
        self, run_id: str, *, thread: str, repositories: Sequence[str] = (), question: str
    ) -> AgentRun:
        """Record a run as `begin` does, or return the run of the conversation that is waiting for a person."""
        now = self._clock()
        run = AgentRun(
            id=run_id,
            thread=thread,
            repositories=tuple(repositories),
            question=question,
            started_at=now,
            updated_at=now,
        )
        return await self._database.run_transaction(lambda db: _find_paused(db, thread) or _add(db, run))

    async def try_again(self, run_id: str) -> None:
        """Record that a run goes on after a crash."""
        await self._database.write(
            "UPDATE agent_executions SET status = 'running', tries = tries + 1, updated_at = ? WHERE id = ?",
            (self._clock(), run_id),
        )

    async def reply(self, run_id: str, reply: str, *, to: str) -> None:
        """Record that a run goes on with a person's reply to a pause."""
        await self._database.write(
            "UPDATE agent_executions SET status = 'running', tries = 1, reply = ?, reply_to = ?, updated_at = ? "
            "WHERE id = ?",
            (reply, to, self._clock(), run_id),
        )

    async def pause(self, run_id: str) -> None:
        """Record that a run waits for a person; an earlier reply is used up."""
        await self._database.write(
            "UPDATE agent_executions SET status = 'paused', tries = 0, reply = NULL, updated_at = ? WHERE id = ?",
            (self._clock(), run_id),
        )

    def make_end_statement(self, run_id: str, status: Literal["completed", "failed"]) -> Statement:
        """Return the statement that records the end of a run, for a transaction with others.

        It also clears the question: the conversation remembers that, with secrets masked.
        """
        return (
            "UPDATE agent_executions SET status = ?, question = '', reply = NULL, updated_at = ? WHERE id = ?",
            (status, self._clock(), run_id),
        )

    async def forget(self, thread: str) -> None:
        """Delete the runs of a conversation."""
        await self._database.write("DELETE FROM agent_executions WHERE thread = ?", (thread,))

    async def find(self, run_id: str) -> AgentRun | None:
        """Return a run."""
        sql = f"SELECT {_COLUMNS} FROM agent_executions WHERE id = ?"  # noqa: S608 - constants
        rows = await self._database.rows(sql, (run_id,))
        return _read_run(rows[0]) if rows else None


def _find_paused(db: sqlite3.Connection, thread: str) -> AgentRun | None:
    sql = f"SELECT {_COLUMNS} FROM agent_executions WHERE thread = ? AND status = 'paused'"  # noqa: S608 - constants
    row = db.execute(sql, (thread,)).fetchone()
    return _read_run(row) if row is not None else None


def _add(db: sqlite3.Connection, run: AgentRun) -> AgentRun:
    finished = "'completed', 'failed'"
    if run.reply is not None:  # the run that waited for it goes on under the new name
        finished += ", 'paused'"
    db.execute(f"DELETE FROM agent_executions WHERE thread = ? AND status IN ({finished})", (run.thread,))  # noqa: S608 - constants
    db.execute(
        "UPDATE agent_executions SET status = 'failed', question = '', reply = NULL WHERE thread = ?", (run.thread,)
    )
    db.execute(f"INSERT INTO agent_executions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _make_row(run))  # noqa: S608 - constants
    return run


def _make_row(run: AgentRun) -> tuple[Any, ...]:
    run_id, thread, _, *rest = astuple(run)
    return run_id, thread, "\n".join(run.repositories) or None, *rest


def _read_run(row: Sequence[Any]) -> AgentRun:
    run_id, thread, repositories, question, reply, reply_to, status, tries, started_at, updated_at = row
    return AgentRun(
        id=run_id, thread=thread, repositories=_read_names(repositories), question=question, reply=reply,
        reply_to=reply_to, status=cast("RunStatus", status), tries=tries, started_at=started_at, updated_at=updated_at,
    )  # fmt: skip


def _read_names(column: str | None) -> tuple[str, ...]:
    return tuple(column.split("\n")) if column else ()
