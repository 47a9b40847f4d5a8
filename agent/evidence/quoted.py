"""Finds the places that hold a quoted text as it stands: a message, an option, an environment variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.evidence.order import is_test_or_docs
from agent.ports import CodeSearch
from agent.questions.literals import Literal
from indexer.errors import UnknownPath
from indexer.models import Hit, Location

MAX_FILES_READ = 8
LINES_AROUND = 12
UNSAID_SHARE = 0.3  # what a hit without the text keeps of its score when another has it
ASIDE_SHARE = 0.5  # what a test or a page that has it keeps beside the code itself


async def rank_by_literal(code: CodeSearch, hits: Sequence[Hit], literal: Literal) -> tuple[list[Hit], int]:
    """Order hits by whether they hold the text, the code before its tests, and say how many of them do.

    A ranking shows one or two chunks of a file, so the files of the best hits are read whole when no chunk of code
    that was found holds the text.
    """
    said = [hit for hit in hits if literal.first_line(hit.text) is not None]
    if all(is_test_or_docs(hit.location.path) for hit in said):
        said = [*await _in_whole_files(code, hits, literal), *said]
    if not said:
        return list(hits), 0
    best = max(hit.score for hit in hits)
    first = [replace(hit, score=best * (ASIDE_SHARE if is_test_or_docs(hit.location.path) else 1.0)) for hit in said]
    rest = [replace(hit, score=hit.score * UNSAID_SHARE) for hit in hits if hit not in said]
    return sorted([*first, *rest], key=lambda hit: -hit.score), len(said)


async def _in_whole_files(code: CodeSearch, hits: Sequence[Hit], literal: Literal) -> list[Hit]:
    paths = dict.fromkeys(hit.location.path for hit in hits if not is_test_or_docs(hit.location.path))
    best = {hit.location.path: hit for hit in reversed(hits)}
    found = [await _in_file(code, best[path], literal) for path in list(paths)[:MAX_FILES_READ]]
    return [hit for hit in found if hit is not None]


async def _in_file(code: CodeSearch, hit: Hit, literal: Literal) -> Hit | None:
    """Return the lines of the hit's file where the text begins, as a hit of their own."""
    path = hit.location.path
    try:
        text = (await code.read(path)).text
    except UnknownPath:
        return None
    at = literal.first_line(text)
    if at is None:
        return None
    lines = text.split("\n")
    end = min(at + LINES_AROUND, len(lines))
    location = Location(path=path, start_line=at + 1, end_line=end)
    around = await code.enclosing(Location(path=path, start_line=at + 1, end_line=at + 1))
    scope = around[-1].symbol.qualified_name if around else ""
    return replace(hit, location=location, text="\n".join(lines[at:end]), scope=scope, symbols=())
