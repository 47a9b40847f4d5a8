"""The context of a file's registrations: its path, its symbols, and the prefixes of its routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from indexer.parsing.registrations.invocations import read_code
from indexer.parsing.registrations.nested_values import LONGEST_TEXT
from indexer.types import Registration, RegistrationKind, Symbol, SymbolKind

_LATELY = 4
_UNSAID = frozenset(
    {"event", "access", "table", "variable", "topic", "client", "feature"}
)  # about which documentation of code says nothing
_VALUES = frozenset({"constant", "module"})


@dataclass(kw_only=True, slots=True)
class FileContext:
    """The context of one file.

    `prefixes` are prefixes of routes, by the variable of their group; `includes` are included lists of routes, with the
    path below which they are mounted; `constants` hold a name in capitals. `defined` are definitions made by a
    registration: a table, a resource.
    """

    path: str
    language: str
    source: bytes
    symbols: Sequence[Symbol]
    prefixes: dict[str, str] = field(default_factory=dict)
    includes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    constants: dict[str, str] | None = None
    lines: list[bytes] | None = None
    defined: list[Symbol] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Map the names of the file's definitions to their documentation."""
        self.docs = {symbol.name: symbol.doc for symbol in self.symbols if symbol.doc}

    def code_of(self, node: Node | None) -> str:
        """Return a piece of the file on one line."""
        return "" if node is None else read_code(node, self.source)

    def define(self, name: str, kind: SymbolKind, start: int, end: int) -> None:
        """Add a definition for lines without one in the file's grammar."""
        if all(each.name != name or each.start_line != start for each in self.defined[-_LATELY:]):
            signature = self._read_line(start)
            self.defined.append(
                Symbol(
                    name=name.rpartition(".")[2] or name,
                    qualified_name=name,
                    kind=kind,
                    signature=signature,
                    doc="",
                    start_line=start,
                    end_line=max(start, end),
                )
            )

    def _read_line(self, number: int) -> str:
        if self.lines is None:
            self.lines = self.source.split(b"\n")
        line = self.lines[number - 1] if number <= len(self.lines) else b""
        return _shorten(line[: 4 * LONGEST_TEXT].decode("utf-8", "replace"))

    def find_enclosing(self, line: int) -> str:
        """Name the innermost definition around a line; empty if there is none."""
        around = [one for one in self.symbols if one.start_line <= line <= one.end_line and one.kind not in _VALUES]
        return max(around, key=lambda one: one.start_line).qualified_name if around else ""

    def make(
        self,
        kind: RegistrationKind,
        name: str,
        node: Node | int,
        *,
        detail: str = "",
        text: str | None = "",
        handler: str = "",
    ) -> Registration:
        """Make a registration; without a description, it gets its handler's documentation."""
        said = text or ("" if kind in _UNSAID else self.docs.get(handler.rpartition(".")[2], ""))
        return Registration(
            kind=kind,
            name=_shorten(name),
            detail=_shorten(detail),
            help=_shorten(said),
            handler=_shorten(handler),
            line=node if isinstance(node, int) else node.start_point[0] + 1,
        )


def _shorten(text: str) -> str:
    line = " ".join(text[: 2 * LONGEST_TEXT].split())
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 3] + "..."
