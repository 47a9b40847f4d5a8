"""Finds where statements begin in code of any language, so that excerpts are cut where a person would cut them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix

from indexer.text.languages import find_language

_TRIPLE = ('"""', "'''")
_CLOSES = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|rescue|ensure|end|fi|done|esac|then|do)\b|\*/|-->")
_CONTINUES = re.compile(r"[.?:]\w|\.\.\w|&&|\|\||[+*/%|&=<>](?!\w)|(?:and|or|if\s.*\selse)\b\s|->|=>|\?\s|:\s")
_UNFINISHED = re.compile(r"(?:[\\,+*/%|&=(\[]|&&|\|\||\b(?:and|or|not|in|return|extends|implements|where))$")
_COMMENT = re.compile(r"(?:#(?!\[|include|define|if|endif|pragma|!)|//|--\s|\*(?:\s|$)|/\*|;;)")
_TOKEN = re.compile(
    r"\\.|\"\"\"|'''|/\*|\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|(?:#|//)(?=\s|[A-Za-z:!/]).*|[()\[\]{}]"
)
_HEADER = re.compile(r"[:{]\s*(?:(?:#|//).*)?$|\b(?:do|then)\s*(?:\|[^|]*\|)?$")
_IMPORT = re.compile(r"\s*(?:import|from|use|require|include|#include|using|package|__all__)\b|.*=\s*require\(")


@dataclass(frozen=True, kw_only=True, slots=True)
class LineLayout:
    """What is known of each line: whether a statement begins there, whether it is prose, how deep it is indented."""

    starts: tuple[bool, ...]
    prose: tuple[bool, ...]
    indents: tuple[int, ...]


def read_layout(lines: Sequence[str], language: str) -> LineLayout:
    """Read the lines of one passage; what was open before its first line is not known and taken as nothing."""
    known = find_language(language.lower())
    scan = _Scan(braces_open_blocks=known is None or known.has_brace_blocks)
    starts: list[bool] = []
    prose: list[bool] = []
    before = ""
    for line in lines:
        text = line.strip()
        commented = scan.in_prose or bool(_COMMENT.match(text)) or text.startswith(_TRIPLE)
        # Below a comment, the comment is where the statement begins, for a reader.
        continues = (
            _COMMENT.match(before) or _CLOSES.match(text) or _CONTINUES.match(text) or _UNFINISHED.search(before)
        )
        starts.append(bool(text) and not scan.is_open and not continues)
        prose.append(commented)
        scan.feed(text)
        before = text
    return LineLayout(starts=tuple(starts), prose=tuple(prose), indents=tuple(map(measure_indent, lines)))


def measure_indent(line: str) -> int:
    """Return the width of the white space that a line begins with; a tab counts as four."""
    bare = line.expandtabs(4)
    return len(bare) - len(bare.lstrip())


def is_import(line: str) -> bool:
    """Whether the line takes names from elsewhere, or lists those that others may take."""
    return bool(_IMPORT.match(line))


def is_header(line: str) -> bool:
    """Whether the line opens a block, so that it means little without the next."""
    return bool(_HEADER.search(line.rstrip())) and not line.strip().startswith(("#", "//", "*"))


def is_closing(line: str) -> bool:
    """Whether the line only closes what was opened before."""
    return bool(line.strip()) and re.fullmatch(r"[)\]};,]+|end|fi|done|esac", line.strip()) is not None


def dedent(lines: Sequence[str]) -> list[str]:
    """Take away the white space that all lines begin with; their number stays."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return list(lines)
    spaces = [line[: len(line) - len(line.lstrip())] for line in filled]
    shared = len(commonprefix(spaces))  # noqa: RUF071 - these are no paths
    return [line[shared:] if line.strip() else "" for line in lines]


class _Scan:
    """Keeps the brackets, strings and comments that are open while lines go by."""

    def __init__(self, *, braces_open_blocks: bool) -> None:
        self._braces_open_blocks = braces_open_blocks
        self._open: list[str] = []
        self._until = ""

    @property
    def in_prose(self) -> bool:
        return bool(self._until)

    @property
    def is_open(self) -> bool:
        """Whether a string, a comment or a bracket is open; a brace of a block is not."""
        return bool(self._until) or (bool(self._open) and not (self._open[-1] == "{" and self._braces_open_blocks))

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if self._until:
                end = text.find(self._until, at)
                if end < 0:
                    return
                at, self._until = end + len(self._until), ""
                continue
            found = _TOKEN.search(text, at)
            if found is None:
                return
            self._note(found[0])
            at = found.end()

    def _note(self, mark: str) -> None:
        if mark in _TRIPLE:
            self._until = mark
        elif mark == "/*":
            self._until = "*/"
        elif mark in "([{":
            self._open.append(mark)
        elif mark in ")]}" and self._open:
            self._open.pop()
