"""Evidence ids: lines that a model is shown have one number for the whole turn, in prompts and tool results alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from agent.evidence.refs import format_place
from agent.guard.evidence_check import mark_text
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import CitationRef, EvidenceRef, to_citation, to_location
from agent.text.escaping import to_one_line
from indexer.types import Location

MAX_NUMBERED = 300  # places of one turn; what comes later is shown without an id, and can be cited by its path

_EVIDENCE_ID = re.compile(r"\bE(\d{1,4})\b")


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

    def number_result(self, text: str, refs: Sequence[EvidenceRef]) -> str:
        """Put the evidence ids beside the places and the commits in a tool's result."""
        numbers = {format_place(ref): self.assign(to_location(ref)) for ref in refs}
        lines = text.split("\n")
        for at, line in enumerate(lines):
            place = line.partition("]")[0].removeprefix("[") if line.startswith("[") else ""
            if (number := numbers.get(place)) is not None:
                lines[at] = f"[E{number}] {place}{line[len(place) + 2 :]}"
        return "\n".join(lines)


def list_exhibits(shown: Sequence[CitationRef]) -> list[PromptEvidence]:
    """Return what has a number as evidence that can be cited; its text is in the prompts that showed it."""
    return [PromptEvidence(number=ref["mark"], location=to_location(ref), about="", text="") for ref in shown]


def list_cited(text: str, shown: Sequence[CitationRef]) -> list[CitationRef]:
    """Return the places whose evidence ids a text has."""
    cited = set(map(int, _EVIDENCE_ID.findall(text)))
    return [ref for ref in shown if ref["mark"] in cited]


def format_cited(text: str, shown: Sequence[CitationRef], *, besides: Collection[int] = ()) -> str:
    """Say which places the evidence ids in a text stand for, without those that a prompt shows `besides`."""
    return mark_text(
        "\n".join(
            f"[E{ref['mark']}] {_describe_place(ref)}" for ref in list_cited(text, shown) if ref["mark"] not in besides
        )
    )


def _describe_place(ref: CitationRef) -> str:
    if not ref["path"]:
        return f"commit {ref.get('commit', '')[:12]}"
    return f"{to_one_line(ref['path'], longest=200)} lines {ref['start_line']}-{ref['end_line']}"
