"""Finds where a quoted text or a pasted message is written in the code, though its words may be filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter

from agent.evidence.refs import is_test_or_docs
from agent.ports import CodeSearch
from agent.questions.literals import Literal
from indexer.errors import UnknownPath
from indexer.types import Hit, Location, Match, SourceType

MAX_PLACES = 5
LEAST_SHARE = 0.4  # of the words; what spells less is about something else
_NEARLY_BEST = 0.8
_MOST_LINES = 300
_MOST_READ = 30
_GAP = 3  # lines between two of one message

MAX_FILES_READ = 8
LINES_AROUND = 12
UNSAID_SHARE = 0.3  # what a hit without the text keeps of its score when another has it
ASIDE_SHARE = 0.5  # what a test or a page that has it keeps beside the code itself

MAX_PATTERN = 480  # characters; the search of the index takes little more
RUN = 3  # words that follow each other and are told from the same words elsewhere

_WORD = re.compile(r"[^\W_]+")
_ESCAPED = re.compile(r"\\[nrt]")
_LONGEST = 80  # words that are looked at
_SURE, _HALF = 0.7, 0.5
_SENTENCE = 6  # words
_LETTERS = 3  # of each word of a run, on average


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageMatches:
    """Hits by how much of a message they spell; `said` counts those that surely hold it, `share` is the highest."""

    hits: Sequence[Hit]
    said: int = 0
    share: float = 0.0


async def find_message(code: CodeSearch, hits: Sequence[Hit], message: str) -> MessageMatches:
    """Order what a ranking found for a message by how much of it is spelt, and add the places that it did not find."""
    weighed = [(measure_match(message, hit.text), hit) for hit in hits]
    if not any(share == 1.0 and not is_test_or_docs(hit.location.path) for share, hit in weighed):
        places = await _find_places(code, message)
        weighed = places + [
            (share, hit) for share, hit in weighed if not any(_is_overlapping(hit, at) for _, at in places)
        ]
    top = max((share for share, _ in weighed), default=0.0)
    if top < LEAST_SHARE:
        return MessageMatches(hits=hits)
    most = max(hit.score for _, hit in weighed)
    scored = [replace(hit, score=_score_hit(hit, share, top, most)) for share, hit in weighed]
    best = sum(share >= _NEARLY_BEST * top for share, _ in weighed)
    said = best if is_confident_match(message, top) else 0
    return MessageMatches(hits=sorted(scored, key=lambda hit: -hit.score), said=said, share=top)


def _score_hit(hit: Hit, share: float, top: float, most: float) -> float:
    if share < _NEARLY_BEST * top:
        return hit.score * UNSAID_SHARE
    return most * share * (ASIDE_SHARE if is_test_or_docs(hit.location.path) else 1.0)


def _is_overlapping(hit: Hit, place: Hit) -> bool:
    one, other = hit.location, place.location
    return one.path == other.path and one.start_line <= other.end_line and other.start_line <= one.end_line


async def _find_places(code: CodeSearch, message: str) -> list[tuple[float, Hit]]:
    """Find the places in all files that contain most of a message; by shorter runs where longer ones are filled in."""
    found: list[tuple[float, Location]] = []
    for run in (RUN, RUN - 1):
        places = _group_lines(await _find_lines(code, message, run), message, run)
        found = []
        for place in places[:_MOST_READ]:
            passage = await code.read(place.path, place.start_line, place.end_line + _GAP)
            found.append((measure_match(message, passage.text, run=run), place))
        if max((share for share, _ in found), default=0.0) >= LEAST_SHARE:
            break
    top = max((share for share, _ in found), default=0.0)
    best = [(share, place) for share, place in found if share >= max(LEAST_SHARE, _NEARLY_BEST * top)]
    best = sorted(best, key=lambda one: (is_test_or_docs(one[1].path), -one[0]))[:MAX_PLACES]
    types = {entry.path: entry.source_type for entry in await code.files()} if best else {}
    return [(share, await _make_hit(code, place, types[place.path])) for share, place in best]


async def _find_lines(code: CodeSearch, message: str, run: int) -> Sequence[Match]:
    """Find the lines that contain a part of a message; only its longest parts, where too many contain the others."""
    found: Sequence[Match] = ()
    for pattern in make_line_patterns(message, run=run):
        matches = await code.grep(pattern, limit=_MOST_LINES)
        found = matches.lines
        if matches.complete or len(found) < _MOST_LINES:  # a repository that takes too long takes no less the next time
            break
    return found


def _group_lines(lines: Sequence[Match], message: str, run: int) -> list[Location]:
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


async def _make_hit(code: CodeSearch, place: Location, source_type: SourceType) -> Hit:
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


async def rank_by_literal(code: CodeSearch, hits: Sequence[Hit], literal: Literal) -> tuple[list[Hit], int]:
    """Order hits by whether they contain the text, the code before its tests, and count those that do.

    A ranking shows one or two chunks of a file, so the files of the best hits are read whole when no chunk of code
    that was found holds the text.
    """
    matching = [hit for hit in hits if literal.first_line(hit.text) is not None]
    if all(is_test_or_docs(hit.location.path) for hit in matching):
        matching = [*await _search_whole_files(code, hits, literal), *matching]
    if not matching:
        return list(hits), 0
    best = max(hit.score for hit in hits)
    first = [
        replace(hit, score=best * (ASIDE_SHARE if is_test_or_docs(hit.location.path) else 1.0)) for hit in matching
    ]
    rest = [replace(hit, score=hit.score * UNSAID_SHARE) for hit in hits if hit not in matching]
    return sorted([*first, *rest], key=lambda hit: -hit.score), len(matching)


async def _search_whole_files(code: CodeSearch, hits: Sequence[Hit], literal: Literal) -> list[Hit]:
    paths = dict.fromkeys(hit.location.path for hit in hits if not is_test_or_docs(hit.location.path))
    best = {hit.location.path: hit for hit in reversed(hits)}
    found = [await _search_file(code, best[path], literal) for path in list(paths)[:MAX_FILES_READ]]
    return [hit for hit in found if hit is not None]


async def _search_file(code: CodeSearch, hit: Hit, literal: Literal) -> Hit | None:
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


def measure_match(message: str, code: str, *, run: int = RUN) -> float:
    """Return the share of the message's words, 0 to 1, that the code contains in runs of some words."""
    wanted = _split_message(message)
    text = f" {' '.join(_split_words(code))} "
    covered = {
        at
        for first, words in _list_runs(wanted, run)
        if f" {' '.join(words)} " in text
        for at in range(first, first + run)
    }
    return min(1.0, len(covered) / len(wanted)) if wanted else 0.0


def is_confident_match(message: str, share: float) -> bool:
    """Whether so much of a message is no chance: most of it, or half of it and a whole sentence."""
    return share >= _SURE or (share >= _HALF and share * len(_split_message(message)) >= _SENTENCE)


def make_line_patterns(message: str, *, run: int = RUN) -> Iterator[str]:
    """Write RE2 patterns for lines that contain one of a message's runs, each for fewer and longer ones."""
    runs = dict.fromkeys(words for _, words in _list_runs(_split_message(message), run))
    longest_first = sorted(runs, key=lambda words: -sum(map(len, words)))
    while longest_first:
        yield _make_alternatives(longest_first)
        longest_first = longest_first[: len(longest_first) // 2]


def _make_alternatives(runs: Sequence[tuple[str, ...]]) -> str:
    written: list[str] = []
    room = MAX_PATTERN
    for words in runs:
        one = r"[\W_]+".join(map(re.escape, words))
        room -= len(one) + 1
        if room < 0:
            break
        written.append(one)
    return f"(?i)(?:{'|'.join(written)})"


@lru_cache(maxsize=64)
def _list_runs(words: tuple[str, ...], size: int) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The runs of so many words with their places, all words together where they are fewer.

    One that means nothing by itself, like "of the file", stands everywhere, and tells nothing.
    """
    size = min(size, len(words))
    runs = ((at, words[at : at + size]) for at in range(len(words) - size + 1))
    return tuple((at, run) for at, run in runs if sum(map(len, run)) >= _LETTERS * len(run))


@lru_cache(maxsize=64)
def _split_message(message: str) -> tuple[str, ...]:
    return tuple(_split_words(message)[:_LONGEST])


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_ESCAPED.sub(" ", text))]
