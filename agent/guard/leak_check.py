"""Checks a model's text for its instructions and for masked values in disguise."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from agent import chat
from agent.errors import AnswerLeaked
from agent.guard.injection.normalization import decode_spans, unescape
from agent.text.storable import MaskedValues

RUN = 10  # words in a row that nobody writes by chance
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = re.compile(r"[\s\-_.*|,]+")


def has_leaked_instructions(answer: str, instructions: str, evidence: Iterable[str]) -> bool:
    """Whether an answer repeats the model's instructions and the evidence does not contain the same."""
    secret, words = _take_apart(instructions)
    leaked = set(secret.intersection(_find_runs(answer, words)))
    if not leaked:
        return False
    for text in evidence:
        leaked -= set(_find_runs(text, words))
    return bool(leaked)


def has_masked_values(answer: str, masked: MaskedValues) -> bool:
    """Whether an answer holds a masked value reversed, spaced out or encoded."""
    values = tuple(masked)
    if not values:
        return False
    closed = _BETWEEN.sub("", answer)
    decoded = [data.decode("utf-8", "replace") for _, data in decode_spans(answer)]
    forms = [answer[::-1], closed, closed[::-1], unescape(answer), *decoded]
    return any(value in form or _BETWEEN.sub("", value) in form for value in values for form in forms)


def check_leaks(texts: Iterable[str], messages: Sequence[chat.BaseMessage], masked: MaskedValues) -> None:
    """Refuse a model's question or plan to a person if it leaks something."""
    text = " ".join(texts)
    if has_leaked_instructions(text, str(messages[0].text), ()) or has_masked_values(text, masked):
        raise AnswerLeaked("A question or a plan was left out: it held instructions of the model, or a masked value.")


@lru_cache(maxsize=8)  # the instructions are the same from turn to turn
def _take_apart(instructions: str) -> tuple[frozenset[tuple[str, ...]], frozenset[str]]:
    """Return the runs of words of a text, and the words themselves."""
    runs = frozenset(_find_runs(instructions))
    return runs, frozenset(chain.from_iterable(runs))


def _find_runs(text: str, known: Collection[str] | None = None) -> Iterator[tuple[str, ...]]:
    """Yield all runs of words, or only those of known words, which saves building the rest."""
    words = _WORD.findall(text.lower())
    length = 0
    for end, word in enumerate(words, 1):
        length = length + 1 if known is None or word in known else 0
        if length >= RUN:
            yield tuple(words[end - RUN : end])
