"""The graph of a goal run: plan, act, evaluate, and a person where one is to be asked; nodes and edges, nothing else.

START -> plan -> act -> evaluate -> END
           |      calls?   ^  |  reached, used up
           +-- no calls ---+  +--> human_check -> plan or END
           ^                  |
           +---- else --------+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agent.goals.act import act
from agent.goals.evaluate import evaluate
from agent.goals.goal import GoalDeps
from agent.goals.goal_state import GoalState
from agent.goals.human_pause import human_check
from agent.goals.plan import plan

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    GoalGraph = StateGraph[GoalState, GoalDeps, GoalState, GoalState]


def route_after_plan(state: GoalState) -> Literal["act", "evaluate"]:
    """Make the calls, where there are any."""
    return "act" if state.get("pending_tool_calls") else "evaluate"


def route_after_evaluate(state: GoalState) -> Literal["human_check", "plan", "__end__"]:
    """End where the goal is reached or something is used up; else continue, where wanted after a person's word."""
    if state.get("goal_achieved") or state.get("ended_by"):
        return "__end__"
    return "human_check" if state.get("hitl") else "plan"


def route_after_human_check(state: GoalState) -> Literal["plan", "__end__"]:
    """Continue unless the person has ended the run."""
    return "__end__" if state.get("is_aborted") else "plan"


def build_goal_graph() -> GoalGraph:
    """Return the graph, ready to be compiled with a checkpointer."""
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
