"""Which files of a repository an import can mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MANIFESTS = ("go.mod", "package.json", "Cargo.toml")
_NAME_IN_MANIFEST = re.compile(r'^(?:module\s+(\S+)|\s*"name"\s*:\s*"([^"]+)"|name\s*=\s*"([^"]+)")', re.MULTILINE)
_FOLDER_FILES = frozenset({"__init__", "index", "mod", "lib", "main"})  # these stand for their folder
_SOURCE_FOLDERS = ((), ("src",), ("lib",))  # of a package, where its modules lie
_SEPARATOR = re.compile(r"::|[./\\]")
_HERE = frozenset({"", "crate", "self", "super", "@"})

Parts = tuple[str, ...]


def package_name(manifest: str) -> str:
    """The name under which others import the package of a go.mod, package.json or Cargo.toml, or nothing."""
    found = _NAME_IN_MANIFEST.search(manifest)
    return next((group for group in found.groups() if group), "") if found else ""


class Modules:
    """The files of a repository by the modules that they are; `packages` are folders by the names of packages."""

    def __init__(self, paths: Iterable[str], packages: Mapping[str, str]) -> None:
        self._packages = {name: _split(folder) for name, folder in packages.items()}
        self._files: dict[Parts, list[str]] = defaultdict(list)
        self._folders: dict[Parts, list[str]] = defaultdict(list)
        self._by_last: dict[str, set[Parts]] = defaultdict(set)
        for path in paths:
            self._add(path)

    def _add(self, path: str) -> None:
        folder = PurePosixPath(path).parent.parts
        stem = PurePosixPath(path).name.partition(".")[0]
        self._folders[folder].append(path)
        places = {folder, (*folder, stem)} if stem in _FOLDER_FILES else {(*folder, stem)}
        for place in places:
            self._files[place].append(path)
        for place in {*places, folder} - {()}:
            self._by_last[_folded(place[-1])].add(place)

    def files(self, module: str, importer: str) -> frozenset[str]:
        """The files that are a module as a file imports it; none where it comes from outside."""
        if module.startswith("."):
            return self._at(_relative(module, importer))
        if importer.endswith(".rs"):
            module = _rust_path(module, importer, self._files)
        package = max((name for name in self._packages if _is_within(module, name)), key=len, default=None)
        if package is not None:
            return self._in_package(self._packages[package], _split(module[len(package) :]), importer)
        wanted = tuple(part for part in _split(module) if part not in _HERE)
        return self._by_tail(wanted, importer) if wanted else frozenset()

    def below(self, files: Iterable[str]) -> tuple[str, ...]:
        """The folders that modules stand for, as prefixes of paths: what a module hands on mostly lies below it."""
        return tuple(
            f"{PurePosixPath(path).parent}/"
            for path in files
            if PurePosixPath(path).name.split(".")[0] in _FOLDER_FILES
        )

    def _at(self, place: Parts) -> frozenset[str]:
        return frozenset(self._files.get(place, ()))

    def _in_package(self, folder: Parts, rest: Parts, importer: str) -> frozenset[str]:
        if importer.endswith(".go"):
            return frozenset(self._folders.get((*folder, *rest), ()))
        for count in range(len(rest), -1, -1):  # the last parts may name what is in the module
            for source in _SOURCE_FOLDERS:
                found = self._at((*folder, *source, *rest[:count]))
                if found:
                    return found
        prefix = "/".join(folder) + "/"
        return frozenset(path for paths in self._files.values() for path in paths if path.startswith(prefix))

    def _by_tail(self, wanted: Parts, importer: str) -> frozenset[str]:
        """Modules whose path ends like the import: wholly in Python, by two parts at least elsewhere."""
        places = self._by_last.get(_folded(wanted[-1]), ())
        if importer.endswith((".py", ".pyi")):
            matching = {place for place in places if place[-len(wanted) :] == wanted and self._is_top(place, wanted)}
            return frozenset(path for place in matching for path in self._files.get(place, ()))
        lengths = {place: _common_tail(place, wanted) for place in places}
        longest = max(lengths.values(), default=0)
        if longest < min(len(wanted), 2) or importer.endswith(".go"):
            return frozenset()
        best = [place for place, length in lengths.items() if length == longest]
        return frozenset(
            path for place in best for path in [*self._files.get(place, ()), *self._folders.get(place, ())]
        )

    def _is_top(self, place: Parts, wanted: Parts) -> bool:
        """Whether what a Python import starts at is no package itself, but a folder that is searched for packages."""
        root = place[: -len(wanted)]
        return not any(PurePosixPath(path).name == "__init__.py" for path in self._files.get(root, ()))


def _split(module: str) -> Parts:
    return tuple(part for part in _SEPARATOR.split(module) if part)


def _folded(part: str) -> str:
    return part.replace("_", "").replace("-", "").lower()


def _common_tail(place: Parts, wanted: Parts) -> int:
    length = 0
    for one, other in zip(reversed(place), reversed(wanted), strict=False):
        if _folded(one) != _folded(other):
            break
        length += 1
    return length


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith((f"{package}/", f"{package}::"))


def _rust_path(module: str, importer: str, files: Mapping[Parts, object]) -> str:
    """`super::x` and `self::x` from the importing file, `crate::x` from the folder that its crate begins in."""
    first, _, rest = module.partition("::")
    here = PurePosixPath(importer)
    own = here.parent.parts if here.stem in _FOLDER_FILES else (*here.parent.parts, here.stem)
    if first == "crate":
        own = own[: own.index("src") + 1] if "src" in own else own[:1]
    elif first == "super":
        own = own[:-1]
    elif first != "self":
        return module
    while rest.startswith("super"):
        own, rest = own[:-1], rest.partition("::")[2]
    parts = (*own, *_split(rest))
    while len(parts) > len(own) and parts not in files:
        parts = parts[:-1]
    return "./" + "/".join(parts) if False else "::".join(parts)


def _relative(module: str, importer: str) -> Parts:
    """The place that `./x`, `../x` (JavaScript), `.x` or `..x` (Python) means, seen from the importing file."""
    base = list(PurePosixPath(importer).parent.parts)
    if "/" not in module and set(module) != {"."}:
        dots = len(module) - len(module.lstrip("."))
        module = "../" * (dots - 1) + module.lstrip(".").replace(".", "/")
    elif importer.endswith((".py", ".pyi")):
        module = "../" * (len(module) - 1)
    for part in module.split("/"):
        if part == "..":
            base = base[:-1]
        elif part not in ("", "."):
            base = [*base, part.partition(".")[0]]
    return tuple(base)
