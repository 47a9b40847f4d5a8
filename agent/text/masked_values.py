"""Remembers what was masked in a turn, so that no answer reveals it where no rule would mask it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import re2

MOST_VALUES = 500
SHORTEST = 8  # characters; what is shorter, or a mere word, may well are in an answer for itself
_PLACEHOLDER = re2.compile(r"\[REDACTED[^\]\n]{0,60}\]")
MASK = "[REDACTED]"


class MaskedValues:
    """The values that were masked in what a turn has read; they are kept in memory alone, until the turn is over."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}

    def __iter__(self) -> Iterator[str]:
        """Go through the values."""
        return iter(self._values)

    def watch(self, redact: Callable[[str], str]) -> Callable[[str], str]:
        """Return a redactor that masks as the given one does, and has remembered here what it masked."""

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
                if len(self._values) < MOST_VALUES and len(line.strip()) >= SHORTEST and not line.strip().isalpha():
                    self._values[line.strip()] = None


def _find_values(text: str, kept: list[str]) -> Iterator[str]:
    """Yield what is in the text between the pieces of it that were kept."""
    if not text.startswith(kept[0]):
        return
    at = len(kept[0])
    for piece in kept[1:]:
        end = text.find(piece, at) if piece else len(text)
        if end < 0:
            return
        yield text[at:end]
        at = end + len(piece)
