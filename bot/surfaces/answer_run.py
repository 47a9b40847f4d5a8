"""One question on its way to an answer, in a task of its own: whoever reads its events slowly keeps nobody waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from agent import STOPPED, AgentError, AgentEvent, Answer, is_bare_question, read_quotes, with_background
from bot.access import AccessPolicy
from bot.clock import Clock, SystemClock
from bot.conversations.answer_queue import AnswerQueue
from bot.conversations.descriptions import describe_progress, find_freshness
from bot.errors import TOO_LATE, BotError, NotAllowed, describe_unexpected
from bot.messages import IncomingMessage
from bot.monitoring.observer import ConversationObserver, NullObserver, TurnOutcome
from bot.ports import Answerer, QuestionLimiter, Repositories
from bot.replies.answer_content import StreamingAnswer
from bot.replies.waiting import describe_stage
from bot.repositories.choice import AmbiguousRepository, RepositoryChoice
from bot.repositories.chooser import RoutedQuestion
from bot.repositories.chosen_code import ChosenCode
from bot.repositories.ref_chooser import RefChooser, write_ref
from bot.settings import PriceTable
from bot.storage.turn_records import RunStats, TurnRecordStore
from bot.surfaces.answer_cost import CostMeter
from bot.surfaces.ask_events import (
    Answered,
    AskEvent,
    CitedPlace,
    CodePlace,
    EvidenceFound,
    NotAnswered,
    StageBegun,
    TextPart,
)
from indexer import IndexerError, Progress, UnknownRevision

log = logging.getLogger(__name__)

_SMALLEST_PART = 24  # characters that are sent at once while an answer grows
_PART_OF_ALL = 50  # what has been written is read again for each part: the longer it is, the fewer
_OUTCOMES: Mapping[str, TurnOutcome] = {"paused": "paused", "blocked": "blocked"}

Watch = Callable[[AgentEvent], None]


class QuestionRouter(Protocol):
    """Decides which repositories a question is about, of those that its author may ask about."""

    def check(self, message: IncomingMessage) -> None:
        """Raise `NotAllowed` if there is nothing that the author may ask about."""

    async def choose(self, entry: RoutedQuestion, context: str) -> RepositoryChoice | AmbiguousRepository:
        """Decide; `context` is the question with what was said around it."""


@dataclass(frozen=True, kw_only=True)
class QuestionDeps:
    """What all questions use. Without a counter nobody is limited, and without records nothing is kept.

    `open_agent` is what answers, for as long as one question takes; `remembers` says that it continues with a
    conversation. `mask` takes secrets out of text, and answers may link to `hosts` alone.
    """

    open_agent: Callable[[], AbstractAsyncContextManager[Answerer]]
    repositories: Repositories
    router: QuestionRouter
    queue: AnswerQueue
    access: AccessPolicy = field(default_factory=AccessPolicy)
    counter: QuestionLimiter | None = None
    records: TurnRecordStore | None = None
    clock: Clock = field(default_factory=SystemClock)
    hosts: Collection[str] = ()
    deadline: float = 150.0
    mask: Callable[[str], str] = str
    prices: Mapping[str, PriceTable] = field(default_factory=dict)
    observer: ConversationObserver = field(default_factory=NullObserver)
    refs: RefChooser = field(default_factory=RefChooser)
    remembers: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    """A question that may be asked; `conversation` is what the agent remembers it under, `label` how its asker names
    that. `at` is what the code is to be read at, whatever the question says.
    """

    message: IncomingMessage
    conversation: str
    run_id: str
    surface: str
    label: str = ""
    background: tuple[str, ...] = ()
    at: str = ""


class AnswerRun:
    """What becomes of one question. The last of its events is `Answered` or `NotAnswered`."""

    def __init__(self, asked: AskedQuestion, deps: QuestionDeps, watch: Watch) -> None:
        self.asked = asked
        self._deps = deps
        self._watch = watch
        self._events: asyncio.Queue[AskEvent] = asyncio.Queue()
        self._draft = StreamingAnswer(asked.run_id, deps.hosts)
        self._cost = CostMeter(deps.prices)
        self._stats = RunStats()
        self._code = ChosenCode(deps.repositories, deps.refs, self._show_indexing)
        self._agent: Answerer | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._shown = ""
        self._unseen = 0  # characters that came since the last part was sent

    async def stream(self) -> AsyncGenerator[AskEvent, None]:
        """Begin, and yield what happens; closing the iterator ends the run."""
        self._task = asyncio.create_task(self._work())
        try:
            while True:
                event = await self._events.get()
                yield event
                if isinstance(event, Answered | NotAnswered):
                    break
        finally:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """End the run, which says so."""
        self._is_stopped = True
        is_under_way = self._agent is not None and await self._agent.stop(self.asked.run_id)
        if self._task is not None and not is_under_way:
            self._task.cancel()

    async def _work(self) -> None:
        """Put the events; errors become the last one."""
        try:
            last, outcome = await self._answer()
        except asyncio.CancelledError:
            if not self._is_stopped:
                self._deps.observer.count_outcome(self.asked.surface, "stopped")
                raise
            last, outcome = NotAnswered(reason="stopped", text=STOPPED), "stopped"
        except TimeoutError:
            last, outcome = NotAnswered(reason="late", text=TOO_LATE), "late"
        except NotAllowed as error:
            last, outcome = NotAnswered(reason="not_allowed", text=str(error)), "refused"
        except UnknownRevision as error:
            last, outcome = NotAnswered(reason="unknown_ref", text=self._deps.mask(str(error))), "failed"
        except (BotError, AgentError, IndexerError) as error:
            last, outcome = self._fail(str(error)), "failed"
        except Exception as error:
            log.exception("a question could not be answered")
            last, outcome = self._fail(describe_unexpected(error)), "failed"
        self._deps.observer.count_outcome(self.asked.surface, outcome)
        self._events.put_nowait(last)

    def _fail(self, sentence: str) -> NotAnswered:
        return NotAnswered(reason="failed", text=self._deps.mask(sentence))

    async def _answer(self) -> tuple[AskEvent, TurnOutcome]:
        """Choose the repositories, wait for a place, and follow the run; questions of a conversation come in turn."""
        deps, asked = self._deps, self.asked
        async with deps.queue.lock_conversation(asked.conversation):
            text = asked.message.text
            context = "\n".join([text, *read_quotes(asked.background)]) if is_bare_question(text) else text
            choice = await deps.router.choose(asked, context)
            if isinstance(choice, AmbiguousRepository):
                return NotAnswered(reason="unclear_repository", text=_ask_which(choice)), "paused"
            last = await deps.records.last(asked.conversation) if deps.records is not None else None
            at = await self._code.choose_ref(choice, last, at=asked.at)
            self._draft.begin_with("\n\n".join(filter(None, (choice.remark, at.remark))))
            await self._code.ensure_indexed()
            names = await self._code.hold()
            async with deps.queue.hold_place(self._tell_place):
                async with asyncio.timeout(deps.deadline):
                    answer = await self._follow(at.question, names)
            return await self._conclude(answer, choice)

    async def _follow(self, text: str, names: Sequence[str]) -> Answer:
        asked = self.asked
        async with self._deps.open_agent() as agent:
            self._agent = agent
            question = with_background(text, asked.background)
            events = agent.ask(question, thread=asked.conversation, repositories=names, run_id=asked.run_id)
            try:
                async with aclosing(events) as following:  # type: ignore[type-var]
                    async for event in following:
                        self._take(event)
            finally:
                self._agent = None
                if not self._deps.remembers:
                    await agent.forget(asked.conversation)
        if self._draft.answer is None:
            raise BotError("The question ended without an answer. Try again.")
        return self._draft.answer

    def _take(self, event: AgentEvent) -> None:
        """Pass on what an event says to those who wait for the answer."""
        self._watch(event)
        self._stats.take(event)
        self._cost.take(event)
        self._draft.take(event)
        if event.kind in {"step_start", "tool_start"}:
            self._tell(describe_stage(event))
        elif event.kind == "evidence":
            self._tell_places(event)
        elif event.kind in {"token", "reset"}:
            self._unseen += len(str(event.payload["text"]))
            if self._unseen >= max(_SMALLEST_PART, len(self._shown) // _PART_OF_ALL):
                self._show(self._draft.partial_content().text)

    def _tell(self, stage: str) -> None:
        if stage:
            self._events.put_nowait(StageBegun(text=self._deps.mask(stage)))

    def _show_indexing(self, name: str, progress: Progress, why: str) -> None:
        self._tell(why + describe_progress(name, progress))

    def _tell_place(self, before: int) -> None:
        """Say how many answers come first; nothing once it is this one's turn."""
        if before:
            questions = "question is" if before == 1 else "questions are"
            self._events.put_nowait(StageBegun(text=f"Waiting: {before} {questions} ahead of yours", before=before))

    def _tell_places(self, event: AgentEvent) -> None:
        places = tuple(
            CodePlace(path=at.path, first_line=at.start_line, last_line=at.end_line, url=url)
            for at, url in zip(event.payload["locations"], event.payload["urls"], strict=True)
            if at.path
        )
        if places:
            self._events.put_nowait(EvidenceFound(places=places))

    def _show(self, text: str) -> None:
        """Send what is new of the text; all of it where what was sent has changed."""
        self._unseen = 0
        if text == self._shown:
            return
        grows = text.startswith(self._shown)
        part = text[len(self._shown) :] if grows else text
        self._shown = text
        self._events.put_nowait(TextPart(text=part, replaces=not grows))

    async def _conclude(self, answer: Answer, choice: RepositoryChoice) -> tuple[AskEvent, TurnOutcome]:
        """Record how the answer was found, and return it."""
        deps, asked = self._deps, self.asked
        if answer.route == "stopped":
            return NotAnswered(reason="stopped", text=STOPPED), "stopped"
        if answer.route == "failed":
            return self._fail(answer.text), "failed"
        if deps.records is not None:
            person, at = asked.message.author, write_ref(self._code.next_ref)
            record = self._stats.record(answer, question=choice.question, person=person)
            record = replace(record, why=choice.why, at=at)
            await deps.records.keep(asked.run_id, asked.conversation, record)
        text = self._draft.text_with_marks
        self._show(text)
        freshness = await find_freshness(answer, deps.repositories, deps.clock.now(), at=self._code.ref)
        content = self._draft.final_content(freshness)
        answered = Answered(
            run_id=asked.run_id,
            conversation=asked.label,
            text=text,
            linked=content.text,
            citations=tuple(_describe_citations(answer)),
            repository=answer.repository if answer.commit else "",
            commit=answer.commit,
            commits=dict(answer.read_at),
            missing=dict(answer.missing),
            found=answer.found,
            waits=answer.route == "paused",
            route=answer.route,
            model=answer.model,
            freshness=content.footer,
            cost=self._cost.measure(answer.seconds),
        )
        return answered, _OUTCOMES.get(answer.route, "answered")


def _describe_citations(answer: Answer) -> list[CitedPlace]:
    return [
        CitedPlace(
            mark=one.mark,
            repository=one.repository or answer.repository,
            commit=one.commit,
            path=one.path,
            first_line=one.start_line,
            last_line=one.end_line,
            url=one.url,
        )
        for one in answer.citations
    ]


def _ask_which(unclear: AmbiguousRepository) -> str:
    names = ", ".join(unclear.likeliest)
    more = f" There are {unclear.of} in all." if unclear.of > len(unclear.likeliest) else ""
    return f"Which repository do you mean? Ask again and name it: {names}.{more}"
