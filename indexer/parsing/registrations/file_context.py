"""The context in which a file's registrations are read: its path, its symbols, and the prefixes of its routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from indexer.parsing.registrations.invocations import LONGEST_TEXT, read_code
from indexer.types import Registration, RegistrationKind, Symbol


@dataclass(kw_only=True, slots=True)
class FileContext:
    """One file.

    `prefixes` are what the paths of routes begin with, by the variable that holds their group, and `includes` where a
    list of routes is included: from which list, below which path; `constants` are those that hold a name in capitals.
    """

    path: str
    language: str
    source: bytes
    symbols: Sequence[Symbol]
    prefixes: dict[str, str] = field(default_factory=dict)
    includes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    constants: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Map the names of the file's definitions to their documentation."""
        self.docs = {symbol.name: symbol.doc for symbol in self.symbols if symbol.doc}

    def code_of(self, node: Node | None) -> str:
        """Return a piece of the file on one line."""
        return "" if node is None else read_code(node, self.source)

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
        """Make a registration; where nothing is said of it, the documentation of what is called for it is taken."""
        said = text or ("" if kind == "event" else self.docs.get(handler.rpartition(".")[2], ""))
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
