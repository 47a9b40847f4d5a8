"""Tokens of texts, identifiers and paths, and the counts that make each chunk of a file searchable."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath

from indexer.types import ParsedFile

IDENTIFIER = re.compile(r"[^\W\d][\w$]*|\$[\w$]+|\d+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

# Words that ask rather than name. On long questions leaving them out is worth more than any other single step.
QUESTION_STOP_WORDS = frozenset(
    """the a an of to in is are be for and or how does do did what which why where when that this these those it
    its with by from on as at into their there between while through using use used both each any has have was
    were will would can could should such than then them they not no if implement implemented""".split()
)

# Longest suffix first; a replacement keeps the forms of one verb together (validate, validation, validating).
_SUFFIXES = (
    ("ization", "ize"), ("ational", "ate"), ("fulness", "ful"), ("iveness", "ive"), ("ations", "ate"),
    ("ation", "ate"), ("izing", "ize"), ("ized", "ize"), ("izes", "ize"), ("izer", "ize"), ("ators", "ate"),
    ("ator", "ate"), ("ating", "ate"), ("ated", "ate"), ("ates", "ate"), ("ments", "ment"), ("ies", "y"),
    ("ied", "y"), ("ying", "y"), ("sses", "ss"), ("ness", ""), ("ings", ""), ("ing", ""), ("edly", ""),
    ("ed", ""), ("ers", ""), ("er", ""), ("ors", ""), ("or", ""), ("ions", "ion"), ("ion", ""), ("able", ""),
    ("ible", ""), ("ally", "al"), ("ly", ""), ("es", ""), ("s", ""),
)  # fmt: skip


def split_identifier(identifier: str) -> list[str]:
    """Split `camelCase` and `snake_case` into lower-case words."""
    if not identifier.isascii():
        return [part.lower() for part in identifier.split("_") if part]
    return [part.lower() for part in _PART.findall(identifier)]


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Reduce a lower-case word to a form shared by its inflections; words of four letters or fewer stay."""
    if len(word) <= 4:
        return word
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) + len(replacement) >= 3:
            if suffix == "s" and word[-2] in "su":
                return word
            return _tidy(word[: len(word) - len(suffix)] + replacement)
    return word.removesuffix("e")


def _tidy(base: str) -> str:
    """Undo a doubled consonant (`running` -> `run`) and a final e (`caching`, `cache`)."""
    if len(base) >= 4 and base[-1] == base[-2] and base[-1] not in "lsze":
        base = base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 3 else base


@lru_cache(maxsize=400_000)
def tokenize_identifier(identifier: str) -> tuple[str, ...]:
    """Return the stemmed parts of an identifier, then the whole in lower case if it has several parts."""
    parts = split_identifier(identifier)
    tokens = [stem(part) for part in parts if len(part) > 1 or part.isdigit()]
    whole = identifier.lower().strip("_$")
    if len(parts) > 1 and len(whole) > 1:
        tokens.append(whole)
    return tuple(tokens)


def tokenize(text: str) -> list[str]:
    """Return the tokens of a piece of code or prose, in order, with repeats."""
    return list(chain.from_iterable(map(tokenize_identifier, IDENTIFIER.findall(text))))


def tokenize_path(path: str) -> list[str]:
    """Return the tokens of a path without its last suffix."""
    return tokenize(str(PurePosixPath(path).with_suffix("")) if PurePosixPath(path).name else path)


def find_question_words(question: str) -> list[str]:
    """Return the identifiers of a question without stop words, or all of them if nothing else is left."""
    words: list[str] = IDENTIFIER.findall(question)
    return [word for word in words if word.lower() not in QUESTION_STOP_WORDS] or words


def tokenize_question(question: str) -> list[str]:
    """Return the tokens of a question without its stop words."""
    return [token for word in find_question_words(question) for token in tokenize_identifier(word)]


Bag = Mapping[str, int]
_PATH_WEIGHT = 3  # how often the path's tokens are counted in each of a file's chunks
_NAME_WEIGHT = 2  # and how often those of the definitions and the scope


def build_bags(parsed: ParsedFile) -> tuple[Bag, ...]:
    """Count the tokens of each chunk of a file, with those of its scope and of the names it defines."""
    bags = []
    for chunk in parsed.chunks:
        names = [token for name in chunk.names for token in tokenize_identifier(name)] + tokenize(chunk.scope)
        bags.append(Counter(tokenize(chunk.text) + names * _NAME_WEIGHT))
    return tuple(bags)


def add_path(bags: Sequence[Bag], path: str) -> tuple[Bag, ...]:
    """Count the tokens of a file's path with those of each of its chunks."""
    tokens = tokenize_path(path)
    added = []
    for bag in bags:
        counts = dict(bag)
        for token in tokens:
            counts[token] = counts.get(token, 0) + _PATH_WEIGHT
        added.append(counts)
    return tuple(added)
