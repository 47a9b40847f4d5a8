"""Short forms of what was found in a file, so that a test can state all of it in a few lines."""

from __future__ import annotations

from indexer.types import ParsedFile


def symbols(parsed: ParsedFile) -> list[str]:
    """`4-9 class Foo.Bar` for every definition."""
    return [f"{s.start_line}-{s.end_line} {s.kind} {s.qualified_name}" for s in parsed.symbols]


def docs(parsed: ParsedFile) -> list[str]:
    """`Bar: What it is for.` for every definition with documentation."""
    return [f"{s.name}: {s.doc}" for s in parsed.symbols if s.doc]


def calls(parsed: ParsedFile) -> list[str]:
    """`7 Foo.run: self.x go` for every call: line, scope, qualifier and name."""
    return [_use(parsed, index) for index, r in enumerate(parsed.references) if r.kind == "call"]


def bases(parsed: ParsedFile) -> list[str]:
    """The same for every base class."""
    return [_use(parsed, index) for index, r in enumerate(parsed.references) if r.kind == "inherit"]


def imports(parsed: ParsedFile) -> list[tuple[int, str, str, str]]:
    """Line, module, name and alias of every import."""
    return [(i.line, i.module, i.name, i.alias) for i in parsed.imports]


def _use(parsed: ParsedFile, index: int) -> str:
    reference = parsed.references[index]
    return f"{reference.line} {reference.scope}: {reference.qualifier} {reference.name}"
