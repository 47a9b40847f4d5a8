"""Finds the tables, views and indexes that SQL creates, and the statements that read or change them.

Works on words rather than on a syntax tree: files mix dialects, templates and client commands, which no grammar covers,
and SQL in strings of code has no tree at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from indexer.text.linear_patterns import compile_pattern

MOST_ALIKE = 20  # statements of a file that do the same with one table
_MAX_WORDS = 60_000
_NAME = r'(?:"[^"\n]{1,128}"|`[^`\n]{1,128}`|\[[A-Za-z_][^\]\n]{0,128}\]|[^\W\d][\w$]*+)'
_WORD = re.compile(  # of RE2, each of the 100,000 words of a large file would take ten times as long
    r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|'\\'|'(?:[^'\\]|\\.)*+'?|\{\{[^{}]*+\}?\}?|[$#]?\{[^{}]*+\}?|\$\w++"
    rf"|(?P<name>{_NAME}(?:\s?\.\s?{_NAME})*+(?:\.(?=[$%{{#]))?)|[();,*=]",
    re.DOTALL,
)
_QUOTES = compile_pattern(r'["`\[\]]')
_REFERENCE = compile_pattern(r"^\{\{-?\s*(?:ref|source)\s*\((?:[^'\"{}]*['\"][^'\"]*['\"]\s*,)?\s*['\"]([^'\"]+)['\"]")
_MODIFIERS = frozenset(
    """OR REPLACE TEMP TEMPORARY GLOBAL LOCAL UNLOGGED EXTERNAL TRANSIENT VOLATILE FORCE EDITIONABLE MATERIALIZED UNIQUE
    CLUSTERED NONCLUSTERED VIRTUAL FOREIGN FULLTEXT SPATIAL RECURSIVE BITMAP COLUMNSTORE ALTER""".split()
)
_BEFORE_NAME = frozenset(
    "IF NOT EXISTS ONLY CONCURRENTLY TABLE INTO IGNORE LOW_PRIORITY DELAYED QUICK OVERWRITE".split()
)
_NO_NAMES = frozenset(
    """SELECT WHERE SET VALUES ON USING AS LATERAL UNNEST TABLE DUAL JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL
    GROUP ORDER LIMIT HAVING UNION RETURNING DEFAULT BEGIN END THEN WHEN WITH FOR IF NOT EXISTS INTO FROM BY AND OR
    PROGRAM STDIN STDOUT CURRENT OF""".split()
)
_NO_UPDATE = frozenset("ON FOR AFTER BEFORE OR DO OF INSTEAD NO KEY".split())
_WRITES = {"INSERT", "REPLACE", "MERGE"}
_REACH = 12  # words between UPDATE and its SET


@dataclass(frozen=True, kw_only=True, slots=True)
class TableUse:
    """Something that a statement does with a table: `created`, `read`, `written`, `altered`, `dropped`, `referenced`.

    `sort` says what is created where it is no table: a view, an index; of an index, `about` is its table.
    """

    name: str
    action: str
    start: int
    end: int
    sort: str = ""
    about: str = ""


class _Word(NamedTuple):
    text: str
    upper: str
    name: str  # without its quotes; empty for what is no name
    start: int


def find_table_uses(text: str) -> Iterator[TableUse]:
    """Yield what SQL does with tables, in its order; at most twenty times the same with one table."""
    seen: Counter[tuple[str, str]] = Counter()
    for statement in _split_statements(text):
        for use in _Statement(statement).read():
            seen[use.name, use.action] += 1
            if seen[use.name, use.action] <= MOST_ALIKE:
                yield use


def _split_statements(text: str) -> Iterator[list[_Word]]:
    statement: list[_Word] = []
    for found in islice(_WORD.finditer(text), _MAX_WORDS):
        said = found[0]
        if said.startswith(("--", "/*", "{%", "{#")):
            continue
        reference = _REFERENCE.search(said) if said.startswith("{{") else None
        name = reference[1] if reference is not None else _strip_name(said) if found["name"] else ""
        statement.append(_Word(said, said.upper(), name, found.start()))
        if statement[-1].upper in {";", "GO"}:
            yield statement
            statement = []
    yield statement


def _strip_name(said: str) -> str:
    if said.isidentifier():
        return said
    if said.endswith("."):
        return ""  # the rest is put in when it runs
    return ".".join(part.strip() for part in _QUOTES.sub("", said).split("."))


class _Statement:
    def __init__(self, words: Sequence[_Word]) -> None:
        self._words = words
        self._end = words[-1].start if words else 0
        self._known: dict[str, str] = {}  # by alias; the names of subqueries stand for nothing

    def read(self) -> Iterator[TableUse]:
        """Yield what the statement does, in its order."""
        self._note_names()
        selects = [False]
        for at, word in enumerate(self._words):
            upper = word.upper
            if word.text == "(":
                selects.append(False)
            elif word.text == ")" and len(selects) > 1:
                selects.pop()
            elif upper in {"SELECT", "DELETE"}:
                selects[-1] = True  # from here on, FROM names a table
            elif upper == "CREATE":
                yield from self._read_created(at)
            elif (upper == "FROM" and selects[-1]) or upper == "JOIN":
                yield from self._read_sources(at)
            else:
                selects[-1] |= upper == "UPDATE"
                yield from self._read_changed(at, upper)

    def _note_names(self) -> None:
        words = self._words
        for at, word in enumerate(words):
            before = words[at - 1].upper if at else ""
            following = [each.upper for each in words[at + 1 : at + 3]]
            if word.name and following == ["AS", "("] and before in {"WITH", "RECURSIVE", ","}:
                self._known[word.name.lower()] = ""
            elif before in {"FROM", "JOIN"} and word.name:
                place = at + 2 if following[:1] == ["AS"] else at + 1
                alias = words[place] if place < len(words) else None
                if alias is not None and alias.name and alias.upper not in _NO_NAMES:
                    self._known.setdefault(alias.name.lower(), word.name)

    def _read_created(self, at: int) -> Iterator[TableUse]:
        place = at + 1
        while self._upper_at(place) in _MODIFIERS:
            place += 1
        sort = self._upper_at(place)
        if sort not in {"TABLE", "VIEW", "INDEX"}:
            return
        name = self._find_name(place + 1)
        if name is None or name.upper == "ON":
            return
        about = ""
        if sort == "INDEX":
            on = next(
                (each for each in range(place, min(place + 8, len(self._words))) if self._upper_at(each) == "ON"), 0
            )
            table = self._find_name(on + 1) if on else None
            about = table.name if table is not None else ""
        is_stored = "MATERIALIZED" in {word.upper for word in self._words[at:place]}
        sorts = {"VIEW": "materialized view" if is_stored else "view", "INDEX": "index"}
        yield TableUse(
            name=name.name,
            action="created",
            start=self._words[at].start,
            end=self._end,
            sort=sorts.get(sort, ""),
            about=about,
        )

    def _read_sources(self, at: int) -> Iterator[TableUse]:
        """Read the tables behind FROM or JOIN, one or more."""
        is_written = at > 0 and self._upper_at(at - 1) == "DELETE"
        if self._upper_at(at - 1) == "DISTINCT" and at > 0:
            return
        place = at + 1
        while True:
            name = self._find_name(place)
            if name is None:
                return
            place = place + 1 if self._words[place] is name else self._words.index(name, place) + 1
            if self._upper_at(place) != "(":
                yield from self._use(name, "written" if is_written else "read")
            place += 1 if self._upper_at(place) == "AS" else 0
            is_alias = place < len(self._words) and self._words[place].name and self._upper_at(place) not in _NO_NAMES
            place += 1 if is_alias else 0
            if self._upper_at(place) != ",":
                return
            place += 1

    def _read_changed(self, at: int, upper: str) -> Iterator[TableUse]:
        before = self._upper_at(at - 1) if at else ""
        following = self._upper_at(at + 1)
        action = ""
        if upper in {"ALTER", "DROP"} and following in {"TABLE", "VIEW"}:
            action, at = "altered" if upper == "ALTER" else "dropped", at + 1
        elif upper == "TRUNCATE" and before not in _NO_UPDATE | {","}:
            action = "written"
        elif upper in _WRITES and "INTO" in {following, self._upper_at(at + 2), self._upper_at(at + 3)}:
            action, at = "written", next(each for each in range(at, at + 4) if self._upper_at(each) == "INTO")
        elif upper == "UPDATE" and before not in _NO_UPDATE and self._is_set_behind(at):
            action = "written"
        elif upper == "REFERENCES" and before not in {"GRANT", ","}:
            action = "referenced"
        name = self._find_name(at + 1) if action else None
        if name is not None:
            yield from self._use(name, action)

    def _is_set_behind(self, at: int) -> bool:
        return "SET" in {word.upper for word in self._words[at + 2 : at + _REACH]}

    def _use(self, name: _Word, action: str) -> Iterator[TableUse]:
        known = self._known.get(name.name.lower(), name.name)
        if known:
            yield TableUse(name=known, action=action, start=name.start, end=name.start)

    def _upper_at(self, place: int) -> str:
        return self._words[place].upper if 0 <= place < len(self._words) else ""

    def _find_name(self, place: int) -> _Word | None:
        while self._upper_at(place) in _BEFORE_NAME:
            place += 1
        word = self._words[place] if place < len(self._words) else None
        return word if word is not None and word.name and word.upper not in _NO_NAMES else None
