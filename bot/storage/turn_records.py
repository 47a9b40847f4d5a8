"""Stores the records of finished turns: how each answer was found, and people's feedback on it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from bot.messages import GoalOrder

if TYPE_CHECKING:  # a question of the command line has a record, and no database
    from agent import Database
    from bot.clock import Clock
    from bot.storage.inbox import InboxEntry

Opinion = Literal["good", "bad"]
MAX_FILES = 50
MAX_QUESTIONS = 10_000
_WITH_QUESTION = '%"question": "%'
_SELDOM = frozenset({"at", "is_reminded", "question", "lookup", "meanings"})  # fields that most records do not have
_LISTS = ("files", "searched", "repositories", "tools", "meanings")  # of a record, which JSON has as lists


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRecord:
    """The record of an answer; `person` asked for it, and tokens are the sum of all model calls.

    `why` tells how its repository was found. An answer about several names them in `repositories`
    as well, and has a commit of each in `commits`. `watched` is the guard's verdict, `flagged` the
    number of passages of the evidence that gave orders. `found` is None if it is unknown whether
    the repository has the answer. `goal` is the goal run that the reply proposes, or offers to
    propose; `is_reminded` that somebody wrote neither yes nor no to it. `at` has the kind, the name
    and the commit of the ref that was read, unless it was the newest commit. `meanings` are the
    questions that buttons ask. `question` and its chosen `lookup` are kept, masked, only if the
    operator has opted in.
    """

    repository: str
    commit: str
    route: str
    model: str | None
    seconds: float
    files: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    person: str = ""
    why: str = ""
    repositories: tuple[str, ...] = ()
    watched: bool = False
    flagged: int = 0
    tools: tuple[str, ...] = ()
    commits: Mapping[str, str] = field(default_factory=dict)
    found: bool | None = None
    goal: GoalOrder | None = None
    at: Mapping[str, str] = field(default_factory=dict)
    is_reminded: bool = False
    question: str = ""
    lookup: str = ""
    meanings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The repositories of the answer, if any."""
        return self.repositories or tuple(filter(None, (self.repository,)))


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedbackEntry:
    """A person's rating of an answer; `record` is None if the turn has been forgotten."""

    run_id: str
    person: str
    opinion: Opinion
    at: float
    record: TurnRecord | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    """A kept question, masked, with the chosen lookup; `opinion` is its worst rating."""

    text: str
    lookup: str
    opinion: Opinion | None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptTurn:
    """A stored turn: its run, conversation and time, and how its answer was found."""

    run_id: str
    conversation: str
    at: float
    record: TurnRecord


class TurnRecordStore:
    """The tables `turns` and `feedback`.

    Without `mask_question`, no question and no lookup is kept.
    """

    def __init__(self, database: Database, clock: Clock, *, mask_question: Callable[[str], str] | None = None) -> None:
        self._database = database
        self._clock = clock
        self._mask_question = mask_question

    async def keep(self, run_id: str, conversation: str, record: TurnRecord, *, held: InboxEntry | None = None) -> bool:
        """Store a turn; a resumed run replaces its earlier record.

        With the message that it answers, nothing is stored, and this is False, once another process has claimed the
        message, or it was edited or settled: a process that was suspended must not overwrite the newest record.
        """
        question = self._mask_question(record.question) if self._mask_question is not None else ""
        record = dataclasses.replace(record, question=question, lookup=record.lookup if question else "")
        kept = await self._database.write(
            "INSERT INTO turns (run_id, conversation, record, at) "
            "SELECT :run_id, :conversation, :record, CAST(:at AS DOUBLE PRECISION) WHERE :id = 0 OR EXISTS "
            "(SELECT 1 FROM inbox WHERE id = :id AND claims = :token AND inbox.run_id = :run_id AND owner <> '') "
            "ON CONFLICT (run_id) DO UPDATE SET conversation = excluded.conversation, "
            "record = excluded.record, at = excluded.at",
            {
                "run_id": run_id, "conversation": conversation, "record": json.dumps(_list_fields(record)),
                "at": self._clock.now(), "id": held.id if held else 0, "token": held.token if held else 0,
            },
        )  # fmt: skip
        return kept > 0

    async def last(self, conversation: str) -> TurnRecord | None:
        """Return the newest turn of a conversation."""
        row = await self._database.row(
            "SELECT record FROM turns WHERE conversation = ? ORDER BY at DESC, rowid DESC LIMIT 1", (conversation,)
        )
        return _record(row[0]) if row else None

    async def list_newest(self, conversation: str, *, most: int) -> Sequence[KeptTurn]:
        """Return the newest turns of a conversation, the last one first."""
        rows = await self._database.rows(
            "SELECT run_id, conversation, at, record FROM turns WHERE conversation = ? ORDER BY at DESC, rowid DESC "
            "LIMIT ?",
            (conversation, most),
        )
        return _make_turns(rows)

    async def last_run(self, conversation: str) -> str:
        """Name the run of the newest turn of a conversation; empty if none is kept."""
        row = await self._database.row(
            "SELECT run_id FROM turns WHERE conversation = ? ORDER BY at DESC, rowid DESC LIMIT 1", (conversation,)
        )
        return str(row[0]) if row else ""

    async def recent(self, *, since: float, most: int) -> Sequence[KeptTurn]:
        """Return the turns since a time, newest first, up to a limit."""
        rows = await self._database.rows(
            "SELECT run_id, conversation, at, record FROM turns WHERE at >= ? ORDER BY at DESC, rowid DESC LIMIT ?",
            (since, most),
        )
        return _make_turns(rows)

    async def forget(self, conversation: str) -> None:
        """Drop the turns of a conversation with their sources; opinions stay."""
        await self._database.write("DELETE FROM answer_records WHERE conversation = ?", (conversation,))
        await self._database.write("DELETE FROM turns WHERE conversation = ?", (conversation,))

    async def forget_old(self, before: float) -> int:
        """Drop the turns and opinions from before a time; return the number of opinions."""
        for table in ("turns", "answer_records"):
            await self._database.write(f"DELETE FROM {table} WHERE at < ?", (before,))  # noqa: S608 - constants
        return await self._database.write("DELETE FROM feedback WHERE at < ?", (before,))

    async def list_questions(self, *, since: float = 0.0) -> Sequence[AskedQuestion]:
        """Return the questions kept since a time, oldest first."""
        rows = await self._database.rows(
            "SELECT record, MIN(opinion) FROM turns t LEFT JOIN feedback f ON f.run_id = t.run_id "
            "WHERE t.at >= ? AND record LIKE ? GROUP BY t.run_id, record, t.at ORDER BY t.at, t.run_id",
            (since, _WITH_QUESTION),
        )
        asked = ((_record(record), opinion) for record, opinion in rows)
        return [
            AskedQuestion(text=one.question, lookup=one.lookup, opinion=opinion)
            for one, opinion in asked
            if one.question
        ]

    async def forget_question(self, run_id: str) -> None:
        """Drop the question of a turn and its sources; keep the rest of its record."""
        await self._database.write("DELETE FROM answer_records WHERE run_id = ?", (run_id,))
        await self._drop_questions(
            await self._database.rows("SELECT run_id, record FROM turns WHERE run_id = ?", (run_id,))
        )

    async def forget_old_questions(self, before: float, *, most: int = MAX_QUESTIONS) -> None:
        """Drop the questions from before a time, and all but the newest few."""
        rows = await self._database.rows(
            "SELECT run_id, record, at FROM turns WHERE record LIKE ? ORDER BY at DESC, rowid DESC", (_WITH_QUESTION,)
        )
        await self._drop_questions(
            [(run_id, record) for place, (run_id, record, at) in enumerate(rows) if place >= most or at < before]
        )

    async def _drop_questions(self, rows: Sequence[Sequence[Any]]) -> None:
        for run_id, record in rows:
            bare = dataclasses.replace(_record(record), question="", lookup="")
            await self._database.write(
                "UPDATE turns SET record = ? WHERE run_id = ?", (json.dumps(_list_fields(bare)), run_id)
            )

    async def rate(self, run_id: str, person: str, opinion: Opinion) -> None:
        """Store a person's opinion of an answer, replacing an earlier one."""
        await self._database.write(
            "INSERT INTO feedback (run_id, person, opinion, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (run_id, person) DO UPDATE SET opinion = excluded.opinion, at = excluded.at",
            (run_id, person, opinion, self._clock.now()),
        )

    async def feedback(self, *, since: float = 0.0) -> Sequence[FeedbackEntry]:
        """Return the opinions since a time, oldest first, with their records if they are kept."""
        rows = await self._database.rows(
            "SELECT f.run_id, person, opinion, f.at, record FROM feedback f LEFT JOIN turns t ON t.run_id = f.run_id "
            "WHERE f.at >= ? ORDER BY f.at, f.rowid",
            (since,),
        )
        return [
            FeedbackEntry(
                run_id=run_id, person=person, opinion=opinion, at=at, record=_record(record) if record else None
            )
            for run_id, person, opinion, at, record in rows
        ]


def _list_fields(record: TurnRecord) -> Mapping[str, object]:
    """List the fields; the previous release can read all but those that most records lack."""
    fields = dataclasses.asdict(record)
    return {name: value for name, value in fields.items() if value or name not in _SELDOM}


def _make_turns(rows: Sequence[Sequence[Any]]) -> Sequence[KeptTurn]:
    return [
        KeptTurn(run_id=run_id, conversation=conversation, at=at, record=_record(record))
        for run_id, conversation, at, record in rows
    ]


def _record(text: str) -> TurnRecord:
    fields = json.loads(text)
    goal = GoalOrder(**fields["goal"]) if fields.get("goal") else None
    return TurnRecord(**fields | {name: tuple(fields.get(name, ())) for name in _LISTS} | {"goal": goal})
