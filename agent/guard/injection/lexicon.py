"""Reads a text as marks: the places of the words in orders, each with its concepts."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from indexer.text.linear_patterns import compile_pattern

CACHED_WORDS = 20_000
SHORTEST_STEM = 3
_MAX_PHRASE = 8  # words
NAME_PARTS = 3  # words that a name has at least to be read as a sentence
_TOKEN = re.compile(r"\.?\w[\w\u0300-\u036f\u0900-\u0dff'’./\\-]*|[^\w\s]|\n")
_IN_NAMES = re.compile(r"[\W_]+")
_SHAPE = "\ue000"  # is in the place of a shape
_ENDS = frozenset(".?!…。？！؟।;；\n")
_COLONS = frozenset(":：")
# The distance in words that a sign adds.
_DISTANCES = (
    dict.fromkeys(".?!…。？！؟।", 13) | {"\n": 7, ":": 1, "：": 1, '"': 1, _SHAPE: 1} | dict.fromkeys("{}[]=<>|", 4)
)
_ARTICLES = "\u0590"  # scripts from here on put articles before words, or write them together
_UNSPACED = "\u2e80"  # scripts from here on write words together


class Mark(NamedTuple):
    """A place in a text: the numbers of its first and last word, its characters, and a bit for each concept."""

    first: int
    last: int
    start: int
    end: int
    bits: int


class Name(NamedTuple):
    """A long name in a text, and its marks when read as a sentence."""

    start: int
    end: int
    marks: Sequence[Mark]


class Reading(NamedTuple):
    """The marks of a text, and its long names."""

    marks: Sequence[Mark]
    names: Sequence[Name]


class _Word(NamedTuple):
    folded: str
    bits: int
    inner: Sequence[tuple[int, int]]  # how far into the word, and the concepts there
    phrases: Mapping[str, Sequence[tuple[Sequence[str], int]]]  # that begin with it, by the word that follows


class Lexicon:
    """Concepts by their words, phrases and shapes; a star at the end of a word matches all its continuations."""

    def __init__(self, words: Mapping[str, str], shapes: Mapping[str, str]) -> None:
        self.bits = {name: 1 << place for place, name in enumerate(("begin", "end", "colon", *words, *shapes))}
        self._words: dict[str, int] = defaultdict(int)
        self._stems: dict[str, int] = defaultdict(int)
        self._inner: dict[str, int] = defaultdict(int)
        self._phrases: dict[str, dict[str, list[tuple[Sequence[str], int]]]] = defaultdict(lambda: defaultdict(list))
        for concept, entries in words.items():
            for entry in filter(None, map(str.strip, entries.replace("\n", ",").split(","))):
                self._add(_fold(entry), self.bits[concept])
        alternatives = "|".join(f"(?P<{name}>{pattern})" for name, pattern in shapes.items())
        self._shapes = compile_pattern(alternatives, loose=True)
        self._look_up = lru_cache(CACHED_WORDS)(self._find_word)
        self._read_name = lru_cache(CACHED_WORDS)(self._mark_name)

    def _add(self, entry: str, bit: int) -> None:
        first, *rest = entry.split(" ")
        if rest:
            self._phrases[first][rest[0]].append((rest, bit))
        elif first >= _ARTICLES:
            self._inner[first] |= bit
        elif first.endswith("*"):
            self._stems[first[:-1]] |= bit
        else:
            self._words[first] |= bit

    def read(self, text: str) -> Reading:
        """Mark a text."""
        shapes, plain = self._take_shapes(text)
        tokens = list(_split_tokens(plain))
        words = [self._look_up(token) if token[0].isalnum() else None for _, _, token in tokens]
        marks: list[Mark] = []
        names: list[Name] = []
        begin = begins = self.bits["begin"]
        for place, (number, start, token) in enumerate(tokens):
            word = words[place]
            if word is not None:
                if word.bits or word.inner or word.phrases:
                    marks += self._mark_word(tokens, words, place, begins)
                begins = begin if word.bits & self.bits["lead"] else 0
            elif token[0] == "_":
                bits, named = self._read_name(token[1:])
                if bits:
                    marks.append(Mark(number, number, start, start + len(token) - 1, bits | begins))
                if named:
                    names.append(Name(start, start + len(token) - 1, named))
                begins = 0
            else:
                end, bits = shapes.get(start, (start + 1, 0))
                bits |= self.bits["end"] * (token in _ENDS) | self.bits["colon"] * (token in _COLONS)
                if bits:
                    marks.append(Mark(number, number, start, end, bits | begins))
                begins = 0 if token == _SHAPE else begin
        last = tokens[-1][0] + 1 if tokens else 0
        marks.append(Mark(last, last, len(text), len(text), self.bits["end"]))
        return Reading(sorted(marks), names)

    def _mark_word(
        self, tokens: Sequence[tuple[int, int, str]], words: Sequence[_Word | None], place: int, begins: int
    ) -> Iterator[Mark]:
        """Mark a word, and the phrases that begin with it."""
        number, start, token = tokens[place]
        word, *following = words[place : place + _MAX_PHRASE]
        if word is None:
            return
        end = start + len(token)
        if word.bits:
            yield Mark(number, number, start, end, word.bits | begins)
        for at, bits in word.inner:
            yield Mark(number + at, number + at, start, end, bits | begins)
        if not word.phrases:
            return
        texts = [one.folded if one is not None else "" for one in following]
        for rest, bits in word.phrases.get(texts[0], ()) if texts else ():
            if texts[: len(rest)] == rest:
                last, last_start, last_token = tokens[place + len(rest)]
                yield Mark(number, last, start, last_start + len(last_token), bits | begins)

    def _find_word(self, token: str) -> _Word:
        folded = _fold(token)
        if folded >= _ARTICLES:
            scale = 2 if folded >= _UNSPACED else len(folded)
            places = [(at // scale, bit) for inner, bit in self._inner.items() for at in _find_all(folded, inner)]
            return _Word(folded, 0, places, {})
        bits = self._words.get(folded, 0) | self._words.get(folded.removesuffix("'s"), 0)
        for length in range(SHORTEST_STEM, len(folded) + 1):
            bits |= self._stems.get(folded[:length], 0)
        return _Word(folded, bits, (), self._phrases.get(folded, {}))

    def _mark_name(self, name: str) -> tuple[int, Sequence[Mark]]:
        """Return the concept of a name, and its marks if it reads as a sentence."""
        parts = [part for part in _IN_NAMES.split(name) if part] or [name]
        bits = self._words.get(_fold(name), 0) | self._words.get(_fold(parts[-1]), 0) & self.bits["domain"]
        return bits, self.read(" ".join(parts)).marks if len(parts) >= NAME_PARTS else ()

    def _take_shapes(self, text: str) -> tuple[Mapping[int, tuple[int, int]], str]:
        """Return the spans of addresses, paths and signs, and the text with one character for each of them."""
        shapes: dict[int, tuple[int, int]] = {}
        pieces: list[str] = []
        done = 0
        for match in self._shapes.finditer(text):
            start, end = match.span()
            shapes[start] = (end, self.bits[str(match.lastgroup)])
            pieces += [text[done:start], _SHAPE, " " * (end - start - 1)]
            done = end
        return shapes, "".join([*pieces, text[done:]]) if shapes else text


def _split_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield words, names and signs with their number and place; a name has an underscore before it.

    Numbers jump at the end of a sentence, so that its last words are far from the first words of the next one.
    """
    number = 0
    for match in _TOKEN.finditer(text):
        written = match.group()
        start = match.start()
        if len(written) == 1 and not written.isalnum() and written != "_":
            yield number + 1, start, written
            number += _DISTANCES.get(written, 0)
            continue
        word = written.rstrip("'’./\\-")
        if word.isalpha():
            yield number + 1, start, word
            number += max(1, len(word) // 2) if word >= _UNSPACED else 1
        elif "_" in word or "/" in word or "." in word or "\\" in word or word.count("-") >= NAME_PARTS:
            number += 1
            yield number, start, f"_{word}"
        else:
            for part in word.split("-"):
                if part:
                    number += 1
                    yield number, start, part
                start += len(part) + 1
        if "." in written[len(word) :]:
            yield number + 1, match.start() + len(word), "."
            number += _DISTANCES["."]


def _find_all(text: str, inner: str) -> Iterator[int]:
    at = text.find(inner)
    while at >= 0:
        yield at
        at = text.find(inner, at + len(inner))


def _fold(word: str) -> str:
    """Return a word in small letters, without accents, its apostrophes straight."""
    lowered = word.lower().replace("’", "'")
    if lowered.isascii():
        return lowered
    return "".join(char for char in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(char))
