"""Finds the files that the words of a question lead to, and of each the few lines that say most of them."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from agent.evidence.refs import is_test_or_docs
from agent.evidence.search import search_parts, search_relaxed
from agent.ports import CodeSearch
from agent.questions.languages import OTHER_WORDS, is_english
from agent.questions.literals import Literal
from agent.questions.terms import find_content_terms, match_terms, stem_word
from agent.state import EvidenceRef, RetrievalRequest
from agent.text.escaping import is_import
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Hit, Location

_MARKED = re.compile(r"(?:#{1,6}|={1,6})\s+(?P<text>\S.*?)\s*#*$")
_SHORTEST_UNDERLINE = 3
MAX_PLACES = 4
MAX_LINES = 3  # of one place
_HITS, _PAGES = 30, 12
_PER_CHUNK = 2  # lines of the best chunk of a place
_MAX_CHUNKS = 3  # of a file
_RANK_OFFSET = 4
_PAGE_WEIGHT, _WORDS_WEIGHT = 0.5, 0.4
_FURTHER_CHUNK = 0.1  # of its score, for the file
_MIN_FURTHER = 0.3  # of the best chunk's score, for a line of another chunk
_MIN_PAGE = 0.3  # of the question's words, for a page that none of the best places is
_MIN_HEADING = 0.5  # of them in a heading, for the page to lead
_OWN_NAME = 0.3  # of the weight of a word that is the repository's name
_NEAR_BELOW, _NEAR_ABOVE = 8, 3  # lines between a match and its value
_LONGEST_LINE = 400
_LETTERS = re.compile(r"[a-z]+")
_LONG_WORD = re.compile(r"[a-z]{6,40}")
_MIN_COGNATE, _ENDING = 5, 3  # letters of a word that must be alike, and at its end that need not
_MAX_LINES_OF_COGNATE = 50

_TEST_NAME = re.compile(r"(?:tests?(?:\.|$)|test_)")
_DATA = re.compile(
    r"(?:^|/)(?:locales?|i18n|l10n|translations?|lang|_?generated|gen|migrations?|completions?|contrib|vendor"
    r"|node_modules|blog|decisions|proposals?|rfcs?)/|\.(?:css|scss|less|svg|csv|tsv|lock|pot?|snap|map|plist|sum)$"
    r"|[-.]lock\.|[-.]min\.|[._](?:pb|gen|generated)\.|(?:^|/)(?:licen[cs]e|copying|authors|contributors|notice)",
    re.IGNORECASE,
)
_OTHER_TIMES = re.compile(
    r"(?:^|/)(?:change(?:s|log)|\d*-?news|history|releases?|roadmap|todo|migration)[^/]*$|/v\d+\.\d+/", re.IGNORECASE
)
_PAGE = compile_pattern(r"(?i)\.(?:md|mdx|rst|adoc|markdown)$|(?:^|/)docs?/.*\.txt$")
_ASKS_ASIDE = re.compile(r"(?i)\b(?:tests?|examples?|mock|fixture|bench)")
_ASKS_OTHER_TIMES = re.compile(r"(?i)\b(?:chang|releas|version)")
_ASKS_VALUE = re.compile(
    r"(?i)\b(?:default|max(?:imum)?|min(?:imum)?|limit|timeout|env(?:ironment)? var|how (?:long|many|big|often|large)"
    r"|interval|size|port)\b"
)
_ASSIGNMENT = compile_pattern(
    r"\s*(?:(?:pub|export|const|let|var|static|final|private|public|protected|readonly)\s+)*[\w.\[\]\"'-]+"
    r"(?:\s*:\s*[\w\[\]<>, |.]+)?\s*(?::=\s*\S|=\s+\S|=[^=\s]|:\s*\S)|#define\s+\w+\s+\S"
)
_VALUE = re.compile(
    r"(?<![\w.])\d[\d_]*(?:\.\d+)?[a-zA-Z%]{0,3}(?!\w)|getenv|environ|env::var|process\.env|LookupEnv|validation_alias"
    r"|envvar|\b[A-Z][A-Z0-9]+_[A-Z0-9_]{3,}\b|(?i:default)"
)
_DESIGN = compile_pattern(r"(?i)(?:^|/)[^/]*(?:architecture|design|internals|how[-_]it[-_]works)[^/]*$")
_MARKUP = compile_pattern(r"\s*(?:`{3}|~{3}|<|!\[|\.\. |:::|[|\s:-]+$)")


def find_headings(lines: Sequence[str]) -> dict[int, str]:
    """Return the headings by the numbers of their lines, in order; what is in a fence is none."""
    found: dict[int, str] = {}
    is_fenced = False
    for number, (line, below) in enumerate(pairwise([*lines, ""]), 1):
        if line.startswith(("```", "~~~")):
            is_fenced = not is_fenced
        elif is_fenced:
            continue
        elif (marked := _MARKED.match(line)) is not None:
            found[number] = marked["text"]
        elif line.strip() and len(below) >= _SHORTEST_UNDERLINE and len(set(below)) == 1 and below[0] in "=-~^":
            found[number] = line.strip()
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundLine:
    """A line of a place, by its number in the file."""

    number: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BestPlace:
    """A file that a question leads to: what its lines are in, definitions or a heading, and the lines, by number."""

    path: str
    labels: tuple[str, ...]
    lines: tuple[FoundLine, ...]
    score: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The words of a question, each weighed by how few of the found chunks say it, and what kind of place it wants."""

    weights: Mapping[str, float]
    wants_value: bool
    wants_aside: bool
    wants_other_times: bool

    @cached_property
    def _total(self) -> float:
        return sum(self.weights.values()) or 1.0

    def share(self, terms: frozenset[str]) -> float:
        """Weigh some of the words, as a share of all."""
        return sum(self.weights[term] for term in terms) / self._total

    def match(self, text: str) -> frozenset[str]:
        """Return the words that a text says."""
        return match_terms(text, self.weights)


@dataclass(kw_only=True, slots=True)
class _Chunk:
    """A chunk that a search found, and by which ranks."""

    hit: Hit
    ranks: dict[str, int] = field(default_factory=dict)
    share: float = 0.0
    heading: float = 0.0  # share of the words that a heading above or in it says
    score: float = 0.0

    @property
    def path(self) -> str:
        return self.hit.location.path

    @property
    def is_page(self) -> bool:
        return is_page(self.path)


def is_page(path: str) -> bool:
    """Whether a file is a page of documentation, whose parts have headings."""
    return _PAGE.search(path) is not None


def is_beside_code(path: str) -> bool:
    """Whether a file says little of how the code works: a test, an example, data, what is of another time."""
    is_aside = is_test_or_docs(path) and not is_page(path)
    return is_aside or _DATA.search(path) is not None or _OTHER_TIMES.search(path) is not None


async def find_places(
    code: CodeSearch, request: RetrievalRequest, *, pages_lead: bool = False, skip: int = 0
) -> list[BestPlace]:
    """Find the places of a question, four at a time.

    With `pages_lead` documentation comes first where its heading says what is asked.
    """
    is_foreign = not is_english(request["query"])
    if is_foreign:
        request = {**request, "query": await _write_as_code(code, request["query"])}
    pages: RetrievalRequest = {**request, "source_types": ["doc"]}
    found, documents = await asyncio.gather(
        search_parts(code, request, limit=_HITS, aim="places"),
        search_relaxed(code, pages, limit=_PAGES, aim="places"),
    )
    chunks: dict[Location, _Chunk] = {}
    for name, hits in (("all", found.hits), ("pages", documents.hits)):
        for rank, hit in enumerate(hits, 1):
            if name == "all" or hit.source_type == "doc":
                chunks.setdefault(hit.location, _Chunk(hit=hit)).ranks[name] = rank
    texts = [f"{one.path} {one.hit.text}" for one in chunks.values()]
    asked = _read_question(request["query"], code.repository, texts)
    if is_foreign and not asked.weights:
        return []  # nothing that was found says a word of the question
    headings = {path: await _read_headings(code, path) for path in {one.path for one in chunks.values() if one.is_page}}
    for chunk in chunks.values():
        _score(chunk, asked, headings.get(chunk.path, {}))
    files = _rank_files(list(chunks.values()), pages_lead=pages_lead)
    chosen = files[skip : skip + MAX_PLACES]
    if not skip:
        chosen = _add_page(chosen, list(chunks.values()))
    if pages_lead and not skip and (design := await _find_design(code, request, asked)) is not None:
        headings[design.path] = await _read_headings(code, design.path)
        chosen = _replace_last(chosen, design)
    return [await _describe(code, asked, file, headings.get(file[0].path, {})) for file in chosen]


async def _write_as_code(code: CodeSearch, question: str) -> str:
    """Write a question in another language without its commonest words, with words of the code that begin alike.

    For "cancela" that is `cancel`.
    """
    words = [word for word in question.split() if word.strip("¿?!.,").lower() not in OTHER_WORDS]
    decomposed = unicodedata.normalize("NFD", " ".join(words).lower())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    for word in dict.fromkeys(_LONG_WORD.findall(plain)):
        begin = word[: max(_MIN_COGNATE, len(word) - _ENDING)]
        lines = (await code.grep(rf"(?i)\b{begin}", limit=_MAX_LINES_OF_COGNATE)).lines
        spelt = Counter(
            said for line in lines for said in _LETTERS.findall(line.text.lower()) if said.startswith(begin)
        )
        words += [said for said, _ in spelt.most_common(1)]
    return " ".join(words)


def _read_question(question: str, repository: str, texts: Sequence[str]) -> _Asked:
    terms = find_content_terms(question)
    counts = Counter(term for text in texts for term in match_terms(text, terms))
    own = {stem_word(part) for part in re.split(r"\W+", repository.lower())}
    return _Asked(
        weights={
            term: math.log(1 + len(texts) / (count + 0.5)) * (_OWN_NAME if term in own else 1.0)
            for term, count in counts.items()
        },
        wants_value=bool(_ASKS_VALUE.search(question)),
        wants_aside=bool(_ASKS_ASIDE.search(question)),
        wants_other_times=bool(_ASKS_OTHER_TIMES.search(question)),
    )


async def _read_headings(code: CodeSearch, path: str) -> Mapping[int, str]:
    return find_headings((await code.read(path)).text.split("\n"))


def _score(chunk: _Chunk, asked: _Asked, headings: Mapping[int, str]) -> None:
    at, path = chunk.hit.location, chunk.path
    chunk.share = asked.share(asked.match(chunk.hit.text))
    titles = [text for line, text in headings.items() if at.start_line < line <= at.end_line]
    titles += [text for line, text in headings.items() if line <= at.start_line][-1:]
    chunk.heading = max((asked.share(asked.match(title)) for title in titles), default=0.0)
    weights = {"all": 1.0, "pages": _PAGE_WEIGHT}
    chunk.score = sum(weights[name] * 5 / (_RANK_OFFSET + rank) for name, rank in chunk.ranks.items())
    chunk.score += _WORDS_WEIGHT * chunk.share
    scope = chunk.hit.scope or next((one.qualified_name for one in chunk.hit.symbols), "")
    if (is_test_or_docs(path) and not chunk.is_page) or _TEST_NAME.match(scope):
        chunk.score += 0.5 if asked.wants_aside else -1.0
    chunk.score -= bool(_DATA.search(path)) + (bool(_OTHER_TIMES.search(path)) and not asked.wants_other_times)


def _rank_files(chunks: Sequence[_Chunk], *, pages_lead: bool) -> list[list[_Chunk]]:
    """Put the best chunks of each file together, the best files first."""
    files: dict[str, list[_Chunk]] = {}
    for chunk in sorted(chunks, key=lambda one: -one.score):
        files.setdefault(chunk.path, []).append(chunk)

    def weigh(file: Sequence[_Chunk]) -> tuple[bool, float]:
        leads = pages_lead and any(one.heading >= _MIN_HEADING and one.score > 0 for one in file)
        further = sum(max(0.0, one.score) for one in file[1:_MAX_CHUNKS])
        return not leads, -(file[0].score + _FURTHER_CHUNK * further)

    return sorted(files.values(), key=weigh)


def _add_page(chosen: list[list[_Chunk]], chunks: Sequence[_Chunk]) -> list[list[_Chunk]]:
    """Make the last place a page of the documentation where none is one and one says enough."""
    if any(file[0].is_page for file in chosen):
        return chosen
    plain = [one for one in chunks if "pages" in one.ranks and not is_beside_code(one.path)]
    best = min(plain, key=lambda one: one.ranks["pages"] - _RANK_OFFSET * one.heading, default=None)
    return _replace_last(chosen, best) if best is not None and best.share >= _MIN_PAGE else chosen


def _replace_last(chosen: Sequence[list[_Chunk]], chunk: _Chunk) -> list[list[_Chunk]]:
    """Make a chunk the last of the places unless its file is one of them."""
    if any(file[0].path == chunk.path for file in chosen):
        return list(chosen)
    return [*chosen[: MAX_PLACES - 1], [chunk]]


async def _find_design(code: CodeSearch, request: RetrievalRequest, asked: _Asked) -> _Chunk | None:
    """Find the section of a design page with most words of the question.

    Such a page explains how the parts fit together. It often uses other words than the code, and there is one of it
    among many files that repeat a word.
    """
    pages = [entry.path for entry in await code.files() if entry.source_type == "doc" and _DESIGN.search(entry.path)]
    plain = [f"/{path}" for path in pages if not is_beside_code(path)]
    if not plain:
        return None
    hits = (
        await search_relaxed(code, {**request, "patterns": plain, "folders": []}, limit=_PAGES, aim="passages")
    ).hits
    ranks = {hit.location: rank for rank, hit in enumerate(hits, 1)}
    chunks = [
        _Chunk(hit=hit, share=asked.share(asked.match(hit.text))) for hit in hits if f"/{hit.location.path}" in plain
    ]
    best = max(chunks, key=lambda one: one.share + 5 / (_RANK_OFFSET + ranks[one.hit.location]), default=None)
    return best if best is not None and best.share >= _MIN_PAGE else None


async def _describe(code: CodeSearch, asked: _Asked, file: Sequence[_Chunk], headings: Mapping[int, str]) -> BestPlace:
    """Choose the lines of a file, two of its best chunk and one of each of the next, and name what they are in."""
    titles = frozenset(headings)
    lines = _choose_lines(asked, file[0], titles, _PER_CHUNK)
    for chunk in file[1:_MAX_CHUNKS]:
        if chunk.score >= _MIN_FURTHER * file[0].score and len(lines) < MAX_LINES:
            lines += [line for line in _choose_lines(asked, chunk, titles, 1) if line not in lines]
    lines.sort(key=lambda line: line.number)
    labels = await _label(code, file[0].path, lines, headings)
    return BestPlace(path=file[0].path, labels=labels, lines=tuple(lines), score=file[0].score)


async def locate_text(code: CodeSearch, ref: EvidenceRef, texts: Sequence[Literal]) -> BestPlace:
    """Return the lines that spell one of the texts, and the definition or heading that they are in."""
    path = ref["path"]
    lines = (await code.read(path, ref["start_line"], ref["end_line"])).text.split("\n")
    spelt = next((at for text in texts if (at := text.find_lines("\n".join(lines))) is not None), (0, 0))
    numbers = range(spelt[0], min(spelt[1] + 1, spelt[0] + MAX_LINES))
    shown = [FoundLine(number=ref["start_line"] + at, text=lines[at]) for at in numbers]
    headings = await _read_headings(code, path) if is_page(path) else {}
    return BestPlace(path=path, labels=await _label(code, path, shown[:1], headings), lines=tuple(shown))


async def _label(
    code: CodeSearch, path: str, lines: Sequence[FoundLine], headings: Mapping[int, str]
) -> tuple[str, ...]:
    """Name the definitions or the headings that the lines are in."""
    labels: list[str] = []
    for line in lines:
        if is_page(path):
            labels += [text for at, text in headings.items() if at <= line.number][-1:]
        else:
            around = await code.find_enclosing(Location(path=path, start_line=line.number, end_line=line.number))
            labels += [one.symbol.qualified_name for one in around[-1:]]
    return tuple(dict.fromkeys(labels))


def _choose_lines(asked: _Asked, chunk: _Chunk, titles: frozenset[int], most: int) -> list[FoundLine]:
    """Choose the lines of a chunk whose words weigh most; each further one brings a new word or weighs as much."""
    ranked = _rank_lines(asked, chunk, titles)
    if not ranked:
        return []
    if chunk.is_page:
        return _choose_sentences(asked, ranked, titles, most)
    top_weight, top = ranked[0]
    chosen, said = [top], asked.match(top.text)
    if asked.wants_value and (value := _find_value(ranked)) is not None:
        chosen.append(value)
    for weight, line in ranked[1:]:
        words = asked.match(line.text)
        is_worth = weight >= top_weight / 2 and (words - said or weight >= 0.85 * top_weight)
        if len(chosen) < most and line not in chosen and (is_worth or (weight >= 0.25 and words - said)):
            chosen.append(line)
            said |= words
    return chosen[:most]


def _rank_lines(asked: _Asked, chunk: _Chunk, titles: frozenset[int]) -> list[tuple[float, FoundLine]]:
    """Weigh the lines of a chunk by their words, and by whether they define, assign or only import something."""
    heads = _find_heads(chunk.hit)
    tests = [one for one in chunk.hit.symbols if _TEST_NAME.match(one.qualified_name) and not asked.wants_aside]
    ranked = []
    for number, text in enumerate(chunk.hit.text.split("\n"), chunk.hit.location.start_line):
        if len(text.strip()) < 4 or not re.search(r"\w", text):
            continue
        words = asked.match(text[:_LONGEST_LINE])
        weight = asked.share(words)
        if chunk.is_page:
            weight = 0.0 if _MARKUP.match(text) else weight + 0.15 * bool(words and number in titles)
        else:
            weight *= 0.3 if is_import(text) else 1.0
            if number in heads:
                is_main = number == heads[0]
                weight += 0.15 * bool(words or is_main) + 0.25 * is_main
            weight += bool(words and _ASSIGNMENT.match(text)) * 0.1
            weight += 0.2 * bool(asked.wants_value and words and _VALUE.search(text))
            weight *= 0.3 if any(one.start_line <= number <= one.end_line for one in tests) else 1.0
        ranked.append((weight, FoundLine(number=number, text=text)))
    return sorted(ranked, key=lambda each: (-each[0], each[1].number))


def _find_heads(hit: Hit) -> list[int]:
    """Return the lines on which the definitions of a chunk are named; their attributes and decorators are above."""
    lines = hit.text.split("\n")
    first = hit.location.start_line
    named = (
        next(
            (
                at
                for at in range(one.start_line, min(one.end_line, hit.location.end_line) + 1)
                if one.name in lines[at - first]
            ),
            one.start_line,
        )
        for one in hit.symbols
    )
    return list(named)


def _choose_sentences(
    asked: _Asked, ranked: Sequence[tuple[float, FoundLine]], titles: frozenset[int], most: int
) -> list[FoundLine]:
    """Choose the first line below the best heading and the one below it that says most; else the best lines."""
    top = ranked[0][1]
    body = [(weight, line) for weight, line in ranked if line.number not in titles]
    if top.number in titles:
        end = min((number for number in titles if number > top.number), default=top.number + 40)
        body = [
            (weight, line) for weight, line in body if top.number < line.number < end and not _MARKUP.match(line.text)
        ]
        first = min((line for _, line in body), key=lambda line: line.number, default=top)
        best = [line for weight, line in body if weight > 0 and line != first]
        return [first, *best][:most]
    chosen: list[FoundLine] = []
    said: frozenset[str] = frozenset()
    for weight, line in body or ranked[:1]:
        words = asked.match(line.text)
        if len(chosen) < most and (not chosen or (words - said and weight >= 0.25)):
            chosen.append(line)
            said |= words
    return chosen


def _find_value(ranked: Sequence[tuple[float, FoundLine]]) -> FoundLine | None:
    """Find the line with a number, a default or a variable of the environment that is nearest to the best line."""
    weight, top = ranked[0]
    values = [
        line
        for own, line in ranked
        if _VALUE.search(line.text)
        and (_ASSIGNMENT.match(line.text) or "default" in line.text.lower() or "env" in line.text.lower())
        and (own >= weight / 2 or -_NEAR_ABOVE <= line.number - top.number <= _NEAR_BELOW)
    ]
    if top in values:
        return None
    return min(values, key=lambda line: abs(line.number - top.number) - 0.1 * (line.number > top.number), default=None)
