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

FILE = Path(agent.guard.injection.__file__).with_name("anchors.toml")
MOST = 64  # texts that a part of a pattern may stand for, to be written out
LONG = 4  # letters that an anchor has at best: longer ones are no better

Texts = frozenset[str] | None  # what a part of a pattern stands for, or what it needs one of; None where that is open


def derive() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the anchors of all families, by table."""
    return {"questions": _derive(FAMILIES), "evidence": _derive(INDIRECT)}


def write() -> None:
    """Write the file."""
    lines = [
        "# Words of which a text needs one for a family to match; python -m tests.agent.guard.anchors derives them."
    ]
    for table, anchors in derive().items():
        lines += ["", f"[{table}]"]
        lines += [f"{name} = {json.dumps(words, ensure_ascii=False)}" for name, words in anchors.items()]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _derive(families: Iterable[InjectionFamily]) -> Mapping[str, Sequence[str]]:
    return {family.name: _find_anchors(family.pattern) for family in families}


def _find_anchors(pattern: str) -> Sequence[str]:
    exact, needed = _read(parser.parse(pattern.replace(r"\pL", r"\w")))
    best = _choose(needed, exact)
    if best is None:
        raise ValueError(f"a pattern can do without any word: {pattern[:200]}")
    words: list[str] = []
    for word in sorted(best, key=lambda one: (len(one), one)):
        words += [] if any(shorter in word for shorter in words) else [word]
    return words


def _choose(*candidates: Texts) -> Texts:
    """Return the candidate whose shortest word is longest, and of those the one with the fewest."""
    usable = [one for one in candidates if one and "" not in one]
    return max(usable, key=lambda one: (min(LONG, *map(len, one)), -len(one)), default=None)


def _read(parts: Any) -> tuple[Texts, Texts]:
    """Return what a sequence stands for, and what it needs one of."""
    whole: Texts = frozenset({""})
    run: frozenset[str] = frozenset({""})
    needed: Texts = None
    for code, argument in parts:
        exact, inner = _read_part(code, argument)
        whole = _join(whole, exact)
        joined = _join(run, exact)
        if joined is None:
            needed = _choose(needed, run)
            joined = exact if exact is not None else frozenset({""})
        run = joined
        needed = _choose(needed, inner)
    return whole, _choose(needed, run)


def _join(before: Texts, after: Texts) -> Texts:
    if before is None or after is None or len(before) * len(after) > MOST:
        return None
    return frozenset(one + other for one in before for other in after)


def _read_part(code: Any, argument: Any) -> tuple[Texts, Texts]:
    if (letters := _list_letters(code, argument)) is not None:
        return letters, None
    if code is codes.SUBPATTERN:
        return _read(argument[3])
    if code is codes.BRANCH:
        return _read_branches([_read(branch) for branch in argument[1]])
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        return _read_repeat(argument[0], argument[1], *_read(argument[2]))
    return None, None


def _list_letters(code: Any, argument: Any) -> Texts:
    """Return the letters that one place may have; an anchor of the pattern has none, and too many are left open."""
    if code is codes.AT:
        return frozenset({""})
    places = [(codes.LITERAL, argument)] if code is codes.LITERAL else argument if code is codes.IN else []
    if not 0 < len(places) <= LONG or any(one is not codes.LITERAL for one, _ in places):
        return None
    return frozenset(chr(letter).lower() for _, letter in places)


def _read_branches(branches: Sequence[tuple[Texts, Texts]]) -> tuple[Texts, Texts]:
    exacts = [exact for exact, _ in branches]
    chosen = [_choose(exact, needed) for exact, needed in branches]
    exact = frozenset().union(*(one for one in exacts if one is not None)) if None not in exacts else None
    needed = frozenset().union(*(one for one in chosen if one is not None)) if None not in chosen else None
    return (exact if exact is not None and len(exact) <= MOST else None), needed


def _read_repeat(least: int, most: Any, exact: Texts, needed: Texts) -> tuple[Texts, Texts]:
    if (least, most) == (0, 1) and exact is not None:
        return exact | {""}, None
    return (exact, needed) if least == most == 1 else (None, _choose(exact, needed) if least else None)


if __name__ == "__main__":
    write()
