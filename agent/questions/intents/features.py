"""Hashes the words and the letters of a masked question into the columns of a linear model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence

from agent.questions.intents.placeholders import PLACEHOLDERS

BITS = 15
_NEAR = 3  # words that may lie between the two of a pair
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:'[^\W{_UNSPACED}]+)*|[?!+:]")


def list_features(masked: str) -> tuple[list[int], list[float]]:
    """Return the columns of a question and their values: those of its words, and those of its letters, of length 1."""
    tokens = _TOKEN.findall(masked.lower())
    columns: list[int] = []
    values: list[float] = []
    for grams in (_list_word_grams(tokens), _list_letter_grams(tokens)):
        own = sorted({zlib.crc32(gram.encode()) & ((1 << BITS) - 1) for gram in grams})
        columns += own
        values += [max(len(own), 1) ** -0.5] * len(own)
    return columns, values


def _list_word_grams(tokens: Sequence[str]) -> Iterator[str]:
    """Yield runs of one to three words with the ends of the text, and pairs of words that are near each other."""
    ended = ["<s>", *tokens, "</s>"]
    for length in (1, 2, 3):
        for at in range(len(ended) - length + 1):
            yield "w" + " ".join(ended[at : at + length])
    for at, token in enumerate(tokens):
        for other in tokens[at + 2 : at + 2 + _NEAR]:
            yield f"p{token} {other}"


def _list_letter_grams(tokens: Iterable[str]) -> Iterator[str]:
    for token in set(tokens) - PLACEHOLDERS:
        word = f" {token} "
        for length in (3, 4, 5) if len(token) > 1 else ():
            for at in range(len(word) - length + 1):
                yield "c" + word[at : at + length]
