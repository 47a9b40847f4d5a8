"""The expectations for a known answer: the places to cite, and the words to contain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent import Citation

CLOSE = 80  # lines in which the eye finds what it was sent to

_COMMIT = re.compile(r"[0-9a-f]{7}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A file that contains the truth, or lines of it."""

    path: str
    start: int | None = None
    end: int | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read `path`, `path:12` or `path:12-30`."""
        path, _, lines = text.partition(":")
        if not lines:
            return cls(path=path)
        start, _, end = lines.partition("-")
        return cls(path=path, start=int(start), end=int(end or start))

    def is_cited_by(self, citation: Citation) -> bool:
        """Whether a citation has some of these lines."""
        if citation.path != self.path:
            return False
        if self.start is None or self.end is None:
            return True
        return citation.start_line <= self.end and citation.end_line >= self.start

    def is_shown_closely_by(self, citation: Citation) -> bool:
        """Whether a citation has some of these lines without too many others."""
        if not self.is_cited_by(citation):
            return False
        if self.start is None or self.end is None:
            return True
        return citation.end_line - citation.start_line < max(CLOSE, 3 * (self.end - self.start + 1))


class Wording:
    """A text without its markup, in which only whole words match a name."""

    def __init__(self, text: str) -> None:
        self._text = _plain(text)

    def has(self, wanted: str) -> bool:
        """Whether the text has the words; a short commit id also matches the beginning of a longer one."""
        is_commit = _COMMIT.fullmatch(wanted) is not None
        return any(
            (not _joins(self._text, begin - 1, begin)) and (is_commit or (not _joins(self._text, end - 1, end)))
            for begin, end in self._find(_plain(wanted))
        )

    def has_any(self, spellings: Iterable[str]) -> bool:
        """Whether the text has one of several spellings."""
        return any(map(self.has, spellings))

    def _find(self, wanted: str) -> Iterator[tuple[int, int]]:
        begin = self._text.find(wanted)
        while begin >= 0:
            yield begin, begin + len(wanted)
            begin = self._text.find(wanted, begin + 1)


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").replace("**", "").replace("\\", "").casefold().split())


def _joins(text: str, left: int, right: int) -> bool:
    """Whether two neighbours belong to one word, so that a name cannot begin or end between them."""
    return left >= 0 and right < len(text) and _is_of_word(text[left]) and _is_of_word(text[right])


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
