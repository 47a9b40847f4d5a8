"""Reads Markdown as lines that belong to code blocks, tables or prose: what may be cut, and what must stay together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.text.code_fences import CodeBlockScanner, CodeFence

_TABLE = re.compile(r"[ \t]*\|.*\|[ \t]*\n?\Z")


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
    scanner = CodeBlockScanner(chat=True)
    for raw in re.findall(r"[^\n]+\n?|\n", text):
        in_code = scanner.take(raw)
        in_table = not in_code and bool(_TABLE.match(raw))
        yield MarkdownLine(text=raw, fence=scanner.fence, in_code=in_code, in_table=in_table)


def find_fence(text: str, end: int) -> CodeFence | None:
    """Return the code block that the text is in at a position, if any."""
    fence = None
    for line in read_lines(text[:end]):
        fence = line.fence
    return fence
