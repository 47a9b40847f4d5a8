"""The terms by which a sentence and lines of code are compared: words, pairs of words, names, and what is quoted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from agent.citations.claims import find_identifiers, find_names, find_qualified_names
from agent.questions.terms import is_content_word, split_words
from agent.text.citation_markers import MARKER
from agent.text.code_spans import split_spans

MAX_QUOTES = 200  # of one answer
_LONGEST_QUOTE = 100
_STEM = 4  # letters by which a word is known, in whatever form and language
# How much a kind of term counts beside a word.
_NAME_WEIGHT = 1.5
_QUOTE_WEIGHT = 1.5
_PAIR_WEIGHT = 0.5

# Beginnings of words, and of two words side by side with a space between; names with a `#` before them, those that are
# defined here with `#=`, and what a sentence quotes word for word with a backtick.
Terms = frozenset[str]


def get_term_weight(term: str) -> float:
    """Return how much a term counts for its kind."""
    if term.startswith("#"):
        return _NAME_WEIGHT
    if term.startswith("`"):
        return _QUOTE_WEIGHT
    return _PAIR_WEIGHT if " " in term else 1.0


def find_claim_terms(text: str) -> Terms:
    """Return the terms of a sentence; of its words those that carry meaning, its names as named and as defined."""
    bare = MARKER.sub(" ", text)
    stems = [word[:_STEM] if is_content_word(word) else "" for word in split_words(bare)]
    pairs = {f"{one} {other}" for one, other in pairwise(stems) if one and other}
    names = find_names(bare)
    defined = {f"#={part}" for name in find_qualified_names(bare) for part in _join_parts(name)}
    named = {f"#{name}" for name in names} | {f"#={name}" for name in names}
    return frozenset({*stems, *pairs, *named, *defined, *map("`{}".format, find_quotes(bare))}) - {""}


def find_quotes(text: str) -> list[str]:
    """Return what a sentence quotes that is more than a name (`-x`, `/feeds/refresh`), lower-case."""
    _, spans = split_spans(text)
    quotes = (_normalize(span) for span in spans if len(span) <= _LONGEST_QUOTE)
    return [quote for quote in quotes if len(quote) > 1 and not quote.replace("_", "a").isalnum()]


@lru_cache(maxsize=1 << 13)
def find_line_terms(line: str) -> Terms:
    """Return the terms of a line of code, but for quotes of a sentence."""
    stems = [word[:_STEM] for word in split_words(line)]
    pairs = {f"{one} {other}" for one, other in pairwise(stems)}
    return frozenset({*stems, *pairs, *(f"#{name}" for name in find_identifiers(line))})


def match_quotes(line: str, quotes: Sequence[str]) -> Terms:
    """Return those of some quotes that stand in a line."""
    written = _normalize(line) if quotes else ""
    return frozenset(f"`{quote}" for quote in quotes if quote in written)


def find_definition_terms(names: Iterable[str]) -> Terms:
    """Return the terms of definitions by their qualified names: a method by its own name, and by that of its class."""
    bare = [".".join(part.rstrip("!?=") for part in name.lower().split(".")) for name in names]
    own = {f"#={name.rpartition('.')[2]}" for name in bare}
    return frozenset(own | {f"#={part}" for name in bare for part in _join_parts(name.split("."))})


def _join_parts(parts: Sequence[str]) -> Iterator[str]:
    return (f"{one}.{other}" for one, other in pairwise(parts))


def _normalize(text: str) -> str:
    return " ".join(text.split()).lower()
