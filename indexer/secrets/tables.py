"""Finds passwords in tables: below a heading such as `password`, in Markdown, CSV and what tabs separate."""

from __future__ import annotations

import re
from collections.abc import Sequence

from indexer.secrets.secret_values import is_literal, is_value

# A line whose cells are words, one of them a heading of passwords; the automaton asks for it before anything is read.
HEADING = (
    r"(?m)^(?:[^\n]*[|,;\t][ \t\"*]*)?(?i:(?:\w+[ _-])?(?:password|passwd|pwd|passwort|kennwort))[ \t\"*]*"
    r"(?:[|,;\t][^\n]*)?\r?\n"
)
_NAME = re.compile(rb"(?i)(?:\w+[ _-])?(?:password|passwd|pwd|passwort|kennwort)")
_USER = re.compile(rb"(?i)(?:\w+[ _-])?(?:user(?:[ _-]?name)?|login|e-?mail|account|host)")
_CELL = re.compile(rb"[\w .*/()-]{0,40}")
_RULE = re.compile(rb"[ \t|:+-]+")
_WRAPPING = b" \t\"'`*\r"

Span = tuple[int, int]


def read_table(data: bytes, start: int, stop: int) -> tuple[Sequence[Span], int]:
    """Return where the passwords of a table stand whose heading is at a place, and where the table ends."""
    heading = data[start:stop].rstrip(b"\r\n")
    for separator in (b"|", b"\t", b",", b";"):
        cells = [one.strip(_WRAPPING) for one in heading.split(separator)]
        columns = [number for number, cell in enumerate(cells) if _NAME.fullmatch(cell)]
        if columns and len(cells) > 1 and all(_CELL.fullmatch(cell) for cell in cells):
            is_login = any(_USER.fullmatch(cell) for cell in cells) and (separator == b"|" or all(cells))
            return _read_rows(data, stop, separator, columns[0], len(cells), is_login=is_login)
    return [], stop


def _read_rows(
    data: bytes, position: int, separator: bytes, column: int, width: int, *, is_login: bool
) -> tuple[Sequence[Span], int]:
    """Find the cells with passwords; beside the names of users, all but placeholders and types are."""
    found: list[Span] = []
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        row = data[position:end].rstrip(b"\n")
        if row.count(separator) + 1 != width:
            break
        cells = row.split(separator)
        value = cells[column].strip(_WRAPPING)
        said = value.decode("utf-8", "replace")
        if not _RULE.fullmatch(row) and ((is_login and is_value(said)) or is_literal(said, words=False, chosen=True)):
            at = position + sum(len(one) + 1 for one in cells[:column]) + cells[column].index(value)
            found.append((at, at + len(value)))
        position = end
    return found, position
