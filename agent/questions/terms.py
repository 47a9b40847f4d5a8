"""The meaningful words of a question, and their matches in a piece of code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")  # scripts that set no blanks beside other words

_STOP = frozenset(
    """a about above again actually after all also am an and any are as at be become becomes been being but by can
    code codebase could did do does done each else explain file files find for from function functions get give
    go goes had handled happen happens has have he her here how i if in into is it its itself just know let like
    list locate located look made make may me method methods module my need no not now of off on one only or our
    out over own part place please project repo repository s same see should show so some something still such
    tell than that the their them then there these they thing things this those through to too under up use used
    uses using was we were what when where which while who whose why will with work works would you your""".split()
)
_WORD = re.compile(r"[^\W_]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_TERMS = 40
_MAX_KNOWN = 40
_KEPT = 3  # letters of a word that its stem always keeps


def split_words(text: str) -> list[str]:
    """Split text into lower-case words; identifiers are split into their parts (`parseDate`, `parse_date`)."""
    return [part.lower() for word in _WORD.findall(text) for part in _HUMPS.split(word)]


def stem_word(word: str) -> str:
    """Reduce a word to a form shared by its inflections (`retries`, `retry`; `parsing`, `parser`)."""
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for suffix in ("ings", "ing", "ers", "ors", "ed", "er", "or", "es", "s", "e"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            return word[: -len(suffix)]
    return word


def find_content_terms(question: str) -> frozenset[str]:
    """Return the stems of the meaningful words of a question; empty if there are none."""
    meaningful = [word for word in split_words(question) if is_content_word(word)]
    return frozenset(stem_word(word) for word in meaningful[:_MAX_TERMS])


def is_content_word(word: str) -> bool:
    """Whether a lower-case word is meaningful for a search."""
    return word not in _STOP and (len(word) > 1 or not word.isascii())


def is_common_noun(word: str, question: str) -> bool:
    """Whether a name is used as a common noun in a question: "the graph", and not "the graph function"."""
    noun = (
        rf"(?i)\b(?:the|a|an|our|this|that|my) {re.escape(word)}(?! (?:function|class|method|type|command|constant)\b)"
    )
    return word.isalpha() and word.islower() and re.search(rf"{noun}\b", question) is not None


def match_terms(text: str, terms: Iterable[str]) -> frozenset[str]:
    """Return the terms that the text contains."""
    lowered = text.lower()
    # A stem begins as its word does, except a last "y": where no such beginning stands, there is nothing to split.
    likely = frozenset(term for term in terms if term.removesuffix("y")[:_KEPT] in lowered)
    if not likely:
        return likely
    return likely.intersection(chain.from_iterable(map(_find_stems, set(_WORD.findall(text)))))


def _find_stems(word: str) -> frozenset[str]:
    return _known_stems(word) if len(word) <= _MAX_KNOWN else _compute_stems(word)


def _compute_stems(word: str) -> frozenset[str]:
    return frozenset(stem_word(part.lower()) for part in _HUMPS.split(word))


_known_stems = lru_cache(maxsize=1 << 14)(_compute_stems)  # code says the same words over and over
