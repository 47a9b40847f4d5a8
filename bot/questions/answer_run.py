"""The run of one question: chooses, indexes and pins its code, waits for a place, and follows the agent.

Chats, the page, programs and the terminal each decide access and repositories, and show progress in their own way. In
between, all of them go through the steps of `AnswerRun`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from agent import AgentError, AgentEvent, Answer, Attachments, CheckpointOvertaken, CodeSearch, RunPermit, UnknownRun
from bot.access import AccessPolicy
from bot.clock import Clock, SystemClock
from bot.errors import AnswerFailed, BotError
from bot.messages import GoalOrder, IncomingMessage, MessageContent
from bot.monitoring.observer import ConversationObserver, NullObserver
from bot.ports import Answerer, Repositories
from bot.questions.descriptions import find_freshness
from bot.questions.run_recording import RunRecording
from bot.repositories.choice_store import AmbiguousRepository, RepositoryChoice
from bot.repositories.names import pin_name
from bot.repositories.ref_chooser import RefChoice, RefChooser, read_ref, write_ref
from bot.storage.rate_limits import QuestionCounter
from bot.storage.turn_records import MAX_FILES, TurnRecord
from indexer import IndexDamaged, IndexerError, NamedRef, NotIndexed, Progress, UnknownRevision

if TYPE_CHECKING:
    from bot.questions.reuse import AnswerReuse, AskedCode, ReusedAnswer
    from bot.settings import PriceTable
    from bot.storage.answer_records import AnswerRecord, AnswerRecordStore
    from bot.storage.inbox import InboxEntry
    from bot.storage.living_answers import AnswerEvidence, LivingAnswerStore
    from bot.storage.turn_records import TurnRecordStore

TakeEvent = Callable[[AgentEvent], None]
ShowProgress = Callable[[str, Progress, str], None]  # of a name, and why it is indexed at all
LimitTime = Callable[[], AbstractAsyncContextManager[object]]
OpenEvents = Callable[[], AsyncIterator[AgentEvent]]
REPEATED = "it repeats an earlier answer"
log = logging.getLogger(__name__)
QueueMoved = Callable[[int], None]


class QuestionRouter(Protocol):
    """Decides which repositories a question is about, among those that its author may ask about."""

    def check(self, message: IncomingMessage) -> None:
        """Raise `NotAllowed` if there is nothing that the author may ask about."""

    async def choose(
        self, message: IncomingMessage, context: str, *, conversation: str, run_id: str
    ) -> RepositoryChoice | AmbiguousRepository:
        """Decide; `context` is the question with the surrounding messages."""


@dataclass(frozen=True, kw_only=True)
class RunDeps:
    """The dependencies of all runs.

    Without records nothing is kept; `answers` keeps the record of answers, with the `versions` that influence them;
    `living` keeps the data to follow their code, and `reuse` gives true ones again. `open_agent` opens the agent for
    one question; `remembers` means that it continues a conversation. All questions of this process share one `queue`.
    """

    open_agent: Callable[[], AbstractAsyncContextManager[Answerer]]
    repositories: Repositories
    queue: AnswerQueue
    refs: RefChooser = field(default_factory=RefChooser)
    records: TurnRecordStore | None = None
    answers: AnswerRecordStore | None = None
    living: LivingAnswerStore | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    reuse: AnswerReuse | None = None
    clock: Clock = field(default_factory=SystemClock)
    prices: Mapping[str, PriceTable] = field(default_factory=dict)
    remembers: bool = True


@dataclass(frozen=True, kw_only=True)
class QuestionDeps(RunDeps):
    """The dependencies of questions from known people. Without a counter nobody is limited.

    `mask` removes secrets from text, and answers may link only to `hosts`.
    """

    chooser: QuestionRouter
    access: AccessPolicy = field(default_factory=AccessPolicy)
    counter: QuestionCounter | None = None
    hosts: Collection[str] = ()
    deadline: float = 150.0
    mask: Callable[[str], str] = str
    observer: ConversationObserver = field(default_factory=NullObserver)


class RunStats:
    """The figures of one run, and its router's `requests`. `dollars` is None if a model's price is unknown."""

    def __init__(self, prices: Mapping[str, PriceTable] = MappingProxyType({})) -> None:
        self.dollars: float | None = 0.0
        self._prices = prices
        self._files: dict[str, None] = {}
        self._tools: dict[str, None] = {}
        self._calls = self._input = self._output = self._flagged = 0
        self._watched = False
        self._lookup = ""
        self.requests: list[Mapping[str, Any]] = []

    def take(self, event: AgentEvent) -> None:
        """Add an event."""
        payload = event.payload
        if event.kind == "evidence":
            self._files |= dict.fromkeys(location.path for location in payload["locations"])
        elif event.kind == "tool_start":
            self._tools[str(payload["tool"])] = None
        elif event.kind == "model_end":
            read, written = (int(payload.get(name) or 0) for name in ("input_tokens", "output_tokens"))
            self._calls, self._input, self._output = self._calls + 1, self._input + read, self._output + written
            price = self._prices.get(str(payload["model"]))
            if price is None or self.dollars is None:
                self.dollars = None
            else:
                self.dollars += price.compute_dollars(payload)
        elif event.kind == "flagged":
            self._flagged += int(payload["count"])
        elif event.kind == "step_end":
            changes = payload["changes"]
            self._watched = self._watched or changes.get("gateway_verdict") == "watch"
            requests = (changes.get("router_output") or {}).get("requests") or []
            self.requests += requests
            self._lookup = self._lookup or (str(requests[0].get("lookup", "")) if requests else "")

    @property
    def is_guarded(self) -> bool:
        """Whether the question or a passage of evidence looked like an attack."""
        return self._watched or self._flagged > 0

    def record(self, answer: Answer, *, question: str = "", person: str = "") -> TurnRecord:
        """Return the record of the turn."""
        return TurnRecord(
            repository=answer.repository,
            commit=answer.commit,
            route=answer.route,
            model=answer.model,
            seconds=answer.seconds,
            files=tuple(self._files)[:MAX_FILES],
            searched=answer.searched,
            model_calls=self._calls,
            input_tokens=self._input,
            output_tokens=self._output,
            person=person,
            watched=self._watched,
            flagged=self._flagged,
            tools=tuple(self._tools),
            repositories=tuple(answer.commits),
            commits=dict(answer.commits),
            found=answer.found,
            question=question,
            lookup=self._lookup,
            meanings=answer.meanings,
        )


class AnswerRun:
    """One question on its way to its answer. Only the methods here set the fields.

    `ref` is the repository's ref unless that is the newest commit, and `next_ref` where the
    conversation continues.
    """

    def __init__(self, deps: RunDeps, *, run_id: str, conversation: str) -> None:
        self.id = run_id
        self.conversation = conversation
        self.repositories: tuple[str, ...] = ()
        self.ref: NamedRef | None = None
        self.next_ref: NamedRef | None = None
        self.is_begun = False
        self.answer: Answer | None = None
        self.stats = RunStats(deps.prices)
        self._deps = deps
        self.reused: ReusedAnswer | None = None
        self._agent: Answerer | None = None
        self._recording: RunRecording | None = None
        self._held: CodeSearch | None = None  # at the ref
        self._asked: tuple[AskedCode, IncomingMessage] | None = None  # for an earlier answer, or a later one
        self._evidence: AnswerEvidence | None = None
        self._made: AnswerRecord | None = None

    async def choose_ref(self, choice: RepositoryChoice, last: TurnRecord | None, *, at: str = "") -> RefChoice:
        """Choose the ref: the asker's explicit one, else that of the question, or of the previous question."""
        names = self.repositories = tuple(choice.repositories)
        before = read_ref(last.at) if last is not None and last.names == names else None
        if not at:
            chosen = await self._deps.refs.choose(names, choice.question, before=before)
        elif len(names) == 1:
            chosen = RefChoice(question=choice.question, ref=await self._deps.refs.find(names[0], at))
        else:
            raise UnknownRevision("Several repositories are read at their newest commits. Ask about one of them.")
        self.ref, self.next_ref = chosen.ref, chosen.ref if chosen.is_lasting else before
        return chosen

    async def ensure_indexed(self, names: Sequence[str], show: ShowProgress) -> None:
        """Index repositories without an index, or with a damaged one; this may take longer than an answer.

        If one of several cannot be indexed, the agent answers without it and says so.
        """
        for name in names:
            try:
                await self._ensure_one(name, show)
            except IndexerError as error:
                if len(names) == 1:
                    raise
                log.info("%s cannot be read for an answer: %s", name, error)

    async def _ensure_one(self, name: str, show: ShowProgress) -> None:
        repositories = self._deps.repositories
        try:
            await repositories.pin_existing(name)
        except NotIndexed as reason:
            why = f"{reason} " if isinstance(reason, IndexDamaged) else ""
            await repositories.refresh(name, progress=lambda progress: show(name, progress, why))

    async def hold(self, show: ShowProgress) -> tuple[str, ...]:
        """Name the repositories for a run: one at a ref with its commit, which is indexed if necessary."""
        if (ref := self.ref) is None:
            return self.repositories
        (name,) = self.repositories
        held = self._held = await self._deps.refs.pin(
            name, ref, lambda step: show(f"{name} at {ref.name}", step, "")
        )  # fmt: skip
        return (pin_name(name, held.commit.sha),)

    async def follow(
        self,
        question: str,
        repositories: Sequence[str],
        take: TakeEvent,
        *,
        limit: LimitTime = nullcontext,
        show_place: QueueMoved = lambda _: None,
        permit: RunPermit | None = None,
        attachments: Attachments | None = None,
        was_begun: bool = False,
        alone: IncomingMessage | None = None,
    ) -> Answer:
        """Follow the agent to its answer once a place is free; a run that `was_begun` before continues.

        `take` is called with each event. A message that is `alone`, with nothing before it and
        nothing attached, may get an earlier answer. Raises `AnswerFailed` if the run ends without
        an answer.
        """
        deps, self.is_begun = self._deps, True
        self._recording = RunRecording(question, attachments) if deps.answers is not None else None
        if deps.reuse is not None and alone is not None and not attachments:
            async with limit():
                reused = await self._reuse(deps.reuse, question, alone, permit, was_begun=was_begun)
            if reused is not None:
                now = deps.clock.now()
                take(AgentEvent(kind="answer", run_id=self.id, iteration=0, ts=now, payload={"answer": reused}))
                return reused
        async with deps.queue.hold_place(show_place), limit(), deps.open_agent() as agent:
            self._agent = agent
            begin = partial(
                agent.ask, question, thread=self.conversation, repositories=repositories, run_id=self.id,
                permit=permit, attachments=attachments or Attachments(),
            )  # fmt: skip
            resume = partial(agent.resume, self.id, thread=self.conversation, permit=permit)
            try:
                await self.take_all(continue_run(resume, begin) if was_begun else begin(), take)
            finally:
                self._agent = None
                if not deps.remembers:
                    await self._forget(agent)
        if self.answer is None:
            raise AnswerFailed("The run ended without an answer. Ask again.")
        return self.answer

    async def _reuse(
        self, reuse: AnswerReuse, question: str, message: IncomingMessage, permit: RunPermit | None, *, was_begun: bool
    ) -> Answer | None:
        """Use an earlier answer to the same question, and have the conversation remember it; None without one."""
        found = None
        try:
            if (asked := await reuse.read(question, self.repositories, self.ref, self._held)) is not None:
                self._asked = asked, message
                found = await reuse.find(asked, message) if not (was_begun or message.anew) else None
        except (BotError, IndexerError) as error:  # nothing is lost but time
            log.warning("no earlier answer is looked for: %s", error)
        if found is None:
            return None
        if permit is not None and not await permit.may_begin():
            raise CheckpointOvertaken("Another process has continued this conversation.")
        if self._deps.remembers:
            try:
                async with self._deps.open_agent() as agent:
                    await agent.remember(question, found.answer, thread=self.conversation, run_id=self.id)
            except CheckpointOvertaken:
                raise
            except AgentError as error:
                log.warning("a conversation does not know of an earlier answer: %s", error)
        self.reused, self.answer = found, found.answer
        self.stats.requests = [*found.fields["requests"]]
        return found.answer

    async def take_all(self, events: AsyncIterator[AgentEvent], take: TakeEvent) -> None:
        """Process all events of a run, and pass them on."""
        async with aclosing(events) as following:  # type: ignore[type-var]
            async for event in following:
                self.stats.take(event)
                if self._recording is not None:
                    self._recording.take(event)
                if event.kind == "answer":
                    self.answer = event.payload["answer"]
                take(event)

    async def _forget(self, agent: Answerer) -> None:
        try:
            await agent.forget(self.conversation)
        except AgentError as error:  # an answer is not lost because the database cannot be written any more
            log.warning("a question was not forgotten: %s", error)

    async def stop(self) -> bool:
        """End the run within two seconds; False if it is not in progress."""
        return self._agent is not None and await self._agent.stop(self.id)

    def make_record(
        self, answer: Answer, *, person: str = "", question: str = "", why: str = "", goal: GoalOrder | None = None
    ) -> TurnRecord:
        """Record how the answer was found."""
        record = self.stats.record(answer, question=question, person=person)
        why = "; ".join(filter(None, (why, "an earlier answer is still true" * bool(self.reused))))
        return replace(record, why=why, goal=goal, at=write_ref(self.next_ref))

    async def keep(self, record: TurnRecord, *, held: InboxEntry | None = None) -> None:
        """Store the record of the turn and of its answer; with its message, unless another process has that by now."""
        deps, answer = self._deps, self.answer
        if deps.records is None or not await deps.records.keep(self.id, self.conversation, record, held=held):
            return
        if deps.answers is not None and self._recording is not None and answer is not None and answer.read_at:
            made = self._recording.make_record(answer, write_ref(self.ref), deps.versions)
            self._made = replace(made, obstacle=REPEATED) if self.reused is not None else made
            await deps.answers.keep(self.id, self.conversation, self._made)

    async def keep_reusable(self) -> None:
        """Store the answer for reuse if it qualifies and was kept."""
        deps, made, answer = self._deps, self._made, self.answer
        if deps.answers is None or deps.reuse is None or self._asked is None or made is None or answer is None:
            return
        if self.reused is None and (made.obstacle or made.history or self.stats.is_guarded):
            return
        asked, message = self._asked
        try:
            fields = self.reused.fields if self.reused is not None else await deps.reuse.collect(
                asked, answer, self.stats.requests, await self._collect_evidence(answer)
            )  # fmt: skip
            if fields is not None:
                await deps.answers.keep(
                    self.id, self.conversation, made, deps.reuse.make(asked, answer, fields, message)
                )  # fmt: skip
        except (BotError, IndexerError) as error:  # the answer is worth showing all the same
            log.warning("an answer is not given again: %s", error)

    async def keep_living(self, content: MessageContent, question: str, *, entry: int = 0) -> None:
        """Follow the answer through pushes by its evidence; a stale `question` is asked again."""
        store, answer = self._deps.living, self.answer
        if store is None or answer is None or self.ref is not None:
            return
        from bot.storage.living_answers import LivingAnswer

        try:
            evidence = await self._collect_evidence(answer)
            if evidence is not None:
                living = LivingAnswer(
                    run_id=self.id, entry=entry, content=content, question=question, commits=evidence.commits
                )
                await store.keep(living, self.conversation, evidence)
        except (BotError, IndexerError) as error:  # the answer is worth showing all the same
            log.warning("an answer is not followed: %s", error)

    async def _collect_evidence(self, answer: Answer) -> AnswerEvidence | None:
        """Collect the evidence of the answer, once; None without evidence."""
        from bot.living.following import collect_evidence  # which a question of the command line has no use for

        if self._evidence is None:
            self._evidence = await collect_evidence(answer, self.stats.requests, self._deps.repositories)
        return self._evidence

    async def find_freshness(self, answer: Answer) -> str:
        """Describe the age of the answer's code; for an earlier answer, its asker and time."""
        line = await find_freshness(answer, self._deps.repositories, self._deps.clock.now(), at=self.ref)
        return " · ".join(filter(None, (self.reused.said if self.reused is not None else "", line)))


async def continue_run(resume: OpenEvents, begin: OpenEvents) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events of a run left by an earlier process, or of a new one if nothing was saved."""
    try:
        async for event in resume():
            yield event
    except UnknownRun:
        log.info("nothing was saved of the run of a message")
    else:
        return
    async for event in begin():
        yield event


@dataclass(frozen=True, kw_only=True, eq=False)
class _Waiting:
    """A waiting answer; `on_move` is called when the queue has moved."""

    called: asyncio.Future[None]
    on_move: QueueMoved


class AnswerQueue:
    """A number of places for answers, given in the order of asking."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._places = places
        self._line: deque[_Waiting] = deque()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def before(self) -> int:
        """Return the number of answers ahead; 0 if one can begin at once."""
        return 0 if self._free > 0 else self._places + len(self._line)

    @property
    def places_in_use(self) -> int:
        """The number of places in use."""
        return self._places - self._free

    def lock_conversation(self, conversation: str) -> asyncio.Lock:
        """Return the lock of a conversation, which exists while somebody holds it or waits for it."""
        return self._locks.setdefault(conversation, asyncio.Lock())

    @asynccontextmanager
    async def hold_place(self, on_move: QueueMoved = lambda _: None) -> AsyncIterator[None]:
        """Hold a place, waiting for it in the queue; `on_move` gets the number of earlier answers on every change."""
        await self._wait_for_slot(on_move)
        try:
            yield
        finally:
            self._release()

    async def _wait_for_slot(self, on_move: QueueMoved) -> None:
        if self._free > 0:
            self._free -= 1
            return
        waiting = _Waiting(called=asyncio.get_running_loop().create_future(), on_move=on_move)
        self._line.append(waiting)
        on_move(self._places + len(self._line) - 1)  # the line may have moved since the caller asked for its length
        try:
            await waiting.called
        except asyncio.CancelledError:
            if waiting.called.done() and not waiting.called.cancelled():  # the place was given in the same moment
                self._release()
            elif waiting in self._line:
                self._line.remove(waiting)
                self._notify()
            raise

    def _release(self) -> None:
        while self._line:
            waiting = self._line.popleft()
            if not waiting.called.done():
                waiting.called.set_result(None)
                self._notify()
                return
        self._free += 1

    def _notify(self) -> None:
        for number, waiting in enumerate(self._line):
            waiting.on_move(self._places + number)
