"""Finds functions by what their documentation says they make: "Recovery returns a middleware that ..."."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.evidence.definitions import list_outline
from agent.evidence.refs import is_test_or_docs
from agent.kinds.listing.narrowing import make_member_ref
from agent.ports import CodeSearch
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern

_MOST_LINES = 200
_MOST_FILES = 40
_MAKES = (
    r"(?:returns?|creates?|builds?|makes?|provides?|instan(?:ces|tiates)|generates?|constructs?|is|defines?"
    r"|implements?)"
)

_LINKS = frozenset("for of by in to with from used that which as".split())


async def find_described(code: CodeSearch, words: Sequence[str]) -> list[EvidenceRef]:
    """Return the functions of which the first sentence says that they make or are such a thing."""
    *before, noun = words
    if not noun.isalpha():
        return []
    said = rf"(?i)\b{_MAKES} (?:an? |the |new )((?:[\w-]+ ){{0,5}}){re.escape(noun)}\b"
    matches = (await code.grep(said, limit=_MOST_LINES)).lines
    paths = dict.fromkeys(match.location.path for match in matches if not is_test_or_docs(match.location.path))
    pattern = compile_pattern(rf"(?i)^.{{0,60}}{said.removeprefix('(?i)')}")
    found = [
        one
        for path in list(paths)[:_MOST_FILES]
        for one in await list_outline(code, path)
        if one.symbol.kind in {"function", "method"}
        and not one.symbol.name.startswith("_")
        and _is_said(pattern.search(one.symbol.doc))
        and all(word in f"{one.symbol.doc} {one.symbol.name}".lower() for word in before)
    ]
    return [make_member_ref(one) for one in found]


def _is_said(found: re.Match[str] | None) -> bool:
    """Whether the thing itself is said to be made, and not something for it or used by it."""
    return found is not None and not _LINKS.intersection(found[1].lower().split())
