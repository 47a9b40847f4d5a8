"""Searches for a question as a whole and for each of its parts, so that no part takes all places."""

from __future__ import annotations

import asyncio
import re
from itertools import chain, zip_longest

from agent.evidence.relaxed_search import SearchResult, search_relaxed
from agent.ports import TextSearch
from agent.questions.terms import find_content_terms
from agent.state import RetrievalRequest
from indexer.types import Hit, Location, SearchAim

MOST_PARTS = 4
_FEWEST_TERMS = 3  # of a part; fewer of them could be about anything

# The end of a sentence, and a comma or "and" before a word that asks; white space is single by then.
_ASKING = r"(?=(?:how|what|where|which|when|whether|who|why)\b)"
_BOUNDARY = re.compile(rf"[?!;] ?|\. |,? and {_ASKING}|, {_ASKING}", re.IGNORECASE)


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
