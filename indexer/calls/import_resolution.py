"""Resolves an import to the possible files of the repository."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePosixPath

from indexer.parsing.packages import read_own_name, read_packages

_MANIFESTS = ("go.mod", "package.json", "Cargo.toml")
# A folder from which scripts import without dots.
_BASE = re.compile(r'"baseUrl"\s*:\s*"([^"]{1,200})"')
_BASE_FILES = frozenset({"tsconfig.json", "tsconfig.base.json", "jsconfig.json"})
_MANIFEST_OF = {"go": "go.mod", "rs": "Cargo.toml"} | dict.fromkeys(
    "js jsx mjs cjs ts tsx mts cts vue svelte astro html mdx ejs".split(), "package.json"
)
_FOLDER_FILES = frozenset({"__init__", "index", "mod", "lib", "main"})  # these stand for their folder
_SOURCE_FOLDERS = ((), ("src",), ("lib",))  # of a package, where its modules lie
_DEEPEST = 32  # parts below a package
_SEPARATOR = re.compile(r"::|[./\\]")
_RUST_ROOTS = frozenset({"crate", "self", "super"})
_PYTHON = frozenset({"py", "pyi", "ipynb"})
_HERE = frozenset({"", "@"})

Parts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportTarget:
    """The meaning of an import: the possible files, and the folders (`src/api/`) whose names it may pass on.

    Both are empty for an external import.
    """

    files: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()

    @property
    def is_outside(self) -> bool:
        """Whether a name certainly lies outside the repository."""
        return not self.files and not self.folders


def is_package_manifest(path: str) -> bool:
    """Whether a file names the package of its folder, or the import folders of scripts."""
    name = path.rpartition("/")[2]
    return name in _MANIFESTS or name in _BASE_FILES


class ImportResolver:
    """The files of a repository by module; `manifests` are texts by path."""

    def __init__(self, paths: Iterable[str], manifests: Mapping[str, str]) -> None:
        self._files: dict[Parts, list[str]] = defaultdict(list)
        self._folders: dict[Parts, list[str]] = defaultdict(list)
        self._by_last: dict[str, set[Parts]] = defaultdict(set)
        self._packages: dict[str, dict[str, Parts]] = {name: {} for name in _MANIFESTS}
        self._known: dict[tuple[str, str], ImportTarget] = {}
        for path in paths:
            self._add(path)
        self._bases: list[Parts] = []
        self._dependencies: set[str] = set()
        for path, text in manifests.items():
            manifest = PurePosixPath(path)
            if manifest.name in _BASE_FILES:
                self._bases += [_resolve_relative(f"./{found[1]}", manifest, "ts") for found in _BASE.finditer(text)]
                continue
            if manifest.name == "package.json":
                self._dependencies |= {one.name for one in read_packages(path, text)}
            if own := read_own_name(path, text):
                name = own.replace("-", "_") if manifest.name == "Cargo.toml" else own
                self._packages[manifest.name][name] = manifest.parent.parts

    def _add(self, path: str) -> None:
        *parts, name = path.split("/")
        folder = tuple(parts)
        place = (*folder, name.partition(".")[0])
        self._folders[folder].append(path)
        places = {folder, place} if place[-1] in _FOLDER_FILES else {place}
        for place in places:
            self._files[place].append(path)
        for place in {*places, folder} - {()}:
            self._by_last[_fold_name(place[-1])].add(place)

    def find(self, module: str, importer: str) -> ImportTarget:
        """The module that a file imports."""
        suffix = importer.rpartition("/")[2].rpartition(".")[2]
        # Only relative imports, and those of Rust, depend on more than the language of the importing file.
        is_relative = module.startswith(".") or suffix == "rs"
        key = (module, importer if is_relative else suffix)
        if key not in self._known:
            self._known[key] = self._search(module, PurePosixPath(importer), suffix)
        return self._known[key]

    def _search(self, module: str, importer: PurePosixPath, suffix: str) -> ImportTarget:
        if module.startswith("."):
            return self._find_at(_resolve_relative(module, importer, suffix))
        if suffix == "rs" and module.partition("::")[0] in _RUST_ROOTS:
            return self._find_deepest(*_resolve_rust_path(module, importer))
        packages = self._packages.get(_MANIFEST_OF.get(suffix, ""), {})
        package = max(
            (name for name in packages if module == name or module.startswith((f"{name}/", f"{name}::"))),
            key=len,
            default=None,
        )
        if package is not None:
            return self._find_in_package(packages[package], _split_module(module[len(package) :]), suffix)
        if _MANIFEST_OF.get(suffix) == "package.json":
            return self._find_bare(module, suffix)
        wanted = tuple(part for part in _split_module(module) if part not in _HERE)
        return self._find_by_tail(wanted, suffix) if wanted and suffix != "go" else ImportTarget()

    def _find_bare(self, module: str, suffix: str) -> ImportTarget:
        """Resolve a script's import without dots: a package, unless an import folder or an alias has it."""
        name, _, below = module.partition("/")
        wanted = tuple(part for part in _split_module(module) if part not in _HERE)
        based = [file for base in self._bases for file in self._files.get((*base, *wanted), ())]
        package = f"{name}/{below.partition('/')[0]}" if name.startswith("@") else name
        if based or not below or ":" in name or package in self._dependencies:
            return self._make_target(based)
        return self._find_by_tail(wanted, suffix) if wanted else ImportTarget()

    def _find_at(self, place: Parts) -> ImportTarget:
        return self._make_target(self._files.get(place, ()))

    def _make_target(self, files: Iterable[str]) -> ImportTarget:
        names = frozenset(files)
        places = (file.rpartition("/") for file in names)
        # That something is below the root says nothing: everything is.
        folders = {f"{folder}/" for folder, _, name in places if folder and name.partition(".")[0] in _FOLDER_FILES}
        return ImportTarget(files=names, folders=tuple(sorted(folders)))

    def _find_deepest(self, folder: Parts, rest: Parts) -> ImportTarget:
        """Return the module at a place, or the nearest around it: the last parts may name a member."""
        for count in range(min(len(rest), _DEEPEST), -1, -1):
            for source in _SOURCE_FOLDERS:
                found = self._find_at((*folder, *source, *rest[:count]))
                if found.files:
                    return found
        return ImportTarget()

    def _find_in_package(self, folder: Parts, rest: Parts, suffix: str) -> ImportTarget:
        if suffix == "go":
            return ImportTarget(files=frozenset(self._folders.get((*folder, *rest), ())))
        found = self._find_deepest(folder, rest)
        return found if found.files else ImportTarget(folders=("".join(f"{part}/" for part in folder),))

    def _find_by_tail(self, wanted: Parts, suffix: str) -> ImportTarget:
        """Find modules whose path ends like the import: entirely in Python, by at least two parts elsewhere."""
        places = self._by_last.get(_fold_name(wanted[-1]), ())
        if suffix in _PYTHON:
            matching = [place for place in places if place[-len(wanted) :] == wanted]
            # The start of the import must be no package itself, but a folder that is searched for packages.
            roots = {place: self._files.get(place[: -len(wanted)], ()) for place in matching}
            tops = [place for place in matching if not any(path.endswith("__init__.py") for path in roots[place])]
            return self._make_target(path for place in tops for path in self._files.get(place, ()))
        lengths = {place: _count_common_parts(place, wanted) for place in places}
        longest = max(lengths.values(), default=0)
        best = [place for place, length in lengths.items() if length == longest >= min(len(wanted), 2)]
        return self._make_target(path for e in best for path in [*self._files.get(e, ()), *self._folders.get(e, ())])


def _split_module(module: str) -> Parts:
    return tuple(part for part in _SEPARATOR.split(module) if part)


@lru_cache(maxsize=10_000)
def _fold_name(part: str) -> str:
    return part.replace("_", "").replace("-", "").lower()


def _count_common_parts(place: Parts, wanted: Parts) -> int:
    length = 0
    for one, other in zip(reversed(place), reversed(wanted), strict=False):
        if _fold_name(one) != _fold_name(other):
            break
        length += 1
    return length


def _resolve_rust_path(module: str, importer: PurePosixPath) -> tuple[Parts, Parts]:
    """Resolve `crate`, `super` and `self` from the importing file, and return the remaining parts."""
    place = importer.parent.parts if importer.stem in _FOLDER_FILES else (*importer.parent.parts, importer.stem)
    rest = _split_module(module)
    if rest[0] == "crate":
        place = place[: place.index("src") + 1] if "src" in place else importer.parent.parts
    roots = list(takewhile(_RUST_ROOTS.__contains__, rest))
    return place[: max(len(place) - roots.count("super"), 0)], rest[len(roots) :]


def _resolve_relative(module: str, importer: PurePosixPath, suffix: str) -> Parts:
    """Resolve `./x`, `../x` (JavaScript), `.x` or `..x` (Python) from the importing file."""
    base = list(importer.parent.parts)
    if suffix in _PYTHON:
        name = module.lstrip(".")
        module = "../" * (len(module) - len(name) - 1) + name.replace(".", "/")
    for part in module.split("/"):
        if part == "..":
            del base[-1:]
        elif part not in {"", "."}:
            base.append(part.partition(".")[0])
    return tuple(base)
