"""Infers the possible classes of a receiver from text and signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from indexer.calls.generation_view import BLANK, GenerationView
from indexer.calls.name_resolution import (
    SELF,
    SUPER,
    TYPE_KINDS,
    ImportSource,
    Lineage,
    UseSite,
    find_inherited,
    has_implicit_self,
    resolve_name,
)
from indexer.calls.receivers import (
    ChainStep,
    TypeHint,
    is_any_type,
    is_literal,
    parse_result_type,
    parse_type_names,
    split_chain,
)
from indexer.types import Definition, Reference

_DEEPEST = 6  # variables, fields and functions that lead from one to the next
_MAX_ANCESTORS = 24
_MAX_PATH = 4  # names of a chain that may be modules or classes
_SAYS_NOTHING = frozenset({"None", "null", "nil", "undefined", "NULL", "nullptr"})
_PLAIN_TYPES = frozenset(
    "str int float bool bytes dict list set tuple frozenset complex string byte rune error number boolean char long "
    "double short usize isize u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 chan map type".split()
)

Lineages = tuple[Lineage, ...] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopedLine:
    """A line of a file with its surrounding definition."""

    path: str
    line: int
    scope: str


class TypeInference:
    """Classes of receivers: their own class first, then its bases in lookup order."""

    def __init__(self, view: GenerationView) -> None:
        self._view = view
        self._lineages: dict[tuple[str, str], Lineage] = {}
        self._surroundings: dict[tuple[str, str], Lineages] = {}
        self._fields: dict[tuple[str, str, str], Lineages] = {}
        self._followed: dict[tuple[str, TypeHint], Lineages] = {}

    def receivers(self, path: str, use: Reference) -> Lineages:
        """Return the possible classes of a use's receiver: none for an external one, None if unknown."""
        place = ScopedLine(path=path, line=use.line, scope=use.scope)
        if not use.qualifier:
            return self._find_around(place) if has_implicit_self(path) else None
        if use.qualifier in SUPER:
            return self._find_bases_around(place)
        return self._infer_value(use.qualifier, place, _DEEPEST)

    def find_overridden(self, method: Definition) -> frozenset[Definition]:
        """Find the definitions of a method's name in the base classes of its class."""
        place = ScopedLine(path=method.path, line=method.symbol.start_line, scope=method.symbol.parent)
        namesakes = self._view.definitions(method.symbol.name, method.path)
        bases = self._find_bases_around(place) if method.symbol.kind == "method" else None
        return frozenset(
            one for lineage in bases or () for base in lineage for one in find_inherited((base,), namesakes)
        )

    def site(self, path: str, use: Reference) -> UseSite:
        """Resolve a use by the imports of its file."""
        if not use.qualifier:
            return UseSite(path=path, use=use, named=self._view.find_sources(path, use.name))
        qualified = self._view.find_qualifier_sources(path, use.qualifier)
        qualified = qualified or self._view.find_declared_module(path, use)
        return UseSite(path=path, use=use, qualified=qualified)

    def _find_around(self, place: ScopedLine) -> Lineages:
        """Return the class around a place."""
        key = (place.path, place.scope)
        if key not in self._surroundings:
            self._surroundings[key] = self._find_class_around(place)
        return self._surroundings[key]

    def _find_bases_around(self, place: ScopedLine) -> Lineages:
        """Return the base classes of the class around a place; none if they are external."""
        around = self._find_around(place)
        return None if around is None else tuple(each[1:] for each in around if each[1:])

    def _find_class_around(self, place: ScopedLine) -> Lineages:
        parts = place.scope.split(".")
        for count in range(len(parts), 0, -1):
            scope = ".".join(parts[:count])
            for symbol in self._view.symbols(place.path):
                if symbol.qualified_name == scope and symbol.kind in TYPE_KINDS:
                    return (self._find_lineage(Definition(path=place.path, symbol=symbol)),)
        if len(parts) > 1:
            classes = self._find_classes(parts[-2], place)
            return tuple(self._find_lineage(definition) for definition in classes) or None
        return None

    def _find_lineage(self, definition: Definition) -> Lineage:
        """Return a class and its bases, nearest first."""
        key = (definition.path, definition.symbol.qualified_name)
        if key not in self._lineages:
            found = [definition]
            for each in found:
                if len(found) > _MAX_ANCESTORS:
                    break
                place = ScopedLine(path=each.path, line=each.symbol.start_line, scope=each.symbol.parent)
                for base in self._view.bases(each):
                    name = f"{base.qualifier}.{base.name}" if base.qualifier else base.name
                    found += [new for new in self._find_classes(name, place) if new not in found]
            self._lineages[key] = tuple(found)
        return self._lineages[key]

    def _find_classes(self, name: str, place: ScopedLine) -> Sequence[Definition]:
        """Return the classes that a type's name means at a place."""
        qualifier, _, plain = re.sub(r"::|\\", ".", name).rpartition(".")
        types = [
            definition
            for definition in self._view.definitions(plain, place.path)
            if definition.symbol.kind in TYPE_KINDS
        ]
        if not types:
            return ()
        use = Reference(name=plain, qualifier=qualifier, kind="inherit", line=place.line, scope=place.scope)
        return resolve_name(self.site(place.path, use), types).targets

    def _resolve_type(self, text: str, place: ScopedLine) -> Lineages:
        """Return the classes that a type expression allows."""
        names = parse_type_names(text)
        found: list[Lineage] = []
        for name in names:
            classes = self._find_classes(name, place)
            found += [self._find_lineage(definition) for definition in classes]
            if not classes and not self._is_outside(name, place):
                return None
        return tuple(found) if names else None

    def _is_outside(self, name: str, place: ScopedLine) -> bool:
        plain = re.split(r"\.|::|\\", name)[-1]
        if is_any_type(plain) or self._view.definitions(plain, place.path):
            return False
        known = plain[:1].isupper() or plain in _PLAIN_TYPES or plain.endswith("[]")
        return known or self._view.find_qualifier_sources(place.path, name) is not None

    def _infer_value(self, text: str, place: ScopedLine, depth: int) -> Lineages:
        """Infer the classes of an expression's value."""
        if is_literal(text):
            return ()
        chain = split_chain(text)
        if not chain or depth <= 0:
            return None
        lineages, rest = self._infer_beginning(chain, place, depth)
        for step in rest:
            if not lineages:
                return lineages
            lineages = self._infer_member(lineages, step, depth)
        return lineages

    def _infer_beginning(
        self, chain: Sequence[ChainStep], place: ScopedLine, depth: int
    ) -> tuple[Lineages, Sequence[ChainStep]]:
        """Infer the beginning of a chain (an object, a class, a member of a module), and return its steps."""
        first, rest = chain[0], chain[1:]
        if first.name in SELF:
            return self._find_around(place), rest
        if first.name in SUPER:
            return self._find_bases_around(place), rest
        for count in range(min(len(chain), _MAX_PATH), 0, -1):
            if not any(step.is_called for step in chain[: count - 1]):
                known = self._infer_static(chain[:count], place)
                if known is not None:
                    return known, chain[count:]
        return self._infer_object(first, place, depth), rest

    def _infer_static(self, path: Sequence[ChainStep], place: ScopedLine) -> Lineages:
        """Infer the type of a path of names that is a class, or a call of a function."""
        qualifier, last = ".".join(step.name for step in path[:-1]), path[-1]
        classes = self._find_classes(f"{qualifier}.{last.name}".removeprefix("."), place)
        if classes:
            return tuple(self._find_lineage(definition) for definition in classes)
        if not last.is_called:
            return None
        use = Reference(name=last.name, qualifier=qualifier, kind="call", line=place.line, scope=place.scope)
        functions = [
            definition
            for definition in self._view.definitions(last.name, place.path)
            if definition.symbol.kind == "function"
        ]
        return _unite(
            [
                self._infer_return_type(definition, None)
                for definition in resolve_name(self.site(place.path, use), functions).targets
            ]
        )

    def _infer_object(self, step: ChainStep, place: ScopedLine, depth: int) -> Lineages:
        """Infer the type of a variable, an imported object, or a field of the class around."""
        if step.is_called or step.name in _SAYS_NOTHING:
            return None
        nearest = next(self._find_visible_clues(step.name, place), None)
        if nearest is not None:
            known = self._follow_clue(
                nearest, ScopedLine(path=place.path, line=nearest.line, scope=place.scope), depth - 1
            )
            if known is not None:
                return known
        sources = self._view.find_qualifier_sources(place.path, step.name)
        if sources is not None:
            return () if all(each.is_outside for each in sources) else self._infer_imported_variable(sources, depth)
        if step.name[:1].isupper() and self._is_outside(step.name, place):
            return ()
        lineages = self._find_around(place) if has_implicit_self(place.path) or step.name.startswith("@") else None
        return self._infer_member(lineages, ChainStep(name=step.name, is_called=False), depth) if lineages else None

    def _infer_imported_variable(self, sources: Sequence[ImportSource], depth: int) -> Lineages:
        """Infer the type of a variable from the modules that it is imported from."""
        for source in sources:
            for file in sorted(source.files):
                for clue in self._view.clues(file, source.name) if source.name else ():
                    if self._view.measure_indents(file)[clue.line - 1] == 0:
                        return self._follow_clue(clue, ScopedLine(path=file, line=clue.line, scope=""), depth - 1)
        return None

    def _infer_return_type(self, function: Definition, owner: Lineage | None) -> Lineages:
        text = parse_result_type(function.symbol.name, function.symbol.signature, function.path.rpartition(".")[2])
        if owner and text.strip(" &*\"'").removeprefix("mut ") in {"Self", "self", "this", "static"}:
            return (owner,)
        place = ScopedLine(path=function.path, line=function.symbol.start_line, scope=function.symbol.parent)
        return self._resolve_type(text, place) if text else None

    def _infer_member(self, lineages: tuple[Lineage, ...], step: ChainStep, depth: int) -> Lineages:
        """Infer the classes of a field, or of a method's result."""
        results: list[Lineages] = []
        for lineage in lineages:
            members = find_inherited(lineage, self._view.definitions(step.name, lineage[0].path))
            if members:
                results.append(_unite([self._infer_return_type(definition, lineage) for definition in members]))
            elif step.name == "new":
                results.append((lineage,))
            else:
                results.append(None if step.is_called else self._infer_field(lineage, step.name, depth - 1))
        return _unite(results)

    def _infer_field(self, lineage: Lineage, name: str, depth: int) -> Lineages:
        """Infer the type of a field from the text of its class, or of its bases."""
        key = (lineage[0].path, lineage[0].symbol.qualified_name, name)
        if key not in self._fields:
            self._fields[key] = None  # a field's type cannot come from the field itself
            self._fields[key] = self._search_lineage(lineage, name, depth)
        return self._fields[key]

    def _search_lineage(self, lineage: Lineage, name: str, depth: int) -> Lineages:
        for owner in lineage:
            known = []
            for clue in self._find_field_clues(owner, name):
                scope = self._find_scope(owner.path, clue.line) or owner.symbol.qualified_name
                known.append(self._follow_clue(clue, ScopedLine(path=owner.path, line=clue.line, scope=scope), depth))
            certain = [each for each in known if each is not None]
            if certain:
                return _unite(certain)
        return None

    def _find_field_clues(self, owner: Definition, name: str) -> Iterator[TypeHint]:
        """Find clues to a field within a class; those to the bare name only if its fields are listed."""
        first, last = owner.symbol.start_line, owner.symbol.end_line
        own = owner.symbol.qualified_name
        promoting = {own, f"{own}.constructor", f"{own}.__construct"}
        for spelling in (f"self.{name}", f"this.{name}", f"@{name}", name):
            if spelling.startswith("@") and not owner.path.endswith(".rb"):
                continue
            for clue in self._view.clues(owner.path, spelling.replace("@@", "@")):
                if not first <= clue.line <= last:
                    continue
                listing = promoting if clue.is_promoted else {own}
                if spelling != name or self._find_scope(owner.path, clue.line) in listing:
                    yield clue

    def _find_scope(self, path: str, line: int) -> str:
        around = [
            each
            for each in self._view.symbols(path)
            if each.start_line <= line <= each.end_line and each.kind != "constant"
        ]
        return around[-1].qualified_name if around else ""

    def _follow_clue(self, clue: TypeHint, place: ScopedLine, depth: int) -> Lineages:
        key = (place.path, clue)
        if key not in self._followed:
            self._followed[key] = None
            if clue.kind == "type" and depth > 0:
                self._followed[key] = self._resolve_type(clue.text, place)
            elif clue.kind == "value" and depth > 0:
                self._followed[key] = self._infer_value(clue.text, place, depth - 1)
        return self._followed[key]

    def _find_visible_clues(self, name: str, place: ScopedLine) -> Iterator[TypeHint]:
        """Sort clues by nearness: enclosing blocks, then the rest of the function, then globals."""
        clues = self._view.clues(place.path, name)
        indents = self._view.measure_indents(place.path) if clues else []
        before = [each for each in clues if each.line <= place.line]
        function = self._view.find_spanning(place.path, place.scope, place.line)
        start = function.start_line if function else place.line
        hidden = []
        inner, seen = BLANK, place.line
        for clue in reversed(before):
            inner, seen = min(inner, *indents[clue.line : seen], BLANK), clue.line
            own = indents[clue.line - 1]
            if inner > own or (inner == own and not clue.is_parameter):
                yield clue
            elif clue.line >= start:
                hidden.append(clue)
        yield from hidden
        yield from (each for each in clues if each.line > place.line and indents[each.line - 1] == 0)


def _unite(results: Sequence[Lineages]) -> Lineages:
    """Unite the classes of several results; unknown if one of them is."""
    if not results or any(each is None for each in results):
        return None
    return tuple(dict.fromkeys(lineage for each in results for lineage in each or ()))
