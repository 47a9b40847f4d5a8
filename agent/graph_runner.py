"""Takes one turn through the graph, from the start, a checkpoint or a reply, and makes its result an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from agent.errors import TurnTooLong
from agent.graph import build_graph, list_steps
from agent.guard.size import clip, fit_text
from agent.limits import RECURSION_LIMIT
from agent.persistence.run_store import AgentRun
from agent.ports import Answer, Citation, CodeSearch, Deps, NodeRuntime, PinnedCommit
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState, CitationRef, make_empty_metadata, name_route, reset_turn, to_location
from agent.text.escaping import format_code_span
from agent.text.storable import make_storable

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Command, Interrupt, StateSnapshot

    from agent.persistence.checkpointer import SafeSqliteSaver

    GraphInput = AgentState | Command[Any] | None

_MAX_SHOWN = 12
_TOO_LONG = "This question went round too often without an answer. Ask for less at a time."


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphResult:
    """How far a turn has come: its state, and what it asks of a person where it waits for one."""

    state: AgentState
    request: Mapping[str, Any] | None = None


class TurnRunner(Protocol):
    """Takes turns through the graph; every method takes the conversation's lock for granted."""

    async def state(self, thread: str) -> AgentState:
        """Return the newest state of a conversation; empty for an unknown one."""

    async def pending(self, thread: str) -> Interrupt | None:
        """Return what a conversation waits for: the question, and the id that a reply to it names."""

    async def take(self, run: AgentRun, deps: Deps) -> GraphResult:
        """Take a run as far as it goes, without repeating what is done already."""

    async def abandon(self, thread: str, run_id: str) -> bool:
        """Close an interrupted run, if it is the conversation's newest; return whether it was."""


class SingleTurnRunner:
    """Walks the graph once, for a question that nobody can go on with: nothing is saved, and no model may pause it.

    LangGraph would take a second to import, several times as long as the answer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    async def state(self, thread: str) -> AgentState:  # noqa: ARG002
        """Return nothing: no conversation is remembered."""
        return {}

    async def pending(self, thread: str) -> None:  # noqa: ARG002
        """Return None: nothing waits."""
        return

    async def take(self, run: AgentRun, deps: Deps) -> GraphResult:
        """Take a run to its end."""
        state = _make_initial_state(run, deps.code, self._clock())
        steps = {step.name: step for step in list_steps()}
        name: str | None = next(iter(steps))
        for _ in range(RECURSION_LIMIT):
            if name is None:
                return GraphResult(state=state)
            changes = await steps[name].run(state, NodeRuntime(deps))
            state = {**state, **changes}
            deps.emit("step_end", node=name, changes=changes)
            name = steps[name].choose_next(state)
        raise TurnTooLong(_TOO_LONG)

    async def abandon(self, thread: str, run_id: str) -> bool:  # noqa: ARG002
        """Return False: there is nothing to close."""
        return False


class GraphRunner:
    """The compiled graph over its checkpoints; every method takes the conversation's lock for granted."""

    def __init__(self, saver: SafeSqliteSaver, clock: Callable[[], float]) -> None:
        self._graph = build_graph().compile(checkpointer=saver)
        self._saver = saver
        self._clock = clock

    async def state(self, thread: str) -> AgentState:
        """Return the newest state of a conversation; empty for an unknown one."""
        return cast("AgentState", (await self._graph.aget_state(_make_config(thread))).values)

    async def pending(self, thread: str) -> Interrupt | None:
        """Return what a conversation waits for: the question, and the id that a reply to it names."""
        return _find_waiting(await self._graph.aget_state(_make_config(thread)))

    async def take(self, run: AgentRun, deps: Deps) -> GraphResult:
        """Take a run as far as it goes, without repeating what is done already."""
        if run.is_new:
            return await self._run_graph(_make_initial_state(run, deps.code, self._clock()), run.thread, deps)
        snapshot = await self._graph.aget_state(_make_config(run.thread))
        waiting = _find_waiting(snapshot)
        own = _is_of(snapshot, run, deps.code)
        if snapshot.values.get("run_id") == run.id and not _is_unfinished(snapshot):
            return GraphResult(state=cast("AgentState", snapshot.values))
        if waiting is not None and run.reply is not None and run.reply_to == waiting.id:
            return await self._run_graph(_make_resume_command(snapshot, run, deps.code), run.thread, deps)
        if own and waiting is not None:
            return GraphResult(state=cast("AgentState", snapshot.values), request=waiting.value)
        given = None if own else _make_initial_state(run, deps.code, self._clock())
        return await self._run_graph(given, run.thread, deps)

    async def abandon(self, thread: str, run_id: str) -> bool:
        """Close an interrupted run, if it is the conversation's newest, so that nothing of it is left to resume.

        Returns whether it was the newest.
        """
        config = _make_config(thread)
        snapshot = await self._graph.aget_state(config)
        if not _is_unfinished(snapshot) or snapshot.values.get("run_id") != run_id:
            return False
        changes: AgentState = {**reset_turn(cast("AgentState", snapshot.values)), "user_query": "", "run_id": ""}
        await self._graph.aupdate_state(config, changes, as_node="conversation_memory")
        return True

    async def _run_graph(self, given: GraphInput, thread: str, deps: Deps) -> GraphResult:
        from langgraph.errors import GraphRecursionError

        state: AgentState = {}
        request: Mapping[str, Any] | None = None
        steps = self._graph.astream(
            given, _make_config(thread), context=deps, durability="sync", stream_mode=["updates", "values"]
        )
        try:
            async with self._saver.defer_checkpoints(thread), aclosing(steps) as stream:  # type: ignore[type-var]  # an async generator, typed as an iterator
                async for part in stream:
                    mode, data = cast("tuple[str, dict[str, Any]]", part)
                    if mode == "values":
                        state = cast("AgentState", data)
                    elif (interrupts := data.get("__interrupt__")) is not None:
                        request = interrupts[0].value
                    else:
                        for node, changes in data.items():
                            deps.emit("step_end", node=node, changes=changes or {})
        except GraphRecursionError as error:
            raise TurnTooLong(_TOO_LONG) from error
        return GraphResult(state=state, request=request)


def _make_initial_state(run: AgentRun, code: PinnedCommit, now: float) -> AgentState:
    return {
        "user_query": run.question,
        "asked_at": now,
        "repository": code.repository,
        "commit": code.commit.sha,
        "commits": code.commits if isinstance(code, JoinedCode) else {},
        "run_id": run.id,
    }


def _find_waiting(snapshot: StateSnapshot) -> Interrupt | None:
    """Return what a node waits for; after the reply it keeps the question until its step is saved."""
    waiting = (one for task in snapshot.tasks if task.name in snapshot.next for one in task.interrupts)
    return next(waiting, None)


def _is_unfinished(snapshot: StateSnapshot) -> bool:
    """Whether there is something left to do; `next` leaves out a node whose writes are saved and its step is not."""
    return bool(snapshot.tasks)


def _is_of(snapshot: StateSnapshot, run: AgentRun, code: PinnedCommit) -> bool:
    """Whether the checkpoint is of this run; what was read at another commit is no evidence for this one."""
    values = snapshot.values
    return values.get("run_id") == run.id and (values.get("commit") == code.commit.sha or bool(snapshot.interrupts))


def _make_resume_command(snapshot: StateSnapshot, run: AgentRun, code: PinnedCommit) -> Command[Any]:
    from langgraph.types import Command

    changes: AgentState = {"run_id": run.id, "asked_at": snapshot.values.get("asked_at", run.started_at)}
    if snapshot.values.get("commit") != code.commit.sha:
        commits = code.commits if isinstance(code, JoinedCode) else {}
        changes |= {"commit": code.commit.sha, "commits": commits, "retrieved": [], "expanded": [], "shown": []}
    return Command(resume=run.reply, update=changes)


def _make_config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION_LIMIT}


def clip_question(question: str) -> str:
    """Cut to just beyond what the gateway accepts, in a form that every store takes."""
    text = fit_text(question)
    return make_storable(clip(question) if text is None else text)


def make_answer(state: AgentState, code: CodeSearch, seconds: float) -> Answer:
    """Return the answer of a turn that went to its end, at the commit that it was read at."""
    commit = state.get("commit") or code.commit.sha
    is_joined = isinstance(code, JoinedCode)
    return Answer(
        text=state.get("final_answer", ""),
        citations=tuple(_make_citation(ref, code, commit, state) for ref in state.get("citations", [])),
        repository=code.repository,
        commit="" if is_joined else commit,
        commits=state.get("commits") or code.commits if isinstance(code, JoinedCode) else {},
        missing=code.missing if isinstance(code, JoinedCode) else {},
        intent=state.get("intent", "new_question"),
        route=name_route(state),
        model=state.get("answer_model") or None,
        seconds=seconds,
        searched=tuple(state.get("retrieval_metadata", make_empty_metadata())["searched"]),
        found=state.get("found", False),
    )


def _make_citation(ref: CitationRef, code: CodeSearch, commit: str, state: AgentState) -> Citation:
    """Return a citation as its repository knows it, linked at the commit that was read there."""
    repository, path = "", ref["path"]
    if isinstance(code, JoinedCode):
        repository, path = code.labels.split(path) or (ref.get("repository", ""), path)
        commit = state.get("commits", {}).get(repository, "")
    at = ref.get("commit", "") or commit
    return Citation(
        mark=ref["mark"],
        repository=repository,
        path=path,
        start_line=ref["start_line"],
        end_line=ref["end_line"],
        commit=at,
        url=code.permalink(to_location(ref), at),
    )


def make_unanswered(sentence: str, route: str, code: CodeSearch | None = None, *, seconds: float = 0.0) -> Answer:
    """Return the answer of a turn that did not come to its end: failed, stopped or paused."""
    is_joined = isinstance(code, JoinedCode)
    return Answer(
        text=sentence,
        citations=(),
        repository=code.repository if code is not None else "",
        commit=code.commit.sha if code is not None and not is_joined else "",
        commits=code.commits if isinstance(code, JoinedCode) else {},
        intent="new_question",
        route=route,
        model=None,
        seconds=seconds,
    )


def format_pause_question(request: Mapping[str, Any]) -> str:
    """Write what a paused turn asks of the person."""
    if request.get("kind") == "clarify":
        return str(request.get("question", ""))
    steps: Sequence[Any] = request.get("steps", ())
    listed = [
        f"{number}. {format_code_span(str(step), longest=300)}" for number, step in enumerate(steps[:_MAX_SHOWN], 1)
    ]
    calls = int(request.get("model_calls", 0))
    cost = f" It may take up to {calls} calls of the language model." if calls else ""
    return "\n".join([f"This needs your approval.{cost}", "", *listed, "", "Reply `approve` or `abort`."])
