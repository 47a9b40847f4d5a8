"""Writes the answer: the best places in the code, quoted and cited, or the last answer once more."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.answers.draft import Draft
from agent.answers.extract import Material, write
from agent.evidence.refs import lines_ref
from agent.evidence.requests import decision
from agent.ports import Deps
from agent.questions.terms import content_terms
from agent.state import AgentState, no_metadata, where


async def synthesis(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Write the answer from the evidence of the turn.

    Reads cleaned_query, intent, router_output, retrieved, expanded, retrieval_metadata, conversation_history.
    Writes final_answer, citations, main_symbol, main_kind, and retrieved when the last answer is repeated.
    """
    deps = runtime.context
    deps.emit("step_start", node="synthesis", stage="Writing the answer")
    if state.get("intent") == "follow_up":
        return _repeated(state, deps)
    question = state.get("cleaned_query", "")
    material = Material(
        deps=deps,
        question=question,
        terms=content_terms(question),
        decision=state.get("router_output") or decision([], fast_path=False, reasoning="nothing was routed"),
        retrieved=state.get("retrieved", []),
        expanded=state.get("expanded", []),
        metadata=state.get("retrieval_metadata", no_metadata()),
    )
    draft = Draft(deps)
    subject = await write(draft, material)
    return {
        "final_answer": draft.text,
        "citations": draft.citations,
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
    }


def _repeated(state: AgentState, deps: Deps) -> AgentState:
    """Give the last answer again; its citations are checked anew, the code may have moved on."""
    last = state["conversation_history"][-1]
    deps.emit("token", text=last["answer"])
    same_code = last["commit"] == deps.code.commit.sha
    citations = last["citations"] if same_code else []
    return {
        "final_answer": last["answer"],
        "citations": citations,
        "retrieved": [lines_ref(where(citation), "lines") for citation in citations],
        "main_symbol": last["symbol"],
        "main_kind": last["kind"],
    }
