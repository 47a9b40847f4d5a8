"""Finds where a project declares what it depends on: the lines of its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent.evidence.request_builders import request_lines
from agent.ports import SourceFiles
from agent.state import RetrievalRequest

_MAX_LINES = 80  # of one declaration; as many as are shown of a range
# What the declaration begins with in each kind of manifest.
_BEGINS: Mapping[str, re.Pattern[str]] = {
    "pyproject.toml": re.compile(r"dependencies ?=|\[tool\.poetry\.dependencies\]"),
    "setup.cfg": re.compile(r"install_requires ?="),
    "requirements.txt": re.compile(r"[\w-]"),
    "package.json": re.compile(r"\"dependencies\""),
    "go.mod": re.compile(r"require\b"),
    "Cargo.toml": re.compile(r"\[dependencies\]"),
    "pom.xml": re.compile(r"<dependencies>"),
    "Gemfile": re.compile(r"gem\b"),
}
_END = re.compile(r"[\])}],?|</dependencies>")


async def request_dependencies(code: SourceFiles) -> list[RetrievalRequest]:
    """Ask for the lines of the manifests at the top that declare dependencies."""
    found: list[RetrievalRequest] = []
    for entry in await code.files():
        begins = _BEGINS.get(entry.path)
        if begins is None:
            continue
        lines = (await code.read(entry.path)).text.split("\n")
        start = next((at for at, line in enumerate(lines) if begins.match(line.strip())), None)
        if start is not None:
            end = _find_end(lines, start, is_whole=entry.path in {"requirements.txt", "Gemfile"})
            found.append(request_lines(entry.path, start + 1, end + 1, reasoning="where dependencies are declared"))
    return found


def _find_end(lines: Sequence[str], start: int, *, is_whole: bool) -> int:
    """Return the last line of the declaration: its bracket, or the last line before the next section."""
    first = lines[start].rstrip()
    if not is_whole and first.endswith(("]", "}", "},")) and not first.startswith("["):
        return start
    end = start
    for at in range(start + 1, min(len(lines), start + _MAX_LINES)):
        if not is_whole and _END.fullmatch(lines[at].strip()):
            return at
        if not is_whole and (lines[at].startswith("[") or not lines[at].strip()) and not first.endswith("["):
            break
        end = at if lines[at].strip() else end
    return end
