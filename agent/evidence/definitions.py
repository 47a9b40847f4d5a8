"""Finds definitions: that of a hit, the members of a class or file, similar names, attributes set by a class."""

from __future__ import annotations

import difflib
import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agent.evidence.refs import is_import_line, is_test_or_docs, make_lines_ref, sort_definitions
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch, SymbolIndex
from agent.questions.literals import Literal
from agent.questions.terms import match_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.types import Definition, Hit, Location, Match, Symbol

TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "module"})

MAX_NEAR = 3
_DEEPEST = 4  # modules within modules
_LETTERS = string.ascii_lowercase + "_"
_MIN_CHARACTERS = 5
_LONGEST = 24  # a name of this length has some 1,300 neighbours, each of which is looked up
_ALIKE = 0.8


async def find_hit_definition(
    code: SymbolIndex, hit: Hit, terms: frozenset[str], literals: Sequence[Literal] = ()
) -> list[Definition]:
    """Return the definition that a hit is about, and the enclosing one; none if no definition fits.

    It contains a quoted text of the hit, or else has most of the terms in its name and
    documentation.
    """
    first = hit.location.start_line
    at = next((lines[0] for text in literals if (lines := text.find_lines(hit.text)) is not None), None)
    begin = replace(hit.location, start_line=first + (at or 0), end_line=first + (at or 0))
    around = list(await code.find_enclosing(begin)) if hit.scope or at is not None else []
    if at is None:
        around += [Definition(path=hit.location.path, symbol=symbol) for symbol in hit.symbols]
    candidates = [one for one in around if not is_import_line(one.symbol.kind, one.symbol.signature)]
    if at is not None:
        candidates = candidates[-1:]

    def weigh(one: Definition) -> tuple[float, int]:
        symbol = one.symbol
        named = match_terms(symbol.name, terms)
        described = match_terms(f"{symbol.parent} {symbol.doc} {symbol.signature}", terms) - named
        is_cut = symbol.start_line < first and symbol.kind in TYPES  # the hit is about something within the class
        return (2 * len(named) + len(described)) * (0.5 if is_cut else 1.0), symbol.end_line - symbol.start_line

    if not candidates:
        return []
    best = max(candidates, key=weigh)
    return [best, *(one for one in around if best.symbol.parent and one.symbol.qualified_name == best.symbol.parent)]


async def list_members(code: SymbolIndex, path: str, parent: str = "") -> list[Definition]:
    """Return the direct members of a definition, or the top level of the file, in file order."""
    nobody = Symbol(
        name="",
        qualified_name=f"{parent}." if parent else "",
        kind="function",
        signature="",
        doc="",
        start_line=0,
        end_line=0,
    )
    found = await code.find_siblings(Definition(path=path, symbol=nobody))
    return sorted(found, key=lambda one: one.symbol.start_line)


async def list_outline(code: SymbolIndex, path: str) -> list[Definition]:
    """Return a file's top-level definitions, and the contents of modules that only wrap others."""
    outline = await list_members(code, path)
    for _ in range(_DEEPEST):
        known = {one.symbol.qualified_name for one in outline}
        holders = [one for one in outline if one.symbol.kind == "module"]
        rest = [one for one in outline if one.symbol.kind != "module"]
        if len(rest) == 1 and rest[0].symbol.kind in TYPES:
            holders += rest  # the one class of a file is the file
        inner = [each for one in holders for each in await list_members(code, path, one.symbol.qualified_name)]
        new = [one for one in inner if one.symbol.qualified_name not in known]
        if not new:
            break
        outline += new
    return sorted(outline, key=lambda one: one.symbol.start_line)


async def find_similar_names(code: SymbolIndex, name: str, seen: Iterable[str]) -> list[Definition]:
    """Return definitions with a similar name: among names seen nearby, else within one typing error."""
    last = name.rpartition(".")[2].lower()
    if len(last) < _MIN_CHARACTERS:
        return []
    known = {one.rpartition(".")[2].lower(): one for one in seen}
    close = difflib.get_close_matches(last, list(known), n=MAX_NEAR, cutoff=_ALIKE)
    for candidates in ([known[one] for one in close], _spell_one_slip(last)):
        found = await _find_definitions(code, candidates)
        if found:
            return found
    return []


async def _find_definitions(code: SymbolIndex, names: Sequence[str]) -> list[Definition]:
    found: list[Definition] = []
    for name in names:
        found += sort_definitions(await code.definitions(name.rpartition(".")[2]), ())[:2]
        if len(found) >= MAX_NEAR:
            break
    return list({(one.path, one.symbol.qualified_name): one for one in found}.values())[:MAX_NEAR]


def _spell_one_slip(name: str) -> list[str]:
    """Yield the name with one letter swapped, missing, extra or wrong, the likeliest first."""
    if len(name) > _LONGEST:
        return []
    splits = [(name[:at], name[at:]) for at in range(len(name) + 1)]
    swapped = [left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1]
    shorter = [left + right[1:] for left, right in splits if right]
    longer = [left + letter + right for left, right in splits for letter in _LETTERS]
    wrong = [left + letter + right[1:] for left, right in splits if right for letter in _LETTERS]
    return list(dict.fromkeys([*swapped, *shorter, *longer, *wrong]))


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownName:
    """A name in the index, and the module to search for it first."""

    name: str
    module: str = ""


async def find_known_name(written: str, code: SymbolIndex) -> KnownName | None:
    """Return the name as written, or without its leading modules."""
    if await code.definitions(written):
        return KnownName(name=written)
    if written.endswith(("!", "?")):  # the mark may as well end the sentence
        return await find_known_name(written[:-1], code)
    parts = written.split(".")
    for cut in range(1, len(parts)):
        shorter = ".".join(parts[cut:])
        definitions = await code.definitions(shorter)
        module = parts[cut - 1].lower()
        if any(module in definition.path.lower().replace(".", "/").split("/") for definition in definitions):
            return KnownName(name=shorter, module=module)
        if definitions and cut < len(parts) - 1:  # `Class.method` alone says enough
            return KnownName(name=shorter)
    return None


async def find_name_alike(written: str, code: SymbolIndex) -> KnownName | None:
    """Return the defined name that differs only in case, plural or Unicode form."""
    singular = [written[: -len(end)] for end in ("s", "es") if written.endswith(end) and len(written) > _MIN_CHARACTERS]
    for spelt in (written, unicodedata.normalize("NFD", written), *singular):
        if found := await code.definitions(spelt):
            own = sort_definitions(found, ())[0].symbol
            return KnownName(name=own.qualified_name if "." in spelt else own.name)
    return None


async def is_defined_exactly(name: str, code: SymbolIndex) -> bool:
    """Whether a definition has exactly this spelling; the index finds names in other cases too."""
    return any(definition.symbol.name == name for definition in await code.definitions(name))


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
    """Find the statements that set the attribute in a class, the named class first."""
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
    """Write the pattern of an assignment in a class, with or without a type, or of a bare annotation."""
    own = rf"\s*(?:(?:self|this|cls)\.|@{{1,2}})?{_MODIFIERS}{name}"
    return rf"^{own}\s*(?:(?::[^=]{{0,200}})?=(?:[^=>]|$)|:\s*[\w.|\[\]\"']+\s*;?$)"


async def _find_class(code: CodeSearch, line: Match) -> Definition | None:
    """Return the class of a line: directly around it, or through `self` in a method."""
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
