"""Finds what explains a thing: the documentation that speaks of it, beside the code."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agent.evidence.lookups import search
from agent.evidence.refs import make_hit_ref
from agent.evidence.relaxed_search import search_relaxed
from agent.evidence.retrieved import Retrieved
from agent.ports import CodeSearch, SourceFiles
from agent.questions.terms import find_content_terms, match_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import Hit

_DOCUMENTS = 8
_LEAST_SHARE = 0.6  # of the question's words that documentation has to hold to explain what is asked
_FEW_TERMS = 4  # words of a question that may stand side by side only where it is answered
_TITLE_SHARE = 0.4  # of the words of a longer one, that a heading has to hold
_MOST_SHARE = 0.85  # of them, with which a passage needs no such heading
_CLEARLY_MORE = 0.15  # of the words that a document ranked lower has to hold more, to come before one ranked higher
_TITLE_WEIGHT = 0.5  # of a word that a heading says, beside one that only the text says
_LINES_ABOVE = 80
_SHORTEST_UNDERLINE = 3
_IS_CHANGELOG = re.compile(r"(?:^|/)(?:change|history|news|release)[^/]*$|(?:^|/)releases?/", re.IGNORECASE)
# What is planned or proposed does not tell how it is.
_IS_PLAN = re.compile(r"(?:^|/)(?:roadmap|todo)\b[^/]*$|(?:^|/)(?:proposals?|rfcs?|seps?|peps?)/", re.IGNORECASE)


async def fetch_explanation(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Rank everything for the question; the documentation that holds most of its words comes first."""
    of_docs: RetrievalRequest = {**request, "source_types": ["doc"]}
    found, documents = await asyncio.gather(search(code, request), search_relaxed(code, of_docs, limit=_DOCUMENTS))
    explained = await choose_explanation(code, documents.hits, request["query"])
    return Retrieved(
        refs=[*explained, *found.refs],
        around=found.around,
        totals=found.totals,
        relaxed=found.relaxed,
        failures=found.failures,
    )


async def choose_explanation(
    code: SourceFiles, hits: Sequence[Hit], question: str, *, about: frozenset[str] = frozenset()
) -> list[EvidenceRef]:
    """Choose the document to quote, from the heading that says most; changelogs and plans speak of other times.

    Where it has to be `about` something, its name or a heading says one of the words.
    """
    terms = find_content_terms(question)
    best, most = None, 0.0
    for hit in hits:
        if hit.source_type != "doc" or _is_of_other_times(hit.location.path):
            continue
        share = len(match_terms(f"{hit.location.path} {hit.text}", terms)) / max(1, len(terms))
        titles = " ".join(title for _, title in find_titles(hit.text.split("\n")))
        if about and not match_terms(f"{hit.location.path} {titles}", about):
            continue
        in_title = len(match_terms(titles, terms)) / max(1, len(terms))
        named = bool(match_terms(hit.location.path.rpartition("/")[2], about))
        weight = share + _TITLE_WEIGHT * (in_title + named)
        is_about = share >= _LEAST_SHARE and (
            len(terms) <= _FEW_TERMS or in_title >= _TITLE_SHARE or share >= _MOST_SHARE
        )
        if is_about and weight > most + (_CLEARLY_MORE if best else 0.0):
            best, most = hit, weight
    if best is None:
        return []
    ref = make_hit_ref(await _reach_heading(code, best, terms))
    return [{**ref, "role": "explanation", "symbol": ""}]


def _is_of_other_times(path: str) -> bool:
    return bool(_IS_CHANGELOG.search(path) or _IS_PLAN.search(path))


async def _reach_heading(code: SourceFiles, hit: Hit, terms: frozenset[str]) -> Hit:
    """Begin at the heading of the question's words, in the passage or above it."""
    at = hit.location
    first = max(1, at.start_line - _LINES_ABOVE)
    lines = (await code.read(at.path, first, at.end_line)).text.split("\n")
    titled = [
        (len(match_terms(title, terms)), first + row) for row, title in find_titles(lines) if match_terms(title, terms)
    ]
    if not titled:
        return hit
    most = max(count for count, _ in titled)
    start = max(row for count, row in titled if count == most)
    end = max(start, min(at.end_line, start + _LINES_ABOVE))
    return replace(hit, location=replace(at, start_line=start, end_line=end))


def find_titles(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return the headings among the lines of a Markdown or reStructuredText document, with their rows."""
    marked = [(row, line) for row, line in enumerate(lines) if line.startswith("#")]
    underlined = [
        (row, line)
        for row, (line, below) in enumerate(pairwise(lines))
        if line.strip() and len(below) >= _SHORTEST_UNDERLINE and len(set(below)) == 1 and below[0] in "=-~^"
    ]
    return [*marked, *underlined]
