"""Documentation comments: which lines they take, and their prose without markers, tags and lists of parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from indexer.text.tokens import find_question_words, split_identifier

LONGEST_COMMENT = 100  # lines
LONGEST_HEAD = 40  # lines of a signature, before a docstring

_QUOTES = re.compile(r"[rRuUbB]{0,2}(\"\"\"|'''|\")")
_LINE_COMMENT = re.compile(r"(?://|#(?!\[|!|include|define|if|elif|else|endif|pragma|undef|error)|--(?!\[\[))")
_BLOCK_ENDS = {"*/": "/*", "-}": "{-", '"""': '"""', "=end": "=begin", "]]": "--[["}
_MARKERS = re.compile(
    r"(?:/\*+!?|\*+/|\*+|//+[/!]?|#+|--+\s?[|^]?|\{-\s?\|?|-\}|@(?:module|type)?doc\b|[rRuU]?\"{1,3}|''')\s?"
)
_CLOSING = re.compile(r"(?:\*+/|-\}|\"{1,3}|''')$")
_SECTION = re.compile(
    r"@\w+|:\w+[^:]*:|\\\w+|>>>|\.\. |```|~~~|[-=]{3,}|#{1,6} "
    r"|(?:Args|Arguments|Parameters?|Params|Returns?|Raises|Yields|Examples?|Notes?|Usage|See Also|References)\b:?$"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>")
_INLINE_TAG = re.compile(r"\{@\w+ ([^{}]{0,200})\}|:\w+:`([^`]{0,200})`")
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)`'\"])\.\s+(?=[A-Z])")
# What says nothing about the code below, or is no description.
_NO_DESCRIPTION = re.compile(
    r"copyright|licen[sc]e|spdx|all rights reserved|\btodo\b|fixme|\bxxx\b|eslint|pylint|noqa|auto-?generated"
    r"|do not edit|deprecated|https?:|see also|internal use|-\*-",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A comment's lines, counted from 0 and both inclusive, and its prose on one line."""

    first: int
    last: int
    prose: str

    @property
    def sentence(self) -> str:
        """The first sentence of the prose."""
        return _SENTENCE_END.split(self.prose, maxsplit=1)[0]


def find_docstring(lines: Sequence[str], start: int) -> Comment | None:
    """Find the string that the body of a Python definition begins with; `start` is the definition's first line."""
    end = min(len(lines), start + LONGEST_HEAD)
    for row in range(start, end):
        bare = lines[row].strip()
        if row > start and (opening := _QUOTES.match(bare)):
            return _read_quoted(lines, row, opening[1]) if lines[row - 1].rstrip().endswith(":") else None
        if bare.endswith(":") and row + 1 < end and not _QUOTES.match(lines[row + 1].strip()):
            return None
    return None


def find_comment_above(lines: Sequence[str], row: int) -> Comment | None:
    """Find the comment that ends directly above a line."""
    last = row - 1
    if last < 0:
        return None
    bare = lines[last].strip()
    ends = next(((opening, end) for end, opening in _BLOCK_ENDS.items() if bare.endswith(end)), None)
    first = _find_block_start(lines, last, *ends) if ends else _find_line_comments(lines, last)
    return Comment(first=first, last=last, prose=read_prose(lines[first : last + 1])) if first <= last else None


def _find_block_start(lines: Sequence[str], last: int, opening: str, end: str) -> int:
    """Return the line that a block comment begins on; the one after it where that cannot be found."""
    is_one_line = lines[last].count(opening) > (opening == end)
    for row in range(last - (opening == end and not is_one_line), max(-1, last - LONGEST_COMMENT), -1):
        if opening in lines[row]:
            return row
    return last + 1


def _find_line_comments(lines: Sequence[str], last: int) -> int:
    first = last + 1
    while first > 0 and last - first < LONGEST_COMMENT and _LINE_COMMENT.match(lines[first - 1].strip()):
        first -= 1
    return first


def find_file_comment(lines: Sequence[str]) -> Comment | None:
    """Find what a file says of itself at its top, past a licence, imports and similar."""
    row, limit = 0, min(len(lines), 60)
    while row < limit:
        bare = lines[row].strip()
        comment = None
        if opening := _QUOTES.match(bare):
            comment = _read_quoted(lines, row, opening[1])
        elif bare.startswith("/*") or _LINE_COMMENT.match(bare):
            comment = _read_comment_block(lines, row)
        if comment is None:
            row += 1
        elif is_description(comment.prose):
            return comment
        else:
            row = comment.last + 1
    return None


def _read_comment_block(lines: Sequence[str], first: int) -> Comment:
    last = first
    if lines[first].strip().startswith("/*"):
        while last < len(lines) - 1 and last - first < LONGEST_COMMENT and "*/" not in lines[last]:
            last += 1
    else:
        while last < len(lines) - 1 and last - first < LONGEST_COMMENT and _LINE_COMMENT.match(lines[last + 1].strip()):
            last += 1
    return Comment(first=first, last=last, prose=read_prose(lines[first : last + 1]))


def _read_quoted(lines: Sequence[str], first: int, quotes: str) -> Comment | None:
    if lines[first].count(quotes) >= 2:
        return Comment(first=first, last=first, prose=read_prose(lines[first : first + 1]))
    for last in range(first + 1, min(len(lines), first + LONGEST_COMMENT)):
        if quotes in lines[last]:
            return Comment(first=first, last=last, prose=read_prose(lines[first : last + 1]))
    return None


def read_prose(lines: Sequence[str]) -> str:
    """Put the prose of a comment on one line; it ends where parameters, examples or a second long part begin."""
    prose: list[str] = []
    for line in lines:
        bare = _CLOSING.sub("", line.strip())
        if marker := _MARKERS.match(bare):
            bare = bare[marker.end() :]
        bare = bare.strip()
        if _SECTION.match(bare) or (not bare and sum(map(len, prose)) > 200):
            if prose:
                break
            continue
        prose.append(bare)
    text = _INLINE_TAG.sub(lambda found: found[1] or found[2] or "", _TAG.sub(" ", " ".join(prose)))
    return " ".join(text.split())


def is_description(prose: str) -> bool:
    """Whether prose is English enough, and about what stands below it."""
    letters = sum(char.isascii() and (char.isalpha() or char == " ") for char in prose)
    return (
        len(set(split_question(prose))) >= 3 and letters > 0.75 * len(prose) and not _NO_DESCRIPTION.search(prose[:300])
    )


def split_question(text: str, most: int = 48) -> list[str]:
    """Return the words of a text as the embedder reads a question."""
    return [part for word in find_question_words(text) for part in split_identifier(word)][:most]
