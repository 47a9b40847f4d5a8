"""The documents that postings were made of, read back from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from indexer.search.postings import PostingsStack


def read_bags(stack: PostingsStack, words: Sequence[str]) -> list[Counter[str]]:
    """Count the terms of each live document; slow."""
    bags: dict[int, Counter[str]] = {int(document): Counter() for document in stack.live}
    for term, word in enumerate(words):
        for document, count in zip(*stack.find_documents(term), strict=True):
            if int(document) in bags:
                bags[int(document)][word] = int(count)
    return [bags[int(document)] for document in stack.live]
