"""Searches for a question and its parts, with the filters of a request as long as they leave anything."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from agent.ports import TextSearch
from agent.questions.terms import find_content_terms
from agent.state import RetrievalRequest
from indexer.errors import BadPattern, IndexerError
from indexer.types import Filters, Hit, Location, SearchAim, SearchMode

MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "vector")

log = logging.getLogger(__name__)
MOST_PARTS = 4
_FEWEST_TERMS = 3  # of a part; fewer of them could be about anything
# The end of a sentence, and a comma or "and" before a word that asks; white space is single by then.
_ASKING = r"(?=(?:how|what|where|which|when|whether|who|why)\b)"
_BOUNDARY = re.compile(rf"[?!;] ?|\. |,? and {_ASKING}|, {_ASKING}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """The hits, how far the filters had to be relaxed (empty: not at all), and what failed on the way."""

    hits: Sequence[Hit]
    relaxed: str = ""
    failures: tuple[str, ...] = field(default=())


async def search_relaxed(
    code: TextSearch, request: RetrievalRequest, *, limit: int = 10, aim: SearchAim = "passages"
) -> SearchResult:
    """Search with the request's filters; without patterns, without folders, without any when nothing is found."""
    failures: tuple[str, ...] = ()
    for name, filters in _plan_steps(request):
        hits, failed = await search_in_any_mode(code, request["query"], filters, limit, aim)
        failures = tuple(dict.fromkeys(failures + failed))
        if hits:
            return SearchResult(hits=hits, relaxed=name, failures=failures)
    return SearchResult(hits=(), failures=failures)


def _plan_steps(request: RetrievalRequest) -> list[tuple[str, Filters]]:
    types, folders, patterns = (
        tuple(request["source_types"]),
        tuple(request["folders"]),
        tuple(request["patterns"]),
    )
    steps = [
        ("", Filters(source_types=types, folders=folders, patterns=patterns)),
        ("without patterns", Filters(source_types=types, folders=folders)),
        ("without folders", Filters(source_types=types)),
        ("everywhere", Filters()),
    ]
    different = [step for step, before in zip(steps[1:], steps, strict=False) if step[1] != before[1]]
    return [steps[0], *different]


async def search_in_any_mode(
    code: TextSearch, query: str, filters: Filters, limit: int, aim: SearchAim
) -> tuple[Sequence[Hit], tuple[str, ...]]:
    """Search in the first mode that works, and say what failed before."""
    failures: list[str] = []
    for mode in MODES:
        try:
            return await code.search(query, limit=limit, filters=filters, mode=mode, aim=aim), tuple(failures)
        except BadPattern as error:  # the filter of a model, which no other mode reads otherwise
            log.warning("a filter was ignored: %s", error)
            return (), (str(error),)
        except IndexerError as error:
            log.warning("the %s search failed, trying the next mode: %s", mode, error)
            failures.append(str(error))
    return (), tuple(failures)


def split_question(question: str) -> tuple[str, ...]:
    """Return the parts of a question that asks for several things; none where it asks for one."""
    lines = (" ".join(line.split()) for line in question.splitlines())
    parts = [part.strip() for line in lines for part in _BOUNDARY.split(line)]
    meaningful = [part for part in dict.fromkeys(parts) if len(find_content_terms(part)) >= _FEWEST_TERMS]
    return tuple(meaningful[:MOST_PARTS]) if len(meaningful) > 1 else ()


async def search_parts(
    code: TextSearch, request: RetrievalRequest, *, limit: int, aim: SearchAim = "passages"
) -> SearchResult:
    """Search for the whole question and for its parts, and take turns with what each finds."""
    queries = (request["query"], *split_question(request["query"]))
    results = await asyncio.gather(
        *(search_relaxed(code, {**request, "query": query}, limit=limit, aim=aim) for query in queries)
    )
    first: dict[Location, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*(result.hits for result in results))):
        if hit is not None:
            first.setdefault(hit.location, hit)
    return SearchResult(
        hits=list(first.values())[:limit],
        relaxed=results[0].relaxed,
        failures=tuple(dict.fromkeys(failure for result in results for failure in result.failures)),
    )
