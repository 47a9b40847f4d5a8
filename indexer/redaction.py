"""Masks secrets in what is read again and again, such as evidence that several steps of a turn show, only once."""

from __future__ import annotations

from collections.abc import Callable

from indexer.recent import Recent

MAX_CHARACTERS = 2_000_000


class Redaction:
    """A redactor that knows the texts which it lately found no secret in; no secret is kept."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._clean: Recent[str, str] = Recent(MAX_CHARACTERS, len)

    def __call__(self, text: str) -> str:
        """Mask every secret in the text."""
        if self._clean.get(text) is not None:
            return text
        masked = self._redact(text)
        return self._clean.keep(text, text) if masked == text else masked
