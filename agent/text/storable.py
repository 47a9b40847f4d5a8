"""Text that may be stored: without lone surrogates and NUL, and with secrets masked in values of any shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import re2

_DEEPEST = 8
_FIRST_TOO_LARGE = 2**53  # of whole numbers: from there on, some readers round


def make_storable(text: str) -> str:
    """Replace each half of a surrogate pair, which cannot be stored, by a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def make_storable_in_postgres(value: Any) -> Any:
    """Take out of a text what Postgres does not take: what cannot be stored at all, and zero bytes.

    Anything but text stays unchanged.
    """
    return make_storable(value).replace("\0", "") if isinstance(value, str) else value


def is_storable(value: object, depth: int = _DEEPEST) -> bool:
    """Whether a JSON value can be stored unchanged; `depth` counts nested lists and tables."""
    if isinstance(value, str):
        return value == make_storable(value)
    if isinstance(value, int):
        return abs(value) < _FIRST_TOO_LARGE
    if isinstance(value, dict):
        return depth > 0 and all(is_storable(each, depth - 1) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return depth > 0 and all(is_storable(each, depth - 1) for each in value)
    return isinstance(value, float | None)


MAX_VALUES = 500
MIN_WORDS = 8  # characters; what is shorter, or a mere word, may well are in an answer for itself
_PLACEHOLDER = re2.compile(r"\[REDACTED[^\]\n]{0,60}\]")
MASK = "[REDACTED]"


class MaskedValues:
    """The values masked while a turn reads; they stay in memory until the turn ends."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        """Iterate over the values."""
        return iter(self._values)

    def watch(self, redact: Callable[[str], str]) -> Callable[[str], str]:
        """Return a redactor that masks like the given one, and remembers here what it masked."""

        def redact_and_remember(text: str) -> str:
            masked = redact(text)
            if masked != text:
                self._remember(text, masked)
            return masked

        return redact_and_remember

    def hide(self, text: str) -> str:
        """Mask the values wherever they are in a text."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def _remember(self, text: str, masked: str) -> None:
        for value in _find_values(text, _PLACEHOLDER.split(masked)):
            for line in value.split("\n"):
                if len(self._values) < MAX_VALUES and len(line.strip()) >= MIN_WORDS and not line.strip().isalpha():
                    self._values[line.strip()] = None


def _find_values(text: str, kept: list[str]) -> Iterator[str]:
    """Yield the parts of the text between its kept pieces."""
    if not text.startswith(kept[0]):
        return
    at = len(kept[0])
    for piece in kept[1:]:
        end = text.find(piece, at) if piece else len(text)
        if end < 0:
            return
        yield text[at:end]
        at = end + len(piece)
