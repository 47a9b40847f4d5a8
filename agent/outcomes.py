"""What a turn came to, as the values that the world sees: answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.answers.markdown import format_code_span
from agent.ports import Answer, Citation, CodeSearch
from agent.state import AgentState, CitationRef, make_empty_metadata, name_route, to_location

STOPPED = "Stopped, as you asked."
_MAX_SHOWN = 12


def make_answer(state: AgentState, code: CodeSearch, seconds: float) -> Answer:
    """Return the answer of a turn that went to its end, at the commit that it was read at."""
    citations, commit = state.get("citations", []), state.get("commit") or code.commit.sha
    return Answer(
        text=state.get("final_answer", ""),
        citations=tuple(_citation(ref, commit, code.permalink(to_location(ref), commit)) for ref in citations),
        repository=code.repository,
        commit=commit,
        intent=state.get("intent", "new_question"),
        route=name_route(state),
        model=state.get("answer_model") or None,
        seconds=seconds,
        searched=tuple(state.get("retrieval_metadata", make_empty_metadata())["searched"]),
    )


def make_unanswered(
    sentence: str, route: str, *, repository: str = "", commit: str = "", seconds: float = 0.0
) -> Answer:
    """Return the answer of a turn that did not come to its end: failed, stopped or paused."""
    return Answer(
        text=sentence,
        citations=(),
        repository=repository,
        commit=commit,
        intent="new_question",
        route=route,
        model=None,
        seconds=seconds,
    )


def format_pause_question(request: Mapping[str, Any]) -> str:
    """Write what a paused turn asks of the person."""
    if request.get("kind") == "clarify":
        return str(request.get("question", ""))
    steps: Sequence[Any] = request.get("steps", ())
    listed = [
        f"{number}. {format_code_span(str(step), longest=300)}" for number, step in enumerate(steps[:_MAX_SHOWN], 1)
    ]
    calls = int(request.get("model_calls", 0))
    cost = f" It may take up to {calls} calls of the language model." if calls else ""
    return "\n".join([f"This needs your approval.{cost}", "", *listed, "", "Reply `approve` or `abort`."])


def _citation(ref: CitationRef, commit: str, url: str | None) -> Citation:
    return Citation(
        mark=ref["mark"],
        path=ref["path"],
        start_line=ref["start_line"],
        end_line=ref["end_line"],
        commit=commit,
        url=url,
    )
