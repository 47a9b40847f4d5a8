"""Outlines a file: its definitions, their nesting, and their symbols."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from tree_sitter import Node

from indexer.parsing.docstrings import DocumentationFinder, LeadingComment, read_docstring
from indexer.parsing.grammars import Captures, Findings
from indexer.types import Symbol, SymbolKind

# The captures that make an entry; where two are made of one name, the later kind in this order wins.
_KINDS = "scope package constant type function method module class interface struct enum trait macro".split()
_RANK = {kind: rank for rank, kind in enumerate(_KINDS)}
_TYPES = frozenset({"scope", "class", "interface", "struct", "enum", "trait"})

_PATH_SEPARATOR = re.compile(r"(?:::|->|[\\:.])\s*")
_SPACE_BEFORE_DOT = re.compile(r"(?<!\s)\s+(?=\.)")
_ANGLE_BRACKET = re.compile(r"([<>])")
_OPERATOR = re.compile(r"\boperator\b")
_WHOLE_NAMES = frozenset({"word", "string", "computed_property_name", "operator_identifier"})

_COMMENT_IN_HEAD = re.compile(r"\s(?:#|//|--)(?:\s[^\n]*)?(?=\n|$)|/\*[\s\S]*?\*/")
_SIGNATURE_TAIL = re.compile(r"(?:\s|[{:=,|;]|=>|\bdo\b|\bwhere\b)+$")
_SIGNATURE_LIMIT = 300


@dataclass(kw_only=True, slots=True)
class OutlineEntry:
    """One definition or other scope: bytes from `start` to `end`, rows from 0 with attributes included."""

    name: str
    owner: str
    kind: str
    start: int
    end: int
    body: int
    first_row: int
    last_row: int
    qualified_name: str = ""

    def is_scope(self) -> bool:
        """Whether names inside are qualified by this one."""
        return self.kind not in {"constant", "type"}

    def is_continued_in(self, other: OutlineEntry, parent: OutlineEntry | None) -> bool:
        """Whether a later sibling is another clause of this one, given the nodes between them."""
        same = (self.name, self.kind) == (other.name, other.kind) and self.kind in {"function", "method", "macro"}
        return same and (parent is None or self.start >= parent.start)


def find_entries(findings: Findings, source: bytes, *, joins_clauses: bool) -> list[OutlineEntry]:
    """Return all definitions and scopes in order, nested and named; several captures of one name become one entry."""
    by_name: dict[int, OutlineEntry] = {}
    for kind in _KINDS:
        for captures in findings.get(kind, ()):
            name = _find_name_node(captures)
            if name.start_byte == name.end_byte:
                continue  # the parser assumed a name if there is none
            entry = _make_entry(kind, name, captures, source)
            known = by_name.get(name.start_byte)
            by_name[name.start_byte] = entry if known is None else _merge_entries(known, entry)
    return _nest_entries(list(by_name.values()), len(source), joins_clauses=joins_clauses)


def _find_name_node(captures: Captures) -> Node:
    if "name" in captures:
        return captures["name"][0]
    node = captures["declarator"][0]
    while node.type not in {"qualified_identifier", "identifier", "operator_name"}:
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in {"parenthesized_declarator", "reference_declarator"}:
            inner = node.named_child(0)
        if inner is None:
            break
        node = inner
    return node


def _make_entry(kind: str, name: Node, captures: Captures, source: bytes) -> OutlineEntry:
    whole = captures[kind][0]
    text = _read_text(name, source)
    owner, own_name = ("", text.strip("\"'")) if name.type in _WHOLE_NAMES else _split_name(text)
    if "owner" in captures:
        owner = _read_owner(_read_text(captures["owner"][0], source))
    body = captures["body"][0].start_byte if "body" in captures else whole.end_byte
    ends = captures["body"][0] if "body" in captures else whole  # in Dart a body follows its signature
    first, last = read_node_rows(whole)
    # A declaration begins at its keyword, unless that opens a group on a line above.
    keyword = captures["keyword"][0] if "keyword" in captures else whole
    return OutlineEntry(
        name=own_name,
        owner=owner,
        kind=kind,
        start=(keyword if keyword.start_point[0] == whole.start_point[0] else whole).start_byte,
        end=max(whole.end_byte, ends.end_byte),
        body=body,
        first_row=first,
        last_row=max(last, read_node_rows(ends)[1]),
    )


def _merge_entries(one: OutlineEntry, other: OutlineEntry) -> OutlineEntry:
    """Join two captures of one name: rows of the wider (with decorators), bytes of the narrower."""
    inner, outer = (one, other) if one.start >= other.start else (other, one)
    inner.kind = max(one.kind, other.kind, key=_RANK.__getitem__)
    inner.owner = one.owner or other.owner
    inner.body = min(one.body, other.body)
    inner.end = max(one.end, other.end)
    inner.first_row = min(inner.first_row, outer.first_row)
    inner.last_row = max(inner.last_row, outer.last_row)
    return inner


def read_node_rows(node: Node) -> tuple[int, int]:
    """Return the first and the last row of a node, both inclusive; a line end at the very end adds no row."""
    first = node.start_point[0]
    last, column = node.end_point
    return first, last - 1 if column == 0 and last > first else last


def _read_text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _split_name(text: str) -> tuple[str, str]:
    """Split `a::Box<T>::get` into `a.Box` and `get`; an operator's own angle brackets stay."""
    if text.isidentifier():
        return "", text
    operator = _OPERATOR.search(text)
    path = _strip_template_arguments(text[: operator.start()] if operator else text)
    path = _SPACE_BEFORE_DOT.sub("", _PATH_SEPARATOR.sub(".", path.strip()))
    if operator:
        return path.strip("."), " ".join(text[operator.start() :].split())
    owner, _, name = path.rpartition(".")
    return owner.strip("."), name or text


def _strip_template_arguments(text: str) -> str:
    """Remove the contents of angle brackets, except a bracket without its counterpart."""
    pieces: list[str] = []
    opened: list[int] = []  # opening brackets
    for piece in _ANGLE_BRACKET.split(text):
        if piece == ">" and opened:
            del pieces[opened.pop() :]
            continue
        if piece == "<":
            opened.append(len(pieces))
        pieces.append(piece)
    return "".join(pieces)


def _read_owner(text: str) -> str:
    """Reduce the target of an assigned function in JavaScript, or a Go receiver, to its owner's names."""
    parts = [part for part in text.split(".") if part not in {"module", "exports", "prototype", "this"}]
    return ".".join(parts) if all(part.isidentifier() for part in parts) else ""


def _nest_entries(entries: list[OutlineEntry], end: int, *, joins_clauses: bool) -> list[OutlineEntry]:
    """Give every entry its qualified name; clauses of one function that follow each other become one entry."""
    entries.sort(key=lambda entry: (entry.start, -entry.end))
    placed: list[OutlineEntry] = []
    around: list[OutlineEntry] = []
    siblings: dict[str, OutlineEntry] = {}
    for entry in entries:
        while around and around[-1].end <= entry.start:
            around.pop()
        if entry.kind == "package":
            around.clear()
            entry.end = end
        parent = around[-1] if around else None
        scope = parent.qualified_name if parent else ""
        entry.qualified_name = ".".join(name for name in (scope, entry.owner, entry.name) if name)
        if entry.kind == "function" and (entry.owner or (parent and parent.kind in _TYPES)):
            entry.kind = "method"
        earlier = siblings.get(scope)
        if joins_clauses and earlier and earlier.is_continued_in(entry, parent):
            earlier.end, earlier.last_row = entry.end, entry.last_row
            around.append(earlier)
            continue
        siblings[scope] = entry
        placed.append(entry)
        if entry.is_scope():
            around.append(entry)
    return placed


class ScopeMap:
    """Finds the innermost definition around a place."""

    def __init__(self, entries: Sequence[OutlineEntry]) -> None:
        self._around = [entry for entry in entries if entry.is_scope()]
        changes = _list_scope_changes(self._around)
        self._starts = [start for start, _ in changes]
        self._names = [name for _, name in changes]

    def at(self, byte: int) -> str:
        """Return the qualified name of the innermost definition around a byte, or an empty string."""
        index = bisect_right(self._starts, byte) - 1
        return self._names[index] if index >= 0 else ""

    def before(self, first_rows: Sequence[int]) -> list[str]:
        """Return for each row the innermost definition around it that begins before it; rows must ascend."""
        entries = sorted(self._around, key=lambda entry: (entry.first_row, -entry.last_row))
        names: list[str] = []
        around: list[OutlineEntry] = []
        following = 0
        for row in first_rows:
            while following < len(entries) and entries[following].first_row < row:
                while around and around[-1].last_row < entries[following].first_row:
                    around.pop()
                around.append(entries[following])
                following += 1
            while around and around[-1].last_row < row:
                around.pop()
            names.append(around[-1].qualified_name if around else "")
        return names


def _list_scope_changes(entries: Sequence[OutlineEntry]) -> list[tuple[int, str]]:
    """List the bytes at which the innermost definition changes, and the new one."""
    changes: list[tuple[int, str]] = []
    around: list[OutlineEntry] = []

    def close() -> None:
        end = around.pop().end
        changes.append((end, around[-1].qualified_name if around else ""))

    for entry in entries:
        while around and around[-1].end <= entry.start:
            close()
        around.append(entry)
        changes.append((entry.start, entry.qualified_name))
    while around:
        close()
    return changes


def make_symbols(
    entries: Iterable[OutlineEntry], source: bytes, documentation: DocumentationFinder, *, has_docstrings: bool
) -> tuple[Symbol, ...]:
    """Describe every definition, in the order of the file; attributes above it count as its first lines."""
    symbols = []
    first_in_row: dict[int, int] = {}
    for entry in entries:
        if entry.kind == "scope":
            continue
        if entry.first_row not in first_in_row:
            first_in_row[entry.first_row] = entry.start
        # Lines above a definition belong to the first definition of its line.
        is_first = first_in_row[entry.first_row] == entry.start
        above = (
            documentation.find_above(entry.first_row)
            if is_first
            else LeadingComment(first_row=entry.first_row, sentence="")
        )
        symbols.append(
            Symbol(
                name=entry.name,
                qualified_name=entry.qualified_name,
                kind=cast("SymbolKind", "module" if entry.kind == "package" else entry.kind),
                signature=_make_signature(source, entry),
                doc=(read_docstring(source, entry.body) if has_docstrings else "") or above.sentence,
                start_line=above.first_row + 1,
                end_line=entry.last_row + 1,
            )
        )
    return tuple(symbols)


def _make_signature(source: bytes, entry: OutlineEntry) -> str:
    """Return the declaration up to its body on one line, without comments and the opening sign."""
    end = min(entry.body, entry.end, entry.start + 4 * _SIGNATURE_LIMIT)
    head = source[entry.start : end].decode("utf-8", "ignore").rstrip()
    if "\n" in head or "/*" in head:
        head = _COMMENT_IN_HEAD.sub("", head)
    line = " ".join(head.split())
    return _SIGNATURE_TAIL.sub("", line[:_SIGNATURE_LIMIT])
