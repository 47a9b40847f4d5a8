"""Last node: stores the turn in the history and drops everything that only this turn needed."""

from __future__ import annotations

from agent.guard.thread_quotes import split_background
from agent.ports import Answer, Deps, Runtime
from agent.questions.intent import find_small_talk
from agent.state import (
    AgentState,
    CitationRef,
    PastTurn,
    RetrievalMetadata,
    RouterDecision,
    make_empty_metadata,
    reset_research,
)
from agent.text.code_marks import find_open_fence

MAX_TURNS = 40
_MAX_QUESTION = 1000
_MAX_ANSWER = 4000


async def conversation_memory(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Store the turn, the last forty with the very first kept; a refused question is not remembered.

    Reads user_query, final_answer, citations, intent, main_symbol, main_kind, more, asked_at, turn_count,
    conversation_history, and what tells whether anything was found, by whom. Writes conversation_history, turn_count,
    found, and empties user_query, attached, images, reply, retrieved, expanded, shown and all that an investigation
    has left.
    """
    words: AgentState = {"user_query": "", "attached": [], "images": [], "reply": None}
    changes: AgentState = {**reset_research(state), **words, "retrieved": [], "expanded": [], "shown": []}
    changes["found"] = is_answer_found(state)
    if state.get("is_blocked"):
        return changes
    if not changes["found"] and state.get("intent") != "out_of_scope" and not state.get("is_aborted"):
        await runtime.context.code.coverage()  # which waits for newer commits that may have it
    return {**changes, **add_turn(state, _make_turn(state, runtime.context))}


def add_turn(state: AgentState, turn: PastTurn) -> AgentState:
    """Return the history of a conversation with one more turn; a repeated run appears once."""
    earlier = state.get("conversation_history", [])
    run = turn.get("run", "")
    history = [*(one for one in earlier if not run or one.get("run", "") != run), turn]
    is_short = len(history) <= MAX_TURNS
    return {
        "conversation_history": history if is_short else [history[0], *history[-(MAX_TURNS - 1) :]],
        "turn_count": state.get("turn_count", 0) + (len(history) > len(earlier)),
    }


def make_remembered_turn(question: str, answer: Answer, *, run_id: str, asked_at: float) -> PastTurn:
    """Make a turn from the result of a run outside the graph."""
    citations: list[CitationRef] = [
        {"mark": one.mark, "path": one.path, "start_line": one.start_line, "end_line": one.end_line}
        for one in answer.citations
    ]
    return {
        "question": question[:_MAX_QUESTION],
        "answer": _cut_answer(answer.text),
        "intent": answer.intent,
        "citations": citations,
        "symbol": "",
        "kind": "",
        "path": next((one["path"] for one in citations), ""),
        "repository": answer.repository,
        "commit": answer.commit,
        "asked_at": asked_at,
        "run": run_id,
    }


def is_answer_found(state: AgentState) -> bool:
    """Whether the turn found an answer; closest places and similar names do not count."""
    if state.get("is_blocked") or state.get("is_aborted"):
        return False
    match state.get("intent"):
        case "history_request" | "follow_up":
            return True
        case "out_of_scope":  # else the message pointed at something that nobody had spoken of
            return find_small_talk(state.get("cleaned_query", "")) not in {None, "chatter"}
    if state.get("mode") == "tools" and state.get("tool_history") and state.get("answer_model"):
        return bool(state.get("citations"))  # the first evidence is not what the answer cites
    metadata, decision = state.get("retrieval_metadata", make_empty_metadata()), state.get("router_output")
    if not state.get("citations") or metadata["weak"]:
        return False
    return decision is None or not (_is_text_missing(state, metadata) or _is_name_missing(decision, metadata))


def _is_text_missing(state: AgentState, metadata: RetrievalMetadata) -> bool:
    """Whether a quoted text appears nowhere, and the question has no other exact lookup."""
    is_said = bool(metadata["totals"].get("said")) or not metadata["totals"].get("quoted")
    return not is_said and all(ref["role"] == "hit" for ref in state.get("retrieved", []))


def _is_name_missing(decision: RouterDecision, metadata: RetrievalMetadata) -> bool:
    """Whether the question only names things that the repository neither defines nor uses."""
    unknown, totals = decision["unknown"], metadata["totals"]
    asked = {request["query"] for request in decision["requests"]}
    is_elsewhere = any(totals.get(place) for place in ("said", "mention", "attributes"))
    return bool(unknown) and asked <= {*unknown, " ".join(unknown)} and not is_elsewhere


def _make_turn(state: AgentState, deps: Deps) -> PastTurn:
    citations = state.get("citations", [])
    return {
        "question": deps.redact(split_background(state.get("user_query", ""))[0])[:_MAX_QUESTION],
        "answer": _cut_answer(state.get("final_answer", "")),
        "intent": state.get("intent", "new_question"),
        "citations": citations,
        "symbol": state.get("main_symbol", ""),
        "kind": state.get("main_kind", ""),
        "path": next((citation["path"] for citation in citations if citation["path"]), ""),
        "repository": deps.code.repository,
        "commit": deps.code.commit.sha,
        "asked_at": state.get("asked_at", 0.0),
        "more": state.get("more"),
    }


def _cut_answer(answer: str) -> str:
    """Cut a long answer between paragraphs, outside code blocks."""
    if len(answer) <= _MAX_ANSWER:
        return answer
    kept: list[str] = []
    paragraphs = answer.split("\n\n")
    while paragraphs and sum(map(len, kept)) + len(paragraphs[0]) <= _MAX_ANSWER - 2 * len(kept) - 2:
        kept.append(paragraphs.pop(0))
    while kept and find_open_fence("\n\n".join(kept)):
        kept.pop()
    return "\n\n".join([*kept, "…"])
