"""The agent's interface: a question in, a stream of events out, the last of them the answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.answering.beginning import keep_images
from agent.errors import AgentError, CheckpointError, CheckpointOvertaken, CodeMoved
from agent.events import AgentEvent, AsyncEventBus, EventKind
from agent.guard.approval import UNDECIDED, is_undecided, parse_decision
from agent.guard.size import MAX_RAW_TEXT
from agent.guard.thread_quotes import split_background
from agent.limits import APPROVAL_CALLS
from agent.nodes.conversation_memory import make_remembered_turn
from agent.persistence.evidence_store import OVERTAKEN, EvidenceStore, MemoryStore
from agent.ports import (
    Answer,
    Classifier,
    CodeLibrary,
    CodeSearch,
    Deps,
    ModelSource,
    RunPermit,
    ToolMenu,
    WebSearch,
)
from agent.prompts.answer_prompts import derive_nonce
from agent.questions.attachments import MAX_ATTACHED, NOTHING_ATTACHED, UNASKED, AttachedText, Attachments
from agent.questions.intents.model import load_model
from agent.questions.remarks import load_remarks
from agent.repositories.joined_code import pin_repositories
from agent.runs.graph_runner import AgentRun, GraphResult, GraphRunner, SingleTurnRunner, list_commits
from agent.runs.run_tasks import RunTasks
from agent.runs.turn_answers import clip_question, format_pause_question, make_answer, make_unanswered
from agent.text.storable import MaskedValues, make_storable
from agent.tools.registry import make_tool_registry
from indexer.errors import IndexerError

if TYPE_CHECKING:
    from agent.persistence.conversation_saver import ConversationSaver
    from agent.persistence.evidence_store import RunClaim
    from agent.state import PastTurn

LONGEST_READ = MAX_RAW_TEXT  # characters of a message that are looked through for secrets; few of them are kept

log = logging.getLogger(__name__)


class Agent:
    """Answers questions about the code of a library, one turn at a time in each conversation.

    Over a `MemoryStore` nothing is remembered, and no model may be used: each question is independent. If nobody
    `can_ask` back, an unclear question gets its likeliest meaning. `events` is the bus for all runs of this agent;
    traces, metrics and logs subscribe to it.
    """

    def __init__(
        self,
        library: CodeLibrary,
        saver: ConversationSaver | MemoryStore,
        redact: Callable[[str], str],
        *,
        models: ModelSource | None = None,
        tools: ToolMenu | None = None,
        web: WebSearch | None = None,
        classifier: Classifier | None = None,
        approval_calls: int = APPROVAL_CALLS,
        can_ask: bool = True,
        events: AsyncEventBus | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = events if events is not None else AsyncEventBus()
        self._library = library
        self._saver = saver
        self._redact = redact
        self._models = models
        self._tools = tools if tools is not None else make_tool_registry()
        self._web = web
        self._classifier = classifier
        self._approval_calls = approval_calls
        self._can_ask = can_ask
        self._fence_key = secrets.token_bytes(16)
        self._clock = clock
        self._evidence = EvidenceStore(saver)
        if not isinstance(saver, MemoryStore):  # on the way of the first question they would hold the loop
            load_model()
            load_remarks()
        self._turns = SingleTurnRunner(clock) if isinstance(saver, MemoryStore) else GraphRunner(saver, clock)
        self._tasks = RunTasks(self.events, clock)

    async def ask(
        self,
        question: str,
        *,
        thread: str,
        repositories: Sequence[str] = (),
        run_id: str | None = None,
        permit: RunPermit | None = None,
        attachments: Attachments = NOTHING_ATTACHED,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a question within a conversation, from the repositories named; the last event is of kind `answer`.

        Attached texts are read as excerpts with their failures; images are shown to a model that
        accepts them.

        In a conversation that waits for a person, a fitting message is the reply. Failures of the
        indexer or the conversation database end in an `error` event and an answer with the route
        `failed` and a sentence as its text; `paused` and `stopped` are the routes of a turn that
        waits or was ended. Closing the iterator stops the run; the thread stays usable, and
        `resume` takes the run up again until the next question. Raises `CheckpointOvertaken` once
        another run, in any process, has claimed the conversation, and if the permit does not let it
        begin.
        """
        name = run_id or uuid.uuid4().hex
        question = self._clean_input(question if question.strip() or not attachments else UNASKED)
        own, _ = split_background(question)

        async def begin(claim: RunClaim) -> AgentRun:
            newest = await self._turns.find_run(thread)
            if newest is not None and _is_reply(own, newest) and await _may_reply(permit, newest):
                return replace(newest, id=name, reply=own)
            if newest is not None and _is_no_decision(own, newest) and await _may_reply(permit, newest):
                return replace(newest, id=name, is_undecided=True)
            if newest is not None and not newest.is_finished:
                await self._close(claim, newest.id)
            cleaned = await asyncio.to_thread(self._clean_attachments, attachments)
            await keep_images(self._evidence.of(thread, claim), cleaned.images)
            return AgentRun(
                id=name, thread=thread, repositories=tuple(repositories), question=question, attachments=cleaned
            )

        answer = partial(self._answer, name, thread, begin, permit)
        async with aclosing(self._tasks.stream(name, thread, answer)) as events:
            async for event in events:
                yield event

    async def resume(
        self, run_id: str, *, thread: str, reply: str | None = None, permit: RunPermit | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Continue an interrupted or paused run of a conversation; the events are those of `ask`.

        A finished run gives its answer again. Raises `UnknownRun` if there is nothing to continue: nothing of the run
        was saved yet, it has failed or was stopped, or the conversation has moved on. The question may be asked again
        then.
        """

        async def take(find: Callable[[], Awaitable[AgentRun]]) -> Answer:
            async def begin(_: RunClaim) -> AgentRun:
                run = await find()
                return replace(run, reply=self._clean_input(reply)) if reply is not None and run.is_waiting else run

            return await self._answer(run_id, thread, begin, permit)

        find = partial(self._find_run, run_id, thread)
        resumed = self._tasks.resume(run_id, thread, find, take, noun="run", remedy="Ask the question again.")
        async with aclosing(resumed) as events:
            async for event in events:
                yield event

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds, whatever its state; False if it is not running."""
        return await self._tasks.stop(run_id)

    async def remember(self, question: str, answer: Answer, *, thread: str, run_id: str) -> None:
        """Record the result of another kind of run, such as a goal run's verdict, as a turn of a conversation.

        A waiting conversation waits no more; recording a run again changes nothing.
        """
        kept = replace(answer, text=make_storable(self._redact(answer.text)))
        turn = make_remembered_turn(self._clean_input(question), kept, run_id=run_id, asked_at=self._clock())
        async with self._tasks.lock(thread):
            claim = await self._saver.claim_run(thread)
            await self._turns.remember(claim, turn)
            await self._evidence.drop(claim)

    async def restore(self, turns: Sequence[PastTurn], *, thread: str) -> None:
        """Copy the turns of another conversation into an empty one."""
        async with self._tasks.lock(thread):
            for turn in turns:
                await self._turns.remember(await self._saver.claim_run(thread), turn)

    async def forget(self, thread: str, *, run_id: str | None = None) -> None:
        """Delete the memory of a conversation, once its running turn is over.

        With a run, only if that is the newest, and nobody claims the conversation meanwhile.
        """
        async with self._tasks.lock(thread):
            if run_id is None:
                await self._saver.forget(thread)
                return
            claim = await self._saver.find_claim(thread)  # before it is looked whose the newest run is
            if claim is not None and await self._find_run(run_id, thread) is not None:
                with suppress(CheckpointOvertaken):
                    await self._saver.forget(thread, claim)

    async def _find_run(self, run_id: str, thread: str) -> AgentRun | None:
        """Return a run if it is the newest of its conversation."""
        newest = await self._turns.find_run(thread)
        return newest if newest is not None and newest.id == run_id else None

    async def _answer(
        self,
        run_id: str,
        thread: str,
        begin: Callable[[RunClaim], Awaitable[AgentRun]],
        permit: RunPermit | None,
    ) -> Answer:
        started = time.perf_counter()
        before = run_id  # another one where a reply continues a run
        claim: RunClaim | None = None
        try:
            claim = await self._claim(thread, permit)
            run = await begin(claim)
            before = run.state.get("run_id", run_id)
            code = await pin_repositories(self._library, run.repositories)
            try:
                result = await self._turns.take(run, self._make_deps(run, code, claim), claim)
            except CodeMoved:  # nothing of the "no" that it was about to tell is kept
                self._tasks.publish(run_id, "reset", text="")
                code = await pin_repositories(self._library, run.repositories)
                code.follow(None)
                run = replace(await self._turns.find_run(thread) or run, is_undecided=run.is_undecided)
                result = await self._turns.take(run, self._make_deps(run, code, claim), claim)
            return await self._conclude_run(run, result, code, claim, time.perf_counter() - started)
        except CheckpointOvertaken:  # only another person's run could be abandoned here
            raise
        except (AgentError, IndexerError) as error:
            log.warning("a turn failed: %s", error)
            self._tasks.publish(run_id, "error", message=str(error), error=type(error).__name__)
            # A run whose reply could not be saved still waits for it.
            await self._give_up(claim, run_id, *() if isinstance(error, CheckpointError) else (before,))
            return make_unanswered(str(error), "failed", seconds=time.perf_counter() - started)
        except asyncio.CancelledError:
            if self._tasks.is_stopped(run_id):
                await self._give_up(claim, run_id, before)
            raise

    async def _claim(self, thread: str, permit: RunPermit | None) -> RunClaim:
        """Claim a conversation for a run, if the run may still begin."""
        claim = await self._saver.claim_run(thread)
        if permit is not None and not await permit.may_begin():
            raise CheckpointOvertaken(OVERTAKEN)
        return claim

    async def _conclude_run(
        self, run: AgentRun, result: GraphResult, code: CodeSearch, claim: RunClaim, seconds: float
    ) -> Answer:
        """Return the question to a person, or delete the data of a finished turn."""
        with _log_cleanup_errors():
            if result.request is not None:
                await self._saver.check_claim(claim)
            else:
                await self._evidence.drop(claim)
                if self._models is not None:  # each step was saved: the last one moves on, and the others are dropped
                    await self._saver.claim_run(run.thread, after=claim)
        if result.request is not None:
            remark = f"{UNDECIDED}\n\n" if run.is_undecided else ""
            text = remark + self._redact(format_pause_question(result.request))
            self._tasks.publish(run.id, "human_check_required", **result.request)
            self._tasks.publish(run.id, "token", text=text)
            return make_unanswered(text, "paused", code, seconds=seconds)
        commits = run.commits if run.is_finished else list_commits(code)
        return make_answer(result.state, code, commits, seconds)

    async def _give_up(self, claim: RunClaim | None, *run_ids: str) -> None:
        """Close a failed run; if closing fails too, its answer still gives the reason.

        Leave a run that was not claimed to the next process.
        """
        with _log_cleanup_errors(), suppress(CheckpointOvertaken):
            if claim is not None:
                await self._close(claim, *run_ids)

    async def _close(self, claim: RunClaim, *run_ids: str) -> None:
        """Leave nothing to resume from a conversation's unfinished run, if it is one of these."""
        if await self._turns.abandon(claim, run_ids):
            await self._evidence.drop(claim)

    def _make_deps(self, run: AgentRun, code: CodeSearch, claim: RunClaim) -> Deps:

        def emit(kind: EventKind, /, iteration: int = 0, **payload: Any) -> None:
            self._tasks.publish(run.id, kind, iteration, **payload)

        masked = MaskedValues()
        deps = Deps(
            code=code,
            redact=masked.watch(self._redact),
            masked=masked,
            emit=emit,
            tools=self._tools,
            evidence=self._evidence.of(run.thread, claim),
            web=self._web,
            classifier=self._classifier,
            asked=" ".join(filter(None, (split_background(run.question)[0], run.reply))),
            approval_calls=self._approval_calls,
            can_ask=self._can_ask,
            nonce=derive_nonce(self._fence_key, run.thread),
        )
        if self._models is None:
            return deps
        budget = self._models.budget()
        return replace(deps, budget=budget, models=self._models.make_turn_models(budget, emit))

    def _clean_input(self, text: str) -> str:
        """Mask secrets and unstorable characters in a person's message, so that no table or checkpoint holds
        a secret.
        """
        return clip_question(self._redact(text[:LONGEST_READ]))

    def _clean_attachments(self, attachments: Attachments) -> Attachments:
        """Return the attachments with secrets masked."""
        texts = tuple(
            AttachedText(name=self._redact(one.name), text=make_storable(self._redact(one.text[:MAX_ATTACHED])))
            for one in attachments.texts
        )
        return replace(attachments, texts=texts)


def _is_reply(text: str, run: AgentRun) -> bool:
    """Whether a message replies to a waiting run: anything after a question, a yes or no to a request."""
    if run.pause is None or not run.is_waiting:
        return False
    return run.pause.request.get("kind") == "clarify" or bool(parse_decision(text))


def _is_no_decision(text: str, run: AgentRun) -> bool:
    """Whether a message mentions the pending approval without deciding it; the run keeps waiting."""
    wants_approval = run.is_waiting and run.pause is not None and run.pause.request.get("kind") != "clarify"
    return wants_approval and is_undecided(text)


async def _may_reply(permit: RunPermit | None, run: AgentRun) -> bool:
    """Whether the request that a run waits on may be answered."""
    return permit is None or await permit.may_be_replied_to(run.id)


@contextmanager
def _log_cleanup_errors() -> Iterator[None]:
    """Make sure that a failure after the answer does not lose it."""
    try:
        yield
    except CheckpointOvertaken:
        raise
    except CheckpointError as error:
        log.warning("the clean-up after a turn failed: %s", error)
