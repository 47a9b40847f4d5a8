"""Deletes expired data, and frees its disk space: daily, or on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from agent import AgentError, list_copies
from bot.clock import Clock
from bot.errors import BotError
from bot.maintenance.disk_usage import CONVERSATIONS
from bot.maintenance.goal_run_files import GoalRunFiles
from bot.repositories.choice_store import ChoiceStore
from bot.storage.answer_records import ShareableAnswerStore, SharedAnswerStore
from bot.storage.database import INBOX_FILE, has_store, open_store
from bot.storage.inbox import Inbox
from bot.storage.living_answers import LivingAnswerStore
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore
from indexer import SegmentsUnavailable

DAY = 86_400.0
COPY_DAYS = 7  # for which a database is kept as it was before its layout changed
FIRST_SECONDS = 300.0  # a start has other things to do

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepReport:
    """The numbers of deleted entries; `problems` are sentences on failures."""

    conversations: int = 0
    messages: int = 0
    threads: int = 0
    ratings: int = 0
    problems: Sequence[str] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The retention of a data folder, and of Postgres if there is an address, in days; 0 keeps everything.

    Questions are kept for `question_days`, and answers followed for `living_days`; 0 keeps none.

    An object store is swept by those who publish in it.
    """

    home: Path
    url: SecretStr | None = None
    days: int
    question_days: int = 0
    living_days: int = 0
    clock: Clock
    sweep_indexes: Callable[[], Awaitable[Sequence[str]]] | None = None
    sweep_segments: Callable[[], Awaitable[int]] | None = None

    async def sweep(self) -> SweepReport:
        """Delete expired data, and free its space. A part that cannot be swept does not stop the others."""
        before = self.clock.now() - self.days * DAY if self.days else 0.0
        problems = [*await self.sweep_indexes()] if self.sweep_indexes else []
        problems += await self._sweep_segments()
        conversations, messages, threads, ratings = 0, 0, 0, 0
        try:
            # Importing langgraph takes a second; only a sweep needs it here.
            from agent import prune_idle_conversations

            conversations = await prune_idle_conversations(self.home / CONVERSATIONS, self.url, before=before)
        except AgentError as error:
            problems.append(str(error))
        try:
            messages, threads, ratings = await self._sweep_messages(before)
        except BotError as error:
            problems.append(str(error))
        problems += await asyncio.to_thread(self._drop_copies)
        await asyncio.to_thread(GoalRunFiles(self.home).drop, before)
        return SweepReport(
            conversations=conversations, messages=messages, threads=threads, ratings=ratings, problems=problems
        )

    async def _sweep_segments(self) -> Sequence[str]:
        """Delete unneeded objects from the object store; return the problems."""
        try:
            swept = await self.sweep_segments() if self.sweep_segments is not None else 0
        except SegmentsUnavailable as error:
            return [str(error)]
        if swept:
            log.info("%d objects were deleted from the store of indexes", swept)
        return []

    def _drop_copies(self) -> Sequence[str]:
        """Delete the copies of databases from before upgrades; return those that remain."""
        before = self.clock.now() - min(self.days or COPY_DAYS, COPY_DAYS) * DAY
        problems = []
        for copy in (copy for name in (CONVERSATIONS, INBOX_FILE) for copy in list_copies(self.home / name)):
            try:
                if copy.stat().st_mtime < before:
                    copy.unlink()
            except OSError as error:
                problems.append(f"{copy} cannot be deleted ({error.strerror}). Delete it yourself.")
        return problems

    async def _sweep_messages(self, before: float) -> tuple[int, int, int]:
        if not await asyncio.to_thread(has_store, self.home, self.url):
            return 0, 0, 0
        async with open_store(self.home, self.url) as database:
            inbox, threads = Inbox(database, self.clock, ""), ThreadStore(database, self.clock)
            records, choices = TurnRecordStore(database, self.clock), ChoiceStore(database, self.clock)
            usage = QuestionCounter(database, self.clock, QuestionLimits())
            await usage.forget_old()
            await ShareableAnswerStore(database, self.clock).forget_old(before)
            await SharedAnswerStore(database, self.clock).forget_old(before)
            await LivingAnswerStore(database, self.clock).forget_old(
                max(before, self.clock.now() - self.living_days * DAY)
            )
            await choices.forget_old(before)
            messages = await inbox.forget_old(before)
            await records.forget_old_questions(self.clock.now() - self.question_days * DAY)
            forgotten = messages, await threads.forget_old(before), await records.forget_old(before)
            await database.shrink()
        return forgotten


@asynccontextmanager
async def run_daily_sweep(sweep: Callable[[], Awaitable[SweepReport]], clock: Clock) -> AsyncIterator[None]:
    """Sweep some minutes from now, and every day from then on, for as long as the context is open."""
    async with asyncio.TaskGroup() as group:
        sweeping = group.create_task(_sweep_daily(sweep, clock))
        try:
            yield
        finally:
            sweeping.cancel()


async def _sweep_daily(sweep: Callable[[], Awaitable[SweepReport]], clock: Clock) -> None:
    pause = FIRST_SECONDS
    while True:
        await clock.sleep(pause)
        try:
            swept = await sweep()
        except OSError as error:
            log.warning("the data folder was not swept: %s", error)
        else:
            log.info("%s", describe_sweep(swept))
            for problem in swept.problems:
                log.warning("not swept: %s", problem)
        pause = DAY


def describe_sweep(swept: SweepReport) -> str:
    """Describe a sweep in a sentence."""
    return (
        f"Swept: forgot {_count(swept.conversations, 'conversation')}, {_count(swept.messages, 'message')}, "
        f"{_count(swept.threads, 'thread')} and {_count(swept.ratings, 'rating')}."
    )


def _count(number: int, of_what: str) -> str:
    return f"{number:,} {of_what}{'s' * (number != 1)}"
