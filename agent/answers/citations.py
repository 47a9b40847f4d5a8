"""Keeps the citations that hold, repairs those with one possible meaning, and drops the rest with their marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.answers.draft import LONGEST_RANGE
from agent.answers.marks import marks_in, renumber
from agent.ports import CodeSearch
from agent.state import CitationRef, EvidenceRef, where
from indexer.errors import UnknownPath
from indexer.models import Location


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """An answer whose marks and citations agree, and how many citations were dropped."""

    text: str
    citations: list[CitationRef]
    dropped: int


async def check(
    text: str, citations: Sequence[CitationRef], evidence: Sequence[EvidenceRef], code: CodeSearch
) -> Checked:
    """Check every citation against the commit and against what was read in this turn, and number them anew."""
    read = [where(ref) for ref in evidence]
    given = {citation["mark"]: where(citation) for citation in citations}
    numbers: dict[Location, int] = {}
    by_mark: dict[int, int] = {}
    for mark in marks_in(text):
        location = given.get(mark)
        held = await _held(location, read, code) if location is not None else None
        if held is not None:
            by_mark[mark] = numbers.setdefault(held, len(numbers) + 1)
    kept: list[CitationRef] = [
        {"mark": mark, "path": at.path, "start_line": at.start_line, "end_line": at.end_line}
        for at, mark in numbers.items()
    ]
    return Checked(text=renumber(text, by_mark), citations=kept, dropped=len(given) - len(by_mark))


async def _held(cited: Location, read: Sequence[Location], code: CodeSearch) -> Location | None:
    """Return the lines to show for a citation: as cited, or repaired; None when it does not hold."""
    if _is_sound(cited) and any(_within(cited, seen) for seen in read) and await _exists(cited, code):
        return cited
    repaired = _repaired(cited, read)
    return repaired if repaired is not None and await _exists(repaired, code) else None


def _is_sound(cited: Location) -> bool:
    return 1 <= cited.start_line <= cited.end_line < cited.start_line + LONGEST_RANGE


def _within(inner: Location, outer: Location) -> bool:
    return inner.path == outer.path and outer.start_line <= inner.start_line and inner.end_line <= outer.end_line


def _repaired(cited: Location, read: Sequence[Location]) -> Location | None:
    """Give a citation the one meaning that it can have among what was read; None when there are several."""
    paths = {seen.path for seen in read if seen.path == cited.path or seen.path.endswith(f"/{cited.path}")}
    if len(paths) != 1 or cited.start_line < 1 or cited.end_line < cited.start_line:
        return None
    path = next(iter(paths))
    overlaps = {
        Location(
            path=path,
            start_line=max(cited.start_line, seen.start_line),
            end_line=min(cited.end_line, seen.end_line),
        )
        for seen in read
        if seen.path == path and seen.start_line <= cited.end_line and cited.start_line <= seen.end_line
    }
    largest = [one for one in overlaps if not any(one != other and _within(one, other) for other in overlaps)]
    return largest[0] if len(largest) == 1 and _is_sound(largest[0]) else None


async def _exists(cited: Location, code: CodeSearch) -> bool:
    try:
        passage = await code.read(cited.path, cited.start_line, cited.end_line)
    except UnknownPath:
        return False
    return passage.location.start_line == cited.start_line and passage.location.end_line == cited.end_line
