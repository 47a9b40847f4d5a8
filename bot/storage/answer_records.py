"""Stores what each answer was derived from: the question, the commits, the evidence, the replies of models."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent.text.storable import make_storable

if TYPE_CHECKING:  # a question of the command line has a record, and no database
    from agent import Database, PastTurn
    from bot.clock import Clock

Use = Literal["cited", "kept", "rejected"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlace:
    """Lines that were read for an answer, and what became of them; `commit` is set where it is not the answer's."""

    path: str
    start_line: int
    end_line: int
    use: Use
    symbol: str = ""
    score: float = 0.0
    commit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerRecord:
    """All inputs of an answer.

    `commits` has one commit per repository, `at` the ref of the question unless that was the newest commit. `history`
    are the earlier turns. `mode` is an `AnswerMode`, and `replies` are those of models, in the form of
    `agent.llm.recorded_model`. `versions` name the versions that the derivation depends on. `obstacle` says why the
    answer cannot be derived again; empty if it can.
    """

    question: str
    asked_at: float
    commits: Mapping[str, str]
    text: str
    citations: tuple[str, ...] = ()
    at: Mapping[str, str] = field(default_factory=dict)
    history: Sequence[PastTurn] = field(default_factory=list)
    evidence: tuple[EvidencePlace, ...] = ()
    model: str = ""
    mode: str = "rules"
    replies: Sequence[Mapping[str, Any]] = field(default_factory=list)
    versions: Mapping[str, str] = field(default_factory=dict)
    obstacle: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptAnswer:
    """An answer's record as it is kept: the run that gave it, and when."""

    run_id: str
    at: float
    record: AnswerRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class ReusableAnswer:
    """An answer that may be given again, as JSON: `meaning` and `place` identify the question and its code.

    `asked_at` is the time at which the row was stored, and meaningless before that.
    """

    meaning: str
    place: str
    fields: Mapping[str, Any]
    asked_at: float = 0.0


class AnswerRecordStore:
    """The table `answer_records`; rows go with the turns of their conversation. `mask` hides secrets of questions."""

    def __init__(self, database: Database, clock: Clock, *, mask: Callable[[str], str] = str) -> None:
        self._database = database
        self._clock = clock
        self._mask = mask

    async def keep(
        self, run_id: str, conversation: str, record: AnswerRecord, reusable: ReusableAnswer | None = None
    ) -> None:
        """Keep a record; a run that was taken up again replaces its own."""
        record = dataclasses.replace(record, question=self._mask(record.question))
        texts = [make_storable(json.dumps(one)) if one else "" for one in (
            dataclasses.asdict(record), reusable.fields if reusable is not None else None
        )]  # fmt: skip
        key = (reusable.meaning, reusable.place) if reusable is not None else ("", "")
        await self._database.write(
            "INSERT INTO answer_records (run_id, conversation, at, record, answer, meaning, place) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET record = excluded.record, "
            "at = excluded.at, answer = excluded.answer, meaning = excluded.meaning, place = excluded.place",
            (run_id, conversation, self._clock.now(), *texts, *key),
        )

    async def list_reusable(self, meaning: str, place: str, *, most: int) -> Sequence[ReusableAnswer]:
        """Return the answers to what means the same, newest first; none from before somebody found one not helpful."""
        rows = await self._database.rows(
            "SELECT answer, at FROM answer_records WHERE meaning = ? AND place = ? AND at > COALESCE("
            "(SELECT MAX(a.at) FROM answer_records a JOIN feedback f ON f.run_id = a.run_id "
            "WHERE a.meaning = ? AND a.place = ? AND f.opinion = 'bad'), -1) ORDER BY at DESC, run_id LIMIT ?",
            (meaning, place, meaning, place, most),
        )
        return [
            ReusableAnswer(meaning=meaning, place=place, fields=json.loads(answer), asked_at=at) for answer, at in rows
        ]

    async def find(self, run_id: str) -> KeptAnswer | None:
        """Return the record of a run; None if none is kept."""
        rows = await self._database.rows("SELECT run_id, at, record FROM answer_records WHERE run_id = ?", (run_id,))
        return next(map(_parse, rows), None)

    async def list_newest(self, *, most: int) -> Sequence[KeptAnswer]:
        """Return the newest records, the last one first."""
        rows = await self._database.rows(
            "SELECT run_id, at, record FROM answer_records ORDER BY at DESC, run_id LIMIT ?", (most,)
        )
        return [*map(_parse, rows)]


def _parse(row: Sequence[Any]) -> KeptAnswer:
    run_id, at, text = row
    fields = json.loads(text)
    fields["evidence"] = tuple(EvidencePlace(**one) for one in fields["evidence"])
    fields["citations"] = tuple(fields["citations"])
    return KeptAnswer(run_id=run_id, at=at, record=AnswerRecord(**fields))
