"""The headings of a document, and the title, section or changelog version above each part."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from indexer.parsing.chunking import Rows, SizedLines, find_markdown_headings, find_rst_headings, split_sections

_CHANGELOGS = frozenset({"CHANGELOG", "CHANGES", "HISTORY", "NEWS", "RELEASES", "RELEASE_NOTES", "RELEASE-NOTES"})
_VERSION = re.compile(r"\d\.\d|unreleased", re.IGNORECASE)
_PLAIN_VERSION = re.compile(r"[^\w\s]{0,3} ?(?:v|version |release )?\d{1,4}\.\d", re.IGNORECASE)
_LONGEST_TITLE = 100
_MAX_INSIDE = 5  # headings of one piece that are named besides its enclosing ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A title, the row that it begins on, and how deep it is nested, 1 for the outermost."""

    row: int
    level: int
    title: str


def find_headings(language: str, texts: Sequence[str]) -> tuple[Heading, ...]:
    """Find the headings of a document in order; none in a language that is no markup."""
    if language not in {"markdown", "rst"}:
        return ()
    rows = find_markdown_headings(texts) if language == "markdown" else find_rst_headings(texts)
    signs: dict[str, int] = {"=": 1, "-": 2} if language == "markdown" else {}
    headings = []
    for row in sorted(rows):
        is_overline = not any(map(str.isalnum, texts[row][:_LONGEST_TITLE])) and row + 1 < len(texts)
        title = texts[row + is_overline]
        if language == "markdown" and title.startswith("#"):
            level = len(title) - len(title.lstrip("#"))
        else:  # the order in which a document first uses the signs is the order of its levels
            under = row + is_overline + 1
            sign = texts[under][:1] + texts[row][:1] * is_overline if under < len(texts) else ""
            level = signs.setdefault(sign, len(signs) + 1)
        headings.append(Heading(row=row, level=level, title=title.strip("# \t")[:_LONGEST_TITLE]))
    return tuple(headings)


def name_sections(headings: Sequence[Heading], pieces: Sequence[Rows]) -> list[str]:
    """Name each piece by the headings above it, outermost first, and some of those inside it."""
    rows = [heading.row for heading in headings]
    names = []
    around: list[Heading] = []
    done = 0
    for first, last in pieces:
        begun, ended = bisect_right(rows, first), bisect_right(rows, last)
        for heading in headings[done:begun]:
            around = [outer for outer in around if outer.level < heading.level] + [heading]
        inside = headings[begun : min(ended, begun + _MAX_INSIDE)]
        names.append(" / ".join(heading.title for heading in (*around, *inside)))
        done = begun
    return names


def is_changelog(path: str) -> bool:
    """Whether a document is one that tells of versions."""
    return PurePosixPath(path).stem.upper() in _CHANGELOGS


def split_versions(language: str, lines: SizedLines, limit: int) -> Iterator[Rows] | None:
    """Cut a changelog so that each version has pieces of its own; None if no version is found."""
    if language in {"markdown", "rst"}:
        rows = {each.row for each in find_headings(language, lines.texts) if _VERSION.search(each.title)}
    else:
        rows = {row for row, text in enumerate(lines.texts) if _PLAIN_VERSION.match(text)}
    return split_sections(lines, rows.__contains__, limit, 0) if rows else None
