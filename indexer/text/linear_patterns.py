"""Patterns over outside text: on RE2, each search takes time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import re2

_SURROGATES = re.compile("[\ud800-\udfff]")
# Their equivalents in Python, as the inside of a class; in RE2 they cover only ASCII.
_CLASSES = {"w": r"\p{L}\p{N}_", "d": r"\p{Nd}", "s": r"\t-\r\x1c-\x20\x85\p{Z}"}
# The hundreds of ranges of all letters, taken together with the signs between them.
_LOOSE_CLASSES = {**_CLASSES, "w": r"0-9A-Z_a-z\x{80}-\x{10FFFF}"}


class Pattern:
    """A pattern with the interface of `re`, matches included.

    It is compiled at its first use: there are hundreds, and a process that answers one question needs few of them.
    """

    def __init__(self, pattern: str, *, loose: bool = False) -> None:
        self.pattern = pattern
        self._is_loose = loose

    def compile(self) -> None:
        """Compile it now, if its first use must be fast."""
        _ = self._program

    @cached_property
    def _program(self) -> Any:
        options = re2.Options()
        options.log_errors = False
        return re2.compile(_widen(self.pattern, _LOOSE_CLASSES if self._is_loose else _CLASSES), options)

    def search(self, text: str) -> re.Match[str] | None:
        """Find the first match."""
        found: re.Match[str] | None = self._program.search(_replace_surrogates(text))
        return found

    def match(self, text: str) -> re.Match[str] | None:
        """Match the beginning of a text."""
        found: re.Match[str] | None = self._program.match(_replace_surrogates(text))
        return found

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Match a whole text."""
        found: re.Match[str] | None = self._program.fullmatch(_replace_surrogates(text))
        return found

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Find all matches in order."""
        found: Iterator[re.Match[str]] = self._program.finditer(_replace_surrogates(text))
        return found

    def findall(self, text: str) -> list[str]:
        """Return the matches, or their one group."""
        found: list[str] = self._program.findall(_replace_surrogates(text))
        return found

    def split(self, text: str) -> list[str]:
        """Return the text between the matches."""
        pieces: list[str] = self._program.split(_replace_surrogates(text))
        return pieces

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        """Replace every match."""
        replaced: str = self._program.sub(replacement, _replace_surrogates(text))
        return replaced


def compile_pattern(pattern: str, *, loose: bool = False) -> Pattern:
    r"""Compile a pattern in RE2's syntax, with flags such as `(?im)` in front.

    Letters, digits and white space (`\\w`, `\\d`, `\\s`) are those of all scripts, but `\\b` works only next to ASCII,
    and there is no look-around. If something far off decides whether a place matches, each of many places searches for
    it again: finding them all is quadratic with RE2 too. A `loose` pattern is compiled in a third of the time, and
    takes every character beyond ASCII for a letter.
    """
    return Pattern(pattern, loose=loose)


def _replace_surrogates(text: str) -> str:
    """Replace half characters, which have no UTF-8, by a mark of the same length."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _widen(pattern: str, classes: Mapping[str, str]) -> str:
    """Give the classes of a pattern their meaning in Python."""
    pieces: list[str] = []
    in_class = False
    characters = iter(pattern)
    for char in characters:
        if char == "\\":
            pieces.append(_widen_class(next(characters), classes, in_class=in_class))
            continue
        if char in "[]":
            in_class = char == "["
        pieces.append(char)
    return "".join(pieces)


def _widen_class(letter: str, classes: Mapping[str, str], *, in_class: bool) -> str:
    members = classes.get(letter.lower())
    if members is None:
        return f"\\{letter}"
    if letter.isupper() and in_class:
        raise ValueError(f"\\{letter} cannot stand in a class")
    if in_class:
        return members
    # These hold both cases of all that they hold; to look for the other ones takes RE2 longer than all else.
    return f"(?-i:[^{members}])" if letter.isupper() else f"(?-i:[{members}])"
