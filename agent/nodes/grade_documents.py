"""Keeps the hits that bear on the question, by score and by the question's words in them."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from agent.ports import CodeSearch, Deps
from agent.questions.terms import content_terms, terms_in
from agent.state import AgentState, EvidenceRef, no_metadata
from indexer.errors import IndexerError

KEEP_SHARE = 0.25  # of the best hit's score
CLEAR_SHARE = 0.25  # of the question's words, found in one hit
MAX_GRADED = 8


async def grade_documents(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Drop hits far below the best, and say whether any of them clearly fits.

    Reads retrieved, retrieval_metadata, cleaned_query. Writes retrieved, retrieval_metadata.
    """
    runtime.context.emit("step_start", node="grade_documents", stage="Weighing what was found")
    retrieved = state.get("retrieved", [])
    hits = [ref for ref in retrieved if ref["role"] == "hit"]
    best = max((ref["score"] for ref in hits), default=0.0)
    kept = [ref for ref in hits if best <= 0 or ref["score"] >= KEEP_SHARE * best][:MAX_GRADED]
    fits = await _any_fits(runtime.context.code, kept, content_terms(state.get("cleaned_query", "")))
    exact = [ref for ref in retrieved if ref["role"] != "hit"]
    metadata = state.get("retrieval_metadata", no_metadata())
    return {"retrieved": [*exact, *kept], "retrieval_metadata": {**metadata, "weak": not fits and not exact}}


async def _any_fits(code: CodeSearch, hits: Sequence[EvidenceRef], terms: frozenset[str]) -> bool:
    """Whether one hit says enough of the question's words; a question without words cannot be judged."""
    if not terms:
        return True
    for ref in hits:
        said = terms_in(f"{ref['path']} {ref['symbol']} {await _text(code, ref)}", terms)
        if said and len(said) >= CLEAR_SHARE * len(terms):
            return True
    return False


async def _text(code: CodeSearch, ref: EvidenceRef) -> str:
    try:
        return (await code.read(ref["path"], ref["start_line"], ref["end_line"])).text
    except IndexerError:  # a hit that cannot be read is judged by its name alone
        return ""
