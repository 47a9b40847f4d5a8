"""The call graph: who calls whom, and how central each place is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from threading import Lock

from cachetools import LRUCache

from indexer.calls.generation_view import GenerationView, open_import_resolver
from indexer.calls.import_resolution import ImportResolver
from indexer.calls.name_resolution import SUPER, TYPE_KINDS, Resolution, resolve_name
from indexer.calls.type_inference import TypeInference
from indexer.store.catalog import Catalog
from indexer.types import CallSite, Definition, FileImport, Reference, Subclass

_MAX_NAMES = 256  # whose definitions are remembered
_MAX_SUBCLASSES = 1_000
_MAX_DEFINITIONS = 200  # of a name; those of the likes of `get` would fill the memory


class CallGraph:
    """Callers and callees at one generation, resolved on demand."""

    def __init__(self, catalog: Catalog, generation: int) -> None:
        self._catalog = catalog
        self._generation = generation
        self._definitions: LRUCache[str, Sequence[Definition]] = LRUCache(_MAX_NAMES)
        self._lock = Lock()

    @cached_property
    def _modules(self) -> ImportResolver:
        return open_import_resolver(self._catalog, self._generation)

    def read_remembered(self, name: str) -> Sequence[Definition] | None:
        """Return the definitions of a recently requested name without delay."""
        with self._lock:
            return self._definitions.get(name)

    def definitions(self, name: str) -> Sequence[Definition]:
        """Return definitions by plain or qualified name; those with matching case come first and alone."""
        if (known := self.read_remembered(name)) is not None:
            return known
        found = tuple(self._find_definitions(name))
        if len(found) <= _MAX_DEFINITIONS:
            with self._lock:
                self._definitions[name] = found
        return found

    def _find_definitions(self, name: str) -> Sequence[Definition]:
        wanted = name.replace("::", ".").replace("#", ".")
        qualifier, _, plain = wanted.rpartition(".")
        found = self._catalog.definitions(self._generation, plain)
        if qualifier:
            found = [
                definition for definition in found if f".{definition.symbol.qualified_name}".endswith(f".{wanted}")
            ] or [definition for definition in found if _is_in_module(definition, qualifier)]
        exact = [definition for definition in found if definition.symbol.name == plain]
        return exact or found

    def callers(self, name: str, *, unresolved: bool = False) -> list[CallSite]:
        """Return every call that may mean a definition of `name`, by path and line.

        With `unresolved`, include calls of that name on unknown objects; these have no callee.
        """
        question = _Question(self._catalog, self._generation, self._modules)
        wanted = set(self.definitions(name))
        plain_names = sorted({definition.symbol.name for definition in wanted})
        return [site for plain in plain_names for site in question.find_calls_to(plain, wanted, unresolved=unresolved)]

    def callees(self, name: str) -> list[CallSite]:
        """Return every call inside the definitions of `name`, by path and line; external names have no callee."""
        question = _Question(self._catalog, self._generation, self._modules)
        return [site for definition in self.definitions(name) for site in question.find_calls_in(definition)]

    def list_file_imports(self) -> list[FileImport]:
        """Return the imports of files from the repository, by path and line."""
        return GenerationView(self._catalog, self._generation, self._modules).list_file_imports()

    def subclasses(self, name: str) -> list[Subclass]:
        """Return the subclasses of `name`'s definitions, or of a name not defined here; direct ones first."""
        question = _Question(self._catalog, self._generation, self._modules)
        wanted = frozenset(one for one in self.definitions(name) if one.symbol.kind in TYPE_KINDS)
        plain = name.replace("::", ".").rpartition(".")[2]
        return list(islice(question.find_subclasses(plain, wanted), _MAX_SUBCLASSES))


def _is_in_module(definition: Definition, module: str) -> bool:
    wanted = module.rpartition(".")[2]
    folder, _, file = definition.path.rpartition("/")
    return wanted in (file.partition(".")[0], folder.rpartition("/")[2])


class _Question:
    """One question to the call graph; each file is read once."""

    def __init__(self, catalog: Catalog, generation: int, modules: ImportResolver) -> None:
        self._catalog = catalog
        self._generation = generation
        self._view = GenerationView(catalog, generation, modules)
        self._inference = TypeInference(self._view)

    def find_calls_to(self, name: str, wanted: set[Definition], *, unresolved: bool) -> Iterable[CallSite]:
        """Find the calls of a plain name that may mean one of the wanted definitions.

        A call of a base class's method may also reach the method that overrides it.
        """
        overriders = {definition: self._inference.find_overridden(definition) for definition in wanted}
        for path, use in self._find_uses(name):
            if use.kind == "call":
                resolution = self._resolve(path, use)
                found = [target for target in resolution.targets if target in wanted]
                for target in found:
                    yield self._make_site(path, use, target, is_ambiguous=resolution.is_ambiguous)
                if not found and use.qualifier not in SUPER:
                    for target, bases in overriders.items():
                        if bases.intersection(resolution.targets):
                            yield self._make_site(path, use, target, is_ambiguous=True)
                    if unresolved and use.qualifier and resolution.is_guess and not resolution.targets:
                        yield self._make_site(path, use, None, is_ambiguous=True)

    def _find_uses(self, name: str) -> list[tuple[str, Reference]]:
        """Yield every use of a name, also under other names in importing files."""
        uses = self._catalog.list_references_to(self._generation, name)
        for path, alias in self._catalog.aliases(self._generation, name):
            renamed = self._catalog.list_references_in(self._generation, path)
            uses += [(path, use) for use in renamed if use.name == alias and not use.qualifier]
        return sorted(uses, key=lambda place: (place[0], place[1].line))

    def find_subclasses(self, name: str, wanted: frozenset[Definition]) -> Iterator[Subclass]:
        """Yield the subclasses of the wanted definitions, level by level; by name only if there are none."""
        seen: set[Definition] = set(wanted)
        names = {definition.symbol.name for definition in wanted} or {name}
        level = [(each, frozenset(one for one in wanted if one.symbol.name == each)) for each in sorted(names)]
        is_direct = True
        while level:
            found: dict[Definition, str] = {}
            for base, bases in level:
                for heir in self._find_heirs(base, bases):
                    if heir not in seen:
                        found.setdefault(heir, base)
            yield from (Subclass(definition=heir, base=base, is_direct=is_direct) for heir, base in found.items())
            seen.update(found)
            level = [(heir.symbol.name, frozenset((heir,))) for heir in found]
            is_direct = False

    def _find_heirs(self, base: str, bases: frozenset[Definition]) -> Iterator[Definition]:
        """Yield the types that inherit from one of the bases, or by name only if there are none."""
        for path, use in self._find_uses(base):
            if use.kind != "inherit" or not use.scope:
                continue
            if bases and not bases.intersection(self._resolve(path, use).targets):
                continue
            around = self._view.find_spanning(path, use.scope, use.line)
            if around is not None and around.kind in TYPE_KINDS:
                yield Definition(path=path, symbol=around)
            elif around is None:  # `impl Trait for Type` is next to the type
                namesakes = self._view.definitions(use.scope.rpartition(".")[2], path)
                here = [one for one in namesakes if one.path == path] or list(namesakes[:1])
                yield from (one for one in here[:1] if one.symbol.kind in TYPE_KINDS)

    def find_calls_in(self, caller: Definition) -> Iterable[CallSite]:
        """The calls in a definition."""
        symbol = caller.symbol
        for use in self._catalog.list_references_in(self._generation, caller.path):
            is_inside = f"{use.scope}.".startswith(f"{symbol.qualified_name}.")
            if use.kind == "call" and is_inside and symbol.start_line <= use.line <= symbol.end_line:
                resolution = self._resolve(caller.path, use)
                for target in resolution.targets or (None,):
                    yield CallSite(
                        path=caller.path,
                        line=use.line,
                        name=use.name,
                        caller=caller,
                        callee=target,
                        ambiguous=resolution.is_ambiguous,
                    )

    def _resolve(self, path: str, use: Reference) -> Resolution:
        """Resolve by names and imports alone if that suffices, because finding the receiver's class takes longer."""
        site = self._inference.site(path, use)
        candidates = self._view.definitions(site.original_name, path)
        resolution = resolve_name(site, candidates)
        if not candidates or not resolution.is_guess:
            return resolution
        return resolve_name(replace(site, lineages=self._inference.receivers(path, use)), candidates)

    def _make_site(self, path: str, use: Reference, target: Definition | None, *, is_ambiguous: bool) -> CallSite:
        around = self._view.find_spanning(path, use.scope, use.line)
        return CallSite(
            path=path,
            line=use.line,
            name=use.name,
            caller=Definition(path=path, symbol=around) if around else None,
            callee=target,
            ambiguous=is_ambiguous,
        )
