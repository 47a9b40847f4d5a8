"""Evidence ids: lines that a model is shown have one number for the whole turn, in prompts and tool results alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile

from agent.evidence.refs import format_place
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import CitationRef, EvidenceRef, to_citation, to_location
from indexer.types import Location

MAX_NUMBERED = 300  # places of one turn; what comes later is shown without an id, and can be cited by its path

_LEAST_LEFT_OUT = 80  # characters: fewer are no longer than saying where they stand


class EvidenceNumbers:
    """Gives numbers to places, and remembers those that the turn has given before."""

    def __init__(self, shown: Sequence[CitationRef]) -> None:
        self._numbers = {to_location(ref): ref["mark"] for ref in shown}

    @property
    def places(self) -> list[CitationRef]:
        """All places that have a number, for the check of the citations."""
        return [to_citation(number, at) for at, number in self._numbers.items()]

    def assign(self, location: Location) -> int | None:
        """Return the number of a place; None for a new one when there are enough."""
        if location not in self._numbers and len(self._numbers) >= MAX_NUMBERED:
            return None
        return self._numbers.setdefault(location, max(self._numbers.values(), default=0) + 1)

    def number_evidence(self, exhibits: Iterable[PromptEvidence]) -> list[PromptEvidence]:
        """Number what a prompt shows, without what there is no number left for."""
        numbered = [(one, self.assign(one.location)) for one in exhibits]
        return [replace(one, number=number) for one, number in numbered if number is not None]

    def number_result(self, text: str, refs: Sequence[EvidenceRef], *, told: Sequence[CitationRef] = ()) -> str:
        """Put the evidence ids beside the places and the commits in a tool's result.

        Of lines that stand in places that were `told` before, only the evidence id is repeated.
        """
        places = {format_place(ref): ref for ref in refs}
        numbers = {place: self.assign(to_location(ref)) for place, ref in places.items()}
        lines = text.split("\n")
        written: list[str] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            place = line.partition("]")[0].removeprefix("[") if line.startswith("[") else ""
            if place not in places:
                written.append(line)
                continue
            number, said = numbers[place], _shorten_mention(line[len(place) + 2 :], places[place], told)
            written.append(f"[E{number}] {place}{said}" if number is not None else f"[{place}]{said}")
            end = _find_end(lines, at, places[place])
            written += _leave_out(lines[at:end], places[place], told)
            at = end
        return "\n".join(written)


def _find_end(lines: Sequence[str], start: int, ref: EvidenceRef) -> int:
    """Return where the numbered lines below a heading end."""
    numbered = zip(range(start, len(lines)), range(ref["start_line"], ref["end_line"] + 1), strict=False)
    return start + sum(1 for _ in takewhile(lambda pair: lines[pair[0]].startswith(f"{pair[1]:5} "), numbered))


def _shorten_mention(text: str, ref: EvidenceRef, told: Sequence[CitationRef]) -> str:
    """Leave a line out that mentions a word, and was told before."""
    is_mention = ref["role"] == "mention"
    owner = _find_owner(ref["path"], ref["start_line"], told, ref.get("commit", "")) if is_mention else None
    note = f" (in E{owner})"
    return text if owner is None or len(text) <= len(note) else note


def _leave_out(lines: Sequence[str], ref: EvidenceRef, told: Sequence[CitationRef]) -> list[str]:
    """Replace runs of lines that were told before by the evidence id that they stand under."""
    first = ref["start_line"]
    owners = [_find_owner(ref["path"], first + at, told, ref.get("commit", "")) for at in range(len(lines))]
    kept: list[str] = []
    for owner, run in groupby(range(len(lines)), key=owners.__getitem__):
        places = list(run)
        block = [lines[at] for at in places]
        is_long = owner is not None and sum(map(len, block)) > _LEAST_LEFT_OUT
        note = f"      (lines {first + places[0]}-{first + places[-1]} are shown above, in E{owner})"
        kept += [note] if is_long else block
    return kept


def _find_owner(path: str, line: int, told: Sequence[CitationRef], commit: str = "") -> int | None:
    """Return the number of the place that a line was told in."""
    told = [one for one in told if (one["path"], one.get("commit", "")) == (path, commit)]
    within = (one["mark"] for one in told if one["start_line"] <= line <= one["end_line"])
    return next(within, None) if path else None


def list_exhibits(shown: Sequence[CitationRef]) -> list[PromptEvidence]:
    """Return what has a number as evidence that can be cited; its text is in the prompts that showed it."""
    return [PromptEvidence(number=ref["mark"], location=to_location(ref), about="", text="") for ref in shown]
