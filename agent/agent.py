"""The agent as others use it: a question in, a stream of events out, the last of them the answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from agent.errors import INTERRUPTED, STOPPED, AgentError, CheckpointError, UnknownRun
from agent.events import AgentEvent, AsyncEventBus, EventKind
from agent.graph_runner import (
    GraphResult,
    GraphRunner,
    SingleTurnRunner,
    TurnRunner,
    clip_question,
    format_pause_question,
    make_answer,
    make_unanswered,
)
from agent.guard.approval import parse_decision
from agent.guard.thread_quotes import split_background
from agent.limits import APPROVAL_CALLS, MAX_RUN_TRIES
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.memory_store import MemoryStore
from agent.persistence.run_store import AgentRun, RunStore
from agent.ports import (
    Answer,
    Classifier,
    CodeLibrary,
    CodeSearch,
    Deps,
    ModelSource,
    Redactor,
    ToolMenu,
    WebSearch,
)
from agent.prompts.answer_prompts import derive_nonce
from agent.questions.question_kinds import compile_kinds
from agent.questions.remarks import load_remarks
from agent.repositories.joined_code import pin_repositories
from agent.text.masked_values import MaskedValues
from agent.tools.registry import make_tool_registry
from indexer.errors import IndexerError

if TYPE_CHECKING:
    from agent.persistence.checkpointer import SafeSqliteSaver

LONGEST_READ = 40_000  # characters of a message that are looked through for secrets; a tenth of them is kept
STOP_SECONDS = 2.0

# What an interrupted run must not repeat when it goes on.
PAID: frozenset[EventKind] = frozenset({"model_end", "tool_end"})

log = logging.getLogger(__name__)


class Agent:
    """Answers questions about the code of a library, one turn at a time in each conversation.

    Over a `MemoryStore` nothing is remembered, and no model may be used: each question stands for itself. Where nobody
    `can_ask` back, an unclear question is answered as it is most likely meant.
    `events` is the bus that every run of this agent publishes to; traces, metrics and logs subscribe to it.
    """

    def __init__(
        self,
        library: CodeLibrary,
        saver: SafeSqliteSaver | MemoryStore,
        redact: Redactor,
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
        self._journal = RunStore(saver, clock)
        self._evidence = EvidenceStore(saver)
        if not isinstance(saver, MemoryStore):  # on the way of the first question they would hold the loop
            compile_kinds()
            load_remarks()
        self._turns: TurnRunner = (
            SingleTurnRunner(clock) if isinstance(saver, MemoryStore) else GraphRunner(saver, clock)
        )
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stopped: set[str] = set()

    async def ask(
        self, question: str, *, thread: str, repositories: Sequence[str] = (), run_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a question within a conversation, from the repositories named; the last event is of kind `answer`.

        In a conversation that waits for a person, a fitting message is the reply. What the indexer or the
        conversation database cannot do ends in an `error` event and an answer with the route `failed`, whose text is
        the sentence to show; `paused` and `stopped` are the routes of a turn that waits or was ended. Closing the
        iterator stops the run; the thread stays usable, and `resume` takes the run up again until the next question.
        """
        name = run_id or uuid.uuid4().hex
        question = self._clean_input(question)
        own, _ = split_background(question)

        async def begin() -> AgentRun:
            run = await self._journal.begin_unless_paused(
                name, thread=thread, repositories=repositories, question=question
            )
            if run.status != "paused":
                return run
            waiting = await self._turns.pending(thread)
            # A question back is answered by anything, a request for approval by a yes or no.
            if waiting is None or not (waiting.value.get("kind") == "clarify" or parse_decision(own)):
                return await self._journal.begin(name, thread=thread, repositories=repositories, question=question)
            return await self._journal.begin(
                name,
                thread=thread,
                repositories=run.repositories,
                question=run.question,
                reply=own,
                reply_to=waiting.id,
            )

        async with aclosing(self._stream_events(name, thread, begin)) as events:
            async for event in events:
                yield event

    async def resume(self, run_id: str, reply: str | None = None) -> AsyncGenerator[AgentEvent, None]:
        """Go on with a run that was interrupted, or that waits for a reply; the events are those of `ask`.

        A finished run gives its answer again. Raises `UnknownRun` where there is nothing to go on with.
        """
        run = await self._journal.find(run_id)
        if run is None or run.status == "failed" or run_id in self._running:
            raise UnknownRun(f"There is no run {run_id[:80]} that could be taken up. Ask the question again.")

        async def begin() -> AgentRun:
            found = await self._journal.find(run_id)
            if found is None:
                raise UnknownRun(f"The run {run_id[:80]} was given up meanwhile. Ask the question again.")
            waiting = await self._turns.pending(found.thread) if reply is not None else None
            if reply is not None and waiting is not None:
                await self._journal.reply(run_id, self._clean_input(reply), to=waiting.id)
            elif found.status == "running":
                await self._journal.try_again(run_id)
            return await self._journal.find(run_id) or found

        async with aclosing(self._stream_events(run_id, run.thread, begin)) as events:
            async for event in events:
                yield event

    async def stop(self, run_id: str) -> bool:
        """End a run within two seconds, whatever it is doing; False if it is not running."""
        task = self._running.get(run_id)
        if task is None:
            return False
        self._stopped.add(run_id)
        await asyncio.sleep(0)  # a task that is cancelled before its first step cannot publish its end
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_SECONDS)
        return True

    async def forget(self, thread: str) -> None:
        """Delete everything that is remembered of a conversation, once its running turn is over."""
        async with self._lock(thread):
            await self._saver.adelete_thread(thread)
            await self._journal.forget(thread)
            await self._evidence.drop(thread)

    async def _stream_events(
        self, run_id: str, thread: str, begin: Callable[[], Awaitable[AgentRun]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run in a task of its own and yield its events, up to the answer."""
        with self.events.subscribe(run_id) as events:
            task = asyncio.create_task(self._run(run_id, thread, begin))
            self._running[run_id] = task
            try:
                async for event in events:
                    if event.kind == "run_end":
                        break
                    yield event
                    if event.kind == "answer":
                        break
                await task
            finally:
                task.cancel()
                await asyncio.wait({task})
                self._running.pop(run_id, None)
                self._stopped.discard(run_id)

    async def _run(self, run_id: str, thread: str, begin: Callable[[], Awaitable[AgentRun]]) -> None:
        status = "failed"
        try:
            async with self._lock(thread):
                answer = await self._answer(run_id, thread, begin)
            self._publish(run_id, "answer", answer=answer)
            status = answer.route if answer.route in {"failed", "paused"} else "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            if run_id not in self._stopped:
                raise
            status = "stopped"
            self._publish(run_id, "answer", answer=make_unanswered(STOPPED, "stopped"))
        finally:
            self._publish(run_id, "run_end", status=status)

    async def _answer(self, run_id: str, thread: str, begin: Callable[[], Awaitable[AgentRun]]) -> Answer:
        started = time.perf_counter()
        try:
            run = await begin()
            if run.tries > MAX_RUN_TRIES:
                await self._give_up(run.id, thread)
                return make_unanswered(INTERRUPTED, "failed")
            code = await pin_repositories(self._library, run.repositories)
            result = await self._turns.take(run, self._make_deps(run, code))
            return await self._conclude_run(run, result, code, time.perf_counter() - started)
        except (AgentError, IndexerError) as error:
            log.warning("a turn failed: %s", error)
            self._publish(run_id, "error", message=str(error), error=type(error).__name__)
            await self._give_up(run_id, thread)
            return make_unanswered(str(error), "failed", seconds=time.perf_counter() - started)
        except asyncio.CancelledError:
            if run_id in self._stopped:
                await self._give_up(run_id, thread)
            raise

    async def _conclude_run(self, run: AgentRun, result: GraphResult, code: CodeSearch, seconds: float) -> Answer:
        """Update the journal, and drop what only the running turn needed."""
        if result.request is not None:
            await self._journal.pause(run.id)
            text = self._redact(format_pause_question(result.request))
            self._publish(run.id, "human_check_required", **result.request)
            self._publish(run.id, "token", text=text)
            return make_unanswered(text, "paused", code, seconds=seconds)
        with _log_cleanup_errors():
            await self._saver.prune_thread(
                run.thread,
                self._evidence.make_drop_statement(run.thread),
                self._journal.make_end_statement(run.id, "completed"),
            )
        return make_answer(result.state, code, seconds)

    async def _give_up(self, run_id: str, thread: str) -> None:
        """Record a failure; where the database is locked, the person waits for one attempt, not two."""
        statements = [self._journal.make_end_statement(run_id, "failed")]
        with _log_cleanup_errors():
            if await self._turns.abandon(thread, run_id):  # else another turn may need its evidence for a reply
                statements.append(self._evidence.make_drop_statement(thread))
            await self._saver.write_all(statements)

    def _make_deps(self, run: AgentRun, code: CodeSearch) -> Deps:

        def emit(kind: EventKind, /, iteration: int = 0, **payload: Any) -> None:
            if kind in PAID:
                self._saver.flush_next(run.thread)
            self._publish(run.id, kind, iteration, **payload)

        masked = MaskedValues()
        deps = Deps(
            code=code,
            redact=masked.watch(self._redact),
            masked=masked,
            emit=emit,
            tools=self._tools,
            evidence=self._evidence.of(run.thread),
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
        return replace(deps, budget=budget, models=self._models.for_turn(budget, emit))

    def _publish(self, run_id: str, kind: EventKind, /, iteration: int = 0, **payload: Any) -> None:
        self.events.publish(
            AgentEvent(kind=kind, run_id=run_id, iteration=iteration, ts=self._clock(), payload=payload)
        )

    def _clean_input(self, text: str) -> str:
        """Return what may be stored of a person's message: no table and no checkpoint ever holds a secret."""
        return clip_question(self._redact(text[:LONGEST_READ]))

    def _lock(self, thread: str) -> asyncio.Lock:
        """Return the lock of a conversation, which lives as long as somebody holds or awaits it."""
        return self._locks.setdefault(thread, asyncio.Lock())


@contextmanager
def _log_cleanup_errors() -> Iterator[None]:
    """Keep a failure after the answer from losing the answer."""
    try:
        yield
    except CheckpointError as error:
        log.warning("the clean-up after a turn failed: %s", error)
