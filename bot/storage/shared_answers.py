"""Answers that people share: kept a day while they may be shared, and those with a link until withdrawn."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from agent import Database
from agent.text.storable import make_storable
from bot.clock import Clock
from bot.messages import SURFACE, Attachment, Button, MessageContent, PlaceLink

KEPT_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShareableAnswer:
    """An answer, and the repositories that it is about."""

    content: MessageContent
    repositories: tuple[str, ...]


class ShareableAnswerStore:
    """The table `shareable_answers`, by runs. What was shared stays for a day without its content."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def keep(self, run_id: str, conversation: str, answer: ShareableAnswer) -> None:
        """Keep an answer."""
        await self._database.write(
            "INSERT INTO shareable_answers (run_id, conversation, answer, at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (run_id) DO UPDATE SET answer = excluded.answer, at = excluded.at",
            (run_id, conversation, make_storable(json.dumps(dataclasses.asdict(answer))), self._clock.now()),
        )

    async def take(self, run_id: str) -> ShareableAnswer | None:
        """Take an answer to share it, as one process alone can; None if it was shared, or is not kept."""
        since = self._clock.now() - KEPT_SECONDS
        row = await self._database.row(
            "SELECT answer FROM shareable_answers WHERE run_id = ? AND answer <> '' AND at >= ?", (run_id, since)
        )
        taken = await self._database.write(
            "UPDATE shareable_answers SET answer = '' WHERE run_id = ? AND answer <> ''", (run_id,)
        )
        return _parse(row[0]) if row is not None and taken else None

    async def read(self, run_id: str) -> MessageContent | None:
        """Return a content, and keep it."""
        row = await self._database.row("SELECT answer FROM shareable_answers WHERE run_id = ?", (run_id,))
        return _parse(row[0]).content if row is not None else None

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
        """Drop answers that are a day old, and what is shown nowhere else once it is from before a time."""
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


def _parse(text: str) -> ShareableAnswer:
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


class SharedAnswerStore:
    """The table `shared_answers`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def share(self, answer_id: str, owner: str, question: str, answer: str) -> None:
        """Keep an answer under its link; sharing it twice changes nothing."""
        await self._database.write(
            "INSERT INTO shared_answers (id, owner, question, answer, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO NOTHING",
            (answer_id, owner, make_storable(question), make_storable(answer), self._clock.now()),
        )

    async def find(self, answer_id: str) -> SharedAnswer | None:
        """Return what a link leads to."""
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
        """Delete what was shared before a time."""
        await self._database.write("DELETE FROM shared_answers WHERE at < ?", (before,))
