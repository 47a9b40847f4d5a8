"""One search that degrades instead of failing: filters are relaxed step by step, then modes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.ports import TextSearch
from agent.state import RetrievalRequest
from indexer.errors import BadPattern, IndexerError
from indexer.types import Filters, Hit, SearchAim, SearchMode

MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "vector")

log = logging.getLogger(__name__)


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
        hits, failed = await _search_in_any_mode(code, request["query"], filters, limit, aim)
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


async def _search_in_any_mode(
    code: TextSearch, query: str, filters: Filters, limit: int, aim: SearchAim
) -> tuple[Sequence[Hit], tuple[str, ...]]:
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
