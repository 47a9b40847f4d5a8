"""Finds where a message that somebody saw is written, by its own words, in all files and not the best ranked alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from agent.evidence.order import is_test_or_docs
from agent.evidence.quoted import ASIDE_SHARE, LINES_AROUND, UNSAID_SHARE
from agent.ports import CodeSearch
from agent.questions.messages import RUN, is_confident_match, make_line_patterns, measure_match
from indexer.models import Hit, Location, Match, SourceType

MAX_PLACES = 5
LEAST_SHARE = 0.4  # of the words; what spells less is about something else
_NEARLY_BEST = 0.8
_MOST_LINES = 300
_MOST_READ = 30
_GAP = 3  # lines between two of one message


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageMatches:
    """Hits by how much of a message they spell; `said` counts those where it surely is, `share` is the most."""

    hits: Sequence[Hit]
    said: int = 0
    share: float = 0.0


async def find_message(code: CodeSearch, hits: Sequence[Hit], message: str) -> MessageMatches:
    """Order what a ranking found for a message by how much of it is spelt, and add the places that it did not find."""
    weighed = [(measure_match(message, hit.text), hit) for hit in hits]
    if not any(share == 1.0 and not is_test_or_docs(hit.location.path) for share, hit in weighed):
        places = await _find_places(code, message)
        weighed = places + [(share, hit) for share, hit in weighed if not any(_overlap(hit, at) for _, at in places)]
    top = max((share for share, _ in weighed), default=0.0)
    if top < LEAST_SHARE:
        return MessageMatches(hits=hits)
    most = max(hit.score for _, hit in weighed)
    scored = [replace(hit, score=_score(hit, share, top, most)) for share, hit in weighed]
    best = sum(share >= _NEARLY_BEST * top for share, _ in weighed)
    said = best if is_confident_match(message, top) else 0
    return MessageMatches(hits=sorted(scored, key=lambda hit: -hit.score), said=said, share=top)


def _score(hit: Hit, share: float, top: float, most: float) -> float:
    if share < _NEARLY_BEST * top:
        return hit.score * UNSAID_SHARE
    return most * share * (ASIDE_SHARE if is_test_or_docs(hit.location.path) else 1.0)


def _overlap(hit: Hit, place: Hit) -> bool:
    one, other = hit.location, place.location
    return one.path == other.path and one.start_line <= other.end_line and other.start_line <= one.end_line


async def _find_places(code: CodeSearch, message: str) -> list[tuple[float, Hit]]:
    """Find the places in all files that spell most of a message; by shorter runs where longer ones are filled in."""
    found: list[tuple[float, Location]] = []
    for run in (RUN, RUN - 1):
        places = _together(await _lines(code, message, run), message, run)
        found = [(await _weight(code, place, message, run), place) for place in places[:_MOST_READ]]
        if max((share for share, _ in found), default=0.0) >= LEAST_SHARE:
            break
    top = max((share for share, _ in found), default=0.0)
    best = [(share, place) for share, place in found if share >= max(LEAST_SHARE, _NEARLY_BEST * top)]
    best = sorted(best, key=lambda one: (is_test_or_docs(one[1].path), -one[0]))[:MAX_PLACES]
    types = {entry.path: entry.source_type for entry in await code.files()} if best else {}
    return [(share, await _hit(code, place, types[place.path])) for share, place in best]


async def _lines(code: CodeSearch, message: str, run: int) -> Sequence[Match]:
    """Find the lines that say a part of a message; only of its longest parts, where too many say the others."""
    found: Sequence[Match] = ()
    for pattern in make_line_patterns(message, run=run):
        matches = await code.grep(pattern, limit=_MOST_LINES)
        found = matches.lines
        if matches.complete or len(found) < _MOST_LINES:  # a repository that takes too long takes no less the next time
            break
    return found


def _together(lines: Sequence[Match], message: str, run: int) -> list[Location]:
    """Put lines that belong together into one place; what spells most comes first, the code itself before the rest."""
    places: list[tuple[Location, str]] = []
    for line in lines:
        at = line.location
        last, text = places[-1] if places else (at, "")
        if text and last.path == at.path and at.start_line - last.end_line <= _GAP:
            places[-1] = (replace(last, end_line=at.end_line), f"{text}\n{line.text}")
        else:
            places.append((at, line.text))
    weighed = [(is_test_or_docs(at.path), -measure_match(message, text, run=run), at) for at, text in places]
    return [at for *_, at in sorted(weighed, key=itemgetter(1, 0))]


async def _weight(code: CodeSearch, place: Location, message: str, run: int) -> float:
    said = await code.read(place.path, place.start_line, place.end_line + _GAP)
    return measure_match(message, said.text, run=run)


async def _hit(code: CodeSearch, place: Location, source_type: SourceType) -> Hit:
    around = await code.enclosing(replace(place, end_line=place.start_line))
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
