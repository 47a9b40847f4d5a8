"""Finds the definitions that a name which is not defined may have meant."""

from __future__ import annotations

import difflib
import string
from collections.abc import Iterable, Sequence

from agent.evidence.order import sort_definitions
from agent.ports import CodeSearch
from indexer.models import Definition

MAX_NEAR = 3
_LETTERS = string.ascii_lowercase + "_"
_SHORTEST = 5
_LONGEST = 24  # a name of this length has some 1,300 neighbours, each of which is looked up
_ALIKE = 0.8


async def find_similar_names(code: CodeSearch, name: str, seen: Iterable[str]) -> list[Definition]:
    """Return definitions spelt nearly like the name: among the names seen nearby, else one slip of a finger away."""
    last = name.rpartition(".")[2].lower()
    if len(last) < _SHORTEST:
        return []
    known = {one.rpartition(".")[2].lower(): one for one in seen}
    close = difflib.get_close_matches(last, list(known), n=MAX_NEAR, cutoff=_ALIKE)
    for candidates in ([known[one] for one in close], _one_slip(last)):
        found = await _find_definitions(code, candidates)
        if found:
            return found
    return []


async def _find_definitions(code: CodeSearch, names: Sequence[str]) -> list[Definition]:
    found: list[Definition] = []
    for name in names:
        found += sort_definitions(await code.definitions(name.rpartition(".")[2]), ())[:2]
        if len(found) >= MAX_NEAR:
            break
    return list({(one.path, one.symbol.qualified_name): one for one in found}.values())[:MAX_NEAR]


def _one_slip(name: str) -> list[str]:
    """Spell the name with one letter swapped, missing, too many, or wrong, the likeliest slips first."""
    if len(name) > _LONGEST:
        return []
    splits = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    swapped = [left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1]
    shorter = [left + right[1:] for left, right in splits if right]
    longer = [left + letter + right for left, right in splits for letter in _LETTERS]
    wrong = [left + letter + right[1:] for left, right in splits if right for letter in _LETTERS]
    return list(dict.fromkeys([*swapped, *shorter, *longer, *wrong]))
