"""The parts of a folder, its sub-folders and modules, and which of them import which: as a graph that can be drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from agent import CodeSearch
from bot.drawings.call_map import MOST_BOXES
from bot.drawings.folders import find_folder
from bot.errors import NothingToDraw
from bot.pictures.flow import Flow, FlowBox, FlowLine
from bot.pictures.line_reduction import mark_implied, order_boxes
from indexer import FileEntry, FileImport, Location

_MOST_OUTSIDE = 4  # boxes for what uses the folder, and as many for what it uses
_MANY_LINES, _FEW_LINES = 1.4, 16  # for each box, and in all: of more, those that others imply are not drawn
_FOLDED = "\0folded"
_ELSEWHERE = "\0elsewhere"


async def map_modules(code: CodeSearch, named: str) -> Flow:
    """Draw who imports whom among the parts of a folder, or of the whole repository where none is named.

    `NothingToDraw` where there is no such folder, or nothing in it imports anything else in it.
    """
    entries = {entry.path: entry for entry in await code.files()}
    folder = find_folder(named, await code.folders(), files=entries, repository=code.repository)
    imports = [each for each in await code.list_file_imports() if {each.path, *each.targets} <= entries.keys()]
    folder = _descend(folder, imports)
    found = _ModuleMap(code, folder, entries)
    found.add_imports(imports)
    return found.make_flow()


def _descend(folder: str, imports: Sequence[FileImport]) -> str:
    """Go into a folder as long as all that imports or is imported lies in one single folder of it."""
    paths = {*(each.path for each in imports), *(target for each in imports for target in each.targets)}
    while True:
        parts = {_find_part(path, folder) for path in paths if _lies_in(path, folder)}
        if len(parts) != 1 or not next(iter(parts)).endswith("/"):
            return folder
        folder = parts.pop().rstrip("/")


def _lies_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _find_part(path: str, folder: str) -> str:
    """Return the path of the part of a folder that a file of it lies in; that of a sub-folder ends with a slash."""
    start = len(folder) + 1 if folder else 0
    end = path.find("/", start)
    return path if end < 0 else path[: end + 1]


@dataclass(kw_only=True, slots=True)
class _Edge:
    """What one part imports of another: importing files with what they mean, and whether all of it is certain."""

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
        self._parts = {_find_part(entry.path, folder) for entry in inner if entry.source_type in {"code", "test"}}
        self._outside: defaultdict[str, set[str]] = defaultdict(set)

    def add_imports(self, imports: Sequence[FileImport]) -> None:
        """Add what files import; a module of several files, as in Go or C, becomes one part."""
        for each in imports:
            self._join([target for target in each.targets if _find_part(target, self._folder) == target])
        for each in imports:
            if not self._is_foreign_test(each.path):
                self._add(each)

    def _join(self, modules: Sequence[str]) -> None:
        inner = [module for module in modules if _lies_in(module, self._folder)]
        firsts = {self._find_first(module) for module in inner}
        for first in firsts:
            self._together[first] = min(firsts)

    def _find_first(self, module: str) -> str:
        while (first := self._together.get(module, module)) != module:
            module = first
        return module

    def _is_foreign_test(self, path: str) -> bool:
        """Tests import everything, which says little of the code that they lie outside of."""
        is_test = self._entries[path].source_type == "test"
        return self._has_code and is_test and not _lies_in(path, self._folder)

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
        """Return the map, what uses the folder first."""
        self._fold_outside()
        folded = self._fold_parts()
        lines = [
            FlowLine(source=source, target=target, weight=len(edge.imports), is_dashed=not edge.is_certain)
            for (source, target), edge in self._edges.items()
        ]
        shown = {key for line in lines for key in (line.source, line.target)}
        if not any(not line.source.startswith("\0") and not line.target.startswith("\0") for line in lines):
            raise NothingToDraw(self._explain_nothing())
        keys = order_boxes(sorted(shown, key=self._sort_outside), lines)
        if len(lines) > max(_FEW_LINES, _MANY_LINES * len(shown)):
            lines = mark_implied(lines)
        place = {key: number for number, key in enumerate(keys)}
        lines.sort(key=lambda line: (place[line.source], -line.weight, place[line.target]))
        named = f"{self._folder}/ in " if self._folder else ""
        return Flow(
            title=f"The architecture of {named}{self._code.repository} at {self._code.commit.sha[:7]}",
            verb="imports",
            boxes=[self._make_box(key, folded) for key in keys],
            lines=lines,
            legend=self._write_legend(lines, shown),
        )

    def _sort_outside(self, key: str) -> tuple[int, str]:
        return (0 if key.startswith("\0uses") else 2 if key.startswith("\0used") else 1, key)

    def _fold_outside(self) -> None:
        """Leave what is connected most with the folder, on either side."""
        for role in ("uses", "used"):
            keys = [key for key in self._outside if key.startswith(f"\0{role}\0")]
            weights = self._weigh(keys)
            keys.sort(key=lambda key: (-weights[key], key))
            if len(keys) > _MOST_OUTSIDE:
                self._merge(keys[_MOST_OUTSIDE - 1 :], f"\0{role}{_ELSEWHERE}")

    def _fold_parts(self) -> int:
        """Leave the parts that are connected most, as many as there is room for; return how many are folded."""
        keys = {key for pair in self._edges for key in pair}
        inner = [key for key in keys if not key.startswith("\0")]
        room = MOST_BOXES - (len(keys) - len(inner))
        if len(inner) <= room:
            return 0
        weights = self._weigh(inner)
        inner.sort(key=lambda key: (-weights[key], key))
        self._merge(inner[room - 1 :], _FOLDED)
        return len(inner) - room + 1

    def _weigh(self, keys: Collection[str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for pair, edge in self._edges.items():
            for key in {*pair}.intersection(keys):
                found[key] += len(edge.imports)
        return found

    def _merge(self, keys: Collection[str], into: str) -> None:
        wanted = {*keys}
        for pair in [pair for pair in self._edges if wanted.intersection(pair)]:
            edge = self._edges.pop(pair)
            source, target = (into if key in wanted else key for key in pair)
            if source != target:
                self._edges[source, target].imports |= edge.imports
                self._edges[source, target].is_certain |= edge.is_certain
        for key in wanted:
            self._outside[into] |= self._outside.pop(key, set())

    def _make_box(self, key: str, folded: int) -> FlowBox:
        if key == _FOLDED:
            return FlowBox(key=key, label=f"{folded} more", note="folders and modules", look="folded")
        if key.startswith("\0"):
            name = key.rpartition("\0")[2]
            label = "elsewhere" if key.endswith(_ELSEWHERE) else name
            if f"{self._folder}/{name}" in self._counts:  # a part is called so as well
                label = f"top-level {name}"
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
        """Link to a module, or to the first file of a folder: hosts have no lines of folders."""
        path = key if not key.endswith("/") else self._find_entrance(key)
        return self._code.permalink(Location(path=path, start_line=1, end_line=1)) or "" if path else ""

    def _find_entrance(self, key: str) -> str:
        inner = sorted(path for path in self._entries if path.startswith(key))
        entrances = [path for path in inner if path[len(key) :].partition(".")[0] in {"__init__", "index", "mod"}]
        return next(iter([*entrances, *inner]), "")

    def _write_legend(self, lines: Sequence[FlowLine], shown: Collection[str]) -> str:
        left_out = []
        if implied := sum(line.is_implied for line in lines):
            left_out.append(f"{_count(implied, 'arrow')} that others imply")
        alone = len([key for key in self._parts if self._find_first(key) not in shown])
        if alone and _FOLDED not in shown:
            left_out.append(f"{_count(alone, 'part')} without such imports")
        if self._has_code and self._folder:
            left_out.append("tests outside of the folder")
        possible = " A dashed one is only possible." if any(line.is_dashed for line in lines) else ""
        end = f" Left out: {', '.join(left_out)}." if left_out else ""
        return f"An arrow leads to what is imported, with the number of imports, file by file.{possible}{end}"

    def _explain_nothing(self) -> str:
        place = f"the folder `{self._folder.replace('`', '')}`" if self._folder else "it"
        what = f"no part of {place} imports another one, as far as I know"
        return f"Nothing to draw of `{self._code.repository}`: {what}."


def _name_files(files: Sequence[str]) -> str:
    """Name what several files are together: `queue.*`, `*.go`."""
    names = [file.rpartition("/")[2] for file in files]
    stems, endings = ({name.partition(".")[half] for name in names} for half in (0, 2))
    if len(stems) == 1:
        return f"{stems.pop()}.*"
    return f"*.{endings.pop()}" if len(endings) == 1 else _count(len(files), "file")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
