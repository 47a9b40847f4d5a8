"""The graph of a goal run: plan, act, evaluate, and a person where one is to be asked; and what takes a run through it.

START -> plan -> act -> evaluate -> END
           |      calls?   ^  |  reached, used up
           +-- no calls ---+  +--> human_check -> plan or END
           ^                  |
           +---- else --------+
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from agent.goals.goal import GoalDeps, GoalState
from agent.goals.goal_nodes import act, evaluate, human_check, plan
from agent.runs.graph_runner import GraphOutcome, make_config, open_graph, stream_graph

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    GoalGraph = StateGraph[GoalState, GoalDeps, GoalState, GoalState]
    from agent.persistence.conversation_saver import ConversationSaver
    from agent.persistence.evidence_store import RunClaim


def route_after_plan(state: GoalState) -> Literal["act", "evaluate"]:
    """Make the calls, if there are any."""
    return "act" if state.get("pending_tool_calls") else "evaluate"


def route_after_evaluate(state: GoalState) -> Literal["human_check", "plan", "__end__"]:
    """End if the goal is reached or a limit is; else continue, after a person's word if required."""
    if state.get("goal_achieved") or state.get("ended_by"):
        return "__end__"
    return "human_check" if state.get("hitl") else "plan"


def route_after_human_check(state: GoalState) -> Literal["plan", "__end__"]:
    """Continue unless the person has ended the run."""
    return "__end__" if state.get("is_aborted") else "plan"


def build_goal_graph() -> GoalGraph:
    """Return the graph, ready to compile with a checkpointer."""
    from langgraph.graph import START, StateGraph  # takes a second, which only a run is worth

    graph: GoalGraph = StateGraph(GoalState, context_schema=GoalDeps)
    graph.add_node("plan", plan)
    graph.add_node("act", act)
    graph.add_node("evaluate", evaluate)
    graph.add_node("human_check", human_check)

    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", route_after_plan)
    graph.add_edge("act", "evaluate")
    graph.add_conditional_edges("evaluate", route_after_evaluate)
    graph.add_conditional_edges("human_check", route_after_human_check)
    return graph


_NODES_OF_ITERATION = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalRun:
    """A run from its checkpoint, in a repository at a commit.

    `request` is its question to a person, `reply` their reply.
    """

    state: GoalState
    repository: str
    commit: str
    request: Mapping[str, Any] | None = None
    reply: str | None = None
    is_new: bool = False
    is_finished: bool = False


class GoalRunner:
    """The compiled graph over its checkpoints; a thread holds one run."""

    def __init__(self, saver: ConversationSaver) -> None:
        self._graph = build_goal_graph().compile()
        self._saver = saver

    async def find_run(self, thread: str) -> GoalRun | None:
        """Return the run of a thread; None if none has begun, or it was abandoned."""
        checkpoints, commits = await self._saver.find_newest(thread)
        async with open_graph(self._graph, self._saver) as graph:
            snapshot = await graph.aget_state(make_config(checkpoints))
        state = cast("GoalState", snapshot.values)
        if not state.get("run_id"):
            return None
        waiting = (one.value for task in snapshot.tasks if task.name in snapshot.next for one in task.interrupts)
        repository, commit = next(iter(commits.items()), ("", ""))
        return GoalRun(
            state=state,
            repository=repository,
            commit=commit,
            request=next(waiting, None),
            is_finished=not snapshot.tasks,
        )

    async def take(self, run: GoalRun, claim: RunClaim, deps: GoalDeps) -> GraphOutcome[GoalState]:
        """Take a run as far as it goes, without repeating finished steps."""
        from langgraph.types import Command

        if run.is_finished or (run.request is not None and run.reply is None):
            return GraphOutcome(state=run.state, request=run.request)
        reply: Command[Any] | None = Command(resume=run.reply) if run.reply is not None else None
        if run.is_new:
            await self._saver.note_commits(claim, {run.repository: run.commit})
        given = run.state if run.is_new else reply
        steps = _NODES_OF_ITERATION * run.state.get("max_iterations", 1) + _NODES_OF_ITERATION
        async with open_graph(self._graph, self._saver) as graph:
            return await stream_graph(graph, given, claim.checkpoints, deps, durability="sync", nodes=steps)
