"""Has a model reread doubtful citations, each claim with its lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from agent.citations.citation_check import CitedClaim, ExaminedAnswer, ReadingKey
from agent.citations.citation_fit import Doubt, Exhibit
from agent.errors import ModelError
from agent.evidence.refs import is_within
from agent.guard.evidence_check import find_orders
from agent.ports import ChatModel, Deps
from agent.prompts.answer_prompts import CHECK, make_messages
from agent.prompts.output_schemas import ClaimVerdict, ReadingOutput
from agent.text.citation_markers import MARKER
from agent.text.escaping import replace_control_characters, to_one_line
from indexer.types import Location

READING_SECONDS = 2.0
MAX_CLAIMS = 40  # of one answer; further ones are not read again
CLAIMS_PER_CALL = 8
_MAX_CLAIM = 400  # characters
_ROOM = {"A": 900, "B": 500}  # characters of lines
_LONGEST_LINE = 160

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A claim with the lines that it cites (`A`) and those that best support it (`B`), if any."""

    cited: CitedClaim
    passages: Mapping[str, Exhibit]
    material: Mapping[str, str]


async def read_again(examined: ExaminedAnswer, deps: Deps) -> dict[ReadingKey, Location | None]:
    """Return verdicts on the doubtful claims; none without a model, room or time."""
    model = deps.models.check
    if model is None or examined.fit is None or deps.budget.is_low:
        return {}
    # Weighing a claim against all that was read takes tens of milliseconds, in which others would wait.
    cases = await asyncio.to_thread(lambda: list(islice(_list_cases(examined, deps), MAX_CLAIMS)))
    batches = [cases[at : at + CLAIMS_PER_CALL] for at in range(0, len(cases), CLAIMS_PER_CALL)]
    answers = await asyncio.gather(*(_ask(batch, model, deps) for batch in batches))
    return {key: place for answer in answers for key, place in answer.items()}


def _list_cases(examined: ExaminedAnswer, deps: Deps) -> Iterator[Case]:
    """Make a case of each claim that is doubtful or cites nothing; models never see text that gives orders."""
    seen: set[ReadingKey] = set()
    for one in examined.claims:
        if one.key not in seen and (one.doubt is not Doubt.NONE or one.place is None):
            seen.add(one.key)
            case = make_case(one, examined, deps)
            if case.passages and not find_orders("\n".join(case.material.values()).split("\n")):
                yield case


def make_case(cited: CitedClaim, examined: ExaminedAnswer, deps: Deps) -> Case:
    """Choose and write down the lines for judging a claim."""
    assert examined.fit is not None  # noqa: S101  (nothing is in doubt where a model did not write)
    fit, claim = examined.fit, cited.mark
    own = fit.quote(cited.place) if cited.place is not None else None
    if own is not None and _cut(own, _ROOM["A"]) != own:
        own = fit.quote(fit.find_best_lines(claim, cited.place) or own.location)
    best = fit.find_best_lines(claim)
    other = fit.quote(best) if best is not None and not (own and is_within(best, own.location)) else None
    passages = {name: _cut(one, _ROOM[name]) for name, one in (("A", own), ("B", other)) if one is not None}
    sentence, words = (
        to_one_line(deps.redact(MARKER.sub("", text)), longest=_MAX_CLAIM) for text in (claim.sentence, claim.words)
    )
    said = sentence if words.rstrip(". ") == sentence.rstrip(". ") else f"{sentence}\nThe part to judge: {words}"
    return Case(
        cited=cited,
        passages=passages,
        material={"Claim": said, **{f"Lines {name}": _format_lines(one, deps) for name, one in passages.items()}},
    )


def _cut(exhibit: Exhibit, room: int) -> Exhibit:
    """Keep as many first lines of a passage as fit."""
    ends = accumulate(min(len(line), _LONGEST_LINE) + 1 for line in exhibit.lines)
    count = max(1, sum(end <= room for end in ends))
    at = exhibit.location
    last = min(at.end_line, at.start_line + count - 1)
    return replace(exhibit, lines=exhibit.lines[:count], location=replace(at, end_line=last) if at.path else at)


def _format_lines(exhibit: Exhibit, deps: Deps) -> str:
    """Write lines with their numbers below their path and the definitions around them; a commit by its message."""
    at = exhibit.location
    masked = replace_control_characters(deps.redact("\n".join(exhibit.lines))).split("\n")
    numbered = [f"{at.start_line + n}: {line[:_LONGEST_LINE]}" if at.path else line for n, line in enumerate(masked)]
    where = to_one_line(at.path, longest=200) if at.path else f"commit {at.commit[:12]}"
    names = ", ".join(to_one_line(name, longest=80) for name in exhibit.names[:5])
    return "\n".join([f"{where} ({names})" if names else where, *numbered])


async def _ask(cases: Sequence[Case], model: ChatModel, deps: Deps) -> dict[ReadingKey, Location | None]:
    """Ask about some claims; return nothing if the model fails or takes too long."""
    material = {
        f"{what} of claim {number}" if what != "Claim" else f"Claim {number}": text
        for number, case in enumerate(cases, 1)
        for what, text in case.material.items()
    }
    try:
        async with asyncio.timeout(min(READING_SECONDS, deps.budget.seconds_left)):
            form = await model.generate_structured(
                make_messages(CHECK, material, deps), ReadingOutput, task="check_citations"
            )
    except (ModelError, TimeoutError) as error:
        log.warning("doubtful citations were not read again: %s", error or type(error).__name__)
        return {}
    return dict(_take_verdicts(form.verdicts, cases))


def _take_verdicts(
    verdicts: Sequence[ClaimVerdict], cases: Sequence[Case]
) -> Iterator[tuple[ReadingKey, Location | None]]:
    """Match verdicts with claims; a claim with two verdicts gets none."""
    for number, case in enumerate(cases, 1):
        of_it = [one for one in verdicts if one.claim == number]
        if len(of_it) == 1:
            yield case.cited.key, _take_verdict(of_it[0], case)


def _take_verdict(verdict: ClaimVerdict, case: Case) -> Location | None:
    """Return the lines that show a claim, which must be among the lines shown for it."""
    passage = case.passages.get(verdict.lines)
    if verdict.verdict != "supported" or passage is None:
        return None
    if verdict.lines == "A":
        return case.cited.place
    whole = passage.location
    chosen = replace(whole, start_line=verdict.start, end_line=verdict.end)
    is_fit = bool(whole.path) and verdict.start <= verdict.end and is_within(chosen, whole)
    return chosen if is_fit else whole
