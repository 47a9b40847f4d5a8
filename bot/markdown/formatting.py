"""Answers and citations as text that is safe to show: pure functions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from agent.text.citation_markers import format_marker
from indexer import is_safe_path

if TYPE_CHECKING:
    from agent import Citation

# Characters that could steer a terminal: control characters (but newline and tab), direction overrides, surrogates.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINKABLE = re.compile(r"(https?|file)://")


def replace_control_characters(text: str) -> str:
    """Replace every character that would steer the terminal instead of showing."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def to_one_line(text: str) -> str:
    """Make text safe to stand inside a line."""
    return " ".join(replace_control_characters(text).split())


def format_location(path: str, start_line: int, end_line: int) -> str:
    """Name lines as people and editors do: `path:12-20`."""
    lines = str(start_line) if start_line == end_line else f"{start_line}-{end_line}"
    # A newline in a name must not begin a line.
    return f"{replace_control_characters(path.replace(chr(10), chr(0)))}:{lines}"


def format_cited_place(citation: Citation) -> str:
    """Name what a citation points to: lines of a file, or a commit; with its repository where there are several."""
    label = f"{citation.repository}/" if citation.repository else ""
    if not citation.path:
        return f"{label.replace('/', ' ')}commit {citation.commit[:12]}"
    where = f" at {citation.commit[:8]}" if citation.is_elsewhere else ""
    cells = f" ({citation.cells})" if citation.cells else ""
    return format_location(f"{label}{citation.path}", citation.start_line, citation.end_line) + cells + where


def find_link_target(citation: Citation, root: Path | None) -> str | None:
    """The target of a click on the citation: the permalink, else the file of a working tree at `root`."""
    if citation.url and _LINKABLE.match(citation.url):
        return quote_link(citation.url)
    is_there = bool(citation.path) and not citation.is_elsewhere
    file = root / citation.path if root and is_there and is_safe_path(citation.path) else None
    return file.as_uri() if file and file.is_absolute() else None


def quote_link(address: str) -> str:
    """Write a web address so that it can be in a Markdown link."""
    return quote(address, safe=":/?#[]@!$&'*+,;=%~")


def format_footnote(citation: Citation) -> str:
    """One plain line for a citation: its mark, its lines, its address if it has one."""
    line = f"{format_marker(citation.mark)} {format_cited_place(citation)}"
    return f"{line}  {to_one_line(citation.url)}" if citation.url else line


def format_dollars(dollars: float | None) -> str:
    """Write what something costs; where no price is known, that."""
    if dollars is None:
        return "price not set"
    return "$0" if dollars == 0 else f"${dollars:.4f}" if dollars < 1 else f"${dollars:.2f}"
