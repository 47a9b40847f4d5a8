"""Builds a turn's message to people: the answer, a question, or the reason why there is no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent.answers.extractive import describe_meanings
from agent.guard.size import clip, fit_text
from agent.ports import Answer, Citation, CodeSearch
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState, CitationRef, make_empty_metadata, name_route, to_location
from agent.text.escaping import format_code_span
from agent.text.storable import make_storable

_MAX_SHOWN = 12


def clip_question(question: str) -> str:
    """Cut a text to slightly more than the gateway accepts, in a storable form."""
    text = fit_text(question)
    return make_storable(clip(question) if text is None else text)


def make_answer(state: AgentState, code: CodeSearch, commits: Mapping[str, str], seconds: float) -> Answer:
    """Return the answer of a finished turn, at its commits."""
    is_joined = isinstance(code, JoinedCode)
    text, decision = state.get("final_answer", ""), state.get("router_output")
    meanings = decision.get("meanings", []) if decision is not None else []
    return Answer(
        text=text,
        meanings=tuple(meanings) if meanings and describe_meanings(meanings) in text else (),
        citations=tuple(_make_citation(ref, code, commits) for ref in state.get("citations", [])),
        repository=code.repository,
        commit="" if is_joined else commits.get(code.repository) or code.commit.sha,
        commits=commits or code.commits if isinstance(code, JoinedCode) else {},
        missing=code.missing if isinstance(code, JoinedCode) else {},
        intent=state.get("intent", "new_question"),
        route=name_route(state),
        model=state.get("answer_model") or None,
        seconds=seconds,
        searched=tuple(state.get("retrieval_metadata", make_empty_metadata())["searched"]),
        found=state.get("found", False),
        is_pointing=state.get("is_pointing", False),
    )


def _make_citation(ref: CitationRef, code: CodeSearch, commits: Mapping[str, str]) -> Citation:
    """Return a citation with its repository's path, linked at the commit read there."""
    repository, path, read_at = "", ref["path"], commits.get(code.repository) or code.commit.sha
    if isinstance(code, JoinedCode):
        repository, path = code.labels.split(path) or (ref.get("repository", ""), path)
        read_at = commits.get(repository, "")
    at = ref.get("commit", "") or read_at
    return Citation(
        mark=ref["mark"],
        repository=repository,
        path=path,
        start_line=ref["start_line"],
        end_line=ref["end_line"],
        commit=at,
        url=code.permalink(to_location(ref), at),
        is_elsewhere=bool(path and ref.get("commit")),
        cells="" if ref.get("commit") else code.name_cells(to_location(ref)),
    )


def make_unanswered(sentence: str, route: str, code: CodeSearch | None = None, *, seconds: float = 0.0) -> Answer:
    """Return the answer of a turn that did not finish: failed, stopped or paused."""
    is_joined = isinstance(code, JoinedCode)
    return Answer(
        text=sentence,
        citations=(),
        repository=code.repository if code is not None else "",
        commit=code.commit.sha if code is not None and not is_joined else "",
        commits=code.commits if isinstance(code, JoinedCode) else {},
        intent="new_question",
        route=route,
        model=None,
        seconds=seconds,
    )


def format_pause_question(request: Mapping[str, Any]) -> str:
    """Write the question of a paused turn."""
    if request.get("kind") == "clarify":
        return str(request.get("question", ""))
    steps: Sequence[Any] = request.get("steps", ())
    listed = [
        f"{number}. {format_code_span(str(step), longest=300)}" for number, step in enumerate(steps[:_MAX_SHOWN], 1)
    ]
    calls = int(request.get("model_calls", 0))
    cost = f" It may take up to {calls} calls of the language model." if calls else ""
    return "\n".join([f"This needs your approval.{cost}", "", *listed, "", "Reply `approve` or `abort`."])
