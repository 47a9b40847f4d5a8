"""The tokens that each chunk of a file is found by, with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from indexer.text.tokens import tokenize, tokenize_identifier, tokenize_path
from indexer.types import ParsedFile

Bag = Mapping[str, int]
_PATH_WEIGHT = 3  # how often the path's tokens are counted in each of a file's chunks
_NAME_WEIGHT = 2  # and how often those of the definitions and the scope


def build_bags(parsed: ParsedFile) -> tuple[Bag, ...]:
    """Count the tokens of each chunk of a file, with those of its scope and the names it defines."""
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
