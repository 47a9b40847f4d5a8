"""Measures how much of a message a piece of code spells, placeholders included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from indexer.text.linear_patterns import compile_pattern

RUN = 3  # words that follow each other and are told from the same words elsewhere
WINDOW = 6  # lines that one message may be broken into

MAX_PATTERN = 480  # characters; the search of the index takes little more

_WORD = re.compile(r"[^\W_]+")
_ESCAPED = re.compile(r"\\[nrt]")
_PREFIX = re.compile(r"(?<!\w)[fFrRbBuU]{1,2}(?=[\"'])")  # of a text in Python, which is no word of it
_TEXT = compile_pattern(r"\"(?:[^\"\\\n]|\\.){3,300}\"|'(?:[^'\\\n]|\\.){3,300}'|`[^`\n]{3,300}`")
_FILLED = re.compile(
    r"%(?:\([^()\n]{1,60}\))?[-+#0-9.]{0,8}l{0,2}[a-zA-Z]|[$#]?\{[^{}\n]{0,80}\}|<[^<>\n]{1,60}>|\$\w{1,60}"
)
_LONGEST = 80  # words that are looked at
_MAX_MESSAGE = 1_000  # characters that are looked for; every line of the code is held against all of them
_SURE, _HALF = 0.7, 0.5
_SENTENCE = 6  # words
_LETTERS = 3  # of each word of a run, on average
_MIN_OF_TEMPLATE = 0.4  # of the message; the rest is what was filled in


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageMatch:
    """The lines of a piece of code that spell most of a message, counted from 0, and the share of its words there.

    `is_template` tells that one text of the code is in the message with all its words, in their order.
    """

    share: float = 0.0
    start: int = 0
    end: int = 0
    is_template: bool = False


def match_message(message: str, code: str, *, run: int = RUN) -> MessageMatch:
    """Find the few lines of the code that spell most of a message; a share of 0 if there are none."""
    wanted = _split_message(message[:_MAX_MESSAGE])
    if not wanted:
        return MessageMatch()
    by_template = max(_match_templates(wanted, code), key=lambda match: match.share, default=MessageMatch())
    by_runs = _match_runs(wanted, code, run)
    if by_template.share > 0 and by_runs.share <= by_template.share:
        return by_template
    return by_runs


def is_confident_match(message: str, match: MessageMatch) -> bool:
    """Whether a match is no coincidence: a whole text of the code, most of the message, or half and a sentence."""
    if match.is_template or match.share >= _SURE:
        return True
    return match.share >= _HALF and match.share * len(_split_message(message)) >= _SENTENCE


def make_line_patterns(message: str, *, run: int = RUN) -> Iterator[str]:
    """Write RE2 patterns for lines with one of a message's runs, with ever fewer and longer ones."""
    runs = dict.fromkeys(words for _, words in _list_runs(_split_message(message), run))
    longest_first = sorted(runs, key=lambda words: -sum(map(len, words)))
    while longest_first:
        yield _make_alternatives(longest_first)
        longest_first = longest_first[: len(longest_first) // 2]


def _match_runs(wanted: tuple[str, ...], code: str, run: int) -> MessageMatch:
    """Count the words in runs within a window of lines, and return the best window."""
    size = min(run, len(wanted))
    places: dict[tuple[str, ...], set[int]] = {}
    for at, sought in _list_runs(wanted, run):
        places.setdefault(sought, set()).update(range(at, at + size))
    if not places:
        return MessageMatch()
    begins = {words[0] for words in places}
    tokens = [(word, line) for line, text in enumerate(code.split("\n")) for word in _split_words(text)]
    words = [word for word, _ in tokens]
    found = [
        (tokens[at][1], tokens[at + size - 1][1], here)
        for at in range(len(tokens) - size + 1)
        if words[at] in begins and (here := tuple(words[at : at + size])) in places
    ]
    return _choose_window(found, places, len(wanted))


def _choose_window(
    found: Sequence[tuple[int, int, tuple[str, ...]]], places: Mapping[tuple[str, ...], set[int]], total: int
) -> MessageMatch:
    """Slide over the runs, from first line to last, and keep the densest window."""
    inside: Counter[tuple[str, ...]] = Counter()
    best = MessageMatch()
    oldest = 0
    for first, last, run in found:
        inside[run] += 1
        while last - found[oldest][0] >= WINDOW and found[oldest][0] < first:
            inside[found[oldest][2]] -= 1
            oldest += 1
        if inside[run] > 1:  # nothing new
            continue
        inside = +inside
        share = len(set().union(*(places[one] for one in inside))) / total
        if share > best.share:
            best = MessageMatch(share=share, start=found[oldest][0], end=last)
    return best


def _match_templates(wanted: Sequence[str], code: str) -> Iterator[MessageMatch]:
    """Find the texts of the code with all words in the message, in order."""
    for at, line in enumerate(code.split("\n")):
        for text in _TEXT.findall(line):
            words = _split_words(_FILLED.sub(" ", text))
            share = len(words) / len(wanted)
            is_long = len(words) >= RUN and sum(map(len, words)) >= _LETTERS * len(words)
            if is_long and _MIN_OF_TEMPLATE <= share <= 1 and _is_in_order(words, wanted):
                yield MessageMatch(share=share, start=at, end=at, is_template=True)


def _is_in_order(words: Sequence[str], wanted: Sequence[str]) -> bool:
    rest = iter(wanted)
    return all(word in rest for word in words)


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
    """Return the runs of so many words with their places, or all words if there are fewer.

    Skips runs without meaning, like "of the file", which appear everywhere.
    """
    size = min(size, len(words))
    runs = ((at, words[at : at + size]) for at in range(len(words) - size + 1))
    return tuple((at, run) for at, run in runs if sum(map(len, run)) >= _LETTERS * len(run))


@lru_cache(maxsize=64)
def _split_message(message: str) -> tuple[str, ...]:
    return tuple(_split_words(message)[:_LONGEST])


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_PREFIX.sub(" ", _ESCAPED.sub(" ", text)))]
