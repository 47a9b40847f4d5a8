"""Writes text for Markdown, quoted or fenced so that it cannot break out, and lines of code and counts of things."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from os.path import commonprefix

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # categories of characters that show nothing
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(r"[a-z0-9+#-]{1,20}")
# Characters allowed in italics; others could become a link, a ping or markup, and go into a code span.
_PLAIN_PROSE = re.compile(r"(?:(?!://|www\.)[\w\s.,;:'\"()/+=%&?!#-]){1,300}")


def format_count(count: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def join_words(parts: Sequence[str]) -> str:
    """Write a list in words: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def format_code_span(text: str, *, longest: int = 120) -> str:
    """Quote text as inline code, cut to a length; backticks in it only lengthen the delimiter."""
    line = to_one_line(text, longest=longest)
    if not line:
        return "` `"
    ticks = "`" * (max((len(run) for run in _TICKS.findall(line)), default=0) + 1)
    padding = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{padding}{line}{padding}{ticks}"


def format_code_block(lines: list[str], language: str) -> str:
    """Quote lines as a code block whose fence is longer than any run of backticks in it."""
    body = "\n".join(lines)
    ticks = "`" * max(3, max((len(run) for run in _TICKS.findall(body)), default=0) + 1)
    name = language.lower() if _LANGUAGE.fullmatch(language.lower()) else ""
    return f"{ticks}{name}\n{body}\n{ticks}"


def format_quote(text: str, *, longest: int = 240) -> str:
    """Quote plain prose in italics, and anything else as inline code."""
    line = to_one_line(text, longest=longest)
    if not line:
        return ""
    return f"*{line}*" if _PLAIN_PROSE.fullmatch(line) else format_code_span(line, longest=longest)


def to_one_line(text: str, *, longest: int) -> str:
    """Put text on one line, without control and format characters, cut with an ellipsis."""
    line = " ".join(replace_control_characters(text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def replace_control_characters(text: str) -> str:
    """Replace characters that control a terminal or hide text; tabs and line breaks stay."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in _UNSEEN else "\ufffd"
        for char in text.replace("\r\n", "\n")
    )


_IMPORT = re.compile(r"\s*(?:import|from|use|require|include|#include|using|package|__all__)\b|.*=\s*require\(")


def is_import(line: str) -> bool:
    """Whether the line imports names, or lists exported ones."""
    return bool(_IMPORT.match(line))


def dedent(lines: Sequence[str]) -> list[str]:
    """Remove the common leading white space; the number of lines stays."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return list(lines)
    spaces = [line[: len(line) - len(line.lstrip())] for line in filled]
    shared = len(commonprefix(spaces))  # noqa: RUF071 - these are no paths
    return [line[shared:] if line.strip() else "" for line in lines]
