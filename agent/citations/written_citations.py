"""Reads how models write citations: `E1`, `E1, E4:3-5`, `E1, lines 2-3`, `E10-E12`, in any language."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from indexer.text.linear_patterns import compile_pattern

MAX_CITATIONS = 40
_MAX_ID_RANGE = 20
_MAX_CONNECTIVE = 5  # letters of "and" in any language, between two ids
_UNTIL = frozenset("a al bis do tot til to until \u00e0 \u0434\u043e".split())  # between two lines
_LEADING = frozenset("cf confer evidence ref refs see siehe source sources vedi ver vgl voir".split())

_TOKEN = compile_pattern(
    r"(?P<id>[Ee]\d{1,4})"
    r"|(?P<lines>[Ll]?\d{1,7}(?:\s{0,3}[-\x{2010}-\x{2015}]\s{0,3}[Ll]?\d{1,7})?)"
    r"|(?P<word>\p{L}{1,16}\.?)"
    r"|(?P<sign>[\s,;:#/&|+()\x{2020}\x{3001}\x{ff0c}\x{ff1b}\x{ff1a}\x{2010}-\x{2015}-]{1,8})"
)
_NUMBER = re.compile(r"\d{1,7}")
_DASH = re.compile(r"[-\u2010-\u2015]")


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenCitation:
    """A piece of evidence by its number, and lines of it; 0 if the whole is cited."""

    number: int
    start: int = 0
    end: int = 0


def parse_citations(text: str) -> list[WrittenCitation]:
    """Parse the citations in brackets; empty if anything else is among them."""
    reader = _Reader()
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end or not reader.take(found):
            return []
        end = found.end()
    return reader.finish() if end == len(text) else []


class _Reader:
    """Reads the tokens of one pair of brackets."""

    def __init__(self) -> None:
        self._found: list[WrittenCitation] = []
        self._sign = ""
        self._word = ""
        self._has_lines = False

    def take(self, token: re.Match[str]) -> bool:
        """Take a token; False if no citation continues like that."""
        if token["sign"] is not None:
            self._sign += token["sign"]
            return True
        if token["word"] is not None:
            return self._take_word(token["word"].rstrip("."))
        is_taken = self._take_id(int(token["id"][1:])) if token["id"] is not None else self._take_lines(token["lines"])
        self._sign = self._word = ""
        return is_taken and len(self._found) <= MAX_CITATIONS

    def finish(self) -> list[WrittenCitation]:
        """Return the parsed citations; a final word counts a line at most (`第2行`)."""
        is_complete = len(self._word) <= 1 and not _DASH.search(self._sign)
        return self._found if is_complete else []

    def _take_word(self, word: str) -> bool:
        if self._word or (not self._found and word.lower() not in _LEADING):
            # In Chinese and Japanese, a letter stands before and behind the number of a line.
            return bool(self._found) and len(self._word) == len(word) == 1
        self._word = word
        return True

    def _take_id(self, number: int) -> bool:
        if self._found and _DASH.search(self._sign):
            return self._add_range(number)
        if self._found and (len(self._word) > _MAX_CONNECTIVE or not (self._sign or self._word)):
            return False
        self._add(WrittenCitation(number=number))
        return True

    def _take_lines(self, text: str) -> bool:
        if not self._found:
            return False
        start, end = (*map(int, _NUMBER.findall(text)), 0)[:2]
        if self._has_lines and self._word.lower() in _UNTIL and not end:
            self._found[-1] = replace(self._found[-1], end=start)
            return True
        is_plain = text.isdigit() and not self._word and not self._has_lines
        if is_plain and _DASH.search(self._sign):
            return self._add_range(start)
        if is_plain and self._sign.strip() in {",", ";", "\u3001", "\uff0c"}:
            self._add(WrittenCitation(number=start))
            return True
        lines = WrittenCitation(number=self._found[-1].number, start=start, end=end or start)
        if self._has_lines:
            self._found.append(lines)
        else:
            self._found[-1] = lines
        self._has_lines = True
        return True

    def _add(self, citation: WrittenCitation) -> None:
        self._found.append(citation)
        self._has_lines = False

    def _add_range(self, last: int) -> bool:
        """Add the ids up to the last one of a range (`E10-E12`)."""
        first = self._found[-1].number
        if self._word or self._has_lines or not first < last <= first + _MAX_ID_RANGE:
            return False
        self._found += [WrittenCitation(number=number) for number in range(first + 1, last + 1)]
        return True
