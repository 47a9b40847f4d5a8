"""Turns that others may read by a link, also after citebot was restarted: their cited code is read again each time."""

from __future__ import annotations

import logging

from pydantic import ValidationError

from bot.storage.shared_answers import SharedAnswerStore
from bot.surfaces.ask_events import Answered
from bot.surfaces.web.live_turns import LiveTurn, LiveTurns
from bot.surfaces.web.run_course import RunCourse

log = logging.getLogger(__name__)


class SharedTurns:
    """Shares answers of the page, and finds those that are shared."""

    def __init__(self, store: SharedAnswerStore, turns: LiveTurns) -> None:
        self._store = store
        self._turns = turns

    async def share(self, turn: LiveTurn, answer: Answered) -> None:
        """Keep the question and the answer of a turn for others, without the rest of its conversation."""
        kept = answer.model_copy(update={"conversation": ""})
        await self._store.share(turn.id, turn.owner, turn.question, kept.model_dump_json())
        turn.is_shared = True

    async def withdraw(self, turn: LiveTurn) -> None:
        """Have the link of a turn lead nowhere."""
        await self._store.withdraw(turn.id, turn.owner)
        turn.is_shared = False

    async def find(self, turn: str) -> LiveTurn | None:
        """Return a turn that is shared: as it is here, or made again, without its trace."""
        kept = await self._store.find(turn)
        if kept is None:
            return None
        if live := self._turns.find_shared(turn):
            return live
        try:
            answer = Answered.model_validate_json(kept.answer)
        except ValidationError:
            log.warning("a shared answer was kept by another version of citebot, and cannot be read")
            return None
        return LiveTurn(
            id=kept.id, conversation="", owner=kept.owner, question=kept.question, asked_at=kept.at, text=answer.text,
            course=RunCourse(str), answer=answer, is_shared=True,
            excerpts={place.mark: await self._turns.cited.read(place) for place in answer.citations},
        )  # fmt: skip
