"""Drops every citation of lines that were not read in this turn at this commit."""

from __future__ import annotations

import logging

from agent.citations.citation_check import verify_citations
from agent.ports import Deps, Runtime
from agent.state import AgentState

log = logging.getLogger(__name__)


async def check_citations(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Keep, repair or drop each citation, and make marks and list agree.

    Reads final_answer, answer_model, citations, shown, retrieved, expanded. Writes final_answer, citations.
    """
    deps = runtime.context
    deps.emit("step_start", node="check_citations", stage="Checking the citations")
    by_model = bool(state.get("answer_model"))
    # A model has read what it was shown, and no more than that of any evidence.
    evidence = state.get("shown", []) if by_model else [*state.get("retrieved", []), *state.get("expanded", [])]
    text, citations = state.get("final_answer", ""), state.get("citations", [])
    checked = await verify_citations(text, citations, evidence, deps.code, by_model=by_model)
    if checked.dropped:
        log.warning("citations that could not be verified and were dropped: %d", checked.dropped)
    return {"final_answer": checked.text, "citations": checked.citations}
