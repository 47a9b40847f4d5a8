"""Finds the members of what the code lists by hand: enumerations, arrays, tables of constants, names of one prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.evidence.refs import is_test_or_docs, make_lines_ref
from agent.kinds.listing.member_text import Member, read_members
from agent.kinds.listing.narrowing import is_aside
from agent.ports import CodeSearch
from agent.questions.terms import split_words, stem_word
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Definition, Location

_MOST_LINES = 400  # that a pattern may find
_MOST_TABLES = 4
_LONGEST_TABLE = 1_200  # lines
_LEAST = 2
_ALIKE = (frozenset({"code", "status"}), frozenset({"level", "severity"}), frozenset({"kind", "type"}))
_FIXED = compile_pattern(r"(?:^|\s)(?:static|final|protected|private|public|const|define)\s")
_NAMED = compile_pattern(r"(?:^|[^.\w$])([A-Za-z_$][\w$]*)(?:\s*\[[^\]=]{0,40}\])?\s*(?::[^=]{0,80})?=(?:[^=>]|$)")
_COMPUTED = compile_pattern(r"=>|\b(?:function|lambda|async|await|def|require|import)\b|=\s*[\w.]+\.\w+\(")
_ENUMERATED = compile_pattern(r"\b(?:enum|\w*Enum|IntFlag|Flag|Literal)\b")
_ENTRY = compile_pattern(r"\s+[\"':]?([A-Za-z_]\w*)[\"']?\s*(?::|=>)\s*[\[{(]")  # a table within a table
_ARGUMENT = compile_pattern(r"^\s*\w+\s*\(\s*[\"']?([A-Za-z_]\w*)|^\s*[-*|{\[(]*\s*[\"'`]?([A-Za-z_][\w.-]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A declaration that lists things: its name, and a reference to each."""

    name: str
    refs: tuple[EvidenceRef, ...]


async def find_tables(code: CodeSearch, words: Sequence[str]) -> list[Table]:
    """Return the tables whose names say the words and little else, those of the code before those of tests."""
    if not words:
        return []
    enumerations = [table for one in await _find_enumerations(code, words) if (table := await _read_table(code, one))]
    if enumerations:
        return enumerations[:_MOST_TABLES]
    found: list[tuple[tuple[bool, int], str, Location]] = []
    for match in (await code.grep(_make_pattern(words), limit=_MOST_LINES)).lines:
        name = _read_declared(match.text, words)
        if name:
            extra = len(split_words(name)) - len(words)
            found.append(((is_test_or_docs(match.location.path), extra), name, match.location))
    found.sort(key=lambda one: one[0])
    tables: list[Table] = []
    best: tuple[bool, int] | None = None
    for rank, name, location in found:
        if (best is not None and rank != best) or len(tables) == _MOST_TABLES:
            break
        table = await _read_lines(code, name, location)
        if table is not None:
            tables.append(table)
            best = rank
    return tables


async def _find_enumerations(code: CodeSearch, words: Sequence[str]) -> list[Definition]:
    """Return the enumerations that are called so, the nearest name first."""
    found: list[Definition] = []
    for ending in sorted(_list_alike(words[-1]), key=lambda each: each != words[-1]):
        found += [one for one in await code.types_named(ending) if _is_enumeration(one)]
        found += [one for one in await code.types_named(f"{ending}s") if _is_enumeration(one)]
    named = [one for one in found if all(word in one.symbol.name.lower() for word in words[:-1])]
    named = named or [one for one in found if all(word in one.symbol.qualified_name.lower() for word in words[:-1])]
    named = [one for one in named if not is_test_or_docs(one.path)] or named
    extra = [len(split_words(one.symbol.name)) for one in named]
    return [one for one, count in zip(named, extra, strict=True) if count == min(extra)]


def _is_enumeration(one: Definition) -> bool:
    return one.symbol.kind == "enum" or bool(_ENUMERATED.search(one.symbol.signature))


def _list_alike(word: str) -> frozenset[str]:
    return next((same for same in _ALIKE if word in same), frozenset({word}))


def _make_pattern(words: Sequence[str]) -> str:
    """Write what a declaration with such a name looks like, of which the value opens a bracket on the same line."""
    named = r"\w{0,3}".join(f"(?:{'|'.join(sorted(_list_alike(word)))})" for word in words)
    return (
        rf"(?i)^[^=\n]{{0,120}}{named}[^=\n]{{0,80}}=[^=\n>].{{0,80}}"
        rf"|^\s+[\"':]?\w{{0,40}}{named}\w{{0,3}}[\"']?\s*(?::|=>)\s*[\[{{(]\s*$"
    )


def _read_declared(line: str, words: Sequence[str]) -> str:
    """Return the name that a line declares at the top of a file, or as a constant; empty for anything else."""
    if (entry := _ENTRY.fullmatch(line.rstrip())) is not None:
        return entry[1] if len(split_words(entry[1])) == len(words) and _is_named(entry[1], words) else ""
    is_fixed = not line[:1].isspace() or bool(_FIXED.search(line))
    found = _NAMED.search(line)
    if found is None or _COMPUTED.search(line) or not any(sign in line[found.end() - 1 :] for sign in "[{(%"):
        return ""
    if not is_fixed and not found[1].isupper():
        return ""
    return found[1] if _is_named(found[1], words) else ""


def _is_named(name: str, words: Sequence[str]) -> bool:
    """Whether a name says each of the words, or one that means the same."""
    said = [stem_word(part) for part in split_words(name)]
    return all(any(stem_word(alike) in said for alike in _list_alike(word)) for word in words)


async def _read_table(code: CodeSearch, one: Definition) -> Table | None:
    symbol = one.symbol
    place = Location(path=one.path, start_line=symbol.start_line, end_line=symbol.end_line)
    return await _read_lines(code, symbol.name, place)


async def _read_lines(code: CodeSearch, name: str, location: Location) -> Table | None:
    start, path = location.start_line, location.path
    end = max(location.end_line, start + (_LONGEST_TABLE if location.end_line == start else 0))
    text = (await code.read(path, start, end)).text
    entry = next((one for one in await code.files() if one.path == path), None)
    members = read_members(text.split("\n"), entry.language if entry is not None else "")
    if len(members) < _LEAST:
        return None
    return Table(name=name, refs=tuple(_make_ref(path, start, member) for member in members))


def _make_ref(path: str, first: int, member: Member) -> EvidenceRef:
    line = first + member.offset
    ref = make_lines_ref(Location(path=path, start_line=line, end_line=line), "entry")
    ref["symbol"], ref["kind"], ref["signature"] = member.name, "member", _shorten(member.value)
    return ref


def _shorten(value: str) -> str:
    return value if value and "(" not in value and "{" not in value else ""


async def find_prefixed(code: CodeSearch, prefix: str) -> list[EvidenceRef]:
    """Return each name of the code that begins so, at the file that has most of them."""
    pattern = compile_pattern(rf"\b{prefix}\w+")
    places: dict[str, list[Location]] = {}
    for match in (await code.grep(rf"\b{prefix}\w+", limit=5 * _MOST_LINES)).lines:
        for name in pattern.findall(match.text):
            places.setdefault(name, []).append(match.location)
    held = Counter(path for found in places.values() for path in {each.path for each in found})
    refs: list[EvidenceRef] = []
    for name, found in places.items():
        place = min(found, key=lambda each: (is_test_or_docs(each.path), -held[each.path], each.start_line))
        ref = make_lines_ref(place, "entry")
        ref["symbol"], ref["kind"] = name, "name"
        refs.append(ref)
    inside = [ref for ref in refs if not is_aside(ref) and not is_test_or_docs(ref["path"])]
    return sorted(inside or refs, key=lambda ref: (ref["path"], ref["start_line"]))


async def find_rows(code: CodeSearch, words: Sequence[str], said: str) -> list[EvidenceRef]:
    """Return the lines with a word in the files that are called by other words: the rows of a table."""
    refs: list[EvidenceRef] = []
    for match in (await code.grep(rf"\b{said}\b", limit=_MOST_LINES)).lines:
        stems = [stem_word(part) for part in split_words(match.location.path.rpartition("/")[2])]
        row = _ARGUMENT.search(match.text)
        name = next(filter(None, row.groups()), "") if row is not None else ""
        if name and name != said and stem_word(words[-1]) in stems:
            ref = make_lines_ref(match.location, "entry")
            ref["symbol"], ref["kind"] = name, "row"
            refs.append(ref)
    return refs
