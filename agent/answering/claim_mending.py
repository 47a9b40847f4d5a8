"""Has the answering model fix or withdraw sentences that their lines do not confirm."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from agent.answering.claim_reading import make_case
from agent.citations.citation_check import CitedClaim, ExaminedAnswer, Readings
from agent.errors import ModelError
from agent.guard.leak_check import check_leaks
from agent.ports import Deps
from agent.prompts.answer_prompts import MEND, make_messages
from agent.prompts.model_text import clean_model_sentence
from agent.prompts.output_schemas import MendingOutput
from agent.text.citation_markers import find_markers, format_marker, replace_markers

MENDING_SECONDS = 8.0
MAX_SENTENCES = 12  # of one answer; further ones stay, and are marked
_MAX_SENTENCE = 600
_OPENING = re.compile(r"\s*(?:(?:[-*+>]|\d{1,4}[.)])\s+)?")  # of an entry of a list
_CLOSING = re.compile(r"[.!?:;\u3002\uff01\uff1f]*\Z")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class MendedAnswer:
    """An answer with its rewritten or withdrawn sentences, and their number."""

    text: str
    count: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sentence:
    """A sentence in its line, with its text, marks and lines."""

    line: int
    start: int
    text: str
    said: str
    marks: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


async def mend_claims(examined: ExaminedAnswer, readings: Readings, deps: Deps) -> MendedAnswer:
    """Ask once; if the model fails, is too slow or leaks something, keep the answer unchanged."""
    unchanged = MendedAnswer(text=examined.text)
    failed = await asyncio.to_thread(lambda: list(islice(_list_sentences(examined, readings, deps), MAX_SENTENCES)))
    if not failed or deps.models.main is None or deps.budget.is_low:
        return unchanged
    material: dict[str, str] = {}
    for number, one in enumerate(failed, 1):
        material |= {f"Sentence {number}": deps.redact(one.said), f"Lines of sentence {number}": "\n\n".join(one.lines)}
    messages = make_messages(MEND, material, deps)
    try:
        async with asyncio.timeout(min(MENDING_SECONDS, deps.budget.seconds_left)):
            form = await deps.models.main.generate_structured(messages, MendingOutput, task="check_citations")
        new = {one.number: clean_model_sentence(one.text[:_MAX_SENTENCE], deps.redact) for one in form.sentences}
        check_leaks(new.values(), messages, deps.masked)
    except (ModelError, TimeoutError) as error:
        log.warning("sentences that their lines do not show were not mended: %s", error or type(error).__name__)
        return unchanged
    changes = [(one, new[number]) for number, one in enumerate(failed, 1) if new.get(number, one.said) != one.said]
    text = _replace(examined.text, changes)
    return MendedAnswer(text=text, count=len(changes)) if any(map(str.isalnum, text)) else unchanged


def _list_sentences(examined: ExaminedAnswer, readings: Readings, deps: Deps) -> Iterator[_Sentence]:
    """Find the refuted sentences, except rows of tables, whose cells cannot be removed."""
    lines = examined.text.split("\n")
    groups: dict[tuple[int, int], list[CitedClaim]] = {}
    for one in examined.claims:
        groups.setdefault(one.mark.claim_id, []).append(one)
    for (line, start), claims in groups.items():
        refuted = [one for one in claims if one.key in readings and readings[one.key] is None]
        text = claims[0].mark.sentence
        is_there = lines[line].startswith(text, start) and not lines[line].lstrip().startswith("|")
        if refuted and is_there:
            said = replace_markers(text, [""] * len(find_markers(text)))
            cases = [make_case(one, examined, deps) for one in refuted]
            yield _Sentence(
                line=line,
                start=start,
                text=text,
                said=said[_count_opening(said) :].strip(),
                marks=list(dict.fromkeys(one.mark.number for one in claims)),
                lines=[lines for case in cases for what, lines in case.material.items() if what != "Claim"],
            )


def _replace(text: str, changes: Sequence[tuple[_Sentence, str]]) -> str:
    """Replace sentences, from the end; the marks of a sentence stay at its end."""
    lines: list[str | None] = [*text.split("\n")]
    for old, new in sorted(changes, key=lambda change: (change[0].line, change[0].start), reverse=True):
        line = lines[old.line] or ""
        opening = old.text[: _count_opening(old.text)]
        space = old.text[len(old.text.rstrip()) :]
        closing = _CLOSING.search(new)
        end = closing.start() if closing is not None else len(new)
        marks = "".join(map(format_marker, old.marks))
        written = f"{opening}{new[:end]} {marks}{new[end:]}{space}" if new else opening
        changed = line[: old.start] + written + line[old.start + len(old.text) :]
        lines[old.line] = changed if _count_opening(changed) < len(changed) else None
    return "\n".join(line for line in lines if line is not None)


def _count_opening(text: str) -> int:
    opening = _OPENING.match(text)
    return opening.end() if opening is not None else 0
