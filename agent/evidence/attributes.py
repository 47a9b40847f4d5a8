"""Finds where a class sets an attribute: what the symbols of an index leave out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.evidence.definitions import TYPES
from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import Definition, Location, Match

MAX_ATTRIBUTES = 12
_MAX_LINES = 200  # that are looked at; a name that is assigned more often is no attribute worth listing
_MAX_STATEMENT = 12
_NAME = re.compile(r"[^\W\d]\w{0,119}")
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|readonly|override|abstract|declare|var|val|let)\s+)*"
)
_OWN = re.compile(r"\s*(?:(?:self|this|cls)\.|@)")
_OPENING, _CLOSING = "([{", ")]}"


async def find_attributes(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the statements that set the attribute in a class, those of the class that is named before the others."""
    owner, _, name = request["query"].rpartition(".")
    if not _NAME.fullmatch(name):
        return Retrieved(refs=())
    lines = (await code.grep(_make_pattern(name), limit=_MAX_LINES)).lines
    found = [(line, owning) for line in lines if (owning := await _find_class(code, line)) is not None]
    of_owner = [one for one in found if owner and _is_called(one[1], owner)]
    refs = [await _make_ref(code, line, owning, name) for line, owning in (of_owner or found)[:MAX_ATTRIBUTES]]
    refs.sort(key=lambda ref: (is_test_or_docs(ref["path"]), bool(_OWN.match(ref["signature"]))))
    totals = {"attributes": len(of_owner or found), "of owner": len(of_owner)}
    return Retrieved(refs=refs, totals=totals if refs else {})


def _make_pattern(name: str) -> str:
    """Write what an assignment in a class looks like, with or without a type, or a type alone."""
    own = rf"\s*(?:(?:self|this|cls)\.|@{{1,2}})?{_MODIFIERS}{name}"
    return rf"^{own}\s*(?:(?::[^=]{{0,200}})?=(?:[^=>]|$)|:\s*[\w.|\[\]\"']+\s*;?$)"


async def _find_class(code: CodeSearch, line: Match) -> Definition | None:
    """Return the class that the line belongs to: right within it, or by way of `self` in a method."""
    around = await code.find_enclosing(line.location)
    types = [one for one in around if one.symbol.kind in TYPES]
    is_within = bool(types) and (around[-1] == types[-1] or bool(_OWN.match(line.text)))
    is_parameter = line.text.rstrip().endswith(",") and not _OWN.match(line.text)
    return types[-1] if is_within and not is_parameter else None


def _is_called(definition: Definition, owner: str) -> bool:
    return definition.symbol.qualified_name == owner or definition.symbol.name == owner.rpartition(".")[2]


async def _make_ref(code: CodeSearch, line: Match, owning: Definition, name: str) -> EvidenceRef:
    start = line.location.start_line
    last = min(owning.symbol.end_line, start + _MAX_STATEMENT - 1)
    text = (await code.read(line.location.path, start, max(start, last))).text.split("\n")
    end = start + _count_lines(text) - 1
    at, symbol = Location(path=line.location.path, start_line=start, end_line=end), owning.symbol
    return make_lines_ref(at, "entry", symbol=symbol.qualified_name, kind=symbol.kind, signature=line.text, doc=name)


def _count_lines(lines: Sequence[str]) -> int:
    """Count the lines of the statement that begins here, by its brackets."""
    depth = 0
    for at, line in enumerate(lines):
        depth += sum((letter in _OPENING) - (letter in _CLOSING) for letter in line)
        if depth <= 0:
            return at + 1
    return len(lines)
