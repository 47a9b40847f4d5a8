"""Takes a run through its graph: from the start, from a checkpoint, or on with a reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, cast

from agent.errors import TurnTooLong
from agent.graph import build_graph, list_steps
from agent.nodes.conversation_memory import add_turn
from agent.ports import CodeSearch, Deps, NodeRuntime
from agent.questions.attachments import NOTHING_ATTACHED, Attachments, make_excerpts
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState, PastTurn, reset_turn

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Command, StateSnapshot

    from agent.persistence.conversation_saver import ConversationSaver
    from agent.persistence.evidence_store import RunClaim

    Graph = CompiledStateGraph[Any, Any, Any, Any]
    GraphInput = AgentState | Command[Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """A run's question to a person; the `id` is unique to this question."""

    id: str
    request: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRun:
    """One question on its way to an answer; `state` is how far it has come, and empty for a new one.

    `pause` is its question to a person until the step with the reply is saved, and `reply` the
    person's reply to the newest pause; `is_undecided` means neither yes nor no. Without a
    repository it is about the default one. `question` is empty once the run is over. `commits` are
    those of its state, by repository: its conversation has them, and no checkpoint.
    """

    id: str
    thread: str
    repositories: tuple[str, ...]
    question: str
    attachments: Attachments = NOTHING_ATTACHED
    reply: str | None = None
    is_undecided: bool = False
    pause: Pause | None = None
    state: AgentState = field(default_factory=AgentState)
    commits: Mapping[str, str] = field(default_factory=dict)
    is_finished: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person's reply."""
        return self.pause is not None and self.reply is None


TOO_LONG = "This question took too many steps without an answer. Ask for less at a time."

StateT = TypeVar("StateT", bound=Mapping[str, Any])
DepsT = TypeVar("DepsT", bound=Deps)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOutcome(Generic[StateT]):
    """The progress of a run: its state, and its question to a person if it waits for one."""

    state: StateT
    request: Mapping[str, Any] | None = None


@asynccontextmanager
async def open_graph(graph: Graph, saver: ConversationSaver) -> AsyncIterator[Graph]:
    """Open a graph over the checkpoints of conversations; raises `CheckpointError`."""
    async with saver.open_checkpoints() as checkpoints:
        yield graph.copy({"checkpointer": checkpoints})


async def stream_graph(
    graph: Graph,
    given: StateT | Command[Any] | None,
    checkpoints: str,
    deps: Deps,
    *,
    durability: Literal["sync", "exit"],
    nodes: int,
) -> GraphOutcome[StateT]:
    """Run a graph and report each step; `TurnTooLong` if it takes too many nodes.

    Each step is saved before the next begins, or only the last one if repeating the run costs
    nothing.
    """
    from langgraph.errors import GraphRecursionError

    state: Mapping[str, Any] = {}
    request: Mapping[str, Any] | None = None
    parts = graph.astream(
        given, make_config(checkpoints, nodes), context=deps, durability=durability, stream_mode=["updates", "values"]
    )
    try:
        async with aclosing(parts) as stream:  # type: ignore[type-var]  # an async generator, typed as an iterator
            async for part in stream:
                mode, data = cast("tuple[str, dict[str, Any]]", part)
                if mode == "values":
                    state = data
                elif (interrupts := data.get("__interrupt__")) is not None:
                    request = interrupts[0].value
                else:
                    for node, changes in data.items():
                        deps.emit("step_end", node=node, changes=changes or {})
    except GraphRecursionError as error:
        raise TurnTooLong(TOO_LONG) from error
    return GraphOutcome(state=cast("StateT", state), request=request)


def make_config(checkpoints: str, nodes: int = 1) -> RunnableConfig:
    """Name a checkpoint thread to the graph, which may take so many nodes."""
    return {"configurable": {"thread_id": checkpoints}, "recursion_limit": nodes}


GraphResult = GraphOutcome[AgentState]


class SingleTurnRunner:
    """Walks the graph once, for a question without a conversation: saves nothing, and no model may pause it.

    LangGraph would take a second to import, several times as long as the answer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    async def state(self, thread: str) -> AgentState:  # noqa: ARG002
        """Return nothing: no conversation is remembered."""
        return {}

    async def find_run(self, thread: str) -> None:  # noqa: ARG002
        """Return None: no run is remembered."""
        return

    async def take(self, run: AgentRun, deps: Deps, claim: RunClaim) -> GraphResult:  # noqa: ARG002
        """Take a run to its end."""
        state = await asyncio.to_thread(_make_initial_state, run, self._clock())
        steps = {step.name: step for step in list_steps()}
        name: str | None = next(iter(steps))
        for _ in range(deps.budget.ceilings.nodes):
            if name is None:
                return GraphOutcome(state=state)
            changes = await steps[name].run(state, NodeRuntime(deps))
            state = {**state, **changes}
            deps.emit("step_end", node=name, changes=changes)
            name = steps[name].choose_next(state)
        raise TurnTooLong(TOO_LONG)

    async def abandon(self, claim: RunClaim, run_ids: Collection[str]) -> bool:  # noqa: ARG002
        """Return False: there is nothing to close."""
        return False

    async def remember(self, claim: RunClaim, turn: PastTurn) -> None:
        """Do nothing: no conversation is remembered."""


class GraphRunner:
    """The compiled graph over its checkpoints; callers must hold the conversation's lock."""

    def __init__(self, saver: ConversationSaver, clock: Callable[[], float]) -> None:
        self._graph = build_graph().compile()
        self._saver = saver
        self._clock = clock

    async def state(self, thread: str) -> AgentState:
        """Return the newest state of a conversation; empty for an unknown one."""
        snapshot, _ = await self._read(thread)
        return cast("AgentState", snapshot.values)

    async def find_run(self, thread: str) -> AgentRun | None:
        """Return the newest run of a conversation from its checkpoint."""
        snapshot, commits = await self._read(thread)
        state = cast("AgentState", snapshot.values)
        if not state.get("run_id"):
            return None
        # After the reply, a node keeps its question until its step is saved
        waiting = (one for task in snapshot.tasks if task.name in snapshot.next for one in task.interrupts)
        pause, reply = next((Pause(id=one.id, request=one.value) for one in waiting), None), state.get("reply")
        if reply is not None and pause is not None and reply["to"] != pause.id:  # it was to an earlier pause
            reply = None
        return AgentRun(
            id=state["run_id"],
            thread=thread,
            repositories=tuple(state.get("repositories", commits)),
            question=state.get("user_query", ""),
            reply=reply["text"] if reply is not None else None,
            pause=pause,
            state=state,
            commits=commits,
            is_finished=not snapshot.tasks,
        )

    async def take(self, run: AgentRun, deps: Deps, claim: RunClaim) -> GraphResult:
        """Take a run as far as it goes, without repeating finished steps."""
        if run.is_finished or run.is_waiting:
            return GraphOutcome(state=run.state, request=run.pause.request if run.pause is not None else None)
        commits = list_commits(deps.code)
        has_moved = run.commits != commits
        given = await asyncio.to_thread(self._make_input, run, has_moved=has_moved)  # it reads what is attached
        if has_moved:  # until a step of a run that had begun is saved, what is there is of no known commit
            await self._saver.note_commits(claim, {} if run.state else commits)
        durability: Literal["sync", "exit"] = "exit" if deps.models.main is None else "sync"
        async with open_graph(self._graph, self._saver) as graph:
            outcome = await stream_graph(
                graph, given, claim.checkpoints, deps, durability=durability, nodes=deps.budget.ceilings.nodes
            )
        if has_moved and run.state:
            await self._saver.note_commits(claim, commits)
        return outcome

    def _make_input(self, run: AgentRun, *, has_moved: bool) -> GraphInput:
        """Return the graph's input; evidence read at another commit is dropped."""
        if run.pause is not None and run.reply is not None:
            from langgraph.types import Command

            changes: AgentState = {"run_id": run.id, "reply": {"to": run.pause.id, "text": run.reply}}
            if has_moved:
                changes = {**changes, "retrieved": [], "expanded": [], "shown": []}
            return Command(resume=run.reply, update=changes)
        return _make_initial_state(run, self._clock()) if has_moved else None

    async def abandon(self, claim: RunClaim, run_ids: Collection[str]) -> bool:
        """Close an interrupted run if it is the conversation's newest, so that it cannot be resumed.

        Returns whether it was the newest; raises `CheckpointOvertaken` if the claim is not.
        """
        snapshot, _ = await self._read(claim.thread)
        if not snapshot.tasks or snapshot.values.get("run_id") not in run_ids:
            return False
        await self._close(claim, cast("AgentState", snapshot.values))
        return True

    async def remember(self, claim: RunClaim, turn: PastTurn) -> None:
        """Add a turn from outside the graph to a conversation, and end any waiting for a person."""
        state = await self.state(claim.thread)
        await self._close(claim, state, **add_turn(state, turn))

    async def _close(self, claim: RunClaim, state: AgentState, **more: Unpack[AgentState]) -> None:
        """End a conversation's current turn, as its last node would."""
        left: AgentState = {"user_query": "", "attached": [], "images": [], "run_id": "", "reply": None}
        changes: AgentState = {**reset_turn(state), **left, **more}
        async with open_graph(self._graph, self._saver) as graph:
            await graph.aupdate_state(make_config(claim.checkpoints), changes, as_node="conversation_memory")

    async def _read(self, thread: str) -> tuple[StateSnapshot, Mapping[str, str]]:
        """Return the newest checkpoint of a conversation, and its run's commits."""
        checkpoints, commits = await self._saver.find_newest(thread)
        async with open_graph(self._graph, self._saver) as graph:
            return await graph.aget_state(make_config(checkpoints)), commits


def _make_initial_state(run: AgentRun, now: float) -> AgentState:
    return {
        "user_query": run.question,
        "attached": run.state.get("attached") or make_excerpts(run.attachments.texts),
        "images": run.state.get("images") or [image.name for image in run.attachments.images],
        "asked_at": now,
        "repositories": list(run.repositories),
        "run_id": run.id,
        "reply": None,
    }


def list_commits(code: CodeSearch) -> Mapping[str, str]:
    """Return the commit of each repository."""
    return code.commits if isinstance(code, JoinedCode) else {code.repository: code.commit.sha}
