"""Puts the results of several repositories in one order: scores of different indexes say nothing beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent.questions.terms import find_content_terms, match_terms
from indexer.types import Hit, Location, Match, Matches

_JUDGED = 5  # hits of each repository
_MUCH = 0.5  # of the best repository's weight
_LEAST = 0.1  # of the best repository's weight: what a search has found is never worth nothing


def merge_hits(found: Mapping[str, Sequence[Hit]], query: str) -> list[Hit]:
    """Rank the hits of all repositories, whose order within one stays.

    Each score counts beside the best of its repository, and that as much as the best hit there has of the words of the
    question; a word that few of the repositories have counts for more. The best hit of each that has much of them comes
    right after the first of all: a question about several is about what lies between them.
    """
    terms = find_content_terms(query)
    matches = {name: [_match_hit(hit, terms) for hit in hits[:_JUDGED]] for name, hits in found.items()}
    weights = weigh_matches(matches)
    most = max(weights.values(), default=0.0)
    merged: list[Hit] = []
    leading: list[Location] = []
    for name, hits in found.items():
        share = max(weights[name] / most, _LEAST) if most else 1.0
        best = max((hit.score for hit in hits), default=0.0)
        leading += [hits[0].location] if hits and share >= _MUCH else []
        merged += (replace(hit, score=hit.score / best * share if best > 0 else 0.0) for hit in hits)
    return sorted(merged, key=lambda hit: (hit.location not in leading, -hit.score))


def weigh_matches(matches: Mapping[str, Sequence[frozenset[str]]]) -> dict[str, float]:
    """Say how much the best match of each repository is worth, by the words in it and how few others have them."""
    held = {name: frozenset[str]().union(*each) for name, each in matches.items()}
    worth = {
        term: math.log(1 + len(held) / sum(term in each for each in held.values()))
        for term in frozenset[str]().union(*held.values())
    }
    return {
        name: max((sum(worth[term] for term in match) for match in each), default=0.0) for name, each in matches.items()
    }


def _match_hit(hit: Hit, terms: frozenset[str]) -> frozenset[str]:
    named = " ".join(symbol.name for symbol in hit.symbols)
    return match_terms(f"{hit.location.path} {hit.scope} {named} {hit.text}", terms)


def merge_matches(found: Sequence[Matches], lines: Sequence[Match], counts: Sequence[int]) -> Matches:
    """Add up what a pattern search has found in several repositories; `lines` are all their lines."""
    return Matches(
        lines=tuple(lines),
        files_searched=sum(each.files_searched for each in found),
        complete=all(each.complete for each in found),
        files=sum(each.files for each in found),
        is_out_of_time=any(each.is_out_of_time for each in found),
        cut_files=tuple(path for each in found for path in each.cut_files),
        counts=tuple(counts),
    )


def count_matches(counts: Sequence[Sequence[int]], part: int, limit: int) -> list[int]:
    """Count the lines of each pattern, one more than the limit where a repository has more than its part of it."""
    columns = zip(*filter(None, counts), strict=False)
    return [limit + 1 if max(column) > part else min(sum(column), limit) for column in columns]
