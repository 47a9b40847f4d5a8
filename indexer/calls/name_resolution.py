"""Resolves a use of a name to the definitions that it can mean, as far as the syntax tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from indexer.text.languages import find_language_by_ending
from indexer.types import Definition, Reference

TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
SELF = frozenset({"self", "cls", "this", "Self", "@", "$this", "static"})
SUPER = frozenset({"super", "super()", "parent", "base"})
_MAX_NAMESAKES = 20  # beyond this many candidates an object of unknown class says nothing

# Where a bare name in a class may mean its member, and where a type's members may be in several files.
_IMPLICIT_SELF = frozenset({"jvm", "c", "csharp", "ruby", "swift", "dart", "solidity"})
# Where functions and members are one: a module's is called on an object, or `Base.show` by its bare name.
_FUNCTIONS_AS_MEMBERS = frozenset({"perl", "fortran", "julia"})
_SPREAD = frozenset({"go", "rust", "c", "csharp", "ruby", "swift"})
# Where a bare name must be defined in the file or imported.
_STRICT = frozenset({"python", "script", "rust"})

# Members that objects of the standard libraries have: a definition of such a name is seldom the one that is meant.
_EVERYDAY = frozenset(
    """addAll addEventListener appendChild as_bytes as_mut as_ref as_slice as_str charAt charCodeAt compareTo
    containsKey containsValue copy_from_slice createElement each_with_index emplace_back ends_with endsWith entrySet
    flat_map flatMap forEach from_bytes from_iter get_mut getBytes getClass getMessage getName getOrDefault
    hasNext hasOwnProperty hashCode indexOf into_iter is_empty is_err is_none is_ok is_some isEmpty isinstance
    isPresent iter_mut keySet lastIndexOf map_err ok_or orElse parseInt pop_back popitem printStackTrace push_back
    push_str putAll querySelector read_line read_text readLine removeAll removeprefix removesuffix setdefault
    splitlines starts_with startsWith startswith stringValue toArray toList toLowerCase toString
    toUpperCase to_owned to_s to_string to_vec trimEnd trimStart unwrap_or unwrap_or_else write_all write_text
    writeln""".split()
)
_SEPARATORS = re.compile(r"\.|::|->|\\")
_WORDS_JOINED = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]")

Lineage = tuple[Definition, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportSource:
    """The source of an imported name.

    `name` is its name there, empty for a whole module; `files` are those that may define it, none
    for an external name; `below` are folders that the module may re-export it from.
    """

    name: str
    files: frozenset[str]
    below: tuple[str, ...] = ()

    @property
    def is_outside(self) -> bool:
        """Whether the name can only be external."""
        return not self.files and not self.below


@dataclass(frozen=True, kw_only=True, slots=True)
class UseSite:
    """One use of a name, and the known parts of it.

    `named` is the file's import of the name, `qualified` that of its qualifier; None without one.
    `lineages` are the possible classes of the receiver, each followed by its base classes in lookup
    order: none for an external class, None if unknown. A bare name's receiver is the surrounding
    object in languages that omit it.
    """

    path: str
    use: Reference
    named: tuple[ImportSource, ...] | None = None
    qualified: tuple[ImportSource, ...] | None = None
    lineages: tuple[Lineage, ...] | None = None

    @property
    def qualifier(self) -> str:
        """Return the qualifier of the name, without call brackets."""
        return self.use.qualifier.removesuffix("()").removesuffix("?")

    @property
    def original_name(self) -> str:
        """The name at its definition."""
        names = {source.name for source in self.named or () if source.name}
        return names.pop() if len(names) == 1 else self.use.name

    @property
    def owner(self) -> str:
        """The last name of the qualifier."""
        return _SEPARATORS.split(self.qualifier)[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolution:
    """The definitions that a use may mean, none for an external name.

    It is ambiguous if the syntax leaves several, or cannot exclude an external one, and a guess if
    the receiver's class would say more.
    """

    targets: tuple[Definition, ...]
    is_ambiguous: bool = False
    is_guess: bool = False


_NOTHING = Resolution(targets=())
_NO_GUESS = Resolution(targets=(), is_guess=True)


def find_language_family(path: str) -> str:
    """Name the languages that can share definitions with a file."""
    suffix = path.rpartition(".")[2].lower()
    language = find_language_by_ending(suffix)
    return language.family or language.name if language else suffix


def has_implicit_self(path: str) -> bool:
    """Whether a bare name in a class of this file may mean a member."""
    return find_language_family(path) in _IMPLICIT_SELF


def group_by_language(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    """Group definitions of one name by the languages that share them; a class stands for its constructors."""
    found = [definition for definition in definitions if definition.symbol.kind != "module"]
    types = {
        (definition.path, definition.symbol.qualified_name)
        for definition in found
        if definition.symbol.kind in TYPE_KINDS
    }
    grouped: dict[str, list[Definition]] = {}
    for definition in found:
        if (definition.path, definition.symbol.parent) not in types:
            grouped.setdefault(find_language_family(definition.path), []).append(definition)
    return grouped


def resolve_name(site: UseSite, candidates: Sequence[Definition]) -> Resolution:
    """Choose the possible definitions of a name's use, in the languages of the file.

    A qualified name is a member of its receiver's class, of the qualifier's class or module, or of
    any class. A bare name is defined or imported in its file, is a member of the enclosing class,
    or has only one definition.
    """
    for choose in _QUALIFIED if site.use.qualifier else _BARE:
        resolution = choose(site, candidates) if candidates else None
        if resolution is not None:
            return resolution
    return _NOTHING


def _make_resolution(
    targets: Iterable[Definition], *, is_ambiguous: bool = False, is_guess: bool = False
) -> Resolution:
    """Make the resolution; of overloads, stubs and conditional definitions of one name, the longest represents all."""
    longest: dict[tuple[str, str], Definition] = {}
    for definition in targets:
        key = (definition.path, definition.symbol.qualified_name)
        if key not in longest or _count_lines(definition) > _count_lines(longest[key]):
            longest[key] = definition
    is_ambiguous = is_ambiguous or len(longest) > 1
    return Resolution(targets=tuple(longest.values()), is_ambiguous=is_ambiguous, is_guess=is_guess or is_ambiguous)


def _count_lines(definition: Definition) -> int:
    return definition.symbol.end_line - definition.symbol.start_line


def _resolve_by_lineage(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve to a member of the receiver's class, or of its nearest base class with that member."""
    if site.lineages is None:
        return None
    found = [member for lineage in site.lineages for member in find_inherited(lineage, candidates)]
    if found:
        return _make_resolution(found)
    if site.use.qualifier in SELF or any(
        definition.symbol.kind == "type" for line in site.lineages for definition in line
    ):
        return None  # a subclass or the type behind an alias may have it
    return _NOTHING


def find_inherited(lineage: Lineage, candidates: Sequence[Definition]) -> Sequence[Definition]:
    """Return the candidates at which lookup along a line of classes ends."""
    for ancestor in lineage:
        members = _find_members(ancestor, candidates)
        if members:
            return members
    return []


def _find_members(owner: Definition, candidates: Sequence[Definition]) -> Sequence[Definition]:
    own = [definition for definition in candidates if definition.symbol.parent == owner.symbol.qualified_name]
    here = [definition for definition in own if definition.path == owner.path]
    if here or find_language_family(owner.path) not in _SPREAD:
        return here
    return _select_beside(owner.path, own) or own


def _select_beside(path: str, candidates: Sequence[Definition]) -> Sequence[Definition]:
    folder = PurePosixPath(path).parent
    return [definition for definition in candidates if PurePosixPath(definition.path).parent == folder]


def _resolve_on_self(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve `self.save()` to the member of the surrounding object, which need not be a class in every language."""
    if site.use.qualifier in SUPER:
        return _NO_GUESS
    if site.use.qualifier not in SELF:
        return None
    scopes = _list_enclosing_scopes(site.use.scope) - {""}
    own = [
        definition for definition in candidates if definition.path == site.path and definition.symbol.parent in scopes
    ]
    return _make_resolution(own[:1]) if own else _resolve_in_any_class(site, candidates)


def _resolve_in_class(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve `Session.send()` to the member of the class of that name, the nearest one if there are several."""
    named = [definition for definition in candidates if _share_end(site.qualifier, definition.symbol.parent)]
    if not named:
        return None
    files = {file for source in site.qualified or () for file in source.files}
    here = [definition for definition in named if definition.path == site.path]
    return _make_resolution(
        here
        or [definition for definition in named if definition.path in files]
        or _select_beside(site.path, named)
        or named
    )


def _share_end(qualifier: str, parent: str) -> bool:
    """Whether a qualifier and a class or module end alike, as far as both say where they are."""
    pairs = list(zip(reversed(_SEPARATORS.split(qualifier)), reversed(parent.split(".")), strict=False))
    return all(one == other for one, other in pairs)


def _resolve_in_module(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve `sessions.send()` to a name that the module defines or re-exports; nothing for an external one."""
    if site.qualified is None:
        return None
    free = [definition for definition in candidates if definition.symbol.kind != "method"]
    found = _select_from_sources(site.qualified, free)
    if found:
        return _make_resolution(found)
    is_known_object = any(source.name and not source.is_outside for source in site.qualified)
    return None if is_known_object else _NOTHING


def _select_from_sources(sources: Sequence[ImportSource], candidates: Sequence[Definition]) -> Sequence[Definition]:
    files = {file for source in sources for file in source.files}
    found = [definition for definition in candidates if definition.path in files]
    below = tuple(folder for source in sources for folder in source.below)
    return found or [definition for definition in candidates if definition.path.startswith(below)]


def _resolve_in_any_class(site: UseSite, candidates: Sequence[Definition]) -> Resolution:
    """Resolve on an object of unknown class: a member of any class will do, a free function will not.

    It is certain if the object is named after the class, or if the only member of that name has a
    more distinctive one than `add` or `toString`.
    """
    symbols = [(definition, definition.symbol) for definition in candidates]
    is_member = find_language_family(site.path) in _FUNCTIONS_AS_MEMBERS
    # Kotlin and Swift call a function on what its signature names before it.
    members = [
        definition
        for definition, symbol in symbols
        if is_member
        or symbol.kind == "method"
        or (symbol.kind == "function" and f".{symbol.name}(" in symbol.signature)
    ]
    owner = _fold_symbol(site.owner)
    namesakes = [
        definition
        for definition in members
        if owner and _fold_symbol(definition.symbol.parent.rpartition(".")[2]) == owner
    ]
    if len({(definition.path, definition.symbol.parent) for definition in namesakes}) == 1:
        return _make_resolution(namesakes, is_guess=True)
    if len(members) > _MAX_NAMESAKES:
        return _NO_GUESS
    is_distinctive = site.use.name not in _EVERYDAY and _WORDS_JOINED.search(site.use.name) is not None
    return _make_resolution(members, is_ambiguous=not is_distinctive or site.use.qualifier in SELF)


def _fold_symbol(name: str) -> str:
    return name.replace("_", "").lstrip("@$").lower()


def _resolve_in_file(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve to the innermost visible definition of the file; an import precedes a mere constant."""
    scopes = _list_enclosing_scopes(site.use.scope)
    here = [
        definition for definition in candidates if definition.path == site.path and definition.symbol.parent in scopes
    ]
    if not has_implicit_self(site.path):
        here = [definition for definition in here if definition.symbol.kind != "method"]
    if site.named is not None:
        here = [definition for definition in here if definition.symbol.kind != "constant"]
    depth = max((len(definition.symbol.parent) for definition in here), default=0)
    return (
        _make_resolution(definition for definition in here if len(definition.symbol.parent) == depth) if here else None
    )


def _resolve_imported(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve a name that the file imports; nothing for an external one."""
    if site.named is None:
        return None
    found = _select_from_sources(
        site.named, [definition for definition in candidates if definition.symbol.kind != "method"]
    )
    if found or all(source.is_outside for source in site.named):
        return _make_resolution(found)
    return None


def _resolve_on_object_around(site: UseSite, candidates: Sequence[Definition]) -> Resolution | None:
    """Resolve to a member that the surrounding class inherits, in languages that omit `this`."""
    if not has_implicit_self(site.path):
        return None
    found = [member for lineage in site.lineages or () for member in find_inherited(lineage, candidates)]
    return _make_resolution(found) if found else None


def _resolve_only_one(site: UseSite, candidates: Sequence[Definition]) -> Resolution:
    """Resolve to a definition that is no member, next to the use if possible; strict languages have none."""
    own = find_language_family(site.path)
    is_member = own in _FUNCTIONS_AS_MEMBERS
    free = [definition for definition in candidates if is_member or definition.symbol.kind != "method"]
    if own in _STRICT and site.named is None:
        free = [definition for definition in free if definition.symbol.kind == "macro"]
    if own in {"python", "script", "go"}:
        free = [definition for definition in free if not definition.symbol.parent]  # others are local to a function
    near = _select_beside(site.path, free)
    chosen = near if near or own == "go" else free
    if len(chosen) > _MAX_NAMESAKES:
        return _NO_GUESS
    return _make_resolution(chosen, is_guess=own in _IMPLICIT_SELF)


def _list_enclosing_scopes(scope: str) -> frozenset[str]:
    """Return a scope and all scopes around it, including the module's (empty)."""
    parts = scope.split(".") if scope else []
    return frozenset(".".join(parts[:count]) for count in range(len(parts) + 1))


_QUALIFIED = (_resolve_by_lineage, _resolve_on_self, _resolve_in_class, _resolve_in_module, _resolve_in_any_class)
_BARE = (_resolve_in_file, _resolve_imported, _resolve_on_object_around, _resolve_only_one)
