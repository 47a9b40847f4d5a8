"""The sub-folders and modules of a folder, and their imports, as a graph to draw."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent import CodeSearch
from bot.errors import NothingToDraw
from bot.markdown import to_one_line
from bot.pictures.flow import Flow, FlowBox, FlowLine
from bot.pictures.layered_layout import mark_implied, order_boxes
from indexer import FileEntry, FileImport, Location

_MAX_NEAR = 3
_LONGEST = 200
_WHOLE = frozenset({"", ".", "/"})


def find_folder(named: str, folders: Iterable[str], *, files: Iterable[str], repository: str) -> str:
    """Find a folder by its path or the end of it; empty for the whole repository.

    `NothingToDraw` lists the alternatives if there is none, or several.
    """
    wanted = named.strip("`'\"").removeprefix("./").strip("/")[:_LONGEST]
    if named in _WHOLE or wanted in _WHOLE:
        return ""
    known = [*folders]
    if wanted in known:
        return wanted
    found = [each for each in known if f"/{each}".lower().endswith(f"/{wanted}".lower())]
    if len(found) == 1:
        return found[0]
    raise NothingToDraw(_explain(wanted, found, known, files, repository))


def _explain(wanted: str, found: Sequence[str], known: Sequence[str], files: Iterable[str], repository: str) -> str:
    shown = _quote(wanted)
    if found:
        return f"Several folders of {_quote(repository)} are called {shown}: {_list(found)}. Write more of the path."
    if any(path == wanted or path.endswith(f"/{wanted}") for path in files):
        return f"{shown} is a file of {_quote(repository)}. Name its folder."
    by_name = {each.rpartition("/")[2].lower(): each for each in reversed(known)}
    names = difflib.get_close_matches(wanted.rpartition("/")[2].lower(), by_name, n=_MAX_NEAR)
    near = [by_name[name] for name in names] or difflib.get_close_matches(wanted, known, n=_MAX_NEAR)
    if near:
        return f"There is no folder {shown} in {_quote(repository)}. The nearest: {_list(near)}."
    tops = sorted(each for each in known if "/" not in each)
    hint = f" It has {_list(tops)}." if tops else ""
    return f"There is no folder {shown} in {_quote(repository)}.{hint}"


def _list(folders: Sequence[str]) -> str:
    more = f" and {len(folders) - 8} more" if len(folders) > 8 else ""
    return ", ".join(map(_quote, folders[:8])) + more


def _quote(name: str) -> str:
    return f"`{to_one_line(name).replace('`', '')}`"


_MAX_OUTSIDE = 4  # boxes for users of the folder, and as many for its dependencies
_MAX_LINES = 25  # that are drawn
_MANY_LINES, _FEW_LINES = 1.4, 16  # for each box, and in all: of more, those that others imply are not drawn
# Imports for the type checker alone: below such a line in Python, or on it in TypeScript.
_FOR_TYPES = r"^\s*if (typing\.)?TYPE_CHECKING\b|^\s*(import|export) type\b"
_MAX_FOR_TYPES = 5_000


async def map_modules(code: CodeSearch, named: str) -> Flow:
    """Draw the imports among the parts of a folder, or of the whole repository.

    Tests count only if the folder has nothing else; type-checking imports do not count. `NothingToDraw` if there is no
    such folder, or if it has no internal imports.
    """
    entries = {entry.path: entry for entry in await code.files()}
    folder = find_folder(named, await code.folders(), files=entries, repository=code.repository)
    for_types = await _find_type_imports(code)
    imports = [
        each
        for each in await code.list_file_imports()
        if {each.path, *each.targets} <= entries.keys() and (each.path, each.line) not in for_types
    ]
    folder = _descend(folder, [each for each in imports if entries[each.path].source_type != "test"] or imports)
    found = _ModuleMap(code, folder, entries)
    found.add_imports(imports)
    return found.make_flow()


async def _find_type_imports(code: CodeSearch) -> set[tuple[str, int]]:
    """Find the lines that only a type checker reads, with their files."""
    found: set[tuple[str, int]] = set()
    for match in (await code.grep(_FOR_TYPES, limit=_MAX_FOR_TYPES)).lines:
        path, start = match.location.path, match.location.start_line
        found.add((path, start))
        if "TYPE_CHECKING" in match.text:
            depth = _measure_indent(match.text)
            for number, line in enumerate((await code.read(path, start + 1)).text.split("\n"), start + 1):
                if line.strip() and _measure_indent(line) <= depth:
                    break
                found.add((path, number))
    return found


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _descend(folder: str, imports: Sequence[FileImport]) -> str:
    """Descend into a folder while all imports are within a single sub-folder."""
    paths = {*(each.path for each in imports), *(target for each in imports for target in each.targets)}
    while True:
        parts = {_find_part(path, folder) for path in paths if _lies_in(path, folder)}
        if len(parts) != 1 or not next(iter(parts)).endswith("/"):
            return folder
        folder = parts.pop().rstrip("/")


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _find_part(path: str, folder: str) -> str:
    """Return the path of the part of a folder that contains a file; that of a sub-folder ends with a slash."""
    start = len(folder) + 1 if folder else 0
    end = path.find("/", start)
    return path if end < 0 else path[: end + 1]


@dataclass(kw_only=True, slots=True)
class _Edge:
    """The imports of one part from another: importing files with their targets, and whether all are certain."""

    imports: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    is_certain: bool = False


class _ModuleMap:
    """The parts of one folder and the imports between them."""

    def __init__(self, code: CodeSearch, folder: str, entries: Mapping[str, FileEntry]) -> None:
        self._code = code
        self._folder = folder
        self._entries = entries
        self._edges: defaultdict[tuple[str, str], _Edge] = defaultdict(_Edge)
        self._together: dict[str, str] = {}  # modules that are always imported together, each with the first of them
        inner = [entry for path, entry in entries.items() if _lies_in(path, folder)]
        self._has_code = any(entry.source_type == "code" for entry in inner)
        self._counts = Counter(_find_part(entry.path, folder) for entry in inner)
        kind = "code" if self._has_code else "test"
        self._parts = {_find_part(entry.path, folder) for entry in inner if entry.source_type == kind}
        self._outside: defaultdict[str, set[str]] = defaultdict(set)

    def add_imports(self, imports: Sequence[FileImport]) -> None:
        """Add the imports of files; a module of several files, as in Go or C, becomes one part."""
        for each in imports:
            inner = [
                module
                for module in [target for target in each.targets if _find_part(target, self._folder) == target]
                if _lies_in(module, self._folder)
            ]
            firsts = {self._find_first(module) for module in inner}
            for first in firsts:
                self._together[first] = min(firsts)
        for each in imports:
            if not (self._has_code and self._entries[each.path].source_type == "test"):
                self._add(each)

    def _find_first(self, module: str) -> str:
        while (first := self._together.get(module, module)) != module:
            module = first
        return module

    def _add(self, each: FileImport) -> None:
        source = self._name(each.path, is_user=True)
        targets = {self._name(target, is_user=False) for target in each.targets}
        is_inner = _lies_in(each.path, self._folder)
        if source in targets or not (is_inner or any(_lies_in(target, self._folder) for target in each.targets)):
            return
        for target in targets:
            if is_inner or not target.startswith("\0"):
                edge = self._edges[source, target]
                edge.imports.add((each.path, each.targets))
                edge.is_certain |= len(targets) == 1
                for path, key in ((each.path, source), *((path, target) for path in each.targets)):
                    if key.startswith("\0"):
                        self._outside[key].add(path)

    def _name(self, path: str, *, is_user: bool) -> str:
        """Return the key of the box that a file belongs to."""
        if _lies_in(path, self._folder):
            return self._find_first(_find_part(path, self._folder))
        around = self._folder
        while around and not _lies_in(path, around):
            around = around.rpartition("/")[0]
        place = f"the rest of {around}/" if around else _find_part(path, "")
        return f"\0{'uses' if is_user else 'used'}\0{place}"

    def make_flow(self) -> Flow:
        """Return the map, users first; pictures show the heaviest lines, those inside first."""
        lines = [
            FlowLine(source=source, target=target, weight=len(edge.imports), is_dashed=not edge.is_certain)
            for (source, target), edge in self._edges.items()
        ]
        if all(map(_is_outside, lines)):
            raise NothingToDraw(self._explain_nothing())
        shown = {key for line in lines for key in (line.source, line.target)}
        keys = order_boxes(sorted(shown, key=_sort_outside), lines)
        if len(lines) > max(_FEW_LINES, _MANY_LINES * len(shown)):
            lines = mark_implied(lines)
        kept = self._choose_lines([line for line in lines if not line.is_only_listed])
        place = {key: number for number, key in enumerate(keys)}
        lines = [replace(line, is_only_listed=(line.source, line.target) not in kept) for line in lines]
        lines.sort(key=lambda line: (place[line.source], -line.weight, place[line.target]))
        named = f"{self._folder}/ in " if self._folder else ""
        flow = Flow(
            title=f"The architecture of {named}{self._code.repository} at {self._code.commit.sha[:7]}",
            verb="imports",
            boxes=[self._make_box(key) for key in keys],
            lines=lines,
        )
        return replace(flow, legend=self._write_legend(flow))

    def _choose_lines(self, lines: Sequence[FlowLine]) -> set[tuple[str, str]]:
        """Choose the lines to draw: limited in number, with few boxes outside the folder."""
        weights: dict[str, Counter[str]] = {"uses": Counter(), "used": Counter()}
        for line in filter(_is_outside, lines):
            for key in (line.source, line.target):
                if key.startswith("\0"):
                    weights[key[1:5]][key] += line.weight
        near = {key for role in weights.values() for key, _ in role.most_common(_MAX_OUTSIDE)}
        kept = [
            line for line in lines if all(key in near or not key.startswith("\0") for key in (line.source, line.target))
        ]
        kept.sort(key=lambda line: (_is_outside(line), -line.weight))
        return {(line.source, line.target) for line in kept[:_MAX_LINES]}

    def _make_box(self, key: str) -> FlowBox:
        if key.startswith("\0"):
            name = key.rpartition("\0")[2]
            label = f"top-level {name}" if f"{self._folder}/{name}" in self._counts else name  # a part is called so too
            note = _count(len(self._outside[key]), "file")
            return FlowBox(key=key, label=label, note=note, look="outside", name=f"{label} ({note})")
        short = key[len(self._folder) + 1 :] if self._folder else key
        if key.endswith("/"):
            return FlowBox(
                key=key, label=short, note=_count(self._counts[key], "file"), look="folder", link=self._link(key)
            )
        files = [each for each in self._counts if self._find_first(each) == key]
        if len(files) > 1:
            return FlowBox(key=key, label=_name_files(files), note=_count(len(files), "file"))
        return FlowBox(key=key, label=short, note=_count(self._entries[key].lines, "line"), link=self._link(key))

    def _link(self, key: str) -> str:
        """Link to a module, or to the first file of a folder, because hosts have no lines of folders."""
        path = key if not key.endswith("/") else self._find_entrance(key)
        return self._code.permalink(Location(path=path, start_line=1, end_line=1)) or "" if path else ""

    def _find_entrance(self, key: str) -> str:
        inner = sorted(path for path in self._entries if path.startswith(key))
        entrances = [path for path in inner if path[len(key) :].partition(".")[0] in {"__init__", "index", "mod"}]
        return next(iter([*entrances, *inner]), "")

    def _write_legend(self, flow: Flow) -> str:
        drawn = flow.make_drawable()
        named = {box.key for box in flow.boxes}
        alone = [key for key in self._parts if self._find_first(key) not in named]
        left_out = [
            *([_count(arrows, "minor arrow")] if (arrows := len(flow.lines) - len(drawn.lines)) else []),
            *([_count(parts, "minor part")] if (parts := len(flow.boxes) - len(drawn.boxes)) else []),
            *([f"{_count(len(alone), 'part')} without such imports"] if alone else []),
            *(["tests"] if self._has_code else []),
        ]
        possible = " Dashed arrows are possible calls." if any(line.is_dashed for line in drawn.lines) else ""
        end = f" Left out: {', '.join(left_out)}." if left_out else ""
        return f"An arrow leads to what is imported, with the number of imports, file by file.{possible}{end}"

    def _explain_nothing(self) -> str:
        place = f"the folder `{self._folder.replace('`', '')}`" if self._folder else "it"
        what = f"no part of {place} is known to import another one"
        return f"Nothing to draw of `{self._code.repository}`: {what}."


def _is_outside(line: FlowLine) -> bool:
    return line.source.startswith("\0") or line.target.startswith("\0")


def _sort_outside(key: str) -> tuple[int, str]:
    return (0 if key.startswith("\0uses") else 2 if key.startswith("\0used") else 1, key)


def _name_files(files: Sequence[str]) -> str:
    """Name several files together: `queue.*`, `*.go`."""
    names = [file.rpartition("/")[2] for file in files]
    stems, endings = ({name.partition(".")[half] for name in names} for half in (0, 2))
    if len(stems) == 1:
        return f"{stems.pop()}.*"
    return f"*.{endings.pop()}" if len(endings) == 1 else _count(len(files), "file")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
