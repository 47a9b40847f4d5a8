"""The turns of this process: claims messages, answers them, and resumes those of other processes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import count

from bot.clock import Clock
from bot.conversations.goal_turns import AT_ONCE
from bot.conversations.turn import ActiveTurn
from bot.conversations.turn_deps import Break, TurnDeps
from bot.errors import BotError, InboxError
from bot.monitoring.observer import AnswerLoad
from bot.ports import AnswerJobs, ChatPlatform
from bot.replies.send_budget import ReplyTransport
from bot.storage.inbox import InboxEntry, is_process_dead
from bot.storage.message_states import MAX_DEATHS, OPEN

log = logging.getLogger(__name__)

QUARANTINE_SECONDS = 30.0  # in which only suspects are tried


def is_suspect(entry: InboxEntry) -> bool:
    """Whether a message may have ended a process; its next try will show it."""
    return 0 < entry.deaths < MAX_DEATHS


class Suspects:
    """The suspects without a complete answer; for a limited time, no other question begins while one runs.

    Other questions would become suspects themselves if the process died. Two suspects never run side by side, so that
    an innocent one is not in progress at two deaths. A turn that only delivers a complete answer does not count.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._suspects: set[int] = set()
        self._thinking: set[int] = set()  # the turns here whose answers are not complete
        self._known: set[tuple[int, int]] = set()  # suspects that others have waited for, with their deaths
        self._quarantine_ends = 0.0

    def note(self, waiting: Iterable[InboxEntry]) -> None:
        """Note the suspects among the waiting messages of this process."""
        deaths = {entry.id: entry.deaths for entry in waiting if is_suspect(entry)}
        found = set(deaths)
        if deaths.items() - self._known and not self._suspects:  # not again for one whose place takes no placeholder
            self._quarantine_ends = self._clock.now() + QUARANTINE_SECONDS
        self._known |= deaths.items()
        self._suspects = found | (self._suspects & self._thinking)

    def may_begin(self, entry: InboxEntry) -> bool:
        """Whether a question may begin now."""
        is_over = self._clock.now() >= self._quarantine_ends
        if is_suspect(entry):
            return not (self._thinking & self._suspects if is_over else self._thinking)
        return entry.deaths >= MAX_DEATHS or is_over or not self._suspects

    def begin(self, entry: InboxEntry) -> None:
        """Note the beginning of a turn."""
        self._thinking.add(entry.id)
        if is_suspect(entry):
            self._suspects.add(entry.id)

    def conclude(self, entry_id: int) -> bool:
        """Note the end of a turn's thinking; return whether others may have waited for it."""
        may_be_waited_for = bool(self._suspects) and entry_id in self._thinking
        self._suspects.discard(entry_id)
        self._thinking.discard(entry_id)
        return may_be_waited_for


BEAT_SECONDS = 1.0
SWEEP_BEATS = 5  # from one search for what other processes left to the next
DRAIN_SECONDS = 20.0
CLAIM_TRIES, CLAIM_PAUSE = 3, 0.5  # of a job whose conversation another process has for a moment


class ActiveTurns:
    """The turns of this process by their messages. Use it as `async with turns.open():`.

    `on_end` is awaited with each turn when it has ended. With `jobs`, several processes share the messages: what comes
    in here is only shown to have come in, and then asked for as a job. This process takes part in answering unless
    `max_concurrent` is 0.
    """

    def __init__(
        self,
        deps: TurnDeps,
        *,
        max_concurrent: int,
        on_end: Callable[[ActiveTurn], Awaitable[None]],
        jobs: AnswerJobs | None = None,
    ) -> None:
        self.transports: dict[str, ReplyTransport] = {}
        self._deps = deps
        self._places = max_concurrent
        self._on_end = on_end
        self._jobs = jobs
        self._begins_on: set[str] = set()
        self._turns: dict[int, ActiveTurn] = {}
        self._starting: dict[int, asyncio.Event] = {}  # set once the turn is known, or there is none
        self._orders: set[int] = set()  # the messages whose goal runs are begun here
        self._suspects = Suspects(deps.clock)
        self._group: asyncio.TaskGroup | None = None
        self._broken_off: list[InboxEntry] = []  # their turns have lost the database
        self._with_strays: list[ActiveTurn] = []
        self._is_store_away = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer messages for as long as the context is open."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            upkeep = group.create_task(self._run_upkeep())
            try:
                yield
            finally:
                upkeep.cancel()

    @asynccontextmanager
    async def connect_platform(self, name: str, platform: ChatPlatform) -> AsyncIterator[None]:
        """Answer on a platform: continue unfinished turns there; at the end, finish those in progress.

        If the context ends with an error of the platform, turns in progress are handed over
        immediately.
        """
        self.transports[name] = ReplyTransport.of(
            platform, self._deps.clock, partial(self._deps.observer.count_rate_limit, name)
        )
        self._begins_on.add(name)
        seconds = DRAIN_SECONDS
        try:
            await self._run_with_retry(self._sweep)
            yield
        except BotError:
            seconds = 0.0
            raise
        finally:
            self._begins_on.remove(name)
            # Turns in progress may end; those that do not end in time are handed over
            for starting in list(self._starting.values()):
                await starting.wait()
            turns = [turn for turn in self._turns.values() if turn.entry.message.place.platform == name]
            excuse = partial(self._deps.inbox.excuse, [turn.entry for turn in turns])
            async with asyncio.TaskGroup() as group:
                group.create_task(self._run_with_retry(excuse))
                for turn in await wait_for_turns(turns, self._deps.clock, seconds):
                    await self._interrupt(turn, "handed over")
            del self.transports[name]

    @property
    def load(self) -> AnswerLoad:
        """Count the questions that this process is answering, and the waiting ones."""
        under_way = self._deps.queue.places_in_use
        questions = sum(turn.is_question for turn in self._turns.values())
        return AnswerLoad(under_way=under_way, waiting=max(0, questions - under_way))

    def list_active(self) -> Sequence[ActiveTurn]:
        """Return the turns that have begun and not ended."""
        return tuple(self._turns.values())

    def begin(self, entry: InboxEntry, *, after: float = 0.0) -> None:
        """Begin a received message after a delay; a sweep finds those that cannot begin now."""
        if self._jobs is None:
            self._begin_turn(entry, after=after)
        elif self._deps.commands.is_quick(entry.message):
            self._begin_turn(entry)
        elif entry.message.kind == "overheard" or self._deps.commands.parse(entry.message) is not None:
            self._get_group().create_task(self._ask_for_answer(entry))
        else:
            self._begin_turn(entry, is_answered_here=False, after=after)

    @asynccontextmanager
    async def work_on_jobs(self) -> AsyncIterator[None]:
        """Answer jobs while the context is open, if this process takes part.

        At its end no new turn begins, and those in progress continue.
        """
        if self._jobs is None or not self._places:
            yield
            return
        async with self._jobs.work_on_answers(self.answer, at_once=self._places):
            yield

    async def answer(self, entry_id: int) -> None:
        """Answer a message completely for a job, unless it is over, or another process has it."""
        for _ in range(CLAIM_TRIES):
            entry = await self._deps.inbox.get(entry_id)
            if entry is None or entry.state not in OPEN or not self._has_place(entry):
                return
            self._begin_turn(entry)
            if await self.wait_for(entry_id):
                return
            await self._deps.clock.sleep(CLAIM_PAUSE)

    def _has_place(self, entry: InboxEntry) -> bool:
        """Whether a message may begin here; a goal run that would only wait leaves its slot to answers.

        A process with a free slot finds it in a sweep. A process alone has no slots.
        """
        is_waiting = entry.message.goal_decision is not None and entry.id not in self._orders
        return self._jobs is None or not is_waiting or len(self._orders) < AT_ONCE

    async def wait_for(self, entry_id: int) -> bool:
        """Wait for the end of a message's turn; False if there is none here."""
        if entry_id in self._starting:
            await self._starting[entry_id].wait()
        turn = self._turns.get(entry_id)
        if turn is not None:
            await turn.ended.wait()
        return turn is not None

    async def supersede(self, entry_id: int, *, keeps: str = "") -> None:
        """End the answer to a message here, even one about to begin, except under a run to keep."""
        if entry_id in self._starting:
            await self._starting[entry_id].wait()
        turn = self._turns.get(entry_id)
        if turn is not None and turn.entry.run_id != keeps:
            await self._interrupt(turn, "superseded")

    async def stop(self, is_meant: Callable[[InboxEntry], bool]) -> bool:
        """End the given answers; False if there are none here. Messages waiting for other processes end here."""
        here = [turn for turn in self._turns.values() if turn.is_question and is_meant(turn.entry)]
        for turn in here:
            await turn.interrupt("stopped")
        return await self._stop_waiting(is_meant) or bool(here)

    async def _stop_waiting(self, is_meant: Callable[[InboxEntry], bool]) -> bool:
        """End questions that no process has; a single process has none."""
        if self._jobs is None:
            return False
        unfinished = await self._deps.inbox.list_unfinished()
        waiting = [
            entry for entry in unfinished if is_meant(entry) and self._deps.commands.parse(entry.message) is None
        ]
        for entry in waiting:
            self._begin_turn(entry, is_answered_here=False, reason="stopped")
        return bool(waiting)

    def _begin_turn(
        self, entry: InboxEntry, *, is_answered_here: bool = True, after: float = 0.0, reason: Break = ""
    ) -> None:
        """Begin the turn of a message if it is due, to answer it or to hand it on."""
        if entry.message.place.platform not in self._begins_on or entry.id in {*self._starting, *self._turns}:
            return
        may_begin = not is_answered_here or self._suspects.may_begin(entry)
        if may_begin or (not entry.deaths and self._deps.commands.parse(entry.message) is not None):
            group = self._get_group()
            self._starting[entry.id] = asyncio.Event()
            if is_answered_here:
                self._suspects.begin(entry)
                self._orders |= {entry.id} if entry.message.goal_decision is not None else set()
            run = self._claim_and_run(entry, group, is_answered_here=is_answered_here, after=after, reason=reason)
            group.create_task(run)

    def _get_group(self) -> asyncio.TaskGroup:
        if self._group is None:
            raise BotError("The conversations are not open. Use `async with conversations.open():`.")
        return self._group

    async def _ask_for_answer(self, entry: InboxEntry) -> None:
        """Request a job; if that fails, or this process dies first, an answering one finds the message."""
        is_command = self._deps.commands.parse(entry.message) is not None
        try:
            if self._jobs is not None:
                await self._jobs.ask_for_answer(entry.id, entry.conversation, is_command=is_command)
        except InboxError as error:
            log.warning("a message waits to be found: %s", error)

    async def _claim_and_run(
        self, entry: InboxEntry, group: asyncio.TaskGroup, *, is_answered_here: bool, after: float, reason: Break
    ) -> None:
        """Claim a message and run its turn; begin the messages waiting for a suspect once its answer is complete."""
        note_answered = partial(self._note_answered, entry.id)
        turn = None
        try:
            if after:
                await self._deps.clock.sleep(after)
            transport = self.transports[entry.message.place.platform]
            turn = await ActiveTurn.claim(
                entry, transport, self._deps, group, is_answered_here=is_answered_here, on_answered=note_answered
            )
            if turn is not None:
                turn.reason = reason
                self._turns[entry.id] = turn
                self._mark_started(entry.id)
                await turn.run()
                await self._on_end(turn)
        except InboxError as error:
            log.warning("a message waits for the database: %s", error)
            self._broken_off += [] if turn is None else [turn.entry]
        finally:
            self._mark_started(entry.id)
            self._orders.discard(entry.id)
            self._turns.pop(entry.id, None)
            self._with_strays += [turn] if turn is not None and turn.has_strays else []
        if turn is not None and turn.is_handed_on:
            await self._ask_for_answer(entry)
        if turn is not None:
            note_answered()
        else:  # another process has it
            self._suspects.conclude(entry.id)

    def _note_answered(self, entry_id: int) -> None:
        """Let messages begin that waited for the answer to another."""
        if self._suspects.conclude(entry_id):
            self._get_group().create_task(self._run_with_retry(self._sweep))

    def _mark_started(self, entry_id: int) -> None:
        starting = self._starting.pop(entry_id, None)
        if starting is not None:
            starting.set()

    async def _interrupt(self, turn: ActiveTurn, reason: Break) -> None:
        await turn.interrupt(reason)
        await turn.ended.wait()

    async def _run_upkeep(self) -> None:
        """Renew the leases of turns, stop those stopped elsewhere, and continue abandoned ones.

        An abandoned turn needs a free place: if processes share the messages, it is left to one that has a place.
        """
        for beat in count(1):
            await self._deps.clock.sleep(BEAT_SECONDS)
            if self._turns:
                await self._run_with_retry(self._beat)
            if beat % SWEEP_BEATS == 0:
                await self._run_with_retry(self._sweep)

    async def _run_with_retry(self, task: Callable[[], Awaitable[None]]) -> None:
        """Do the inbox's regular work; if its database fails, wait for the next time."""
        try:
            await task()
        except InboxError as error:
            if not self._is_store_away:
                log.warning("the inbox cannot be brought up to date; citebot keeps trying: %s", error)
            self._is_store_away = True
        else:
            if self._is_store_away:
                log.warning("the inbox can be brought up to date again")
            self._is_store_away = False

    async def _beat(self) -> None:
        turns, asked_at = list(self._turns.values()), time.monotonic()
        held, to_stop = await self._deps.inbox.beat([turn.entry for turn in turns])
        for turn in turns:
            if turn.entry.run_id in held:
                turn.lease.prolong(asked_at)
            if turn.ended.is_set() or turn.reason or turn.final is not None:  # which may have been settled meanwhile
                continue
            if turn.entry.run_id not in held:
                await turn.interrupt("lost")
            elif turn.entry.run_id in to_stop and turn.is_question:
                await turn.interrupt("stopped")

    async def _sweep(self) -> None:
        while self._broken_off:
            await self._deps.inbox.postpone(self._broken_off[0], 0.0)
            del self._broken_off[0]
        for turn in list(self._with_strays):
            transport = self.transports.get(turn.entry.message.place.platform)
            if transport is not None and await turn.take_back_strays(transport.platform):
                self._with_strays.remove(turn)
        if not self._places:
            return
        for owner in await self._deps.inbox.owners():
            if is_process_dead(owner, self._deps.inbox.owner):
                await self._deps.inbox.take_from(owner)
        await self._deps.inbox.take_expired()
        unfinished = await self._deps.inbox.list_unfinished()
        waiting = [entry for entry in unfinished if entry.message.place.platform in self._begins_on]
        self._suspects.note(waiting)
        for entry in waiting:
            is_free = self._jobs is None or len({*self._starting, *self._turns}) < self._places
            if is_free and self._has_place(entry):
                self._begin_turn(entry)


async def wait_for_turns(turns: Sequence[ActiveTurn], clock: Clock, seconds: float) -> Sequence[ActiveTurn]:
    """Wait for turns to end, up to a limit; return those that have not."""

    async def end() -> None:
        for turn in turns:
            await turn.ended.wait()

    ending, timer = asyncio.create_task(end()), asyncio.create_task(clock.sleep(seconds))
    await asyncio.wait({ending, timer}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    timer.cancel()
    return [turn for turn in turns if not turn.ended.is_set()]
