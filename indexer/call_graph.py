"""The call graph: which definition a use of a name means, who calls whom, and how central each place is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from indexer.catalog import Catalog
from indexer.models import CallSite, Definition, Import, Reference

_SELF = frozenset({"self", "cls", "this", "super", "super()", "Self", "@", "$this", "static", "parent"})
_ROOTS = frozenset({"", "crate", "self", "super", "@"})
_FOLDER_FILES = frozenset({"__init__", "index", "mod", "lib", "main"})  # these stand for their folder
_MOST_NAMESAKES = 20  # beyond this many candidates an unqualified use of a name says nothing
_NOT_CALLABLE = frozenset({"module"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The definitions that a use may mean, likeliest group only; several of them make it ambiguous."""

    targets: tuple[Definition, ...]

    @property
    def is_ambiguous(self) -> bool:
        """Whether the syntax leaves more than one definition."""
        return len(self.targets) > 1


def resolve(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Resolution:
    """Choose among the definitions of a name those that a use of it in a file can mean.

    In order: a member of the enclosing class for `self.name`; a member of the class or module that qualifies the
    name; a definition around or beside the use in its file; what the file imports; the only definition there is.
    """
    for choose in (_own_member, _qualified_member, _in_file, _imported, _only_one):
        chosen = choose(path, use, candidates, imports)
        if chosen is not None:
            return Resolution(targets=tuple(chosen))
    return Resolution(targets=())


Chosen = Sequence[Definition] | None


def _own_member(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Chosen:  # noqa: ARG001
    """`self.save()` means the method of the class around it; failing that, one of a class of any file."""
    if use.qualifier not in _SELF:
        return None
    scopes = _enclosing(use.scope)
    own = [each for each in candidates if each.path == path and each.symbol.parent in scopes and each.symbol.parent]
    if own:
        return own[:1]
    members = [each for each in candidates if each.symbol.parent]
    return members if 0 < len(members) <= _MOST_NAMESAKES else []


def _qualified_member(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Chosen:
    """`Session.send()` and `sessions.send()` mean what the class, or the module of that name, defines."""
    if not use.qualifier or use.qualifier in _SELF:
        return None
    owner = use.qualifier.replace("::", ".").replace("->", ".").removesuffix("()").rpartition(".")[2]
    members = [each for each in candidates if each.symbol.parent.rpartition(".")[2] == owner]
    if members:
        here = [each for each in members if each.path == path]
        return here or members
    module = [each for each in candidates if not each.symbol.parent and _is_module(each.path, owner, imports)]
    if module:
        return module
    # An object of unknown class: any member of that name will do, a free function will not.
    members = [each for each in candidates if each.symbol.parent]
    return members if 0 < len(members) <= _MOST_NAMESAKES else []


def _in_file(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Chosen:  # noqa: ARG001
    """An unqualified name means the innermost definition of its own file that can be seen from there."""
    scopes = _enclosing(use.scope)
    here = [each for each in candidates if each.path == path and each.symbol.parent in scopes]
    return [max(here, key=lambda each: len(each.symbol.parent))] if here else None


def _imported(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Chosen:
    """An imported name means the definition in the module it is imported from."""
    modules = [each.module for each in imports if use.name in (each.alias, each.name)]
    for module in modules:
        found = [each for each in candidates if _module_matches(each.path, module, path)]
        if found:
            return found
    return [] if modules else None


def _only_one(path: str, use: Reference, candidates: Sequence[Definition], imports: Sequence[Import]) -> Chosen:  # noqa: ARG001
    """Otherwise a free definition in the same folder, as packages of Go and others share one, or anywhere."""
    free = [each for each in candidates if not each.symbol.parent] or list(candidates)
    near = [each for each in free if PurePosixPath(each.path).parent == PurePosixPath(path).parent]
    chosen = near or free
    return chosen if len(chosen) <= _MOST_NAMESAKES else []


def _enclosing(scope: str) -> frozenset[str]:
    """A scope and all scopes around it, the module's (empty) included."""
    parts = scope.split(".") if scope else []
    return frozenset(".".join(parts[:count]) for count in range(len(parts) + 1))


def _is_module(path: str, name: str, imports: Sequence[Import]) -> bool:
    """Whether a file is the module that a qualifier names, directly or by an import's alias."""
    modules = {each.module if not each.name else f"{each.module}.{each.name}" for each in imports if each.alias == name}
    return any(_module_matches(path, module, path) for module in modules | {name})


def _module_matches(path: str, module: str, importer: str) -> bool:
    """Whether a module as it is imported can be the file: by the whole path if relative, else by its last parts."""
    pure = PurePosixPath(path)
    folder = list(pure.parent.parts)
    stem = pure.name.partition(".")[0]
    file = folder if stem in _FOLDER_FILES else [*folder, stem]
    if module.startswith("."):
        return _relative_parts(module, importer) in (file, folder)
    wanted = [part for part in re.split(r"::|[./\\]", module) if part not in _ROOTS]
    count = min(len(wanted), 2)
    return bool(wanted) and wanted[-count:] in (file[-count:], folder[-count:])


def _relative_parts(module: str, importer: str) -> list[str]:
    """The path that `./x`, `../x` (JavaScript), `.x` or `..x` (Python) means, seen from the importing file."""
    base = list(PurePosixPath(importer).parent.parts)
    if "/" not in module:
        dots = len(module) - len(module.lstrip("."))
        module = "../" * (dots - 1) + module.lstrip(".").replace(".", "/")
    for part in module.split("/"):
        if part == "..":
            base = base[:-1]
        elif part not in ("", "."):
            base = [*base, part.partition(".")[0]]
    return base


class CallGraph:
    """Callers and callees at one generation, resolved when asked for."""

    def __init__(self, catalog: Catalog, generation: int) -> None:
        self._catalog = catalog
        self._generation = generation

    def definitions(self, name: str) -> list[Definition]:
        """Definitions by plain or qualified name; those in the case that was asked for come first and alone."""
        plain = name.replace("::", ".").replace("#", ".").rpartition(".")[2]
        found = self._catalog.definitions(self._generation, plain)
        if plain != name:
            wanted = name.replace("::", ".").replace("#", ".")
            found = [each for each in found if f".{each.symbol.qualified_name}".endswith(f".{wanted}")] or [
                each for each in found if _is_module(each.path, wanted.rpartition(".")[0].rpartition(".")[2], ())
            ]
        exact = [each for each in found if each.symbol.name == plain]
        return exact or found

    def callers(self, name: str) -> list[CallSite]:
        """Every call that may mean one of the definitions of `name`, by path and line."""
        wanted = self.definitions(name)
        sites: list[CallSite] = []
        for plain in dict.fromkeys(each.symbol.name for each in wanted):
            candidates = self._candidates(plain)
            for path, uses in _by_path(self._catalog.references_to(self._generation, plain)):
                imports = self._catalog.imports(self._generation, path)
                for use in uses:
                    resolution = resolve(path, use, candidates, imports)
                    sites += [
                        self._site(path, use, target, resolution) for target in resolution.targets if target in wanted
                    ]
        return sites

    def callees(self, name: str) -> list[CallSite]:
        """Every call inside the definitions of `name`, by path and line; names from outside have no callee."""
        sites: list[CallSite] = []
        for definition in self.definitions(name):
            imports = self._catalog.imports(self._generation, definition.path)
            for use in self._catalog.references_in(self._generation, definition.path):
                if _lies_in(use, definition):
                    sites += self._called(definition, use, imports)
        return sites

    def _called(self, caller: Definition, use: Reference, imports: Sequence[Import]) -> list[CallSite]:
        resolution = resolve(caller.path, use, self._candidates(use.name), imports)
        targets: Iterable[Definition | None] = resolution.targets or (None,)
        return [
            CallSite(
                path=caller.path,
                line=use.line,
                name=use.name,
                caller=caller,
                callee=target,
                ambiguous=resolution.is_ambiguous,
            )
            for target in targets
        ]

    def _site(self, path: str, use: Reference, target: Definition, resolution: Resolution) -> CallSite:
        around = [each for each in self._catalog.symbols(self._generation, path) if each.qualified_name == use.scope]
        inner = [each for each in around if each.start_line <= use.line <= each.end_line]
        return CallSite(
            path=path,
            line=use.line,
            name=use.name,
            caller=Definition(path=path, symbol=inner[-1]) if inner else None,
            callee=target,
            ambiguous=resolution.is_ambiguous,
        )

    def _candidates(self, name: str) -> list[Definition]:
        found = self._catalog.definitions(self._generation, name)
        return [each for each in found if each.symbol.name == name and each.symbol.kind not in _NOT_CALLABLE]


def _lies_in(use: Reference, definition: Definition) -> bool:
    symbol = definition.symbol
    return symbol.start_line <= use.line <= symbol.end_line and (
        use.scope == symbol.qualified_name or use.scope.startswith(f"{symbol.qualified_name}.")
    )


def _by_path(uses: Sequence[tuple[str, Reference]]) -> Iterable[tuple[str, list[Reference]]]:
    grouped: dict[str, list[Reference]] = {}
    for path, use in uses:
        grouped.setdefault(path, []).append(use)
    return grouped.items()


def page_rank(nodes: int, edges: Iterable[tuple[int, int]]) -> NDArray[np.float32]:
    """How central each node is, 1 on average; `edges` are distinct pairs (from, to).

    Source: Brin and Page, "The Anatomy of a Large-Scale Hypertextual Web Search Engine", 1998.
    """
    import networkx  # a tenth of a second that only indexing needs

    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges)
    if not graph.number_of_edges():
        return np.ones(nodes, dtype=np.float32)
    ranks = networkx.pagerank(graph, alpha=0.85)
    return np.fromiter((ranks[node] * nodes for node in range(nodes)), dtype=np.float32, count=nodes)
