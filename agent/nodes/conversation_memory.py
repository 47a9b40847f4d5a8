"""Last node: stores the turn in the history and drops everything that only this turn needed."""

from __future__ import annotations

from langgraph.runtime import Runtime

from agent.ports import Deps
from agent.state import AgentState, PastTurn, reset_research
from agent.text.code_fences import find_open_fence

MAX_TURNS = 40
_LONGEST_QUESTION = 1000
_LONGEST_ANSWER = 4000


async def conversation_memory(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Store the turn, the last forty with the very first kept; a refused question is not remembered.

    Reads user_query, final_answer, citations, intent, main_symbol, main_kind, asked_at, turn_count,
    conversation_history. Writes conversation_history, turn_count, and empties user_query, retrieved, expanded and
    all that an investigation has left.
    """
    changes: AgentState = {**reset_research(), "user_query": "", "retrieved": [], "expanded": []}
    if state.get("is_blocked"):
        return changes
    history = [*state.get("conversation_history", []), _make_turn(state, runtime.context)]
    is_short = len(history) <= MAX_TURNS
    changes["conversation_history"] = history if is_short else [history[0], *history[-(MAX_TURNS - 1) :]]
    changes["turn_count"] = state.get("turn_count", 0) + 1
    return changes


def _make_turn(state: AgentState, deps: Deps) -> PastTurn:
    citations = state.get("citations", [])
    return {
        "question": deps.redact(state.get("user_query", ""))[:_LONGEST_QUESTION],
        "answer": _cut_answer(state.get("final_answer", "")),
        "intent": state.get("intent", "new_question"),
        "citations": citations,
        "symbol": state.get("main_symbol", ""),
        "kind": state.get("main_kind", ""),
        "path": citations[0]["path"] if citations else "",
        "repository": deps.code.repository,
        "commit": deps.code.commit.sha,
        "asked_at": state.get("asked_at", 0.0),
    }


def _cut_answer(answer: str) -> str:
    """Cut a long answer between paragraphs, where no code block is open."""
    if len(answer) <= _LONGEST_ANSWER:
        return answer
    kept: list[str] = []
    paragraphs = answer.split("\n\n")
    while paragraphs and sum(map(len, kept)) + len(paragraphs[0]) <= _LONGEST_ANSWER - 2 * len(kept) - 2:
        kept.append(paragraphs.pop(0))
    while kept and find_open_fence("\n\n".join(kept)):
        kept.pop()
    return "\n\n".join([*kept, "…"])
