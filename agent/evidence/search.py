"""Searches for a question and its parts, and for the source of quoted text or pasted messages."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from operator import itemgetter

from agent.evidence.refs import is_overlapping, is_test_or_docs
from agent.ports import CodeSearch, TextSearch
from agent.questions.literals import Literal
from agent.questions.terms import find_content_terms
from agent.state import RetrievalRequest
from agent.text.message_match import RUN, MessageMatch, is_confident_match, make_line_patterns, match_message
from indexer.errors import BadPattern, IndexerError
from indexer.types import Filters, Hit, Location, Match, SearchAim, SearchMode, SourceType

MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "vector")

log = logging.getLogger(__name__)
MAX_PARTS = 4
_MIN_TERMS = 3  # of a part; fewer of them could be about anything
# The end of a sentence, and a comma or "and" before a word that asks; white space is single by then.
_ASKING = r"(?=(?:how|what|where|which|when|whether|who|why)\b)"
_BOUNDARY = re.compile(rf"[?!;] ?|\. |,? and {_ASKING}|, {_ASKING}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """The hits, the relaxed filters (empty: none), and the failures on the way."""

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
    """Search in the first mode that works, and report earlier failures."""
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
    """Return the parts of a question that asks for several things; none if it asks for one."""
    lines = (" ".join(line.split()) for line in question.splitlines())
    parts = [part.strip() for line in lines for part in _BOUNDARY.split(line)]
    meaningful = [part for part in dict.fromkeys(parts) if len(find_content_terms(part)) >= _MIN_TERMS]
    return tuple(meaningful[:MAX_PARTS]) if len(meaningful) > 1 else ()


async def search_parts(
    code: TextSearch, request: RetrievalRequest, *, limit: int, aim: SearchAim = "passages"
) -> SearchResult:
    """Search for the whole question and for its parts, and interleave the results."""
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


MAX_PLACES = 5
MIN_SHARE = 0.4  # of the words; what spells less is about something else
_NEARLY_BEST = 0.8
_NEARLY_ALL, _MAX_OF_TEXT = 0.85, 0.6  # of words anywhere, and of those around a text of the code
_TELLING_WORDS = 3  # of a text that is found whole, after which no part of it is looked for
_MAX_LINES = 300
_MAX_READ = 30
_GAP = 3  # lines between two of one message

LINES_AROUND = 12
UNSAID_SHARE = 0.3  # what a hit without the text keeps of its score when another has it
ASIDE_SHARE = 0.5  # the weight of a test or a page relative to the code itself


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageMatches:
    """Hits ranked by how much of a message they spell; `said` counts certain ones, `share` is the highest."""

    hits: Sequence[Hit]
    said: int = 0
    share: float = 0.0


async def find_message(code: CodeSearch, hits: Sequence[Hit], message: str) -> MessageMatches:
    """Rank hits by how much of a message they spell, and add places that the search missed."""
    weighed = [(match_message(message, hit.text), hit) for hit in hits]
    if not any(match.share == 1.0 and not is_test_or_docs(hit.location.path) for match, hit in weighed):
        places = await _find_places(code, message)
        weighed = places + [
            (match, hit)
            for match, hit in weighed
            if not any(is_overlapping(hit.location, at.location) for _, at in places)
        ]
    sure = [
        match.share
        for match, hit in weighed
        if (is_confident_match(message, match) and not is_test_or_docs(hit.location.path))
    ]
    # A test contains the finished message; the code that makes it contains less of it.
    top = max(sure or (match.share for match, _ in weighed), default=0.0)
    if top < MIN_SHARE:
        return MessageMatches(hits=hits)
    least = top if top == 1.0 else _NEARLY_BEST * top  # beside the text itself, what is like it is another one
    most = max(hit.score for _, hit in weighed)
    scored = [
        replace(hit, score=_score_hit(min(match.share, top), most, hit.location.path))
        if match.share >= least
        else replace(hit, score=hit.score * UNSAID_SHARE)
        for match, hit in weighed
    ]
    said = sum(match.share >= least and is_confident_match(message, match) for match, _ in weighed)
    return MessageMatches(hits=sorted(scored, key=lambda hit: -hit.score), said=said, share=top)


async def find_said(code: CodeSearch, texts: Sequence[str], *, is_evident: bool) -> str:
    """Return the one of several texts that matches the code best; empty if none does.

    A text without the form of program output must match almost completely, a test completely.
    """
    best, most = "", (0.0, 0.0)
    for text in texts:
        for match, hit in await _find_places(code, text):
            is_aside = is_test_or_docs(hit.location.path)
            least = _MAX_OF_TEXT if match.is_template else _NEARLY_ALL
            is_nearly_all = match.share >= (1.0 if is_aside else least)
            if not (is_confident_match(text, match) if is_evident else is_nearly_all):
                continue
            worth = (match.share**2 * len(text.split()) * (ASIDE_SHARE if is_aside else 1.0), match.share)
            if worth > most:
                best, most = text, worth
        if most[1] == 1.0 and most[0] >= _TELLING_WORDS:
            break
    return best


def _score_hit(share: float, most: float, path: str) -> float:
    """Weight a place by how much of a text it contains; a test counts at most half."""
    return most * share * (ASIDE_SHARE if is_test_or_docs(path) else 1.0)


async def _find_places(code: CodeSearch, message: str) -> list[tuple[MessageMatch, Hit]]:
    """Find the places that contain most of a message in all files, using shorter runs if longer ones have
    placeholders.
    """
    found: list[tuple[MessageMatch, Location]] = []
    for run in (RUN, RUN - 1):
        places = _group_lines(await _find_lines(code, message, run), message, run)
        found = []
        for place in places[:_MAX_READ]:
            passage = await code.read(place.path, place.start_line, place.end_line + _GAP)
            found.append((match_message(message, passage.text, run=run), place))
        if max((match.share for match, _ in found), default=0.0) >= MIN_SHARE:
            break
    sure = [match.share for match, at in found if is_confident_match(message, match) and not is_test_or_docs(at.path)]
    top = max(sure or (match.share for match, _ in found), default=0.0)
    best = [(match, place) for match, place in found if match.share >= max(MIN_SHARE, _NEARLY_BEST * top)]
    best = sorted(best, key=lambda one: (is_test_or_docs(one[1].path), -one[0].share))[:MAX_PLACES]
    types = {entry.path: entry.source_type for entry in await code.files()} if best else {}
    return [(match, await _make_hit(code, place, types[place.path])) for match, place in best]


async def _find_lines(code: CodeSearch, message: str, run: int) -> Sequence[Match]:
    """Find the lines that contain a part of a message, only its longest parts if too many match the others."""
    found: Sequence[Match] = ()
    for pattern in make_line_patterns(message, run=run):
        matches = await code.grep(pattern, limit=_MAX_LINES)
        found = matches.lines
        if matches.complete or len(found) < _MAX_LINES:  # a repository that takes too long takes no less the next time
            break
    return found


def _group_lines(lines: Sequence[Match], message: str, run: int) -> list[Location]:
    """Join adjacent lines into one place; the best match comes first, code before the rest."""
    places: list[tuple[Location, str]] = []
    for line in lines:
        at = line.location
        last, text = places[-1] if places else (at, "")
        if text and last.path == at.path and at.start_line - last.end_line <= _GAP:
            places[-1] = (replace(last, end_line=at.end_line), f"{text}\n{line.text}")
        else:
            places.append((at, line.text))
    weighed = [(is_test_or_docs(at.path), -match_message(message, text, run=run).share, at) for at, text in places]
    return [at for *_, at in sorted(weighed, key=itemgetter(1, 0))]


async def _make_hit(code: CodeSearch, place: Location, source_type: SourceType) -> Hit:
    around = await code.find_enclosing(replace(place, end_line=place.start_line))
    top = around[-1].symbol.start_line if around else 1
    shown = await code.read(place.path, max(place.start_line - _GAP, top), place.end_line + LINES_AROUND)
    return Hit(
        location=shown.location,
        text=shown.text,
        score=1.0,
        language=shown.language,
        source_type=source_type,
        scope=around[-1].symbol.qualified_name if around else "",
        symbols=(),
    )


async def find_exact_text(code: CodeSearch, hits: Sequence[Hit], literal: Literal) -> tuple[list[Hit], int]:
    """Put the lines that contain a text first, code before tests, and count those lines."""
    lines = (await code.grep(re.escape(literal.text), limit=_MAX_LINES)).lines
    found = [line.location for line in lines if literal.find_lines(line.text) is not None]
    if not found:
        return list(hits), 0
    found.sort(key=lambda at: is_test_or_docs(at.path))
    types = {entry.path: entry.source_type for entry in await code.files()}
    most = max((hit.score for hit in hits), default=1.0)
    first = [
        replace(await _make_hit(code, at, types[at.path]), score=_score_hit(1.0, most, at.path))
        for at in found[:MAX_PLACES]
    ]
    rest = [hit for hit in hits if not any(is_overlapping(hit.location, one.location) for one in first)]
    return [*first, *(replace(hit, score=hit.score * UNSAID_SHARE) for hit in rest)], len(found)
