"""Questions of one person through a surface: admitted as in chats, then answered in a task that others may follow."""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from agent import (
    QUESTION_TOO_LONG,
    STOPPED,
    AgentError,
    AgentEvent,
    Answer,
    fit_text,
    is_bare_question,
    read_quotes,
    with_background,
)
from bot.errors import (
    TOO_LATE,
    AnswerFailed,
    BadQuestion,
    BotError,
    LimitReached,
    NotAllowed,
    UnknownRepository,
    describe_unexpected,
)
from bot.living.edits import describe_renewal
from bot.messages import IncomingMessage, MessageContent, Place
from bot.monitoring.observer import TurnOutcome
from bot.questions.answer_run import AnswerRun, QuestionDeps, TakeEvent
from bot.questions.descriptions import describe_progress
from bot.replies.answer_content import StreamingAnswer, describe_place_in_line, describe_stage
from bot.repositories.choice_store import AmbiguousRepository, RepositoryChoice
from bot.storage.living_answers import LivingAnswer
from bot.storage.turn_records import TurnRecord
from bot.surfaces.ask_events import (
    AnswerCost,
    Answered,
    AnswerState,
    AskEvent,
    CitedPlace,
    CodePlace,
    EvidenceFound,
    NotAnswered,
    Reason,
    RunBegun,
    StageBegun,
    TextPart,
    read_state,
)
from bot.surfaces.code_lookups import choose_visible
from bot.surfaces.principals import Principal
from indexer import IndexerError, Progress, UnknownRevision

Surface = Literal["mcp", "api", "web"]
NO_QUESTION = "The question is empty. Ask about the code."
NO_CONVERSATION = "There is no such conversation. Leave it out, or send the `conversation` of an answer."
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
log = logging.getLogger(__name__)
ENDING = "citebot is shutting down. Ask again in a minute."
_SMALLEST_PART = 24  # characters that are sent at once while an answer grows
_PART_OF_ALL = 50  # each part reads all of the text again: the longer it is, the fewer
_OUTCOMES: Mapping[str, TurnOutcome] = {"paused": "paused", "blocked": "blocked"}


def _watch_nothing(_: AgentEvent) -> None:
    """Do nothing."""


class Questions:
    """Asks the agent on behalf of people; each may continue and stop only their own questions."""

    def __init__(self, deps: QuestionDeps) -> None:
        self._deps = deps
        self._running: dict[str, tuple[str, AskedRun]] = {}  # whose, by its id

    def begin(
        self,
        principal: Principal,
        question: str,
        *,
        surface: Surface,
        repository: str | None = None,
        at: str | None = None,
        conversation: str | None = None,
        background: Sequence[str] = (),
        remark: str = "",
        anew: bool = False,
        watch: TakeEvent = _watch_nothing,
    ) -> AskedRun:
        """Start a question, which runs in the background. If its first event is `NotAnswered`, it was refused.

        `repository` is the one that is meant, and `at` the branch, tag, commit or pull request that
        it is read at, else the question or its conversation tells. `conversation` is a name that
        the asker gives it; without one the question begins a new one. `background` are lines of
        `quote_line`: earlier messages that no conversation remembers. `remark` comes before the
        answer; a question asked `anew` gets no earlier answer. `watch` is called with all that the
        agent does.
        """
        text, run_id, label = fit_text(question), uuid.uuid4().hex, conversation or uuid.uuid4().hex
        problem = QUESTION_TOO_LONG if text is None else NO_QUESTION * (not text.strip())
        if conversation is not None and not (self._deps.remembers and _CONVERSATION.fullmatch(conversation)):
            problem = problem or NO_CONVERSATION
        about = () if repository is None else (repository,)
        asked = AskedQuestion(
            message=replace(principal.write(self._deps.mask(text or ""), about=about), anew=anew),
            conversation=name_conversation(surface, principal, label),
            run_id=run_id,
            label=label if self._deps.remembers else "",
            background=tuple(background),
            at=(at or "").strip(),
            remark=remark,
        )
        run = AskedRun(surface, partial(self._admit, asked, problem), self._deps, watch)
        self._running[run_id] = principal.key, run
        run.task.add_done_callback(lambda _: self._running.pop(run_id))
        return run

    async def stop(self, principal: Principal, run_id: str) -> bool:
        """End a run of the person; False if there is none."""
        owner, run = self._running.get(run_id, ("", None))
        if run is None or owner != principal.key:
            return False
        await run.stop()
        return True

    async def find_state(self, principal: Principal, run_id: str) -> AnswerState | None:
        """Return the state of an answer; None if it is not followed, or the person may not ask about it now."""
        answer = await self._find_living(principal, run_id)
        return await read_state(self._deps.living, answer, self._deps.hosts) if self._deps.living and answer else None

    async def describe_renewal(self, principal: Principal, run_id: str) -> str:
        """Describe the changes since an earlier answer, for a renewed one; empty if there are none."""
        return describe_renewal(await self._find_living(principal, run_id))

    async def _find_living(self, principal: Principal, run_id: str) -> LivingAnswer | None:
        living, message = self._deps.living, principal.write()
        answer = await living.find(run_id) if living is not None else None
        if answer is None or answer.run_id != run_id:
            return None
        visible = self._deps.access.list_visible(message, self._deps.repositories.list_names())
        return answer if answer.commits.keys() <= set(visible) else None

    async def _admit(self, asked: AskedQuestion, problem: str) -> AskedQuestion:
        """Count a question, and check that it may be asked: `NotAllowed`, or `BadQuestion` for an invalid one."""
        deps, message = self._deps, asked.message
        if deps.counter is not None:  # also what is refused: that takes a reply, too
            await deps.counter.count(message)
        if problem:
            raise BadQuestion(problem)
        deps.chooser.check(message)
        visible = deps.access.list_visible(message, deps.repositories.list_names())
        for repository in message.about:
            choose_visible(repository, visible)
        return asked


def name_conversation(surface: str, principal: Principal, label: str) -> str:
    """Name a conversation uniquely by its owner: `mcp:slack:U0123:LABEL`."""
    return Place(platform=surface, workspace=principal.platform, channel=principal.person, thread=label).key()


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuestion:
    """A question that may be asked; `conversation` is its name for the agent, `label` its name for the asker.
    `at` is the ref to read, whatever the question says; `remark` comes before the answer.
    """

    message: IncomingMessage
    conversation: str
    run_id: str
    label: str = ""
    background: tuple[str, ...] = ()
    at: str = ""
    remark: str = ""


class AskedRun:
    """One question, from its admission on. The last of its `events` is `Answered` or `NotAnswered`.

    `followers` says how many read them at the moment.
    """

    def __init__(
        self, surface: str, admit: Callable[[], Awaitable[AskedQuestion]], deps: QuestionDeps, watch: TakeEvent
    ) -> None:
        self.events: list[AskEvent] = []
        self.followers = 0
        self._surface = surface
        self._admit = admit
        self._deps = deps
        self._watch = watch
        self._run: AnswerRun | None = None
        self._draft = StreamingAnswer("", deps.hosts)
        self._news = asyncio.Event()
        self._is_stopped = False
        self._shown = ""
        self._unseen = 0  # characters that came since the last part was sent
        self.task = asyncio.create_task(self._work())
        self.task.add_done_callback(lambda _: self._news.set())

    async def replay(self) -> AsyncGenerator[AskEvent, None]:
        """Yield all events from the beginning, and further ones."""
        taken, self.followers = 0, self.followers + 1
        try:
            while taken < len(self.events) or not self.task.done():
                if taken < len(self.events):
                    yield self.events[taken]
                    taken += 1
                else:
                    self._news.clear()
                    await self._news.wait()
            if self.task.cancelled():
                yield NotAnswered(reason="failed", text=ENDING)
        finally:
            self.followers -= 1

    async def stream(self) -> AsyncGenerator[AskEvent, None]:
        """Yield what `replay` does, to the only one who follows: closing the iterator ends the run."""
        try:
            async for event in self.replay():
                yield event
        finally:
            self.give_up()
            await asyncio.wait({self.task})

    def give_up(self) -> None:
        """End the run, because nobody waits for its answer any more; its last events are still read."""
        if not (self.events and isinstance(self.events[-1], Answered | NotAnswered)):
            self.task.cancel()

    async def stop(self) -> None:
        """End the run with a final event."""
        self._is_stopped = True
        if self._run is None or not await self._run.stop():
            self.task.cancel()

    async def _work(self) -> None:
        """Add the events; errors become the last one."""
        try:
            last, outcome = await self._answer(await self._admit())
        except asyncio.CancelledError:
            if not self._is_stopped:
                self._deps.observer.count_outcome(self._surface, "stopped")
                raise
            last, outcome = NotAnswered(reason="stopped", text=STOPPED), "stopped"
        except Exception as error:  # noqa: BLE001 - it is logged where it is explained
            last, outcome = explain_failure(error, self._deps.mask)
        self._deps.observer.count_outcome(self._surface, outcome)
        self._add(last)
        if outcome == "answered" and self._run is not None:
            await self._run.keep_living(MessageContent(), "")

    def _add(self, event: AskEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def _answer(self, asked: AskedQuestion) -> tuple[AskEvent, TurnOutcome]:
        """Go through the steps of the run; questions of a conversation come in turn."""
        deps, text = self._deps, asked.message.text
        run = self._run = AnswerRun(deps, run_id=asked.run_id, conversation=asked.conversation)
        self._add(RunBegun(run_id=asked.run_id, conversation=asked.label))
        async with deps.queue.lock_conversation(asked.conversation):
            context = "\n".join([text, *read_quotes(asked.background)]) if is_bare_question(text) else text
            choice = await deps.chooser.choose(
                asked.message, context, conversation=asked.conversation, run_id=asked.run_id
            )
            if isinstance(choice, AmbiguousRepository):
                return NotAnswered(reason="unclear_repository", text=_ask_which(choice)), "paused"
            last = await deps.records.last(asked.conversation) if deps.records is not None else None
            at = await run.choose_ref(choice, last, at=asked.at)
            self._draft.begin_with("\n\n".join(filter(None, (choice.remark, at.remark, asked.remark))))
            await run.ensure_indexed(choice.repositories, self._show_indexing)
            answer = await run.follow(
                with_background(at.question, asked.background), await run.hold(self._show_indexing), self._take,
                limit=partial(asyncio.timeout, deps.deadline),
                show_place=lambda before: self._tell(describe_place_in_line(before), before),
                alone=asked.message if last is None and not asked.background else None,
            )  # fmt: skip
            return await self._conclude(asked, run, answer, choice)

    def _take(self, event: AgentEvent) -> None:
        """Pass an event on to those who wait for the answer."""
        self._watch(event)
        self._draft.take(event)
        if event.kind == "evidence":
            self._tell_places(event)
        elif event.kind in {"token", "reset"}:
            self._unseen += len(str(event.payload["text"]))
            if self._unseen >= max(_SMALLEST_PART, len(self._shown) // _PART_OF_ALL):
                self._show(self._draft.partial_content().text)
        else:
            self._tell(describe_stage(event))

    def _tell(self, stage: str, before: int = 0) -> None:
        if stage:
            self._add(StageBegun(text=self._deps.mask(stage), before=before))

    def _show_indexing(self, name: str, progress: Progress, why: str) -> None:
        self._tell(why + describe_progress(name, progress))

    def _tell_places(self, event: AgentEvent) -> None:
        places = tuple(
            CodePlace(path=at.path, first_line=at.start_line, last_line=at.end_line, url=url)
            for at, url in zip(event.payload["locations"], event.payload["urls"], strict=True)
            if at.path
        )
        if places:
            self._add(EvidenceFound(places=places))

    def _show(self, text: str) -> None:
        """Send the new part of the text, or all of it if the sent part has changed."""
        self._unseen = 0
        if text == self._shown:
            return
        grows = text.startswith(self._shown)
        part = text[len(self._shown) :] if grows else text
        self._shown = text
        self._add(TextPart(text=part, replaces=not grows))

    async def _conclude(
        self, asked: AskedQuestion, run: AnswerRun, answer: Answer, choice: RepositoryChoice
    ) -> tuple[AskEvent, TurnOutcome]:
        """Record how the answer was found, and return it."""
        if answer.route == "stopped":
            return NotAnswered(reason="stopped", text=STOPPED), "stopped"
        if answer.route == "failed":
            raise AnswerFailed(answer.text)
        person = asked.message.author
        record = run.make_record(answer, person=person, question=choice.question, why=choice.why)
        await run.keep(record)
        await run.keep_reusable()
        text = self._draft.text_with_marks
        self._show(text)
        content = self._draft.final_content(await run.find_freshness(answer))
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
            cost=_measure_cost(record, run.stats.dollars),
        )
        return answered, _OUTCOMES.get(answer.route, "answered")


def explain_failure(error: Exception, mask: Callable[[str], str]) -> tuple[NotAnswered, TurnOutcome]:
    """Say why a question has no answer, and how that counts."""
    reason: Reason = "failed"
    match error:
        case LimitReached():
            return NotAnswered(reason="limit", text=str(error), retry_after=error.retry_after), "refused"
        case NotAllowed():
            reason = "unknown_repository" if isinstance(error, UnknownRepository) else "not_allowed"
            return NotAnswered(reason=reason, text=str(error)), "refused"
        case BadQuestion():
            return NotAnswered(reason="bad_question", text=str(error)), "refused"
        case TimeoutError():
            return NotAnswered(reason="late", text=TOO_LATE), "late"
        case UnknownRevision():
            reason = "unknown_ref"
        case BotError() | AgentError() | IndexerError():
            pass
        case _:
            log.error("a question could not be answered", exc_info=error)
            return NotAnswered(reason="failed", text=mask(describe_unexpected(error))), "failed"
    return NotAnswered(reason=reason, text=mask(str(error))), "failed"


def _measure_cost(record: TurnRecord, dollars: float | None) -> AnswerCost:
    return AnswerCost(
        seconds=round(record.seconds, 3),
        model_calls=record.model_calls,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        dollars=round(dollars, 6) if dollars is not None else None,
    )


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
