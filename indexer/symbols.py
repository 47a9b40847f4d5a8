"""Symbols of a file: its definitions with signature, documentation and the lines they take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from indexer.documentation import DocumentationFinder, LeadingComment, read_docstring
from indexer.models import Symbol, SymbolKind
from indexer.outline import OutlineEntry

_COMMENT_IN_HEAD = re.compile(r"\s(?:#|//|--)(?:\s[^\n]*)?(?=\n|$)|/\*[\s\S]*?\*/")
_SIGNATURE_TAIL = re.compile(r"(?:\s|[{:=,|;]|=>|\bdo\b|\bwhere\b)+$")
_SIGNATURE_LIMIT = 300


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
        # What stands above a line belongs to the first definition of that line.
        is_first = first_in_row[entry.first_row] == entry.start
        above = (
            documentation.above(entry.first_row) if is_first else LeadingComment(first_row=entry.first_row, sentence="")
        )
        symbols.append(
            Symbol(
                name=entry.name,
                qualified_name=entry.qualified_name,
                kind=cast("SymbolKind", "module" if entry.kind == "package" else entry.kind),
                signature=_signature(source, entry),
                doc=(read_docstring(source, entry.body) if has_docstrings else "") or above.sentence,
                start_line=above.first_row + 1,
                end_line=entry.last_row + 1,
            )
        )
    return tuple(symbols)


def _signature(source: bytes, entry: OutlineEntry) -> str:
    """Return the declaration up to its body on one line, without comments and the sign that opens the body."""
    end = min(entry.body, entry.end, entry.start + 4 * _SIGNATURE_LIMIT)
    head = source[entry.start : end].decode("utf-8", "ignore").rstrip()
    if "\n" in head or "/*" in head:
        head = _COMMENT_IN_HEAD.sub("", head)
    line = " ".join(head.split())
    return _SIGNATURE_TAIL.sub("", line[:_SIGNATURE_LIMIT])
