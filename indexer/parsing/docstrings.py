"""Finds a definition's documentation: the first sentence of its docstring, or of the comment directly above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from indexer.text.languages import find_language

_DOCSTRING = re.compile(rb'[rRuU]?(?:"""|\'\'\'|"(?!")|\'(?!\'))')
_STATEMENT_END = re.compile(rb"[ \t]*(?:[\r\n;#]|$)")
_MARKERS = re.compile(r"\s*(?:/\*+!?|\*+/|\*+|//+!?<?|#+|--+\s*[|^]?|\{-+\s*\|?|-+\}|%+|;+|!+)+\s?")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_INLINE_TAG = re.compile(r"\{@\w+\s([^{}]*)\}")
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$)")
_DOC_ATTRIBUTE = re.compile(r"@(?:module)?doc\s+(?:~[sS])?")
_MAX_COMMENT = 200
_SENTENCE_LIMIT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class LeadingComment:
    """The comment directly above a definition: its first attribute's row and the first sentence of the comment."""

    first_row: int
    sentence: str


class DocumentationFinder:
    """Finds the comment and the attributes above a row.

    `prefixes` and `docs` are (first row, last row) of attributes and of documentation that is no comment.
    """

    def __init__(
        self, lines: Sequence[str], prefixes: Iterable[tuple[int, int]], docs: Iterable[tuple[int, int]], language: str
    ) -> None:
        self._line_comment = _compile_line_comment(language)
        self._lines = lines
        self._prefixes = {last: first for first, last in prefixes}
        self._docs = {last: first for first, last in docs}

    def find_above(self, row: int) -> LeadingComment:
        """Return the lines above a definition that belong to it; comments may be between attributes."""
        first_row, text, above = row, "", row - 1
        while above >= 0:
            if above in self._prefixes:
                above = first_row = self._prefixes[above]
            elif above in self._docs:
                first, last = self._docs[above], above
                text, above = _DOC_ATTRIBUTE.sub("", "\n".join(self._lines[first : last + 1])), first
            elif not text and (comment := self.find_comment(above)) < above + 1:
                text, above = "\n".join(self._lines[comment : above + 1]), comment
            else:
                break
            above -= 1
        return LeadingComment(first_row=first_row, sentence=read_first_sentence(text))

    def find_comment(self, last: int) -> int:
        """Return the first row of the comment that ends on a row; the row after it if there is none."""
        line = self._lines[last].rstrip()
        if line.endswith(("*/", "-}")):
            opening = "/*" if line.endswith("*/") else "{-"
            for row in range(last, max(-1, last - _MAX_COMMENT), -1):
                if opening in self._lines[row]:
                    return row if self._lines[row].lstrip().startswith(opening) else last + 1
            return last + 1
        row = last
        while row >= 0 and last - row < _MAX_COMMENT and self._line_comment.match(self._lines[row].lstrip()):
            row -= 1
        return row + 1


@cache
def _compile_line_comment(name: str) -> re.Pattern[str]:
    """Compile the pattern of a comment's start in a language; `#` directly before a word is a directive or
    attribute.
    """
    language = find_language(name)
    marks = {*(language.line_comments if language else ()), "#"}
    others = "".join(f"|{re.escape(mark)}" for mark in sorted(marks - {"#"}))
    return re.compile(rf"#(?=[\s#:]|$){others}")


def read_docstring(source: bytes, body: int) -> str:
    """Return the first sentence of the string at the start of a body, or an empty string."""
    opening = _DOCSTRING.match(source, body)
    if opening is None:
        return ""
    quotes = opening.group().lstrip(b"rRuU")
    end = source.find(quotes, opening.end())
    if end < 0 or not _STATEMENT_END.match(source, end + len(quotes)):
        return ""
    text = source[opening.end() : min(end, opening.end() + 10 * _SENTENCE_LIMIT)]
    return read_first_sentence(text.decode("utf-8", "ignore"))


def read_first_sentence(comment: str) -> str:
    """Return the first sentence of a comment without its markers and tags, at most 200 characters."""
    if not comment:
        return ""
    words: list[str] = []
    for line in comment.split("\n"):
        bare = (
            _strip_markers(_INLINE_TAG.sub(r"\1", _TAG.sub("", line))).strip().strip("\"'")
            if any(map(str.isalnum, line))
            else ""
        )
        if bare.startswith("@") or not any(map(str.isalnum, bare)):
            if words:
                break
            continue
        words.append(bare)
    paragraph = " ".join(" ".join(words).split())[: 2 * _SENTENCE_LIMIT]
    end = _SENTENCE_END.search(paragraph)
    sentence = paragraph[: end.end()] if end else paragraph
    return sentence[:_SENTENCE_LIMIT]


def _strip_markers(line: str) -> str:
    """Remove the comment signs at the beginning and end of a line."""
    begins = _MARKERS.match(line)
    bare = (line[begins.end() :] if begins else line).rstrip()
    if bare.endswith("*/"):
        return bare[:-1].rstrip("*")
    return bare.removesuffix("-}")
