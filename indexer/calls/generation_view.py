"""Reads the definitions, uses and imports of one generation from the catalog, once for each question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from indexer.calls.import_resolution import ImportResolver, ImportTarget, is_package_manifest
from indexer.calls.name_resolution import ImportSource, find_language_family, group_by_language
from indexer.calls.receivers import TypeHint, find_type_hints
from indexer.store.catalog import Catalog
from indexer.text.languages import ANY
from indexer.types import Definition, FileImport, Import, Reference, Symbol

BLANK = 999  # the indent of a line without text: it ends no block
_MAX_HANDED_ON = 4  # modules that a name is followed through
_SUBMODULE = {"py": ".", "pyi": ".", "rs": "::"}
_PYTHON, _PROSE = (".py", ".pyi"), (".md", ".mdx", ".rst", ".adoc", ".txt")
_SEPARATOR = re.compile(r"\.|::|->|\\")


def open_import_resolver(catalog: Catalog, generation: int) -> ImportResolver:
    """Open the modules of a generation, with the packages in its manifests."""
    rows = catalog.files(generation)
    manifests = {row.entry.path: catalog.text(row.blob) for row in rows if is_package_manifest(row.entry.path)}
    return ImportResolver([row.entry.path for row in rows], manifests)


class GenerationView:
    """Definitions, uses, imports and text of one generation; nothing is read twice."""

    def __init__(self, catalog: Catalog, generation: int, modules: ImportResolver) -> None:
        self._catalog = catalog
        self._generation = generation
        self.modules = modules
        self._definitions: dict[str, dict[str, list[Definition]]] = {}
        self._symbols: dict[str, list[Symbol]] = {}
        self._by_scope: dict[str, dict[str, list[Symbol]]] = {}
        self._imports: dict[str, dict[str, list[Import]]] = {}
        self._bases: dict[str, dict[str, list[Reference]]] = {}
        self._texts: dict[str, str] = {}
        self._indents: dict[str, list[int]] = {}
        self._clues: dict[tuple[str, str], list[TypeHint]] = {}
        self._sources: dict[tuple[str, str], tuple[ImportSource, ...] | None] = {}

    def definitions(self, name: str, path: str) -> Sequence[Definition]:
        """Return the definitions that a file may mean by a name, in this exact case."""
        if name not in self._definitions:
            found = self._catalog.definitions(self._generation, name)
            self._definitions[name] = group_by_language([each for each in found if each.symbol.name == name])
        grouped, family = self._definitions[name], find_language_family(path)
        if family != ANY:
            return grouped.get(family, ())
        # Its code may be in any language; what such files define comes first.
        return [each for one in sorted(grouped, key=lambda one: one != ANY) for each in grouped[one]]

    def symbols(self, path: str) -> list[Symbol]:
        """Return the definitions of a file in order."""
        if path not in self._symbols:
            self._symbols[path] = self._catalog.symbols(self._generation, path)
        return self._symbols[path]

    def find_spanning(self, path: str, scope: str, line: int) -> Symbol | None:
        """Return the innermost definition of a qualified name that contains a line."""
        if path not in self._by_scope:
            by_scope: dict[str, list[Symbol]] = {}
            for each in self.symbols(path):
                by_scope.setdefault(each.qualified_name, []).append(each)
            self._by_scope[path] = by_scope
        found = [each for each in self._by_scope[path].get(scope, ()) if each.start_line <= line <= each.end_line]
        return found[-1] if found else None

    def bases(self, definition: Definition) -> list[Reference]:
        """Return the base classes of a class as written in its file."""
        if definition.path not in self._bases:
            by_scope: dict[str, list[Reference]] = {}
            for use in self._catalog.list_references_in(self._generation, definition.path):
                if use.kind == "inherit":
                    by_scope.setdefault(use.scope, []).append(use)
            self._bases[definition.path] = by_scope
        return self._bases[definition.path].get(definition.symbol.qualified_name, [])

    def text(self, path: str) -> str:
        """The text of a file."""
        if path not in self._texts:
            row = self._catalog.file(self._generation, path)
            self._texts[path] = self._catalog.text(row.blob) if row else ""
        return self._texts[path]

    def measure_indents(self, path: str) -> list[int]:
        """Measure the indentation of each line of a file."""
        if path not in self._indents:
            lines = self.text(path).split("\n")
            self._indents[path] = [len(each) - len(each.lstrip()) if each.strip() else BLANK for each in lines]
        return self._indents[path]

    def clues(self, path: str, name: str) -> list[TypeHint]:
        """Return a file's type hints of a variable or a field."""
        key = (path, name)
        if key not in self._clues:
            self._clues[key] = list(find_type_hints(name, self.text(path), path.rpartition(".")[2]))
        return self._clues[key]

    def find_sources(self, path: str, name: str) -> tuple[ImportSource, ...] | None:
        """Find the sources from which a file imports a name; None if it does not."""
        key = (path, name)
        if key not in self._sources:
            by_alias = self._read_imports(path)
            found = by_alias.get(name) or by_alias.get("*")
            self._sources[key] = tuple(self._make_source(path, name, each) for each in found) if found else None
        return self._sources[key]

    def find_qualifier_sources(self, path: str, qualifier: str) -> tuple[ImportSource, ...] | None:
        """Find the sources of a qualifier by its longest part that is an imported name; None if no part is."""
        by_alias = self._read_imports(path)
        parts = _SEPARATOR.split(qualifier)
        for count in range(len(parts), 0, -1):
            for joint in (".", "::"):
                alias = joint.join(parts[:count])
                if alias in by_alias:
                    return self._find_behind(path, by_alias[alias], parts[count:])
        # `import shop.views` names `shop` as well, and every other module of it that something else has imported.
        is_path = "::" in qualifier or any(alias.startswith(f"{parts[0]}.") for alias in by_alias)
        module = self.modules.find(qualifier, path) if is_path else ImportTarget()
        return None if module.is_outside else (_make_module_source(module),)

    def find_declared_module(self, path: str, use: Reference) -> tuple[ImportSource, ...] | None:
        """Find the module beside or below a Rust file that a use passes through: `walk::scan`, and not the
        object `walk`.
        """
        if not path.endswith(".rs") or not use.qualifier.isidentifier():
            return None
        line = self.text(path).split("\n", use.line)[: use.line][-1]
        if f"{use.qualifier}::{use.name}" not in line:
            return None
        found = self.modules.find(f"self::{use.qualifier}", path).files
        named = frozenset(file for file in found if use.qualifier in PurePosixPath(file).with_suffix("").parts[-2:])
        return (ImportSource(name=use.qualifier, files=named),) if named else None

    def _find_behind(self, path: str, imports: list[Import], rest: list[str]) -> tuple[ImportSource, ...]:
        """Follow the rest of a qualifier to a module within the import, if any."""
        sources = [self._make_source(path, each.alias, each) for each in imports]
        joint = _SUBMODULE.get(path.rpartition(".")[2])
        if not rest or joint is None:
            return tuple(sources)
        deeper = [self.modules.find(joint.join(filter(None, (e.module, e.name, *rest))), path) for e in imports]
        return tuple(_make_module_source(each) for each in deeper if not each.is_outside) or tuple(sources)

    def _read_imports(self, path: str) -> dict[str, list[Import]]:
        if path not in self._imports:
            by_alias: dict[str, list[Import]] = {}
            for each in self._catalog.list_imports(self._generation, path):
                by_alias.setdefault(each.alias, []).append(each)
            self._imports[path] = by_alias
        return self._imports[path]

    def _make_source(self, path: str, name: str, imported: Import) -> ImportSource:
        """Resolve an import: a module, or a name in one, followed through re-exports."""
        module = self.modules.find(imported.module, path)
        if not imported.name:
            return _make_module_source(module)
        if (submodule := self._find_submodule(path, imported)).files - module.files:
            return _make_module_source(submodule)
        real = name if imported.name in {"*", "default"} else imported.name
        reached = fresh = module.files
        for _ in range(_MAX_HANDED_ON):
            imports = [(file, each) for file in fresh for each in self._read_imports(file).get(real, ())]
            found = (self.modules.find(each.module, file).files for file, each in imports)
            fresh = frozenset().union(*found) - reached
            reached |= fresh
        return ImportSource(name=real, files=reached, below=module.folders)

    def _find_submodule(self, path: str, imported: Import) -> ImportTarget:
        """Return the submodule that an imported name means, in languages that allow it."""
        joint = _SUBMODULE.get(path.rpartition(".")[2])
        if not joint or not imported.name:
            return ImportTarget()
        around = imported.module if imported.module.endswith(joint) else imported.module + joint
        return self.modules.find(around + imported.name, path)

    def list_file_imports(self) -> list[FileImport]:
        """List the imports of files from the repository, by path and line, each import of a line once.

        If a module re-exports a name from another one, the module itself is the import.
        """
        found: dict[tuple[str, int, tuple[str, ...]], None] = {}
        for path, imported in self._catalog.list_all_imports(self._generation):
            module = self.modules.find(imported.module, path).files
            files = (self._find_submodule(path, imported).files - module) or module
            if targets := tuple(sorted(_select_modules(files - {path}, path))):
                found[path, imported.line, targets] = None
        return [FileImport(path=path, line=line, targets=targets) for path, line, targets in found]


def _select_modules(files: frozenset[str], importer: str) -> frozenset[str]:
    """Drop namesakes of a module: prose, and next to a Python module anything that is not a package."""
    if not importer.endswith(_PYTHON):
        return frozenset(file for file in files if not file.endswith(_PROSE))
    modules = frozenset(file for file in files if file.endswith((*_PYTHON, ".pyx")))
    packages = frozenset(file for file in modules if PurePosixPath(file).stem == "__init__")
    return packages or modules


def _make_module_source(module: ImportTarget) -> ImportSource:
    return ImportSource(name="", files=module.files, below=module.folders)
