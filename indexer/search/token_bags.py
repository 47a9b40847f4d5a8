"""The tokens that each chunk of a file is found by, with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from indexer.text.tokens import tokenize, tokenize_identifier, tokenize_path
from indexer.types import ParsedFile

Bag = Mapping[str, int]
_PATH_WEIGHT = 3  # how often the path's tokens are counted in each of a file's chunks
_NAME_WEIGHT = 2  # and how often those of the definitions and the scope


def build_bags(path: str, parsed: ParsedFile) -> tuple[Bag, ...]:
    """Count the tokens of each chunk of a file, with those of its path, its scope and the names it defines."""
    path_tokens = tokenize_path(path) * _PATH_WEIGHT
    bags = []
    for chunk in parsed.chunks:
        names = [token for name in chunk.names for token in tokenize_identifier(name)] + tokenize(chunk.scope)
        bags.append(Counter(tokenize(chunk.text) + path_tokens + names * _NAME_WEIGHT))
    return tuple(bags)
