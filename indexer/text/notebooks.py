"""Reads Jupyter notebooks as text: each line of a cell at its line in the file, and no outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LINE_END = " \u23ce "  # joins the lines of a cell that the file has on one
_OPENING = "# %% cell "
_MARK = re.compile(_OPENING + r"(\d{1,9})(?: \[([\w.+#-]+)\])?(?: (.*))?$")
_UNFIT = re.compile("[\ud800-\udfff\0]")  # cannot be written as UTF-8, or makes a text binary
_NOT_IN_NAME = re.compile(r"[^\w.+#-]+")
_MAX_NAME = 40  # characters of a language: it is repeated at every cell
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")
_ITEM = re.compile(r'[\s,]*("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)
_DEPTHS = {3, 5}  # of the object of a cell, in version 4 and in version 3
_SOURCES = {"source", "input"}  # version 4 and version 3
_LANGUAGES = {
    "ipython": "python",
    "python3": "python",
    "ir": "r",
    "c++": "cpp",
    "c#": "csharp",
    ".net-csharp": "csharp",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """The rows of a cell, from 0 and inclusive; `language` is `markdown` for prose.

    If the whole cell is on one row, `joined` are its lines.
    """

    number: int
    language: str
    first_row: int
    last_row: int
    joined: tuple[str, ...] = ()


def is_notebook(path: str) -> bool:
    """Whether a file is a Jupyter notebook."""
    return path.lower().endswith(".ipynb")


def read_notebook(text: str) -> str | None:
    """Return the cells of a notebook as text, line by line as in the file; None for other files.

    The line above each cell, if there is one, becomes `# %% cell 7`, with the language unless it is Python. If the file
    has a whole cell on one line, a line-end sign joins its lines.
    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cells = _list_cells(notebook)
    if cells is None:
        return None
    kernel = _find_language(notebook)
    lines = [""] * (text.count("\n") + 1)
    numbers = iter(enumerate(cells, start=1))
    for row, first_row, strings in _find_sources(text, len(cells)):
        number, cell = next(numbers)
        language = kernel if cell.get("cell_type", "code") == "code" else "markdown"
        mark = f"{_OPENING}{number}" + ("" if language == "python" else f" [{language}]")
        rows = [line for line, _ in strings]
        if rows and rows[0] > row and len(rows) == len(set(rows)):
            lines[row] = mark
            for line, source in strings:
                # One more space in a comment that looks like a mark, so that only this module makes marks.
                shown = source.replace("# %%", "#  %%", 1) if source.startswith(_OPENING) else source
                lines[line] = shown.removesuffix("\n").replace("\n", _LINE_END)
        else:
            joined = "".join(source for _, source in strings).removesuffix("\n").replace("\n", _LINE_END)
            if joined.startswith("[") and language == "python":
                mark += " [python]"  # or the code would be taken for the name of a language
            lines[first_row] = " ".join(filter(None, (lines[first_row], mark, joined)))
    return "\n".join(lines)


def read_cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a notebook's text, as `read_notebook` returns it."""
    lines = text.split("\n")
    marks = [(row, match) for row, line in enumerate(lines) if (match := _MARK.match(line))]
    ends = [*(row for row, _ in marks[1:]), len(lines)]
    for (row, match), end in zip(marks, ends, strict=False):
        joined = tuple(match[3].split(_LINE_END)) if match[3] else ()
        last = next((place for place in range(end - 1, row, -1) if lines[place]), row)
        yield Cell(
            number=int(match[1]),
            language=match[2] or "python",
            first_row=row if joined else row + 1,
            last_row=last,
            joined=joined,
        )


def describe_cells(text: str, start_line: int, end_line: int) -> str:
    """Name the cells of some lines in a notebook's text: `cell 7, lines 2-4`, or `cells 3-5`."""
    cells = [cell for cell in read_cells(text) if cell.first_row < end_line and cell.last_row + 1 >= start_line]
    if not cells:
        return ""
    if len(cells) > 1:
        return f"cells {cells[0].number}-{cells[-1].number}"
    cell = cells[0]
    first, last = max(start_line - cell.first_row, 1), min(end_line, cell.last_row + 1) - cell.first_row
    if cell.joined:
        return f"cell {cell.number}"
    return f"cell {cell.number}, " + (f"line {first}" if first == last else f"lines {first}-{last}")


def _list_cells(notebook: Any) -> list[dict[str, Any]] | None:
    if not isinstance(notebook, dict):
        return None
    sheets = notebook.get("worksheets")
    cells = notebook.get("cells")
    if cells is None and isinstance(sheets, list):
        cells = [cell for sheet in sheets for cell in _list_cells_of(sheet)]
    if not isinstance(cells, list):
        return None
    return [cell for cell in cells if isinstance(cell, dict) and _SOURCES & {*cell}]


def _list_cells_of(sheet: Any) -> list[Any]:
    cells = sheet.get("cells") if isinstance(sheet, dict) else None
    return cells if isinstance(cells, list) else []


def _find_language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    kernel = metadata if isinstance(metadata, dict) else {}
    for section, key in (("language_info", "name"), ("kernelspec", "language"), ("kernelspec", "name")):
        found = kernel.get(section)
        if isinstance(found, dict) and isinstance(found.get(key), str):
            name = _NOT_IN_NAME.sub("-", found[key].lower())[:_MAX_NAME].strip("-")
            if name:
                return _LANGUAGES.get(name, name)
    return "python"


def _find_sources(text: str, most: int) -> Iterator[tuple[int, int, list[tuple[int, str]]]]:
    """Yield for each cell the row of its source's key, that of its value, and its strings with their rows."""
    row = at = found = 0
    key = ""
    stack: list[str] = []
    while found < most and (match := _TOKEN.search(text, at)):
        row += text.count("\n", at, match.start())
        at, sign = match.end(), match[0]
        if sign in "{[":
            stack.append(key)
            key = ""
        elif sign in "}]":
            key = stack.pop() if stack else ""
        elif sign[0] == '"':
            is_key = _COLON.match(text, at)
            if not is_key:
                continue
            key = sign[1:-1]
            at = is_key.end()
            value_row = row + text.count("\n", match.end(), at)
            # `cells[i].source`, or `worksheets[i].cells[j].input`: directly in an object of a list named `cells`.
            if key in _SOURCES and len(stack) in _DEPTHS and stack[-2] == "cells":
                yield row, value_row, _read_strings(text, at, value_row)
                found += 1
            row = value_row


def _read_strings(text: str, at: int, row: int) -> list[tuple[int, str]]:
    """Read a string, or a list of strings, each with its row."""
    if not text.startswith("[", at):
        match = _ITEM.match(text, at)
        return [(row, _read_string(match[1]))] if match else []
    found = []
    at += 1
    while match := _ITEM.match(text, at):
        row += text.count("\n", at, match.start(1))
        found.append((row, _read_string(match[1])))
        at = match.end(1)
    return found


def _read_string(written: str) -> str:
    return _UNFIT.sub("\ufffd", json.loads(written)).replace("\r\n", "\n").replace("\r", "\n")
