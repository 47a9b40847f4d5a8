"""Finds the tables, views and indexes created by SQL, and the statements that read or change them.

Works on words rather than on a syntax tree: files mix dialects, templates and client commands,
which no grammar covers, and SQL in strings of code has no tree at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from indexer.text.linear_patterns import compile_pattern

MAX_ALIKE = 20  # statements of a file that do the same with one table
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
    PROGRAM STDIN STDOUT CURRENT OF DIRECTORY""".split()
)
_NO_UPDATE = frozenset("ON FOR AFTER BEFORE OR DO OF INSTEAD NO KEY".split())
_WRITES = {"INSERT", "REPLACE", "MERGE"}
_MANY = [["INSERT", "ALL"], ["INSERT", "FIRST"]]  # of Oracle
_BEFORE_FROM = frozenset({"TOP", "LOW_PRIORITY", "QUICK", "IGNORE"})
_REACH = 12  # words between UPDATE and its SET


@dataclass(frozen=True, kw_only=True, slots=True)
class TableUse:
    """A statement's effect on a table: `created`, `read`, `written`, `altered`, `dropped`, `referenced`.

    `sort` is the kind of a created view or index; for an index, `about` is its table.
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
    """Yield the uses of tables in SQL, in order, each at most twenty times per table."""
    seen: Counter[tuple[str, str]] = Counter()
    for statement in _split_statements(text):
        for use in _Statement(statement).read():
            seen[use.name, use.action] += 1
            if seen[use.name, use.action] <= MAX_ALIKE:
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
        self._deleting = -1
        self._closings = self._pair_parentheses()
        self._end = words[-1].start if words else 0
        self._first = [word.upper for word in words[:2]]
        self._known: dict[str, str] = {}  # by alias; the names of subqueries stand for nothing
        self._deleted: set[str] = set()  # what stands between DELETE and its FROM, where more tables are joined

    def _pair_parentheses(self) -> dict[int, int]:
        opened: list[int] = []
        closings = {}
        for at, word in enumerate(self._words):
            if word.text == "(":
                opened.append(at)
            elif word.text == ")" and opened:
                closings[opened.pop()] = at
        return closings

    def read(self) -> Iterator[TableUse]:
        """Yield the effects of the statement, in order."""
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
                self._note_deleted(at)
            elif upper == "CREATE":
                yield from self._read_created(at)
            elif (upper == "FROM" and (selects[-1] or at == 0)) or self._is_joined(at):
                yield from self._read_sources(at)
            else:
                selects[-1] |= upper == "UPDATE"
                yield from self._read_changed(at, upper)

    def _note_deleted(self, at: int) -> None:
        end = next((each for each in range(at + 1, at + _REACH) if self._upper_at(each) in {"FROM", ""}), at)
        if self._upper_at(at) == "DELETE" and self._upper_at(end) == "FROM":
            between = [word for word in self._words[at + 1 : end] if word.name and word.upper not in _BEFORE_FROM]
            self._deleted = {word.name.lower() for word in between}
            self._deleting = end

    def _is_joined(self, at: int) -> bool:
        """Whether a word introduces a joined table."""
        upper, before, following = (self._upper_at(each) for each in (at, at - 1, at + 1))
        if upper == "USING":  # of DELETE and MERGE; of JOIN, columns are behind it
            return following != "(" and bool({"DELETE", "MERGE"} & set(self._first))
        is_copied = upper in {"LIKE", "CLONE"} and self._first[:1] == ["CREATE"] and at < _REACH
        return (upper == "JOIN" and before != "ARRAY") or is_copied

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
        """Read the tables after FROM or JOIN, one or more."""
        is_written = at == self._deleting and not self._deleted
        if self._upper_at(at - 1) == "DISTINCT" and at > 0:
            return
        place = at + 1
        while True:
            name = self._find_name(place)
            if name is None and self._upper_at(place) != "(":
                return
            place = self._words.index(name, place) + 1 if name is not None else place
            is_called = self._upper_at(place) == "("
            place = self._closings.get(place, len(self._words) - 1) + 1 if is_called else place
            place += 1 if self._upper_at(place) == "AS" else 0
            is_alias = place < len(self._words) and self._words[place].name and self._upper_at(place) not in _NO_NAMES
            names = {self._words[place].name.lower()} if is_alias else set()
            place += 1 if is_alias else 0
            if name is not None and not is_called:
                is_deleted = is_written or bool(self._deleted & {*names, name.name.lower()})
                yield from self._use(name, "written" if is_deleted else "read")
            if self._upper_at(place) != ",":
                return
            place += 1

    def _read_changed(self, at: int, upper: str) -> Iterator[TableUse]:
        before = self._upper_at(at - 1) if at else ""
        following = self._upper_at(at + 1)
        action = ""
        if upper in {"ALTER", "DROP", "RENAME"} and following in {"TABLE", "VIEW"}:
            action, at = "dropped" if upper == "DROP" else "altered", at + 1
        elif at == 0 and upper == "COPY":
            words = {word.upper for word in self._words[:_REACH]}
            action = "written" if "FROM" in words else "read" if "TO" in words else ""
        elif (upper == "INTO" and self._is_filled(following)) or (
            upper == "TRUNCATE" and before not in _NO_UPDATE | {","}
        ):
            action = "written"
        elif upper in _WRITES and self._first not in _MANY:
            into = next((each for each in range(at + 1, at + 4) if self._upper_at(each) in {"INTO", "OVERWRITE"}), 0)
            action, at = "written" if into else "", into or at
        elif upper == "UPDATE" and before not in _NO_UPDATE and self._is_set_behind(at):
            action = "written"
        elif upper == "REFERENCES" and before not in {"GRANT", ","}:
            action = "referenced"
        name = self._find_name(at + 1) if action else None
        while name is not None:
            yield from self._use(name, action)
            at = self._words.index(name, at) + 1
            is_list = upper in {"DROP", "TRUNCATE", "UPDATE"} and self._upper_at(at) == ","
            name = self._find_name(at + 1) if is_list else None
            action = "read" if upper == "UPDATE" else action  # of several tables, the first is what is set

    def _is_filled(self, following: str) -> bool:
        return self._first in _MANY or (self._first[:1] == ["LOAD"] and following == "TABLE")

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
