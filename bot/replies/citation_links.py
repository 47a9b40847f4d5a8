"""Links the marks of an answer to their lines, and lists those without a web address."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agent import Citation
from agent.text.citation_markers import find_markers, format_marker, replace_markers
from bot.markdown.formatting import find_link_target, format_cited_place
from bot.markdown.safety import is_allowed_link, neutralize

LONGEST_REPEATS = 1_500  # characters of links on marks that have one already: they count in every message


def link_marks(text: str, citations: Sequence[Citation], hosts: Collection[str]) -> tuple[str, Sequence[Citation]]:
    """Make the marks of safe text links; also return the citations that no mark of it links to."""
    targets = {citation.mark: target for citation in citations if (target := find_chat_link(citation, hosts))}
    marks = [marker.number for marker in find_markers(text)]
    linked = replace_markers(text, _write_marks(marks, targets)) if targets else text
    return linked, [citation for citation in citations if citation.mark not in targets.keys() & set(marks)]


def format_sources(citations: Sequence[Citation]) -> str:
    """List citations in one line: each path once, with its marks and lines."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for citation in citations:
        where = format_cited_place(citation).replace("`", "'")
        shown = by_path.setdefault((citation.repository, citation.path), [])
        place = f":{where.rpartition(':')[2]}" if shown and citation.path else where
        shown.append(f"{format_marker(citation.mark)} {neutralize(f'`{place}`', ())}")
    return " · ".join(", ".join(places) for places in by_path.values())


def find_chat_link(citation: Citation, hosts: Collection[str]) -> str:
    """Return the web address of the cited lines; empty if there is none that may be linked to."""
    target = find_link_target(citation, None) or ""
    return target if is_allowed_link(target, hosts) else ""


def _write_marks(marks: Sequence[int], targets: Mapping[int, str]) -> Sequence[str]:
    """Write each mark as a link, and again where it comes again while there is room for that."""
    left, seen = LONGEST_REPEATS, set[int]()
    written: list[str] = []
    for mark in marks:
        target = targets.get(mark, "")
        if mark in seen:
            left -= len(target)
        is_linked = bool(target) and (mark not in seen or left >= 0)
        written.append(f"[{format_marker(mark)}]({target})" if is_linked else format_marker(mark))
        seen.add(mark)
    return written
