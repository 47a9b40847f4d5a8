"""The rooms of the house, which floor each stands on, and that imports run down only, in no circle."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from tests.test_architecture import PACKAGES, ROOT, name_of, parsed, sources

# The rooms of each package (its folders and flat modules), the lowest floor first: imports run down only. What lies
# in a folder within a folder belongs to the outer one; the package itself (`__init__`) stands above all.
FLOORS = {
    "bot": (
        "markdown messages errors clock",
        "storage access tasks pictures",
        "ports http",
        "repositories replies jobs settings drawings webhooks tracing",
        "app monitoring maintenance living",
        "questions",
        "conversations",
        "surfaces",
        "adapters",
        "serving",
        "cli",
        "__main__",
    ),
    "agent": (
        "chat",
        "text state events errors",
        "questions persistence limits sandbox",
        "ports conversations",
        "evidence llm guard",
        "citations repositories history",
        "answers prompts",
        "kinds answering lookups",
        "tools",
        "nodes",
        "graph",
        "runs",
        "goals",
        "agent",
    ),
    "indexer": (
        "types lazy_names",
        "errors",
        "text secrets subprocesses checksums installation watcher",
        "search parsing embedding git",
        "store",
        "calls remotes parser_pool diffs",
        "generations",
        "index",
        "segments refs",
    ),
}
# Rooms of one floor of which one may import the other all the same: who, whom, why.
BESIDE: dict[str, tuple[tuple[str, str, str], ...]] = {"bot": (), "agent": (), "indexer": ()}


def home_of(path: Path) -> str:
    return path.parent.relative_to(ROOT).as_posix()


@cache
def modules() -> dict[str, Path]:
    return {name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources()}


def room_of(module: str) -> str:
    """The room of a module, as `bot/cli`; the package itself is `bot`."""
    return "/".join(module.split(".")[:2])


def folder_of(module: str) -> str:
    """The folder that a module is in; one at the top of a package stands for itself."""
    home = home_of(modules()[module])
    return module if home in PACKAGES else home


@cache
def imported(path: Path) -> tuple[str, ...]:
    """What a file imports of ours when it runs, in functions too; what is under TYPE_CHECKING is never run."""
    branches = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.If)]
    for_types = [node for node in branches if ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}]
    skipped = {node for branch in for_types for each in branch.body for node in ast.walk(each)}
    found: list[str] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import) and node not in skipped:
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node not in skipped:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(name for name in found if name.split(".")[0] in PACKAGES)


@cache
def arrows() -> tuple[tuple[str, str], ...]:
    """Who imports whom, module by module; a name in a module means that module."""
    named = ((who, name) for who, path in modules().items() for name in imported(path))
    return tuple((who, name if name in modules() else name.rpartition(".")[0]) for who, name in named)


def main() -> None:
    """Print the floors of each package with their rooms, the highest first; a folder ends with a slash."""
    for package in PACKAGES:
        sys.stdout.write(f"\n{package}/\n")
        for number, row in reversed([*enumerate(FLOORS[package], 1)]):
            shown = (f"{room}/" if (ROOT / package / room).is_dir() else room for room in row.split())
            sys.stdout.write(f"  {number}  {'  '.join(shown)}\n")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_room_stands_on_one_floor(package: str) -> None:
    listed = Counter(f"{package}/{room}" for row in FLOORS[package] for room in row.split())
    there = {room_of(module) for module in modules() if module.startswith(f"{package}.")}
    wrong = [f"{room} is on no floor" for room in sorted(there - set(listed))]
    wrong += [f"{room} is on a floor, but is not there" for room in sorted(set(listed) - there)]
    wrong += [f"{room} is listed {times} times" for room, times in listed.items() if times > 1]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_down_the_floors(package: str) -> None:
    floors = {f"{package}/{room}": n for n, row in enumerate(FLOORS[package], 1) for room in row.split()}
    floors[package] = len(FLOORS[package]) + 1
    beside = {(f"{package}/{who}", f"{package}/{whom}") for who, whom, _ in BESIDE[package]}
    inner = [(who, whom, room_of(who), room_of(whom)) for who, whom in arrows()]
    wrong = [
        f"{who} (floor {floors[room]}) imports {whom} (floor {floors[other]})"
        for who, whom, room, other in inner
        if room != other and room in floors and other in floors
        if floors[room] < floors[other] or (floors[room] == floors[other] and (room, other) not in beside)
    ]
    unused = beside - {(room, other) for *_, room, other in inner}
    wrong += [f"{room} may import {other}, and does not" for room, other in sorted(unused)]

    assert not wrong, "\n".join(wrong)


def test_every_import_of_ours_means_a_module_that_is_there() -> None:
    wrong = [f"{who} imports {whom}" for who, whom in arrows() if whom not in modules()]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("place", [str, folder_of, room_of])
def test_nothing_imports_in_a_circle(place: Callable[[str], str]) -> None:
    graph = nx.DiGraph([(place(who), place(whom)) for who, whom in arrows() if whom in modules()])
    wrong = [" <-> ".join(sorted(group)) for group in nx.strongly_connected_components(graph) if len(group) > 1]

    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main()
