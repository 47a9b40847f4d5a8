"""Finds the changelog of a repository, and in it the section of the newest or of a named version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from agent.ports import SourceFiles
from indexer.types import FileEntry, Location

_STEMS = ("changelog", "changes", "history", "news", "releases", "release-notes", "release_notes", "releasenotes")
_ENDINGS = frozenset({"", ".md", ".rst", ".txt", ".markdown", ".adoc", ".org"})
_FOLDERS = frozenset({"", "docs", "doc", "github", "documentation"})
_MOST_LINES = 20_000
_MOST_FILES = 3
_LONGEST_HEADING = 120
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}(?:\.\d{1,6}){1,3})(?![\w]*\.\d)", re.IGNORECASE)
_UNRELEASED = re.compile(r"\b(?:unreleased|upcoming|next|in development|development version|dev)\b", re.IGNORECASE)
_MARKED = re.compile(r"(?:#{1,4}|={1,4})\s+\S")
_UNDERLINES = frozenset("=-~^*+#")
_NUMBER = re.compile(r"\d{1,6}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A version's part of a changelog; `version` is empty for what is not released."""

    version: str
    start_line: int
    end_line: int


async def find_section(code: SourceFiles, version: str = "", *, after: str = "") -> tuple[Location, str] | None:
    """Find the section of a version, or of the newest one that says anything, and which version that is.

    With a version that it is to come `after`, there may be none.
    """
    wanted, done = _read_numbers(version), _read_numbers(after)
    for entry in rank_changelogs(await code.files())[:_MOST_FILES]:
        lines = (await code.read(entry.path, 1, _MOST_LINES)).text.split("\n")
        for section in list_sections(lines):
            numbers = _read_numbers(section.version)
            if done and numbers == done:
                return None
            says_something = any(line.strip() for line in lines[section.start_line : section.end_line])
            if (numbers == wanted) if wanted else says_something:
                at = Location(path=entry.path, start_line=section.start_line, end_line=section.end_line)
                return at, section.version
    return None


def rank_changelogs(files: Sequence[FileEntry]) -> list[FileEntry]:
    """List the files that may be the changelog: the one nearest to the top, by the most usual name, first."""
    found = [
        (entry.path.count("/"), _STEMS.index(path.stem.lower()), entry.path, entry)
        for entry in files
        if (path := PurePosixPath(entry.path)).stem.lower() in _STEMS
        and path.suffix.lower() in _ENDINGS
        and path.parent.as_posix().removeprefix(".").lower() in _FOLDERS
    ]
    return [entry for *_, entry in sorted(found, key=lambda each: each[:3])]


def list_sections(lines: Sequence[str]) -> list[Section]:
    """List the sections of a changelog in their order: from each heading with a version to the next one."""
    starts = [(at, _read_version(lines[at])) for at in range(len(lines)) if _is_version_heading(lines, at)]
    ends = [*(at for at, _ in starts[1:]), len(lines)][: len(starts)]
    return [
        Section(version=version, start_line=at + 1, end_line=_cut_end(lines, at + 1, end))
        for (at, version), end in zip(starts, ends, strict=True)
    ]


def _is_version_heading(lines: Sequence[str], at: int) -> bool:
    line = lines[at][:_LONGEST_HEADING]
    if not line.strip() or line[0].isspace() or not (_VERSION.search(line) or _UNRELEASED.search(line)):
        return False
    after = lines[at + 1][:_LONGEST_HEADING] if at + 1 < len(lines) else ""
    if _MARKED.match(line) or (len(set(after.strip())) == 1 and after[0] in _UNDERLINES and len(after.strip()) > 2):
        return True
    # A line of its own that begins with the version, as plain text files have it.
    return bool(_VERSION.match(line)) and len(line.split()) <= 4


def _cut_end(lines: Sequence[str], first: int, end: int) -> int:
    """Leave out blank lines at the end."""
    while end > first and not lines[end - 1].strip():
        end -= 1
    return end


def _read_version(line: str) -> str:
    found = _VERSION.search(line[:_LONGEST_HEADING])
    return found[1] if found else ""


def _read_numbers(version: str) -> tuple[int, ...]:
    """Read the numbers of a version, zeros at the end left out."""
    found = _VERSION.search(version) or re.search(r"(\d{1,6})", version)
    numbers = [int(number) for number in _NUMBER.findall(found[1])] if found else []
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
