"""Tells how much of a message that somebody saw is spelt by code, which breaks it into lines and fills it in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

MAX_PATTERN = 480  # characters; the search of the index takes little more
RUN = 3  # words that follow each other and are told from the same words elsewhere

_WORD = re.compile(r"[^\W_]+")
_ESCAPED = re.compile(r"\\[nrt]")
_LONGEST = 80  # words that are looked at
_SURE, _HALF = 0.7, 0.5
_SENTENCE = 6  # words
_LETTERS = 3  # of each word of a run, on average


def measure_match(message: str, code: str, *, run: int = RUN) -> float:
    """Return the share of the message's words, 0 to 1, that stand in the code in runs: what is filled in does not."""
    wanted = _words(message)
    said = f" {' '.join(_words_of(code))} "
    covered = {
        at
        for first, words in _list_runs(wanted, run)
        if f" {' '.join(words)} " in said
        for at in range(first, first + run)
    }
    return min(1.0, len(covered) / len(wanted)) if wanted else 0.0


def is_confident_match(message: str, share: float) -> bool:
    """Whether so much of a message is no chance: most of it, or half of it and a whole sentence."""
    return share >= _SURE or (share >= _HALF and share * len(_words(message)) >= _SENTENCE)


def make_line_patterns(message: str, *, run: int = RUN) -> Iterator[str]:
    """Write patterns in RE2's syntax for lines that say one of a message's runs, each for fewer and longer ones."""
    runs = dict.fromkeys(words for _, words in _list_runs(_words(message), run))
    longest_first = sorted(runs, key=lambda words: -sum(map(len, words)))
    while longest_first:
        yield _any_of(longest_first)
        longest_first = longest_first[: len(longest_first) // 2]


def _any_of(runs: Sequence[tuple[str, ...]]) -> str:
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
    return tuple((at, run) for at, run in runs if _is_distinctive(run))


def _is_distinctive(run: tuple[str, ...]) -> bool:
    return sum(map(len, run)) >= _LETTERS * len(run)


@lru_cache(maxsize=64)
def _words(message: str) -> tuple[str, ...]:
    return tuple(_words_of(message)[:_LONGEST])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_ESCAPED.sub(" ", text))]
