"""The code of one source package, parsed as the index parses it, without what others wrote or machines did."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from indexer.parsing.file_parser import parse_file
from indexer.search.path_traits import read_path_traits
from indexer.text.languages import detect_language
from indexer.types import Chunk, ParsedFile, Symbol
from scripts.static_training.comments import Comment, find_comment_above, find_docstring

# Copies of other projects in a package are not the package, and may be under another licence.
_NOT_OWN = re.compile(
    r"(?:^|/)(?:vendor|_?vendored|_vendor|third_?party|external|extern|externals|bundled|deps|node_modules|dist|stubs"
    r"|generated|typeshed|locales?|i18n|fixtures|testdata|baselines|snapshots?|migrations)(?:/|$)|[_.](?:pb2?|g|min)\.",
    re.IGNORECASE,
)
_COPYLEFT = re.compile(r"General Public Licen|Mozilla Public|\b[AL]?GPL|Eclipse Public|CDDL", re.IGNORECASE)
_PROSE = frozenset({"markdown", "rst"})
_SHARED_NAME = 2  # a name that more places define does not tell which of them is meant


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFile:
    """One file of code: its text and what the parser found."""

    path: str
    lines: list[str]
    parsed: ParsedFile
    is_test: bool

    def find_chunk(self, line: int) -> Chunk | None:
        """Return the chunk that a line is in, counted from 1."""
        return next((chunk for chunk in self.parsed.chunks if chunk.start_line <= line <= chunk.end_line), None)

    def find_comment(self, symbol: Symbol) -> Comment | None:
        """Return the documentation comment of a definition."""
        if not symbol.doc:
            return None
        start = symbol.start_line - 1
        docstring = find_docstring(self.lines, start) if self.parsed.language == "python" else None
        return docstring or find_comment_above(self.lines, start)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A definition and the file and chunk that it is in."""

    file: CodeFile
    symbol: Symbol
    chunk: Chunk


@dataclass(kw_only=True, slots=True)
class Corpus:
    """The files of a package, its texts for people, and where each of its own names is defined."""

    files: list[CodeFile] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    _by_name: defaultdict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def add(self, file: CodeFile) -> None:
        """Take a file; tests define nothing that others could mean."""
        self.files.append(file)
        for symbol in file.parsed.symbols:
            chunk = file.find_chunk(symbol.start_line)
            if chunk is not None:
                place = Place(file=file, symbol=symbol, chunk=chunk)
                self.places.append(place)
                if not file.is_test:
                    self._by_name[symbol.name].append(place)

    def find_definitions(self, name: str) -> list[Place]:
        """Return where a name is defined, unless it is short or too many places define it."""
        places = self._by_name.get(name, []) if len(name) > 4 else []
        return places if len(places) <= _SHARED_NAME else []

    def count_sentences(self) -> Counter[str]:
        """Count how often each first sentence is written; what is written often describes nothing."""
        return Counter(place.symbol.doc for place in self.places if place.symbol.doc)


def read_corpus(members: Iterable[tuple[str, bytes]]) -> Corpus:
    """Parse the files of a package that are its own, and under its own licence."""
    corpus = Corpus()
    for path, text in _read_texts(members):
        language = detect_language(path, text)
        if language in _PROSE:
            if not re.search("change|history|news|release|licen|contrib|conduct", path, re.IGNORECASE):
                corpus.texts.append(text[:60_000])
            continue
        parsed = parse_file(path, text)
        if parsed.symbols:
            is_test = read_path_traits(path).is_test
            corpus.add(CodeFile(path=path, lines=text.split("\n"), parsed=parsed, is_test=is_test))
    return corpus


def _read_texts(members: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    for path, content in members:
        if _NOT_OWN.search(path) or b"\0" in content[:4096]:
            continue
        text = content.decode("utf-8", "replace").replace("\r\n", "\n")
        if not _COPYLEFT.search(text[:3000]):
            yield path, text
