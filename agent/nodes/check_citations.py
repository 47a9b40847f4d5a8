"""Lets no citation through that was not read in this turn at this commit."""

from __future__ import annotations

import logging

from langgraph.runtime import Runtime

from agent.answers.citations import check
from agent.ports import Deps
from agent.state import AgentState

log = logging.getLogger(__name__)


async def check_citations(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Keep, repair or drop each citation, and make marks and list agree.

    Reads final_answer, citations, retrieved, expanded. Writes final_answer, citations.
    """
    deps = runtime.context
    deps.emit("step_start", node="check_citations", stage="Checking the citations")
    evidence = [*state.get("retrieved", []), *state.get("expanded", [])]
    checked = await check(state.get("final_answer", ""), state.get("citations", []), evidence, deps.code)
    if checked.dropped:
        log.warning("%d citations did not hold and were dropped", checked.dropped)
    return {"final_answer": checked.text, "citations": checked.citations}
