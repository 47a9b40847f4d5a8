"""Answers as jobs of one process, for tests of several in it: one at a time in a conversation, in the order asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _AnswerJob:
    """A message to answer; a command belongs to no conversation."""

    entry_id: int
    conversation: str | None


class LocalAnswerJobs:
    """Keeps what was asked for in memory: after a restart, the inbox knows what must be asked for again."""

    def __init__(self) -> None:
        self._waiting: list[_AnswerJob] = []
        self._under_way: dict[asyncio.Task[None], _AnswerJob] = {}
        self._answer: Callable[[int], Awaitable[None]] | None = None
        self._at_once: int | None = None

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Have a message answered in its turn; a command waits for nothing but a free worker."""
        job = _AnswerJob(entry_id=entry_id, conversation=None if is_command else conversation)
        if job not in self._waiting:
            self._waiting.append(job)
        self._begin_next()

    @asynccontextmanager
    async def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AsyncIterator[None]:
        """Answer while the context is open, `at_once` messages at most."""
        self._answer, self._at_once = answer, at_once
        self._begin_next()
        try:
            yield
        finally:
            self._answer = None
            broken_off = [*self._under_way]
            for task in broken_off:
                task.cancel()
            await asyncio.gather(*broken_off, return_exceptions=True)

    def _begin_next(self) -> None:
        """Begin whatever may begin, commands first."""
        busy = {job.conversation for job in self._under_way.values()} - {None}
        for job in sorted(self._waiting, key=lambda job: job.conversation is not None):
            if self._answer is None or (self._at_once is not None and len(self._under_way) >= self._at_once):
                return
            if job.conversation in busy:
                continue
            busy |= {job.conversation} - {None}
            self._waiting.remove(job)
            task = asyncio.ensure_future(self._answer(job.entry_id))
            self._under_way[task] = job
            task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Continue with what waited for the end of a job; one that was interrupted comes first the next time."""
        job = self._under_way.pop(task)
        if task.cancelled():
            if job not in self._waiting:
                self._waiting.insert(0, job)
        elif task.exception() is not None:
            log.error("the answer to message %d ended with an error", job.entry_id, exc_info=task.exception())
        self._begin_next()
