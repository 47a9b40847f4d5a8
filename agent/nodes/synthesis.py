"""Writes the answer, by a model from the evidence or by quoting the best places, and checks its citations."""

from __future__ import annotations

import logging
from functools import partial

from agent.answering.beginning import describe_absent, find_last_turn, rank_evidence
from agent.answering.claim_mending import mend_claims
from agent.answering.claim_reading import read_again
from agent.answering.model_answer import ModelAnswer, find_subject, stream_answer
from agent.answers.answer_parts import AnswerBuilder, AnswerContext
from agent.citations.citation_check import examine_citations
from agent.errors import ModelError
from agent.evidence.refs import make_cited_ref
from agent.evidence.requests import decide_retrieval
from agent.guard.reading_tools import harden, note_flags
from agent.kinds.part_answers import answer_parts, write_answer
from agent.ports import ChatModel, Deps, Runtime
from agent.prompts.answer_prompts import (
    describe_material,
    format_answer_rules,
    load_conventions,
    load_overview,
    make_messages,
)
from agent.prompts.prompt_evidence import (
    EvidenceNumbers,
    collect_flags,
    format_tool_results,
    list_exhibits,
    list_history_facts,
    load_prompt_evidence,
)
from agent.questions.intent import is_repeat_request, is_rewording_request
from agent.questions.question_parts import split_questions
from agent.questions.terms import find_content_terms
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState, EvidenceRef, make_empty_metadata, to_location

NO_REWORDING = "*I can't rephrase without a language model, and none is set up. My last answer again:*"

log = logging.getLogger(__name__)


async def synthesis(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Write the answer from the evidence of the turn, and fall back to quoting it if a model fails.

    Reads error, shown, lookup_query, cleaned_query, intent, router_output, retrieved, expanded,
    retrieval_metadata, findings, tool_history, conversation_history, flagged, skip, codebase_tree.
    Writes final_answer, answer_model, citations, shown, flagged, main_symbol, main_kind, more, and
    retrieved if the answer read more or repeats the last one.
    """
    deps = runtime.context
    deps.emit("step_start", node="synthesis", stage="Writing the answer")
    is_follow_up = state.get("intent") == "follow_up"
    if is_follow_up and (deps.models.main is None or is_repeat_request(state.get("cleaned_query", ""))):
        is_reworded = is_rewording_request(state.get("cleaned_query", ""))
        return _repeat_answer(state, deps, note=NO_REWORDING if is_reworded else "")
    question = state.get("lookup_query") or state.get("cleaned_query", "")
    material = AnswerContext(
        deps=deps,
        question=question,
        terms=find_content_terms(question),
        decision=state.get("router_output") or decide_retrieval([], fast_path=False, reasoning="nothing was routed"),
        retrieved=state.get("retrieved", []),
        expanded=state.get("expanded", []),
        metadata=state.get("retrieval_metadata", make_empty_metadata()),
        skip=state.get("skip", 0),
    )
    if failure := state.get("error"):
        return await _answer_by_rules(state, material, deps, note=_format_note(failure))
    # A rule's question about history is answered from its facts, with all totals.
    if deps.models.main is None or (material.of("commit") and not state.get("tool_history")):
        return await _extract_answer(state, material, deps, note="")
    return await _write_answer(state, material, deps, deps.models.main)


async def _write_answer(state: AgentState, context: AnswerContext, deps: Deps, model: ChatModel) -> AgentState:
    numbers = EvidenceNumbers(state.get("shown", []))  # notes and results of tools name places by theirs
    refs, question = rank_evidence(state, deps), state.get("cleaned_query", "")
    shown = numbers.number_evidence(
        await load_prompt_evidence(deps, refs, question=question, facts=list_history_facts(state, deps))
    )
    flagged = note_flags(state.get("flagged", []), collect_flags(shown), deps, source="repository")
    deps = harden(deps) if flagged else deps
    told: AgentState = {**state, "codebase_tree": await load_overview(state, deps)}
    results, conventions = await format_tool_results(state, deps), await load_conventions(deps)
    absent = await describe_absent(state, deps)
    material = describe_material(told, deps, shown, results=results, conventions=conventions, absent=absent)
    messages = make_messages(format_answer_rules(deps), material, deps)
    answer = ModelAnswer(deps, messages, list_exhibits(numbers.places))
    try:
        reply = await stream_answer(model, [], answer, task="synthesis")
        text = answer.finish(reply)
    except ModelError as error:
        log.warning("the answer is quoted from the code: %s", error)
        answer.retract()
        return await _answer_by_rules(state, context, deps, note=_format_note(error.reason))
    subject = find_subject(state.get("retrieved", []))
    return {
        "final_answer": text,
        "answer_model": model.name,
        "citations": answer.citations,
        "shown": numbers.places,
        "flagged": flagged,
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
    }


async def _answer_by_rules(state: AgentState, material: AnswerContext, deps: Deps, *, note: str) -> AgentState:
    """Quote the code after a model failed; a question about the last answer gets that again."""
    if state.get("intent") == "follow_up":
        return _repeat_answer(state, deps, note=note)
    return await _extract_answer(state, material, deps, note=note)


def _list_previous_citations(state: AgentState, deps: Deps) -> list[EvidenceRef]:
    """Return the citations of the previous answer that the question leans on, if the code is unchanged."""
    last = find_last_turn(state)
    same_code = last["commit"] == deps.code.commit.sha
    return [make_cited_ref(to_location(citation)) for citation in last["citations"]] if same_code else []


async def _extract_answer(state: AgentState, material: AnswerContext, deps: Deps, *, note: str) -> AgentState:
    """Quote the best places."""
    draft = AnswerBuilder(deps)
    if note:
        draft.say(note)
    # About several repositories the answer has parts already, one for each.
    is_whole = bool(note or material.skip) or isinstance(deps.code, JoinedCode)
    parts = [] if is_whole else split_questions(state.get("cleaned_query", ""))
    refs = state.get("retrieved", [])
    if len(parts) > 1:
        answered = await answer_parts(draft, parts, deps)
        subject, refs = answered.subject, [*refs, *answered.refs]
    else:
        subject = await write_answer(draft, material)
    return {
        "final_answer": draft.text,
        "answer_model": "",
        "citations": draft.citations,
        "shown": [],
        "retrieved": [*refs, *draft.read],
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
        "more": subject.more,
        "is_pointing": subject.is_pointing,
    }


def _format_note(reason: str) -> str:
    return f"*Without the language model, because {reason}.*"


def _repeat_answer(state: AgentState, deps: Deps, *, note: str = "") -> AgentState:
    """Repeat the last answer; check its citations again, because the code may have changed."""
    last = find_last_turn(state)
    text = f"{note}\n\n{last['answer'].removeprefix(note).lstrip()}" if note else last["answer"]
    deps.emit("token", text=text)
    refs = _list_previous_citations(state, deps)
    return {
        "final_answer": text,
        "answer_model": "",
        "citations": last["citations"] if refs else [],
        "shown": [],
        "retrieved": refs,
        "main_symbol": last["symbol"],
        "main_kind": last["kind"],
    }


async def check_citations(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Keep or drop each citation, have doubtful ones reread and fixed, and make marks and list agree.

    Reads final_answer, answer_model, citations, shown, retrieved, expanded, cleaned_query. Writes
    final_answer and citations.
    """
    deps = runtime.context
    deps.emit("step_start", node="check_citations", stage="Checking the citations")
    by_model = bool(state.get("answer_model"))
    # A model has read what it was shown, and no more than that of any evidence.
    evidence = state.get("shown", []) if by_model else [*state.get("retrieved", []), *state.get("expanded", [])]
    text, citations = state.get("final_answer", ""), state.get("citations", [])
    past = {to_location(ref): _read_past(ref, deps) for ref in state.get("retrieved", []) if ref.get("commit")}
    examine = partial(
        examine_citations,
        citations=citations,
        evidence=evidence,
        code=deps.code,
        by_model=by_model,
        past=past,
        asked=state.get("cleaned_query", ""),
    )
    examined = await examine(text)
    readings = await read_again(examined, deps)
    mended = await mend_claims(examined, readings, deps)
    if mended.count:
        examined = await examine(mended.text)
    checked = examined.settle(readings, corrected=mended.count)
    if checked.dropped:
        log.warning("citations that could not be verified and were dropped: %d", checked.dropped)
    return {"final_answer": checked.text, "citations": checked.citations}


def _read_past(ref: EvidenceRef, deps: Deps) -> str:
    """Return the evidence from a commit, or from lines at another one."""
    told = [ref["doc"]] if ref["path"] else [ref["signature"], ref["symbol"], ref["doc"]]
    return deps.redact("\n".join(told))
