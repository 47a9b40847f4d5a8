"""Takes in what people do on any platform: stores messages, begins their turns in order, stops and withdraws them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Literal

from bot.access import Manners, find_manners
from bot.clock import Clock
from bot.conversations.answer_queue import AnswerQueue
from bot.conversations.crash_suspects import Suspects
from bot.conversations.manners import is_left_to_people
from bot.conversations.sharing import ShareableAnswers
from bot.conversations.turn import NOT_YOURS, ActiveTurn, Break, TurnDeps, open_reply
from bot.errors import BotError, ChatError, InboxError
from bot.messages import ButtonPress, IncomingMessage, MessageKey, Place, fit_message
from bot.monitoring.observer import AnswerLoad
from bot.ports import ChatPlatform, ThreadMembership
from bot.replies.send_budget import ReplyTransport
from bot.repositories.choice import parse_choice_button
from bot.storage.inbox import InboxEntry, is_process_dead

Receipt = Literal["new", "duplicate", "ignored"]

BEAT_SECONDS = 1.0
SWEEP_BEATS = 5  # from one search for what other processes left to the next
DRAIN_SECONDS = 20.0
THANKS = "Thank you, noted."
NOT_WAITING = "Nobody is waiting for this any more."
ALREADY_CHOSEN = "This has been answered, or I do not remember it any more. Ask again."

log = logging.getLogger(__name__)


class Conversations:
    """The conversation core. Adapters bring what people do, and may acknowledge it once the method has returned.

    Use it as `async with conversations.open():`, and bring what is done on a platform within its `connect_platform`.
    After an `InboxError` nothing was stored: do not acknowledge.
    """

    def __init__(
        self,
        deps: TurnDeps,
        threads: ThreadMembership,
        *,
        manners: Mapping[str, Manners] | None = None,
        max_concurrent: int = 8,
    ) -> None:
        self._deps = deps
        self._threads = threads
        self._manners = manners or {}
        self._transports: dict[str, ReplyTransport] = {}
        self._begins_on: set[str] = set()
        self._queue = AnswerQueue(max_concurrent)
        self._turns: dict[int, ActiveTurn] = {}
        self._starting: dict[int, asyncio.Event] = {}  # set once the turn is known, or there is none
        self._suspects = Suspects()
        self._sharing = ShareableAnswers(deps.access)
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer messages for as long as the context is open."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            heartbeat = group.create_task(self._run_upkeep())
            try:
                yield
            finally:
                heartbeat.cancel()

    @asynccontextmanager
    async def connect_platform(self, name: str, platform: ChatPlatform) -> AsyncIterator[None]:
        """Answer on a platform: take up what was left unfinished there; at the end, finish what is under way.

        Where the context ends with an error of the platform, turns under way are handed over at once.
        """
        self._transports[name] = ReplyTransport.of(
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
            await self._drain(name, seconds)
            del self._transports[name]

    async def receive(self, message: IncomingMessage) -> Receipt:
        """Store a message, and begin to answer it; a message that is not for citebot is left alone.

        Where nothing may be answered, only people who name citebot get a reply that says so. Of a message that is too
        long, only its length is kept.
        """
        message = fit_message(message)
        if not await self._should_answer(message):
            return "ignored"
        if await self._deps.inbox.find(message.key) is not None:
            return "duplicate"
        message = self._mask(message)
        conversation = await self._threads.enter(message)
        message = await self._deps.chooser.complete_question(message, conversation)
        entry = await self._deps.inbox.store(message, conversation)
        if entry is None:
            return "duplicate"
        self._begin(entry)
        return "new"

    def overhears(self, place: Place) -> bool:
        """Whether citebot answers questions in a channel that name nobody."""
        return find_manners(self._manners, place) == "every question"

    async def _should_answer(self, message: IncomingMessage) -> bool:
        """Whether a message is for citebot: by the manners of its channel, by its thread, and by what it says."""
        unnamed = message.kind in {"follow_up", "overheard"}
        if message.kind == "overheard" and not self.overhears(message.place):
            return False
        if message.kind == "follow_up" and find_manners(self._manners, message.place) == "mentions":
            return False
        if not await self._threads.should_answer(message) or (unnamed and not self._deps.access.is_open(message)):
            return False
        return not await self._is_left_to_people(message)

    async def _is_left_to_people(self, message: IncomingMessage) -> bool:
        """Whether a message asks for nothing; where citebot has asked a person something, that may be the reply."""
        if not is_left_to_people(message):
            return False
        thread = await self._threads.find(message.place)
        last = await self._deps.records.last(thread.conversation) if thread is not None else None
        return last is None or last.route != "paused"

    async def list_recent_channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return the channels of the last questions, newest first: messages may have been missed there."""
        return await self._deps.inbox.channels(platform, workspace, most=most)

    async def handle_edit(self, message: IncomingMessage) -> None:
        """Answer an edited question again, in the same reply; what was no question before may be one now."""
        message = fit_message(message)
        entry = await self._deps.inbox.find(message.key)
        if entry is None:
            if message.kind not in {"follow_up", "overheard"}:
                await self.receive(message)
            return
        await self._supersede(entry.id)
        await self._deps.chooser.close(entry.run_id)
        revised = await self._deps.inbox.revise(self._mask(message))
        if revised is not None:
            self._begin(revised)

    async def handle_deletion(self, key: MessageKey) -> None:
        """Withdraw the answer to a question that its author deleted."""
        entry = await self._deps.inbox.find(key)
        if entry is None:
            return
        await self._supersede(entry.id)
        await self._deps.chooser.close(entry.run_id)
        withdrawn = await self._deps.inbox.withdraw(key)
        if withdrawn is None:
            return
        try:
            await open_reply(withdrawn, self._transports[key.platform], self._deps.inbox).withdraw()
        except ChatError as error:
            log.warning("an answer was not withdrawn: %s", error)

    async def handle_press(self, press: ButtonPress) -> str:
        """Do what a button under a reply says; return a sentence for the person alone, which may be empty."""
        entry = await self._deps.inbox.find_by_reply(press.handle)
        if entry is None:
            return "I do not remember this message any more."
        if press.action in {"good", "bad"}:
            await self._deps.records.rate(entry.run_id, press.author, "good" if press.action == "good" else "bad")
            return THANKS
        return await self._handle_own_press(entry, press) if press.author == entry.message.author else NOT_YOURS

    async def _handle_own_press(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Do what the author of a question says with a button."""
        if press.action == "stop":
            return "" if await self.stop(entry.conversation) else "There is nothing to stop here."
        if press.action in {"choose", "share"} and entry.id in self._turns:  # its buttons show before it has ended
            await self._turns[entry.id].ended.wait()
        if press.action == "choose":
            return await self._choose(entry, press)
        if press.action == "share":
            return await self._sharing.share(entry, press, self._transports[entry.message.place.platform])
        if await self._deps.records.last_run(entry.conversation) != entry.run_id:
            return NOT_WAITING
        await self.receive(_make_reply(entry.message, press, self._deps.clock.now()))
        return ""

    async def _choose(self, entry: InboxEntry, press: ButtonPress) -> str:
        """Answer a question about the repository that its author has chosen, in the message that asked for it."""
        chosen = await self._deps.chooser.accept_choice(entry, parse_choice_button(press.value))
        if chosen is None:
            return ALREADY_CHOSEN
        chosen = replace(chosen, roles=press.roles, external=press.external)
        revised = await self._deps.inbox.revise(chosen, run_id=entry.run_id)
        if revised is not None:  # else another press was faster
            await self._deps.chooser.close(entry.run_id)
            self._begin(revised)
        return ""

    def _mask(self, message: IncomingMessage) -> IncomingMessage:
        """Take secrets out of a message before anything of it is stored: people paste keys."""
        mask = self._deps.mask
        return replace(message, text=mask(message.text), author_name=mask(message.author_name))

    async def stop(self, conversation: str, *, asked_like: IncomingMessage | None = None) -> bool:
        """End the answers under way in a conversation, in this process and in others; False if there are none.

        With a message, also what its author has asked anywhere in its channel.
        """

        def is_meant(entry: InboxEntry) -> bool:
            return entry.conversation == conversation or (asked_like is not None and _is_like(entry, asked_like))

        here = [turn for turn in self._turns.values() if turn.is_question and is_meant(turn.entry)]
        for turn in here:
            await turn.interrupt("stopped")
        return await self._deps.inbox.ask_to_stop(conversation, asked_like=asked_like) or bool(here)

    @property
    def load(self) -> AnswerLoad:
        """How many questions this process answers at the moment, and how many wait."""
        questions = sum(turn.is_question for turn in self._turns.values())
        return AnswerLoad(under_way=self._queue.places_in_use, waiting=max(0, questions - self._queue.places_in_use))

    async def check_store(self) -> None:
        """Raise `InboxError` where messages cannot be stored."""
        await self._deps.inbox.check()

    async def _drain(self, platform: str, seconds: float) -> None:
        """Let what is under way on a platform end, and hand over what does not end in time."""
        for starting in list(self._starting.values()):
            await starting.wait()
        turns = [turn for turn in self._turns.values() if turn.entry.message.place.platform == platform]
        excuse = partial(self._deps.inbox.excuse, [turn.entry for turn in turns])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_with_retry(excuse))
            for turn in await wait_for_turns(turns, self._deps.clock, seconds):
                await self._interrupt_turn(turn, "handed over")

    def _begin(self, entry: InboxEntry) -> None:
        """Begin the turn of a message if it is time for it; otherwise the next sweep finds it again."""
        if self._group is None:
            raise BotError("The conversations are not open. Use `async with conversations.open():`.")
        if entry.message.place.platform not in self._begins_on or entry.id in {*self._starting, *self._turns}:
            return
        may_begin = self._suspects.may_begin(entry, busy=bool(self._starting or self._turns))
        if may_begin or (not entry.deaths and self._deps.commands.parse(entry.message) is not None):
            self._starting[entry.id] = asyncio.Event()
            self._group.create_task(self._claim_and_run(entry, self._group))

    async def _claim_and_run(self, entry: InboxEntry, group: asyncio.TaskGroup) -> None:
        """Claim a message and run its turn; then begin what had to wait until a suspect has come to its end."""
        turn = None
        try:
            transport = self._transports[entry.message.place.platform]
            turn = await ActiveTurn.claim(entry, transport, self._deps, self._queue, group)
            if turn is not None:
                self._turns[entry.id] = turn
                self._mark_started(entry.id)
                await turn.run()
                if turn.is_silent:
                    await self._threads.leave(turn.entry.message)
        except InboxError as error:
            log.warning("a message waits for the database: %s", error)
        finally:
            self._mark_started(entry.id)
            if turn is not None:
                del self._turns[entry.id]
                self._sharing.keep(turn)
        if self._suspects.clear(entry.id) and turn is not None:
            await self._run_with_retry(self._sweep)

    def _mark_started(self, entry_id: int) -> None:
        starting = self._starting.pop(entry_id, None)
        if starting is not None:
            starting.set()

    async def _supersede(self, entry_id: int) -> None:
        """End the answer to a message, also one that is only about to begin."""
        if entry_id in self._starting:
            await self._starting[entry_id].wait()
        turn = self._turns.get(entry_id)
        if turn is not None:
            await self._interrupt_turn(turn, "superseded")

    async def _interrupt_turn(self, turn: ActiveTurn, reason: Break) -> None:
        await turn.interrupt(reason)
        await turn.ended.wait()

    async def _run_upkeep(self) -> None:
        """Renew the leases of turns, stop those that were asked to stop elsewhere, and take up what others left."""
        for beat in count(1):
            await self._deps.clock.sleep(BEAT_SECONDS)
            if self._turns:
                await self._run_with_retry(self._beat)
            if beat % SWEEP_BEATS == 0:
                await self._run_with_retry(self._sweep)

    async def _run_with_retry(self, task: Callable[[], Awaitable[None]]) -> None:
        """Do what the inbox needs regularly; where its database fails, the next time will do."""
        try:
            await task()
        except InboxError as error:
            log.warning("the inbox could not be brought up to date: %s", error)

    async def _beat(self) -> None:
        turns = list(self._turns.values())
        held, to_stop = await self._deps.inbox.beat([turn.entry for turn in turns])
        for turn in turns:
            if turn.ended.is_set() or turn.reason:
                continue
            if turn.entry.run_id not in held:
                await turn.interrupt("superseded")
            elif turn.entry.run_id in to_stop and turn.is_question:
                await turn.interrupt("stopped")

    async def _sweep(self) -> None:
        for owner in await self._deps.inbox.owners():
            if is_process_dead(owner, self._deps.inbox.owner):
                await self._deps.inbox.take_from(owner)
        await self._deps.inbox.take_expired()
        unfinished = await self._deps.inbox.list_unfinished()
        waiting = [entry for entry in unfinished if entry.message.place.platform in self._begins_on]
        self._suspects.note(waiting)
        for entry in waiting:
            self._begin(entry)


def _is_like(entry: InboxEntry, message: IncomingMessage) -> bool:
    """Whether a person asked something in the channel of a message of theirs."""
    asked = entry.message
    there = (asked.place.platform, asked.place.workspace, asked.place.channel, asked.author)
    return there == (message.place.platform, message.place.workspace, message.place.channel, message.author)


async def wait_for_turns(turns: Sequence[ActiveTurn], clock: Clock, seconds: float) -> Sequence[ActiveTurn]:
    """Wait until turns have ended, for so long at most; return those that have not."""

    async def end() -> None:
        for turn in turns:
            await turn.ended.wait()

    ending, timer = asyncio.create_task(end()), asyncio.create_task(clock.sleep(seconds))
    await asyncio.wait({ending, timer}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    timer.cancel()
    return [turn for turn in turns if not turn.ended.is_set()]


def _make_reply(question: IncomingMessage, press: ButtonPress, now: float) -> IncomingMessage:
    """Make the message that a button stands for, as if its word had been written."""
    return replace(
        question,
        id=f"{press.handle.id}/{press.action}",
        text=press.action,
        kind="direct" if question.kind == "direct" else "mention",
        roles=press.roles,
        external=press.external,
        in_thread=question.kind == "direct",  # goes on with its conversation, however long ago that was
        sent_at=now,
    )
