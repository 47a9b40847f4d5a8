"""Stores answers: their inputs, and the text of those that may be shared or have a link."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent import Database
from agent.text.storable import make_storable
from bot.clock import Clock
from bot.messages import SURFACE, Attachment, Button, MessageContent, PlaceLink
from bot.storage.database import Table

if TYPE_CHECKING:
    from agent import Database, PastTurn
    from bot.clock import Clock

Use = Literal["cited", "kept", "rejected"]
KEPT_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidencePlace:
    """Lines that were read for an answer, and their use; `commit` is set if it is not the answer's."""

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

    `commits` has one commit per repository, `at` the ref of the question unless that was the newest
    commit. `history` are the earlier turns. `mode` is an `AnswerMode`, and `replies` are those of
    models, in the form of `agent.llm.recorded_model`. `versions` name the versions that affect the
    derivation. `obstacle` says why the answer cannot be derived again; empty if it can.
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
    """The stored record of an answer, with its run and time."""

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
        """Keep a record; a resumed run replaces its own."""
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
        """List the answers with the same meaning, newest first; none from before somebody found one not helpful."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ShareableAnswer:
    """An answer, and the repositories that it is about."""

    content: MessageContent
    repositories: tuple[str, ...]


class ShareableAnswerStore(Table):
    """The table `shareable_answers`, by runs. A shared answer stays for a day without its content."""

    async def keep(self, run_id: str, conversation: str, answer: ShareableAnswer) -> None:
        """Keep an answer."""
        await self._database.write(
            "INSERT INTO shareable_answers (run_id, conversation, answer, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (run_id) DO UPDATE SET answer = excluded.answer, at = excluded.at",
            (run_id, conversation, make_storable(json.dumps(dataclasses.asdict(answer))), self._clock.now()),
        )

    async def take(self, run_id: str) -> ShareableAnswer | None:
        """Take an answer to share it, in one process only; None if it was shared, or is not kept."""
        since = self._clock.now() - KEPT_SECONDS
        row = await self._database.row(
            "SELECT answer FROM shareable_answers WHERE run_id = ? AND answer <> '' AND at >= ?", (run_id, since)
        )
        taken = await self._database.write(
            "UPDATE shareable_answers SET answer = '' WHERE run_id = ? AND answer <> ''", (run_id,)
        )
        return _parse_shareable(row[0]) if row is not None and taken else None

    async def read(self, run_id: str) -> MessageContent | None:
        """Return a content, and keep it."""
        row = await self._database.row("SELECT answer FROM shareable_answers WHERE run_id = ?", (run_id,))
        return _parse_shareable(row[0]).content if row is not None else None

    async def drop(self, run_id: str) -> None:
        """Drop a content."""
        await self._database.write("DELETE FROM shareable_answers WHERE run_id = ?", (run_id,))

    async def is_shared(self, run_id: str) -> bool:
        """Whether an answer was taken within the last day."""
        row = await self._database.row("SELECT 1 FROM shareable_answers WHERE run_id = ? AND answer = ''", (run_id,))
        return row is not None

    async def forget(self, conversation: str) -> None:
        """Drop the answers of a conversation."""
        await self._database.write("DELETE FROM shareable_answers WHERE conversation = ?", (conversation,))

    async def forget_old(self, before: float) -> None:
        """Drop answers that are a day old, and other unshown data from before a time."""
        await self._database.write(
            "DELETE FROM shareable_answers WHERE at < ? OR (at < ? AND conversation NOT LIKE ?)",
            (before, self._clock.now() - KEPT_SECONDS, f"{SURFACE}:%"),
        )


def write_content(content: MessageContent) -> dict[str, Any]:
    """Return a content as values that JSON has."""
    return dataclasses.asdict(content)


def read_content(fields: dict[str, Any]) -> MessageContent:
    """Return the content that was written so."""
    file = fields["file"]
    return MessageContent(
        **fields
        | {
            "found": tuple(PlaceLink(**each) for each in fields["found"]),
            "buttons": tuple(Button(**each) for each in fields["buttons"]),
            "file": Attachment(**file) if file is not None else None,
        }
    )


def _parse_shareable(text: str) -> ShareableAnswer:
    fields = json.loads(text)
    return ShareableAnswer(content=read_content(fields["content"]), repositories=tuple(fields["repositories"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedAnswer:
    """A question and its answer, as JSON; `id` is in the link, and `owner` is the person who shared it."""

    id: str
    owner: str
    question: str
    answer: str
    at: float


class SharedAnswerStore(Table):
    """The table `shared_answers`."""

    async def share(self, answer_id: str, owner: str, question: str, answer: str) -> None:
        """Keep an answer under its link; sharing it twice changes nothing."""
        await self._database.write(
            "INSERT INTO shared_answers (id, owner, question, answer, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO NOTHING",
            (answer_id, owner, make_storable(question), make_storable(answer), self._clock.now()),
        )

    async def find(self, answer_id: str) -> SharedAnswer | None:
        """Return the target of a link."""
        row = await self._database.row(
            "SELECT owner, question, answer, at FROM shared_answers WHERE id = ?", (answer_id,)
        )
        if row is None:
            return None
        owner, question, answer, at = row
        return SharedAnswer(id=answer_id, owner=owner, question=question, answer=answer, at=at)

    async def withdraw(self, answer_id: str, owner: str) -> None:
        """Delete an answer of a person's own."""
        await self._database.write("DELETE FROM shared_answers WHERE id = ? AND owner = ?", (answer_id, owner))

    async def forget_old(self, before: float) -> None:
        """Delete answers shared before a time."""
        await self._database.write("DELETE FROM shared_answers WHERE at < ?", (before,))
