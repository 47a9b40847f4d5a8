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


def spelt_share(message: str, code: str, *, run: int = RUN) -> float:
    """Return the share of the message's words, 0 to 1, that stand in the code in runs: what is filled in does not."""
    wanted = _words(message)
    said = f" {' '.join(_words_of(code))} "
    covered: set[int] = set()
    for at, words in enumerate(_runs(wanted, run)):
        if f" {' '.join(words)} " in said:
            covered.update(range(at, at + len(words)))
    return len(covered) / len(wanted) if wanted else 0.0


def line_patterns(message: str, *, run: int = RUN) -> Iterator[str]:
    """Write patterns in RE2's syntax for lines that say one of the message's runs, then one of fewer and longer ones."""
    longest_first = sorted(dict.fromkeys(_runs(_words(message), run)), key=lambda words: -sum(map(len, words)))
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


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    size = min(size, len(words))
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)] if size else []


@lru_cache(maxsize=64)
def _words(message: str) -> tuple[str, ...]:
    return tuple(_words_of(message)[:_LONGEST])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_ESCAPED.sub(" ", text))]
