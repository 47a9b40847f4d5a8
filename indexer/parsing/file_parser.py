"""From the text of a file to everything the index knows of it: chunks, symbols, references and imports.

Code is cut along its syntax tree: a node that fits into a chunk stays whole, a larger one is cut between its children,
and neighbours are assembled while they fit. Whatever happens, the chunks of a file are in order, do not overlap and
hold every line that is not blank.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tree_sitter import Node

from indexer.parsing import grammars
from indexer.parsing.chunking import (
    Rows,
    SizedLines,
    find_markdown_headings,
    find_rst_headings,
    split_lines,
    split_sections,
    split_tree,
)
from indexer.parsing.containers import Part, find_contents, is_container
from indexer.parsing.docstrings import DocumentationFinder
from indexer.parsing.grammars import GRAMMARS, Findings
from indexer.parsing.outline import ScopeMap, find_entries, make_symbols, read_node_rows
from indexer.parsing.references import find_imports, find_references
from indexer.parsing.registrations.chart_templates import blank_templates, is_chart_template
from indexer.parsing.registrations.finder import find_in_text, find_registrations
from indexer.text.languages import Grammar, detect_language
from indexer.types import Chunk, ParsedFile, PlainReason, Symbol

_CHANGELOGS = frozenset({"CHANGELOG", "CHANGES", "HISTORY", "NEWS", "RELEASES", "RELEASE_NOTES", "RELEASE-NOTES"})
_VERSION = re.compile(r"\d\.\d|unreleased", re.IGNORECASE)
_PLAIN_VERSION = re.compile(r"[^\w\s]{0,3} ?(?:v|version |release )?\d{1,4}\.\d", re.IGNORECASE)
_MAX_TITLE = 100
_MAX_INSIDE = 5  # headings of one piece that are named besides its enclosing ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A title, its first row, and its nesting level, 1 for the outermost."""

    row: int
    level: int
    title: str


def find_headings(language: str, texts: Sequence[str]) -> tuple[Heading, ...]:
    """Find the headings of a document in order; none in other languages."""
    if language not in {"markdown", "rst"}:
        return ()
    rows = find_markdown_headings(texts) if language == "markdown" else find_rst_headings(texts)
    signs: dict[str, int] = {"=": 1, "-": 2} if language == "markdown" else {}
    headings = []
    for row in sorted(rows):
        is_overline = not any(map(str.isalnum, texts[row][:_MAX_TITLE])) and row + 1 < len(texts)
        title = texts[row + is_overline]
        if language == "markdown" and title.startswith("#"):
            level = len(title) - len(title.lstrip("#"))
        else:  # the order in which a document first uses the signs is the order of its levels
            under = row + is_overline + 1
            sign = texts[under][:1] + texts[row][:1] * is_overline if under < len(texts) else ""
            level = signs.setdefault(sign, len(signs) + 1)
        headings.append(Heading(row=row, level=level, title=title.strip("# \t")[:_MAX_TITLE]))
    return tuple(headings)


def name_sections(headings: Sequence[Heading], pieces: Sequence[Rows]) -> list[str]:
    """Name each piece by the headings above it, outermost first, and some of those inside it."""
    rows = [heading.row for heading in headings]
    names = []
    around: list[Heading] = []
    done = 0
    for first, last in pieces:
        begun, ended = bisect_right(rows, first), bisect_right(rows, last)
        for heading in headings[done:begun]:
            around = [outer for outer in around if outer.level < heading.level] + [heading]
        inside = headings[begun : min(ended, begun + _MAX_INSIDE)]
        names.append(" / ".join(heading.title for heading in (*around, *inside)))
        done = begun
    return names


def is_changelog(path: str) -> bool:
    """Whether a document describes versions."""
    return PurePosixPath(path).stem.upper() in _CHANGELOGS


def split_versions(language: str, lines: SizedLines, limit: int) -> Iterator[Rows] | None:
    """Split a changelog so that each version has its own pieces; None if no version is found."""
    if language in {"markdown", "rst"}:
        rows = {each.row for each in find_headings(language, lines.texts) if _VERSION.search(each.title)}
    else:
        rows = {row for row, text in enumerate(lines.texts) if _PLAIN_VERSION.match(text)}
    return split_sections(lines, rows.__contains__, limit, 0) if rows else None


TREE_SECONDS = 3.0
CHUNK_LIMIT = 1500
MERGE_BELOW = 300
SECTION_ENOUGH = 600
LONG_LINE_CUT = 4000

FindSymbols = Callable[[str], tuple[Symbol, ...]]

# Generated and minified code: the average line is longer than people write, and some line is enormous.
_MINIFIED_AVERAGE = 250
_MINIFIED_LINE = 5000


def parse_file(
    path: str,
    text: str,
    *,
    plain: PlainReason | None = None,
    seconds: float = TREE_SECONDS,
    find_symbols: FindSymbols | None = None,
) -> ParsedFile:
    r"""Find chunks, symbols, references and imports in decoded text with `\n` line ends; never raises.

    A chunk has at most 1,500 characters, unless a single line is longer: that line is its own
    chunk, cut to 4,000 characters. Every other chunk's text is exactly its lines. Documents are cut
    at their headings. Files in a language without a grammar, minified files, and trees that are
    mostly errors are cut by size; so are files with too slow trees, and files to be read as plain
    text for a reason, which the result names. `find_symbols` finds the definitions in a text whose
    language has no grammar.
    """
    language = detect_language(path, text)
    lines = SizedLines(text)
    grammar = GRAMMARS.get(language)
    read = _read_code if grammar else _read_container if is_container(language) else None
    if (read is None and find_symbols is None) or _is_minified(lines, text):
        read = find_symbols = plain = None  # it is not for that reason
    elif read is not None and plain is None:
        try:
            return read(path, language, text, lines, seconds)
        except grammars.TooSlow:
            plain = "time"
    pieces, sections = _split_document(path, language, lines)
    told = find_in_text(path, language, text, lines.texts) if grammar is None else None
    symbols = _join_symbols(
        find_symbols(text) if find_symbols is not None and plain is None else (),
        told.symbols if told is not None else (),
    )
    return ParsedFile(
        language=language,
        chunks=_make_chunks(lines, pieces, sections, symbols),
        symbols=symbols,
        registrations=told.registrations if told is not None else (),
        plain=plain,
    )


def _is_minified(lines: SizedLines, text: str) -> bool:
    if len(text) < _MINIFIED_LINE or len(text) < _MINIFIED_AVERAGE * len(lines.texts):
        return False
    return max(map(len, lines.texts)) > _MINIFIED_LINE


def _split_document(path: str, language: str, lines: SizedLines) -> tuple[list[Rows], list[str]]:
    """Split a document, and name the section of each piece."""
    kind = "markdown" if language == "mdx" else language
    pieces = list(_split_text(path, kind, lines))
    return pieces, name_sections(find_headings(kind, lines.texts), pieces)


def _split_text(path: str, language: str, lines: SizedLines) -> Iterator[Rows]:
    is_prose = language in {"markdown", "rst", "text"}
    if is_prose and is_changelog(path) and (versions := split_versions(language, lines, CHUNK_LIMIT)) is not None:
        return versions
    if language == "markdown":
        return split_sections(lines, find_markdown_headings(lines.texts).__contains__, CHUNK_LIMIT, SECTION_ENOUGH)
    if language == "rst":
        return split_sections(lines, find_rst_headings(lines.texts).__contains__, CHUNK_LIMIT, SECTION_ENOUGH)
    return split_lines(lines, 0, len(lines.texts) - 1, CHUNK_LIMIT)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """Code in one language with everything found in it, except its chunks."""

    root: Node
    grammar: Grammar
    scopes: ScopeMap
    documentation: DocumentationFinder
    found: ParsedFile


def _read_source(path: str, language: str, text: str, lines: Sequence[str], seconds: float) -> _Source:
    grammar = GRAMMARS[language]
    if language == "yaml" and is_chart_template(path):
        text = blank_templates(text)
    source = text.encode("utf-8", "replace")
    root = grammars.parse_tree(grammar, source, seconds)
    findings = grammars.run_query(grammar, root)
    entries = find_entries(findings, source, joins_clauses=grammar.joins_clauses)
    documentation = DocumentationFinder(
        lines, _find_own_rows(findings, "prefix", source), _find_own_rows(findings, "doc", source), language
    )
    symbols = make_symbols(entries, source, documentation, has_docstrings=grammar.has_docstrings)
    scopes = ScopeMap(entries)
    registered = find_registrations(findings, root, source, language=language, path=path, symbols=symbols)
    found = ParsedFile(
        language=language,
        chunks=(),
        symbols=_join_symbols(symbols, registered.symbols),
        references=find_references(findings, scopes, source),
        imports=find_imports(findings, grammar, source),
        registrations=registered.registrations,
    )
    return _Source(root=root, grammar=grammar, scopes=scopes, documentation=documentation, found=found)


def _read_code(path: str, language: str, text: str, lines: SizedLines, seconds: float) -> ParsedFile:
    source = _read_source(path, language, text, lines.texts, seconds)
    if 2 * grammars.count_error_bytes(source.grammar, source.root) > len(text.encode("utf-8", "replace")):
        pieces = list(split_lines(lines, 0, len(lines.texts) - 1, CHUNK_LIMIT))
    else:
        pieces = list(split_tree(source.root, lines, source.grammar.leading, CHUNK_LIMIT, MERGE_BELOW))
    around = source.scopes.before([first for first, _ in pieces])
    told = find_in_text(path, language, text, lines.texts, source.found.symbols)
    symbols = _join_symbols(source.found.symbols, told.symbols)
    chunks = _make_chunks(lines, pieces, around, symbols, source.documentation)
    registrations = (*source.found.registrations, *told.registrations)
    return replace(source.found, chunks=chunks, symbols=symbols, registrations=registrations)


def _join_symbols(symbols: tuple[Symbol, ...], defined: Sequence[Symbol]) -> tuple[Symbol, ...]:
    """Merge definitions from registrations with those from the grammar, each once."""
    known = {(symbol.start_line, symbol.name) for symbol in symbols}
    more = {symbol.start_line: symbol for symbol in defined if (symbol.start_line, symbol.name) not in known}
    # A grammar that does not know the dialect takes part of a name for the whole.
    kept = [each for each in symbols if each.start_line not in more or each.kind != more[each.start_line].kind]
    return tuple(sorted((*kept, *more.values()), key=lambda symbol: symbol.start_line)) if more else symbols


def _read_container(path: str, language: str, text: str, lines: SizedLines, seconds: float) -> ParsedFile:
    """Read a file with code in other languages, cut as a document or by size."""
    contents = find_contents(language, path, text)
    symbols, references, imports = contents.symbols, contents.references, contents.imports
    registrations = list(find_in_text(path, language, text, lines.texts).registrations)
    deadline = time.thread_time() + seconds
    for part in contents.parts:
        left = deadline - time.thread_time()
        found = _read_source(path, part.language, part.text, part.text.split("\n"), left).found
        references += (replace(each, line=part.find_line(each.line)) for each in found.references)
        if not part.only_uses:
            symbols += (_move_symbol(each, part) for each in found.symbols)
            imports += (replace(each, line=part.find_line(each.line)) for each in found.imports)
            registrations += (replace(each, line=part.find_line(each.line)) for each in found.registrations)
    symbols.sort(key=lambda symbol: symbol.start_line)
    pieces, sections = _split_document(path, language, lines)
    around = [section or _find_scope(symbols, first + 1) for section, (first, _) in zip(sections, pieces, strict=True)]
    return ParsedFile(
        language=contents.parts[0].language if language == "notebook" and contents.parts else language,
        chunks=_make_chunks(lines, pieces, around, symbols),
        symbols=tuple(symbols),
        references=tuple(sorted(references, key=lambda each: each.line)),
        imports=tuple(sorted(imports, key=lambda each: each.line)),
        registrations=tuple(sorted(registrations, key=lambda each: each.line)),
    )


def _move_symbol(symbol: Symbol, part: Part) -> Symbol:
    return replace(symbol, start_line=part.find_line(symbol.start_line), end_line=part.find_line(symbol.end_line))


def _find_scope(symbols: Sequence[Symbol], line: int) -> str:
    """Name the innermost definition around a line that begins before it."""
    around = (symbol.qualified_name for symbol in reversed(symbols) if symbol.start_line < line <= symbol.end_line)
    return next(around, "")


def _find_own_rows(findings: Findings, capture: str, source: bytes) -> list[Rows]:
    """Return the rows of a capture if nothing follows it on its last row."""
    rows = []
    for node in (node for captures in findings.get(capture, ()) for node in captures[capture]):
        line_end = source.find(b"\n", node.end_byte)
        if not source[node.end_byte : line_end if line_end >= 0 else len(source)].strip():
            rows.append(read_node_rows(node))
    return rows


def _make_chunks(
    lines: SizedLines,
    pieces: Sequence[Rows],
    around: Sequence[str],
    symbols: Sequence[Symbol] = (),
    documentation: DocumentationFinder | None = None,
) -> tuple[Chunk, ...]:
    """Make chunks of row ranges: their text, their definitions and their enclosing ones."""
    by_line = sorted(symbols, key=lambda symbol: symbol.start_line)
    starts = [symbol.start_line for symbol in by_line]
    chunks = []
    for (first, last), scope in zip(pieces, around, strict=True):
        end = bisect_left(starts, last + 2)
        # A comment, or the first part of one, that was cut off the definition below it speaks of that.
        if documentation and end < len(starts) and documentation.find_comment(starts[end] - 2) <= first:
            end += 1
        chunks.append(
            Chunk(
                start_line=first + 1,
                end_line=last + 1,
                text=lines.text(first, last)[: LONG_LINE_CUT if first == last else None],
                scope=scope,
                names=tuple(symbol.name for symbol in by_line[bisect_left(starts, first + 1) : end]),
            )
        )
    return tuple(chunks)
