"""Answers in parts, without a model: one for each question of a message, or for each of several repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.answers.answer_parts import AnswerBuilder, AnswerContext, AnswerSubject
from agent.answers.extractive import write_extractive_answer
from agent.evidence.rule_router import route_by_rules
from agent.kinds.fetching import try_fetch
from agent.ports import Deps
from agent.questions.follow_ups import Antecedent, is_pointing_back, resolve_references
from agent.questions.terms import find_content_terms
from agent.repositories.joined_code import CodeHome, JoinedCode
from agent.repositories.labels import unlabel_ref
from agent.state import EvidenceRef, RetrievalMetadata, make_empty_metadata
from agent.text.escaping import format_code_span, format_quote

_LONGEST = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class PartAnswers:
    """The evidence of the answers, and the subject of the first."""

    refs: tuple[EvidenceRef, ...]
    subject: AnswerSubject


async def answer_parts(draft: AnswerBuilder, questions: Sequence[str], deps: Deps) -> PartAnswers:
    """Write an answer to each question below it; "it" is the subject of the previous answer."""
    refs: list[EvidenceRef] = []
    first = subject = AnswerSubject()
    is_pointing = True
    for question in questions:
        asked = _resolve_question(question, subject) if question != questions[0] else question
        draft.say(f"**{format_quote(question, longest=_LONGEST)}**")
        if not asked:
            draft.say("It is not clear what this refers to. Ask it separately, with the name.")
            continue
        material = await _gather_material(asked, deps)
        refs += material.retrieved
        subject = await write_extractive_answer(draft, material)
        first = first if first.symbol else subject
        is_pointing = is_pointing and subject.is_pointing
    subject = AnswerSubject(symbol=first.symbol, kind=first.kind, is_pointing=is_pointing)
    return PartAnswers(refs=tuple(refs), subject=subject)


def _resolve_question(question: str, subject: AnswerSubject) -> str:
    """Replace "it" in a question by the previous subject; empty if there is none."""
    if not is_pointing_back(question):
        return question
    before = Antecedent(symbol=subject.symbol, kind=subject.kind, path="")
    return resolve_references(question, before) if subject.symbol else ""


async def _gather_material(question: str, deps: Deps) -> AnswerContext:
    decision = await route_by_rules(question, deps.code)
    found = await asyncio.gather(*(try_fetch(deps.code, request) for request in decision["requests"]))
    metadata: RetrievalMetadata = {
        **make_empty_metadata(),
        "searched": [request["query"] for request in decision["requests"]],
        "failures": [failure for one in found for failure in one.failures],
        "totals": {name: total for one in found for name, total in one.totals.items()},
        "facts": {name: fact for one in found for name, fact in one.facts.items()},
    }
    return AnswerContext(
        deps=deps,
        question=question,
        terms=find_content_terms(question),
        decision=decision,
        retrieved=[ref for one in found for ref in one.refs],
        expanded=[ref for one in found for ref in one.around],
        metadata=metadata,
    )


async def write_answer(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the answer into the draft and return its subject, that of the first of several parts."""
    code = material.deps.code
    if not isinstance(code, JoinedCode) or not any(one.get("repository") for one in material.decision["requests"]):
        return await write_extractive_answer(draft, material)
    subject: AnswerSubject | None = None
    without: list[str] = []
    parts = [(home, _take_part(material, code, home)) for home in code.list_homes("")]
    is_found = any(_has_what_is_asked(part) for _, part in parts)
    for home, part in parts:
        if not part.retrieved or (is_found and not _has_what_is_asked(part)):
            without.append(home.repository)
            continue
        draft.begin_part(home.repository, home.label)
        draft.say(f"In {format_code_span(home.repository)}:")
        written = await write_extractive_answer(draft, part)
        # To continue one of several lists, a person has to name its repository.
        subject = subject or replace(written, more=None)
    draft.begin_part("", "")
    if subject is None:
        return await write_extractive_answer(draft, material)
    if without:
        draft.say(f"No match in {', '.join(map(format_code_span, without))}.")
    return subject


def _has_what_is_asked(part: AnswerContext) -> bool:
    """Whether more was found than a substitute search."""
    return any(ref["role"] != "hit" for ref in part.retrieved)


def _take_part(material: AnswerContext, code: JoinedCode, home: CodeHome) -> AnswerContext:
    """Return the findings of one repository, as if it had been asked about alone."""

    def take(refs: Sequence[EvidenceRef]) -> list[EvidenceRef]:
        return [unlabel_ref(ref, home.label) for ref in code.labels.select(refs, home.repository)]

    notes = material.metadata.get("by_repository", {}).get(home.repository, {"totals": {}, "facts": {}})
    requests = [one for one in material.decision["requests"] if one.get("repository") == home.repository]
    return replace(
        material,
        deps=replace(material.deps, code=home.code),
        decision={**material.decision, "requests": requests},
        retrieved=take(material.retrieved),
        expanded=take(material.expanded),
        metadata={**material.metadata, **notes},
        skip=0,
    )
