"""Parses text with its language's tree-sitter grammar, and runs the query on the tree."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import time
import warnings
import zlib
from collections import defaultdict
from functools import cache
from pathlib import Path

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from indexer.parsing import bundled_grammars
from indexer.parsing.bundled_grammars import load_bundled, reserve_memory
from indexer.parsing.installed import has_own_wheel, is_installed
from indexer.text.languages import LANGUAGES, Grammar

Captures = dict[str, list[Node]]
Findings = dict[str, list[Captures]]


_QUERIES = Path(__file__).parent / "queries"
_INHERITS = "; inherits: "
_CAPTURE = re.compile(r"@([a-z]\w*)")
_PARTS = frozenset({"name", "body", "owner", "declarator", "keyword", "on", "import", "alias", "key"})
_DEEPEST = 500
_MAX_STATEMENTS = 30_000
_READ_AT_ONCE = 2_048  # bytes; predicates copy all that they are given for every node that they look at
_ASCII = bytes(byte if byte < 0x80 else ord("x") for byte in range(256))


GRAMMARS: dict[str, Grammar] = {
    language.name: language.grammar for language in LANGUAGES if language.grammar and is_installed(language.grammar)
}


def prepare_bundled() -> None:
    """Prepare a process to load bundled grammars after it has been confined."""
    for grammar in GRAMMARS.values():
        if not has_own_wheel(grammar):
            reserve_memory(grammar.bundled)


class _Reading:
    """A text for the parser. The last piece is kept, because tree-sitter looks at it after releasing it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._last = b""

    def __call__(self, offset: int, _point: object) -> bytes:
        """Read on from an offset."""
        self._last = self._text[offset : offset + _READ_AT_ONCE]
        return self._last


@cache
def _load_grammar(grammar: Grammar) -> Language:
    """Import the wheel of a grammar, only for files of its language."""
    if not has_own_wheel(grammar):
        return Language(load_bundled(grammar.bundled))
    module = importlib.import_module(grammar.package)
    with warnings.catch_warnings():  # some wheels hand over their grammar as a number, which tree-sitter is to drop
        warnings.simplefilter("ignore", DeprecationWarning)
        return Language(getattr(module, grammar.entry)())


@cache
def _compile_query(grammar: Grammar, source: str) -> Query:
    return Query(_load_grammar(grammar), source)


@cache
def load_query(name: str) -> str:
    """Load a query after those that it inherits, without the comments at the top of its file."""
    query = (_QUERIES / f"{name}.scm").read_text(encoding="utf-8")
    inherited = ""
    while query.startswith(";"):
        line, _, query = query.partition("\n")
        if line.startswith(_INHERITS):
            inherited += "".join(map(load_query, line.removeprefix(_INHERITS).split(", ")))
    return inherited + query


def describe_version(grammar: Grammar) -> str:
    """Name all versions that affect how a grammar parses a text."""
    package = grammar.package if has_own_wheel(grammar) else bundled_grammars.PACKAGE
    packages = (package.replace("_", "-"), "tree-sitter")
    parts = [f"{package} {importlib.metadata.version(package)}" for package in packages]
    return ", ".join([*parts, f"query {zlib.crc32(load_query(grammar.query).encode()):08x}"])


class TooSlow(Exception):
    """A text exceeds its parsing time."""


def parse_tree(grammar: Grammar, source: bytes, seconds: float) -> Node:
    """Return the root of the syntax tree of UTF-8 text, with error nodes where it does not parse.

    `TooSlow` beyond a limit of CPU time: some grammars need quadratic time to recover from garbage.
    """
    deadline = time.thread_time() + seconds
    # A parser is cheap and keeps state while it runs, so threads must not share one; language and query are constant.
    parser = Parser(_load_grammar(grammar))
    try:
        tree = parser.parse(
            _Reading(source.translate(_ASCII) if grammar.is_narrow else source),
            progress_callback=lambda _offset, _has_error: time.thread_time() > deadline,
        )
    except ValueError as error:  # the error of a cancelled parse
        raise TooSlow from error
    return tree.root_node


def run_query(grammar: Grammar, root: Node) -> Findings:
    """Return the captures of the grammar's query, one dictionary per match, grouped by the roles that the
    pattern names.

    Roles are the captures of a pattern other than parts: `function` or `call`, but not `name` or
    `body`. Over an error of 100,000 words it takes minutes, and cannot be stopped: the
    `progress_callback` of tree-sitter's queries crashes as soon as they find something. Anyone who
    starts this process ends it then.
    """
    findings: Findings = defaultdict(list)
    if root.child_count > _MAX_STATEMENTS:
        return findings  # generated data, on which some queries need quadratic time
    roles = _list_roles(grammar)
    cursor = QueryCursor(_compile_query(grammar, load_query(grammar.query)))
    # Matching a node costs as much as it is deep; a chain of 20,000 calls would take a minute.
    cursor.set_max_start_depth(_DEEPEST)
    for pattern, captures in cursor.matches(root):
        for role in roles[pattern]:
            findings[role].append(captures)
    return findings


@cache
def _list_roles(grammar: Grammar) -> tuple[tuple[str, ...], ...]:
    """Return the captured roles of every pattern of the query."""
    source = load_query(grammar.query)
    query = _compile_query(grammar, source)
    starts = [query.start_byte_for_pattern(index) for index in range(query.pattern_count)]
    texts = [source[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return tuple(tuple({name for name in _CAPTURE.findall(text) if name not in _PARTS}) for text in texts)


def count_error_bytes(grammar: Grammar, root: Node) -> int:
    """Count the bytes that the parser could not make sense of."""
    if not root.has_error:
        return 0
    covered = end = 0
    for start, stop in sorted((node.start_byte, node.end_byte) for node in _find_errors(grammar, root)):
        covered += max(0, stop - max(end, start))
        end = max(end, stop)
    return covered


def _find_errors(grammar: Grammar, root: Node) -> list[Node]:
    if root.child_count > _MAX_STATEMENTS:  # of so many, those at the top will do: a query takes quadratic time
        return [node for node in root.children if node.is_error]
    cursor = QueryCursor(_compile_query(grammar, "(ERROR) @error"))
    cursor.set_max_start_depth(_DEEPEST)
    return cursor.captures(root).get("error", [])
