"""The face of the agent: a question in, a stream of events out, the last of them the answer."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig

from agent.checkpoints import SafeSaver
from agent.errors import AgentError, CheckpointError
from agent.events import AgentEvent, AsyncEventBus, EventKind
from agent.graph import build_graph
from agent.nodes.security_gateway import MAX_QUESTION
from agent.ports import Answer, Citation, CodeLibrary, CodeSearch, Deps, Exchange, Redactor
from agent.state import AgentState, CitationRef, Turn, route_of, where
from indexer.errors import IndexerError

RECURSION_LIMIT = 150

log = logging.getLogger(__name__)


class Agent:
    """Answers questions about the code of a library, one turn at a time in each conversation.

    `events` is the bus on which every run of this agent is told; traces, metrics and logs subscribe to it.
    """

    def __init__(
        self,
        library: CodeLibrary,
        saver: SafeSaver,
        redact: Redactor,
        *,
        events: AsyncEventBus | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.events = events if events is not None else AsyncEventBus()
        self._library = library
        self._saver = saver
        self._redact = redact
        self._clock = clock
        self._graph = build_graph().compile(checkpointer=saver)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def ask(
        self, question: str, *, thread: str, repository: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer a question within a conversation; the last event is of kind `answer`.

        What the indexer or the conversation database cannot do ends in an `error` event and an answer with the
        route `failed`, whose text is the sentence to show. Closing the iterator stops the run; the thread stays usable.
        """
        run_id = uuid.uuid4().hex
        with self.events.subscribe(run_id) as events:
            run = asyncio.create_task(self._run(question, thread, repository, run_id))
            try:
                async for event in events:
                    if event.kind == "run_end":
                        break
                    yield event
                    if event.kind == "answer":
                        break
                await run
            finally:
                run.cancel()
                await asyncio.wait({run})

    async def history(self, thread: str) -> tuple[Exchange, ...]:
        """Return the turns of a conversation that are remembered, oldest first; none for an unknown thread."""
        snapshot = await self._graph.aget_state(_config(thread))
        turns: Sequence[Turn] = snapshot.values.get("conversation_history", [])
        return tuple(_exchange(turn) for turn in turns)

    async def forget(self, thread: str) -> None:
        """Delete everything that is remembered of a conversation, after the turn under way."""
        async with self._turn(thread):
            await self._saver.adelete_thread(thread)

    async def _run(self, question: str, thread: str, repository: str | None, run_id: str) -> None:
        status = "failed"
        try:
            async with self._turn(thread):
                answer = await self._answer(question, thread, repository, run_id)
            self._publish(run_id, "answer", answer=answer)
            status = "failed" if answer.route == "failed" else "completed"
        except asyncio.CancelledError:
            status = "cancelled"
            raise
        finally:
            self._publish(run_id, "run_end", status=status)

    async def _answer(self, question: str, thread: str, repository: str | None, run_id: str) -> Answer:
        started = time.perf_counter()
        try:
            code = await self._library.pin(repository)
            state = await self._turned(question, thread, code, run_id)
        except (AgentError, IndexerError) as error:
            log.warning("a turn failed: %s", error)
            self._publish(run_id, "error", message=str(error), error=type(error).__name__)
            return _failed(str(error), repository or "", time.perf_counter() - started)
        return _settled(state, code, time.perf_counter() - started)

    async def _turned(self, question: str, thread: str, code: CodeSearch, run_id: str) -> AgentState:
        def emit(kind: EventKind, /, **payload: Any) -> None:
            self._publish(run_id, kind, **payload)

        turn: AgentState = {
            "user_query": _storable(question),
            "asked_at": self._clock(),
            "repository": code.repository,
            "commit": code.commit.sha,
        }
        values = await self._graph.ainvoke(
            turn,
            _config(thread),
            context=Deps(code=code, redact=self._redact, emit=emit),
            durability="sync",
        )
        await self._tidy(thread)
        return cast("AgentState", values)

    async def _tidy(self, thread: str) -> None:
        """Drop the checkpoints of the finished turn; an answer is not lost because that fails."""
        try:
            await self._saver.prune_thread(thread)
        except CheckpointError as error:
            log.warning("old checkpoints were not dropped: %s", error)

    def _publish(self, run_id: str, kind: EventKind, **payload: Any) -> None:
        self.events.publish(AgentEvent(kind=kind, run_id=run_id, iteration=0, ts=self._clock(), payload=payload))

    def _turn(self, thread: str) -> asyncio.Lock:
        """Return the lock of a conversation, which lives as long as somebody holds or awaits it."""
        return self._turns.setdefault(thread, asyncio.Lock())


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION_LIMIT}


def _storable(question: str) -> str:
    """Cut to just beyond what the gateway accepts, and drop halves of surrogate pairs, which no store takes."""
    return question[: MAX_QUESTION + 1].encode("utf-8", "replace").decode("utf-8")


def _settled(state: AgentState, code: CodeSearch, seconds: float) -> Answer:
    citations = state.get("citations", [])
    return Answer(
        text=state.get("final_answer", ""),
        citations=tuple(_citation(ref, code.commit.sha, code.permalink(where(ref))) for ref in citations),
        repository=code.repository,
        commit=code.commit.sha,
        intent=state.get("intent", "new_question"),
        route=route_of(state),
        model=None,
        seconds=seconds,
        searched=tuple(state["retrieval_metadata"]["searched"]),
        blocked=state.get("is_blocked", False),
    )


def _failed(sentence: str, repository: str, seconds: float) -> Answer:
    return Answer(
        text=sentence,
        citations=(),
        repository=repository,
        commit="",
        intent="new_question",
        route="failed",
        model=None,
        seconds=seconds,
    )


def _citation(ref: CitationRef, commit: str, url: str | None) -> Citation:
    return Citation(
        mark=ref["mark"],
        path=ref["path"],
        start_line=ref["start_line"],
        end_line=ref["end_line"],
        commit=commit,
        url=url,
    )


def _exchange(turn: Turn) -> Exchange:
    return Exchange(
        question=turn["question"],
        answer=turn["answer"],
        citations=tuple(_citation(ref, turn["commit"], None) for ref in turn["citations"]),
        repository=turn["repository"],
        commit=turn["commit"],
        asked_at=turn["asked_at"],
    )
