"""Uses of names in a file: calls, base classes and imports, from a query's captures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

from tree_sitter import Node

from indexer.parsing.grammars import Captures, Findings
from indexer.parsing.outline import ScopeMap
from indexer.text.languages import Grammar
from indexer.types import Import, Reference, ReferenceKind

# Receivers longer than this (chains of builder calls) keep their end only, behind three dots.
_QUALIFIER_LIMIT = 80
_CALLEE = re.compile(r"(?:(.*)(?:\.|->|::|\\|:))?\s*([^\s.:>\\]+)\s*", re.DOTALL)
_SPACE_BEFORE_DOT = re.compile(r" (?=\??\.)")
_CHAIN_MARK = re.compile(r"(?:\?|!!|&|:)$")
_TYPE_ARGUMENTS = re.compile(r"[<\[]")

_IMPORT_WORDS = re.compile(
    r"^(?:(?:pub(?:\([^)]*\))?|global|import|using|use|static|function|const|typealias|struct|class|enum|protocol"
    r"|func|var|let|@\w+|namespace)\s+)+"
)
_COMMENT = re.compile(r"//[^\n]*|/\*")
_TREE_WORD = re.compile(r"=>|[{},;=]|[^\s{},;=]+")
_GO_VERSION = re.compile(r"v\d+")
_GOPKG_VERSION = re.compile(r"\.v\d+$")


def find_references(findings: Findings, scopes: ScopeMap, source: bytes) -> tuple[Reference, ...]:
    """Return calls and base classes in file order, each with its surrounding definition."""
    # A chain of calls begins in one place, but each name in it ends in its own.
    uses: dict[int, tuple[ReferenceKind, Node, Node | None]] = {}
    for captures in findings.get("call", ()):
        node = captures["call"][0]
        if "on" not in captures and node.end_byte in uses:
            continue  # another pattern has found the receiver as well
        uses[node.end_byte] = ("call", node, captures["on"][0] if "on" in captures else None)
    for captures in findings.get("inherit", ()):
        uses.update((node.end_byte, ("inherit", node, None)) for node in captures["inherit"])
    references = []
    for end in _drop_silent(uses, findings):
        kind, node, receiver = uses[end]
        qualifier, name = _split_use(_read_tail(source, node.start_byte, end), kind)
        if receiver is not None:
            qualifier = _shorten_qualifier(_read_tail(source, receiver.start_byte, receiver.end_byte))
        if name:
            scope, line = scopes.at(node.start_byte), node.end_point[0] + 1
            references.append(Reference(name=name, qualifier=qualifier, kind=kind, line=line, scope=scope))
    return tuple(references)


def _drop_silent(ends: Iterable[int], findings: Findings) -> list[int]:
    """Return the ends of names outside silent nodes, in order."""
    silent = iter(
        sorted((n.start_byte, n.end_byte) for found in findings.get("silent", ()) for n in found.get("silent", ()))
    )
    audible = []
    following = next(silent, None)
    covered = 0
    for end in sorted(ends):
        while following is not None and following[0] < end:
            covered = max(covered, following[1])
            following = next(silent, None)
        if end > covered:
            audible.append(end)
    return audible


def _read_tail(source: bytes, start: int, end: int) -> bytes:
    """Read a piece of the file, only its end if it is long: chains nest, and would be read again and again."""
    cut = max(start, end - 4 * _QUALIFIER_LIMIT)
    return source[cut:end] if cut == start else b"..." + source[cut:end]


@lru_cache(maxsize=50_000)
def _split_use(raw: bytes, kind: ReferenceKind) -> tuple[str, str]:
    """Split a callee or base class into qualifier and name; a code base repeats the same few."""
    text = raw.decode("utf-8", "ignore")
    if text.isidentifier():
        return "", text
    parts = _CALLEE.fullmatch(text if kind == "call" else _TYPE_ARGUMENTS.split(text, maxsplit=1)[0])
    if parts is None:
        return "", ""
    return _shorten_qualifier(_CHAIN_MARK.sub("", parts[1] or "").encode()), parts[2]


def _shorten_qualifier(qualifier: bytes) -> str:
    line = _SPACE_BEFORE_DOT.sub("", " ".join(qualifier.decode("utf-8", "ignore").split()))
    return line if len(line) <= _QUALIFIER_LIMIT else "..." + line[-_QUALIFIER_LIMIT:]


def find_imports(findings: Findings, grammar: Grammar, source: bytes) -> tuple[Import, ...]:
    """Return every imported name in file order."""
    # The key is a place, so that a pattern with an alias completes what the one without found.
    imports: dict[tuple[int, int], Import] = {}
    for captures in chain(findings.get("from", ()), findings.get("default", ())):
        _add_import(imports, captures, grammar, source)
    for captures in findings.get("tree", ()):
        node = captures["tree"][0]
        for index, imported in enumerate(_read_import_tree(node, grammar, source)):
            imports[node.start_byte, index] = imported
    return tuple(imported for _, imported in sorted(imports.items(), key=lambda item: item[0]))


def _add_import(imports: dict[tuple[int, int], Import], captures: Captures, grammar: Grammar, source: bytes) -> None:
    node = (captures.get("from") or captures["default"])[0]
    names = captures.get("import", [])
    alias = captures.get("alias", [])
    module = _read_bare(node, source)
    name = "default" if "default" in captures else _read_bare(names[0], source) if names else ""
    local = _read_bare(alias[0], source) if alias else name or _make_default_alias(node, module, grammar)
    key = (node.start_byte, names[0].start_byte if names else -len(name))
    if key not in imports or alias:
        line = (names[0] if names else node).start_point[0] + 1
        imports[key] = Import(module=module, name=name, alias=local, line=line)


def _read_bare(node: Node, source: bytes) -> str:
    text = source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()
    return text.strip("\"'`<>") if text[:1] in "\"'`<" else " ".join(text.split())


def _make_default_alias(node: Node, module: str, grammar: Grammar) -> str:
    """Return the file's name for a whole module: none for a merely included or executed file."""
    if grammar.separator == "/":
        parts = [part for part in module.split("/") if not _GO_VERSION.fullmatch(part)] or [module]
        return _GOPKG_VERSION.sub("", parts[-1])
    if node.type in {"string", "string_literal", "system_lib_string", "word", "concatenation"}:
        return ""
    return module.rpartition(".")[2] if not grammar.names_imports else module


def _read_import_tree(node: Node, grammar: Grammar, source: bytes) -> Iterable[Import]:
    """Read `use a::{b, c as d}` and similar in every language with nested or renamed imports."""
    text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    statement = _IMPORT_WORDS.sub("", " ".join(_strip_comments(text).split()))
    line = node.start_point[0] + 1
    for path, alias in _expand_braces(statement):
        module, name = path.replace("`", "").removeprefix(grammar.separator), ""
        if grammar.names_imports and grammar.separator in module:
            module, _, last = module.rpartition(grammar.separator)
            name = {"self": "", "_": "*"}.get(last, last)
        local = name or module.rpartition(grammar.separator)[2]
        yield Import(module=module, name=name, alias=alias or local, line=line)


def _strip_comments(text: str) -> str:
    pieces: list[str] = []
    at = searched = 0
    last = text.rfind("*/")
    while found := _COMMENT.search(text, searched):
        searched = found.end()
        if found[0] == "/*":
            if last < searched:
                continue  # it is never closed
            searched = text.index("*/", searched) + 2
        pieces.append(text[at : found.start()])
        at = searched
    return " ".join([*pieces, text[at:]])


def _expand_braces(statement: str) -> list[tuple[str, str]]:
    """Multiply out the braces of an import statement into (path, alias) pairs; the alias may be empty."""
    prefixes, path, alias = [""], "", ""
    renaming = False
    pairs: list[tuple[str, str]] = []
    for word in [*_TREE_WORD.findall(statement), ";"]:
        if word == "{":
            prefixes.append(prefixes[-1] + path)
            path = ""
        elif word in ",;}":
            if path:
                pairs.append((prefixes[-1] + path, alias))
            path, alias, renaming = "", "", False
            if word == "}" and len(prefixes) > 1:
                prefixes.pop()
        elif word == "=":
            path, alias = "", path
        elif word in {"as", "=>"}:
            renaming = True
        elif renaming:
            alias = word
        else:
            path += word
    return pairs
