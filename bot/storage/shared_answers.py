"""Answers that people share by a link, each with its question: kept until they are withdrawn, or too old."""

from __future__ import annotations

from dataclasses import dataclass

from agent import Database
from agent.text.storable import make_storable
from bot.clock import Clock


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
