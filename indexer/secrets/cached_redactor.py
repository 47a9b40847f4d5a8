"""Masks secrets only once in repeatedly read text, such as evidence for several steps of a turn."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from cachetools import LRUCache

MAX_CHARACTERS = 2_000_000


class CachedRedactor:
    """A redactor that remembers recent texts without secrets; it stores no secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        # A text longer than the whole cache counts as all of it: it is kept alone.
        self._clean: LRUCache[str, str] = LRUCache(MAX_CHARACTERS, lambda text: min(len(text), MAX_CHARACTERS))
        self._lock = Lock()

    def __call__(self, text: str) -> str:
        """Mask every secret in the text."""
        with self._lock:
            if self._clean.get(text) is not None:
                return text
        masked = self._redact(text)
        if masked == text:
            with self._lock:
                self._clean[text] = text
        return masked
