"""Takes a compiled graph from step to step, with its checkpoints held back as long as that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agent.errors import TurnTooLong
from agent.limits import RECURSION_LIMIT
from agent.ports import Deps

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Command

    from agent.persistence.conversation_saver import ConversationSaver
    from agent.persistence.evidence_store import RunClaim

TOO_LONG = "This question went round too often without an answer. Ask for less at a time."

StateT = TypeVar("StateT", bound=Mapping[str, Any])
DepsT = TypeVar("DepsT", bound=Deps)


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphOutcome(Generic[StateT]):
    """How far a run has come: its state, and what it asks of a person where it waits for one."""

    state: StateT
    request: Mapping[str, Any] | None = None


async def stream_graph(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    saver: ConversationSaver,
    given: StateT | Command[Any] | None,
    thread: str,
    deps: Deps,
    *,
    claim: RunClaim | None = None,
    steps: int = RECURSION_LIMIT,
) -> GraphOutcome[StateT]:
    """Run a graph as far as it goes, and tell of each step; `TurnTooLong` where it takes more steps than it may.

    Its steps are saved under the claim, and for a thread that is not claimed yet, under a new one.
    """
    from langgraph.errors import GraphRecursionError

    state: Mapping[str, Any] = {}
    request: Mapping[str, Any] | None = None
    parts = graph.astream(
        given, make_config(thread, steps), context=deps, durability="sync", stream_mode=["updates", "values"]
    )
    try:
        async with saver.defer_checkpoints(thread, claim), aclosing(parts) as stream:  # type: ignore[type-var]  # an async generator, typed as an iterator
            saver.flush_next(thread)  # a run is known before anything else of it is kept
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


def make_config(thread: str, steps: int = RECURSION_LIMIT) -> RunnableConfig:
    """Name a conversation to the checkpointer."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": steps}
