"""Writes the answer: a model from the evidence, or else the best places in the code, quoted and cited."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from langgraph.runtime import Runtime

from agent.answers.draft import Draft
from agent.answers.exhibits import Exhibit, exhibit, flags_of
from agent.answers.extract import Material, Subject, write
from agent.answers.model_text import MarkMaker
from agent.answers.scribe import Scribe
from agent.errors import AnswerCut, AnswerEmpty, AnswerLeaked, ModelError
from agent.evidence.refs import lines_ref
from agent.evidence.requests import decision
from agent.guard.hardening import harden, note_flags
from agent.guard.leaks import says_instructions, says_masked
from agent.ports import ChatModel, Deps
from agent.prompts import synthesis_messages
from agent.questions.intent import asks_to_repeat
from agent.questions.terms import content_terms
from agent.research.prompts import findings_text
from agent.state import AgentState, EvidenceRef, no_metadata, where

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MAX_RESULTS = 6000  # characters of what tools said
CUT = "*(The answer was cut here: it had reached the limit of its length.)*"

log = logging.getLogger(__name__)


async def synthesis(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Write the answer from the evidence of the turn, and fall back to quoting it where a model fails.

    Reads cleaned_query, intent, router_output, retrieved, expanded, retrieval_metadata, findings, tool_history,
    conversation_history, flagged. Writes final_answer, answer_model, citations, shown, flagged, main_symbol,
    main_kind, and retrieved when the last answer is repeated.
    """
    deps = runtime.context
    deps.emit("step_start", node="synthesis", stage="Writing the answer")
    is_follow_up = state.get("intent") == "follow_up"
    if is_follow_up and (deps.models.main is None or asks_to_repeat(state.get("cleaned_query", ""))):
        return _repeated(state, deps)
    material = _material(state, deps)
    if deps.models.main is None:
        return await _extracted(material, deps, note="", said=False)
    return await _written(state, material, deps, deps.models.main)


async def _written(state: AgentState, material: Material, deps: Deps, model: ChatModel) -> AgentState:
    shown = await exhibit(deps, _ranked(state, deps))
    flagged = note_flags(state.get("flagged", []), flags_of(shown), deps, source="repository")
    deps = harden(deps) if flagged else deps
    messages = await _messages(state, deps, shown)
    marks = MarkMaker(shown, deps.redact)
    scribe = Scribe(deps, marks, holds=deps.is_hardened, check=partial(_check, deps, messages, shown))
    try:
        await _stream(model, messages, scribe)
        text = scribe.finish()
        if not any(map(str.isalnum, text)):
            raise AnswerEmpty("The language model gave an empty answer.")
    except ModelError as error:
        log.warning("the answer is quoted from the code: %s", error)
        if state.get("intent") == "follow_up":
            return _repeated(state, deps, note=_note(error), said=scribe.has_said)
        return await _extracted(material, deps, note=_note(error), said=scribe.has_said)
    subject = _subject(material)
    return {
        "final_answer": text,
        "answer_model": model.name,
        "citations": marks.citations,
        "shown": [one.ref for one in shown],
        "flagged": flagged,
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
    }


def _check(deps: Deps, messages: Sequence[BaseMessage], shown: Sequence[Exhibit], text: str) -> None:
    """Refuse an answer that gives away what the model was told, or what was masked; code that says so may be quoted."""
    instructions = str(messages[0].text)
    if says_instructions(text, instructions, [one.text for one in shown]) or says_masked(text, deps.masked):
        raise AnswerLeaked("An answer was left out: it held instructions of the model, or a masked value.")


async def _stream(model: ChatModel, messages: Sequence[BaseMessage], scribe: Scribe) -> None:
    """Let the model write; an answer that is cut is kept, and says so."""
    is_cut = False
    try:
        async with aclosing(model.stream(messages, task="synthesis")) as pieces:
            async for piece in pieces:
                scribe.write(piece)
                if scribe.is_full:
                    is_cut = True
                    break
    except AnswerCut:
        is_cut = True
    if is_cut:
        scribe.close(CUT)


async def _messages(state: AgentState, deps: Deps, shown: Sequence[Exhibit]) -> list[BaseMessage]:
    is_about_talk = state.get("is_follow_up", False)
    history = state.get("conversation_history", []) if is_about_talk else []
    return synthesis_messages(
        deps.redact(state.get("cleaned_query", "")),
        shown,
        history=history,
        findings=findings_text(state.get("findings", {}), deps),
        results=await tool_results(state, deps),
        searched=state.get("retrieval_metadata", no_metadata())["searched"],
        hardened=deps.is_hardened,
    )


async def tool_results(state: AgentState, deps: Deps) -> str:
    """Return what the tools that the router chose have said, the newest first where there is no room for all."""
    records = [record for record in state.get("tool_history", []) if record["ok"]]
    if not records or state.get("findings"):
        return ""
    texts = await deps.evidence.texts(record["key"] for record in records)
    said = [f"{record['tool']}: {texts[record['key']]}" for record in reversed(records) if record["key"] in texts]
    return deps.redact("\n\n".join(said))[:MAX_RESULTS]


def _ranked(state: AgentState, deps: Deps) -> list[EvidenceRef]:
    """Return the evidence of the turn, what the findings speak of first; of a follow-up what was cited before."""
    refs = [*state.get("retrieved", []), *state.get("expanded", [])]
    if state.get("intent") == "follow_up":
        refs += _cited_before(state, deps)
    told = findings_text(state.get("findings", {}), deps)
    return sorted(refs, key=lambda ref: not (told and ref["path"] in told))


def _cited_before(state: AgentState, deps: Deps) -> list[EvidenceRef]:
    """Return what the last answer cited, where the code is still the same."""
    last = state["conversation_history"][-1]
    same_code = last["commit"] == deps.code.commit.sha
    return [lines_ref(where(citation), "lines") for citation in last["citations"]] if same_code else []


def _material(state: AgentState, deps: Deps) -> Material:
    question = state.get("cleaned_query", "")
    return Material(
        deps=deps,
        question=question,
        terms=content_terms(question),
        decision=state.get("router_output") or decision([], fast_path=False, reasoning="nothing was routed"),
        retrieved=state.get("retrieved", []),
        expanded=state.get("expanded", []),
        metadata=state.get("retrieval_metadata", no_metadata()),
    )


async def _extracted(material: Material, deps: Deps, *, note: str, said: bool) -> AgentState:
    """Quote the best places; text of a model that broke off is taken back."""
    if said:
        deps.emit("reset", text="")
    draft = Draft(deps)
    if note:
        draft.say(note)
    subject = await write(draft, material)
    return {
        "final_answer": draft.text,
        "answer_model": "",
        "citations": draft.citations,
        "shown": [],
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
    }


def _note(error: ModelError) -> str:
    return f"*Without the language model, because {error.reason}.*"


def _subject(material: Material) -> Subject:
    """Return what the question was about, for the next one's "it": a name looked up, else the best hit's."""
    ref = next(iter([*material.of("definition"), *material.retrieved]), None)
    return Subject(symbol=ref["symbol"], kind=ref["kind"]) if ref is not None else Subject()


def _repeated(state: AgentState, deps: Deps, *, note: str = "", said: bool = False) -> AgentState:
    """Give the last answer again; its citations are checked anew, the code may have moved on."""
    last = state["conversation_history"][-1]
    if said:
        deps.emit("reset", text="")
    text = f"{note}\n\n{last['answer']}" if note else last["answer"]
    deps.emit("token", text=text)
    refs = _cited_before(state, deps)
    return {
        "final_answer": text,
        "answer_model": "",
        "citations": last["citations"] if refs else [],
        "shown": [],
        "retrieved": refs,
        "main_symbol": last["symbol"],
        "main_kind": last["kind"],
    }
