"""Splits overlong messages for Slack or Discord; code blocks continue, links and tables stay whole."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from agent.text.code_marks import CodeBlockScanner, CodeFence

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
    """Read the lines; joining them gives the text again."""
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


Measure = Callable[[str], int]

MIN = 100  # units; below that there is no room for fences

# Kept whole while it fits a message: links, addresses, code, words.
_TOKEN = re.compile(
    r"\[\[\d{1,4}\]\]\([^()\s]{0,2000}\)|!?\[[^\[\]\n]{0,500}\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,2000})?\)"
    r"|<[^<>\s]{1,2000}>|`[^`\n]{1,500}`|\s+|[^\s`\[<]+|.",
    re.DOTALL,
)
_MAX_TOKEN = 5_000  # characters of a link; a longer word is cut in any case
_MAX_UNITS = 5  # that a character takes: `&` as `&amp;`
_JOINER = "\u200d"


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkdownPiece:
    """One message of a split text; the parts are contiguous."""

    text: str
    start: int
    end: int


def count_units(text: str, *, utf16: bool, escaped: bool = False) -> int:
    """Measure text in characters, or in UTF-16 units, of which one beyond the basic plane takes two.

    With `escaped`, count `&`, `<` and `>` as `&amp;`, `&lt;` and `&gt;`.
    """
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2 if utf16 else len(text)
    return units + (4 * text.count("&") + 3 * (text.count("<") + text.count(">")) if escaped else 0)


def split_markdown(text: str, limit: int, *, utf16: bool = False, escaped: bool = False) -> list[MarkdownPiece]:
    """Cut text into pieces of at most `limit` units; blank text gives none. Below 100 units `ValueError`."""
    if limit < MIN:
        raise ValueError(f"A message of {limit} units is too short to be split into; {MIN} are needed.")
    packing = _Packing(limit, partial(count_units, utf16=utf16, escaped=escaped))
    for group in _group_lines(text):
        packing.add(group)
    return packing.pieces()


def _group_lines(text: str) -> Iterator[list[MarkdownLine]]:
    """Give the lines in groups that should stay together: a code block, a table, else a line."""
    group: list[MarkdownLine] = []
    kind = ""
    for line in read_lines(text):
        now = "code" if line.in_code else "table" if line.in_table else ""
        if group and (now != kind or not kind):
            yield group
            group = []
        group.append(line)
        kind = now
        if line.in_code and line.fence is None:
            yield group
            group = []
    if group:
        yield group


class _Packing:
    """Fills one piece after the other."""

    def __init__(self, limit: int, measure: Measure) -> None:
        self._limit = limit
        self._count_units = measure
        self._pieces: list[MarkdownPiece] = []
        self._shown = ""  # of the piece in progress, with the fence that it begins with
        self._used = 0
        self._taken = 0  # characters of the source in it
        self._start = 0
        self._fence: CodeFence | None = None  # that is open at its end

    def add(self, group: list[MarkdownLine]) -> None:
        whole = self._count_units("".join(line.text for line in group))
        # A group that fits a message of its own is not torn, unless this one would go out nearly empty.
        if self._used + whole + self._measure_closer(group[-1].fence) > self._limit and self._used * 3 >= self._limit:
            self._flush()
        for line in group:
            self._add_line(line)

    def _add_line(self, line: MarkdownLine) -> None:
        rest = line.text
        while rest:
            # Until a line is whole the block before it is open, and after it the one that it opens.
            closing = max(self._measure_closer(self._fence), self._measure_closer(line.fence))
            room = self._limit - self._used - closing
            if self._is_within(rest, room):
                self._append_text(rest)
                break
            opening = self._count_units(self._make_opener()) + 1 if self._fence else 0
            if self._taken and (self._is_within(rest, self._limit - opening - closing) or room < MIN // 2):
                self._flush()
                continue
            # Outside code up to a space that is in no link, else up to a character.
            head = "" if line.in_code else _cut_at_token(rest, room, self._count_units)
            head = head or _cut_at_character(rest, room, self._count_units)
            self._append_text(head)
            rest = rest[len(head) :]
            if rest:
                self._flush()
        self._fence = line.fence

    def _append_text(self, text: str) -> None:
        self._shown += text
        self._used += self._count_units(text)
        self._taken += len(text)

    def _flush(self) -> None:
        end = self._start + self._taken
        if self._taken:
            if self._fence is not None:
                self._shown += ("" if self._shown.endswith("\n") else "\n") + self._fence.marker
            self._pieces.append(MarkdownPiece(text=self._shown, start=self._start, end=end))
        self._start, self._taken = end, 0
        self._shown = f"{self._make_opener()}\n" if self._fence else ""
        self._used = self._count_units(self._shown)

    def _measure_closer(self, fence: CodeFence | None) -> int:
        return self._count_units(fence.marker) + 1 if fence else 0

    def _make_opener(self) -> str:
        if self._fence is None:
            return ""
        fits = self._count_units(self._fence.opener) * 4 <= self._limit
        return self._fence.opener if fits and "\n" not in self._fence.opener else self._fence.marker

    def _is_within(self, text: str, room: int) -> bool:
        """Whether text takes at most so many units, of which each character takes at least one."""
        return len(text) <= room and self._count_units(text) <= room

    def pieces(self) -> list[MarkdownPiece]:
        self._flush()
        # Platforms refuse empty messages: what shows nothing is counted with its neighbour
        kept: list[MarkdownPiece] = []
        pending = 0
        for piece in self._pieces:
            if piece.text.strip():
                kept.append(MarkdownPiece(text=piece.text, start=pending if not kept else piece.start, end=piece.end))
            elif kept:
                kept[-1] = MarkdownPiece(text=kept[-1].text, start=kept[-1].start, end=piece.end)
        return kept


def _cut_at_token(text: str, room: int, measure: Measure) -> str:
    end = good = used = 0
    after_space = False
    for found in _TOKEN.finditer(text[: room + _MAX_TOKEN]):
        token = found.group()
        if after_space or token.isspace() or token[0] in "[!<`":
            good = end
        used += measure(token)
        if used > room:
            return text[:good]
        end = found.end()
        after_space = token.isspace()
    return text[:end]


def _cut_at_character(text: str, room: int, measure: Measure) -> str:
    end = min(len(text), max(0, room))
    while (over := measure(text[:end]) - room) > 0:
        end -= -(-over // _MAX_UNITS)
    whole = end
    # An accent, a modifier or the second half of a pair stays with what it belongs to.
    while whole > max(1, end - 12) and whole < len(text) and _is_inseparable(text[whole - 1], text[whole]):
        whole -= 1
    return text[: whole if whole > max(1, end - 12) else max(1, end)]


def _is_inseparable(before: str, char: str) -> bool:
    joined = _JOINER in {before, char} or unicodedata.combining(char) != 0
    variant = "\ufe00" <= char <= "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"
    return joined or variant or "\udc00" <= char <= "\udfff"
