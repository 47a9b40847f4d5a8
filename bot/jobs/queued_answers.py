"""Answers as jobs in Postgres: whichever process works on them takes the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bot.jobs.job_queue import JobQueue, JobRequest, make_lock
from bot.jobs.queue_worker import MANY, run_queue_worker

ANSWERS = "answers"
_COMMAND_PRIORITY = 10


class QueuedAnswerJobs:
    """Asks all processes for answers. A job has the number of the message alone: the inbox has the rest."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def ask_for_answer(self, entry_id: int, conversation: str, *, is_command: bool = False) -> None:
        """Have a message answered in its turn; a command waits for nothing but a free worker."""
        await self._queue.add(
            JobRequest(
                queue=ANSWERS,
                args={"entry_id": entry_id},
                lock=None if is_command else make_lock("conversation", conversation),
                key=f"message {entry_id}",
                priority=_COMMAND_PRIORITY if is_command else 0,
            )
        )

    @asynccontextmanager
    async def work_on_answers(
        self, answer: Callable[[int], Awaitable[None]], *, at_once: int | None = None
    ) -> AsyncIterator[None]:
        """Answer while the context is open, `at_once` messages at most."""

        async def carry_out(entry_id: int) -> None:
            await answer(entry_id)

        async with run_queue_worker(self._queue, ANSWERS, carry_out, at_once=at_once or MANY):
            yield
