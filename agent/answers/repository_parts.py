"""The extractive answer about several repositories: from all at once, or a part for each where each was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.answers.extractive import write_extractive_answer
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.repositories.joined_code import CodeHome, JoinedCode
from agent.repositories.labels import unlabel_ref
from agent.state import EvidenceRef
from agent.text.escaping import format_code_span


async def write_answer(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the answer into the draft and return what it is about, of several parts the first."""
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
        # To go on with one of several lists, a person has to name its repository.
        subject = subject or replace(written, more=None)
    draft.begin_part("", "")
    if subject is None:
        return await write_extractive_answer(draft, material)
    if without:
        draft.say(f"Nothing in {', '.join(map(format_code_span, without))} fits this question.")
    return subject


def _has_what_is_asked(part: AnswerContext) -> bool:
    """Whether there is more than what a search has found in its stead."""
    return any(ref["role"] != "hit" for ref in part.retrieved)


def _take_part(material: AnswerContext, code: JoinedCode, home: CodeHome) -> AnswerContext:
    """Return what was found in one repository, as if it had been asked about alone."""

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
