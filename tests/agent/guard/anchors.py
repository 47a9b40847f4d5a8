"""Derives the words that a text needs for a family to match: `python -m tests.agent.guard.anchors` writes them anew."""

from __future__ import annotations

import json
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import agent.guard.injection
from agent.guard.injection.families import InjectionFamily
from agent.guard.injection.indirect import INDIRECT
from agent.guard.injection.verdict import FAMILIES

FILE = Path(agent.guard.injection.__file__).with_name("anchors.json")
MOST = 64  # texts that a part of a pattern may stand for, to be written out
LONG = 4  # letters that an anchor has at best: longer ones are no better

KEPT = 3  # of what a pattern needs one of each

Texts = frozenset[str] | None  # what a part of a pattern stands for; None where that is open
Needs = tuple[frozenset[str], ...]  # of each a text needs one


def derive() -> Mapping[str, Mapping[str, Sequence[Sequence[str]]]]:
    """Return the anchors of all families, by table."""
    return {"questions": _derive(FAMILIES), "evidence": _derive(INDIRECT)}


def write() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(derive(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _derive(families: Iterable[InjectionFamily]) -> Mapping[str, Sequence[Sequence[str]]]:
    return {family.name: _find_anchors(family.pattern) for family in families}


def _find_anchors(pattern: str) -> Sequence[Sequence[str]]:
    exact, needs = _read(parser.parse(pattern.replace(r"\pL", r"\w")))
    best = _rank(*needs, exact)[:KEPT]
    if not best:
        raise ValueError(f"a pattern can do without any word: {pattern[:200]}")
    return [_shorten(words) for words in best]


def _shorten(words: Iterable[str]) -> Sequence[str]:
    """Leave out words that hold another one."""
    kept: list[str] = []
    for word in sorted(words, key=lambda one: (len(one), one)):
        kept += [] if any(shorter in word for shorter in kept) else [word]
    return kept


def _rank(*candidates: Texts) -> Sequence[frozenset[str]]:
    """Put first what tells most: the set whose shortest word is longest, and of those the one with the fewest."""
    usable = dict.fromkeys(one for one in candidates if one and "" not in one)
    return sorted(usable, key=lambda one: (-min(LONG, *map(len, one)), len(one), sorted(one)))


def _read(parts: Any) -> tuple[Texts, Needs]:
    """Return what a sequence stands for, and what it needs one of each."""
    whole: Texts = frozenset({""})
    run: frozenset[str] = frozenset({""})
    needs: list[Texts] = []
    for code, argument in parts:
        exact, inner = _read_part(code, argument)
        whole = _join(whole, exact)
        joined = _join(run, exact)
        if joined is None:
            needs.append(run)
            joined = exact if exact is not None else frozenset({""})
        run = joined
        needs += inner
    return whole, tuple(_rank(*needs, run)[:KEPT])


def _join(before: Texts, after: Texts) -> Texts:
    if before is None or after is None or len(before) * len(after) > MOST:
        return None
    return frozenset(one + other for one in before for other in after)


def _read_part(code: Any, argument: Any) -> tuple[Texts, Needs]:
    if (letters := _list_letters(code, argument)) is not None:
        return letters, ()
    if code is codes.SUBPATTERN:
        return _read(argument[3])
    if code is codes.BRANCH:
        return _read_branches([_read(branch) for branch in argument[1]])
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        return _read_repeat(argument[0], argument[1], *_read(argument[2]))
    return None, ()


def _list_letters(code: Any, argument: Any) -> Texts:
    """Return the letters that one place may have; an anchor of the pattern has none, and too many are left open."""
    if code is codes.AT:
        return frozenset({""})
    places = [(codes.LITERAL, argument)] if code is codes.LITERAL else argument if code is codes.IN else []
    if not 0 < len(places) <= LONG or any(one is not codes.LITERAL for one, _ in places):
        return None
    return frozenset(chr(letter).lower() for _, letter in places)


def _read_branches(branches: Sequence[tuple[Texts, Needs]]) -> tuple[Texts, Needs]:
    exacts = [exact for exact, _ in branches]
    best = [_rank(exact, *needs)[:1] for exact, needs in branches]
    exact = frozenset().union(*(one for one in exacts if one is not None)) if None not in exacts else None
    needs = (frozenset().union(*(one for (one,) in best)),) if all(best) else ()
    return (exact if exact is not None and len(exact) <= MOST else None), needs


def _read_repeat(least: int, most: Any, exact: Texts, needs: Needs) -> tuple[Texts, Needs]:
    if (least, most) == (0, 1) and exact is not None:
        return exact | {""}, ()
    if least == most == 1:
        return exact, needs
    return None, tuple(_rank(exact, *needs)) if least else ()


if __name__ == "__main__":
    write()
