"""Reads Markdown as lines that belong to code blocks, tables or prose: what may be cut, and what must stay together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Models indent the fences of list items; a longer run is no fence that anybody writes. Tildes are none on Discord.
_FENCE = re.compile(r"(?P<indent>[ \t]{0,12})(?P<run>`{3,40})(?!`)(?P<info>[^`\n]*)\n?\Z")
_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*\n?\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFence:
    """The line that opens a code block; `marker` is what closes it."""

    opener: str
    marker: str

    @property
    def bare(self) -> str:
        """The opener without the language."""
        return self.marker


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownLine:
    """One line with its line break. `fence` is the code block that the next character is in, once the line is over;
    `in_code` says that the line is content of a code block, or its opener or closer.
    """

    text: str
    fence: CodeFence | None
    in_code: bool
    in_table: bool


def read_lines(text: str) -> Iterator[MarkdownLine]:
    """Read the lines; joined they are the text again."""
    fence: CodeFence | None = None
    for raw in re.findall(r"[^\n]+\n?|\n", text):
        inside = fence is not None
        fence = _after(raw, fence)
        in_code = inside or fence is not None
        yield MarkdownLine(text=raw, fence=fence, in_code=in_code, in_table=not in_code and bool(_TABLE.match(raw)))


def find_fence(text: str, end: int) -> CodeFence | None:
    """Return the code block that the text is in at a position, if any."""
    fence = None
    for line in read_lines(text[:end]):
        fence = line.fence
    return fence


def _after(line: str, fence: CodeFence | None) -> CodeFence | None:
    found = _FENCE.match(line)
    if found is None:
        return fence
    run, info = found["run"], found["info"].strip()
    if fence is None:
        return CodeFence(opener=f"{found['indent']}{run}{info}", marker=f"{found['indent']}{run}")
    marker = fence.marker.strip()
    closes = not info and len(run) >= len(marker)
    return None if closes else fence
