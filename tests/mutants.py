"""Finds out which faults the tests notice: `python -m tests.mutants NOTES --seed 7 --count 80 --probe=--all`.

Chooses faults over all source by the seed: a comparison, a boolean, a number or a sum that is another one, a statement
that is gone. One run of the tests with probes at these places finds those that come by; then each fault is made in
turn, and these tests run up to the first that fails. The current folder is a clean worktree, and is written in
meanwhile. NOTES is the file that takes the results, and from which an interrupted run continues. With
`--before NOTES`, the faults are those of a run over an earlier tree, and the tests that noticed them are tried first.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("bot", "agent", "indexer")
MAX_TESTS, MAX_SECONDS = 1_500, 90.0  # of the tests that are chosen for one fault
RUN_SECONDS = 600.0
LIBRARIES = (
    "aiosqlite", "chromadb", "discord", "git", "langchain_google_genai", "langgraph.graph", "networkx", "numpy",
    "prompt_toolkit", "rich", "slack_bolt",
)  # fmt: skip
OPPOSITES: Mapping[type[ast.AST], Any] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
PROBE = """
def _probe(number, _seen=set()):
    import os
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in _seen:
        _seen.add((number, test))
        try:
            file = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        except OSError:
            return
        os.write(file, f"{{number}} {{test}}\\n".encode())
        os.close(file)
"""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A place in the source, by what is written there, and what is to be written instead."""

    path: str
    function: str
    kind: str
    text: str
    instead: str
    occurrence: int  # of the same within the function

    def __str__(self) -> str:
        return f"{self.path}, {self.function or 'module'}: `{self.text}` -> `{self.instead}`"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of bytes of a file."""

    start: int
    end: int


def list_faults(source: str, path: str) -> Iterator[tuple[Fault, Span]]:
    """List everything that can be made wrong in a file."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[tuple[str, ...]] = Counter()
    for function, node in _walk(ast.parse(source), ""):
        for kind, part, instead in _mutate(node):
            span = Span(
                start=starts[part.lineno - 1] + part.col_offset,
                end=starts[(part.end_lineno or 0) - 1] + (part.end_col_offset or 0),
            )
            text = source.encode()[span.start : span.end].decode()
            key = (function, kind, text, instead)
            yield Fault(path=path, function=function, kind=kind, text=text, instead=instead, occurrence=seen[key]), span
            seen[key] += 1


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Walk through what is executed: no annotations, decorators, patterns, or pieces of f-strings."""
    yield function, node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "pattern"} or isinstance(value, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _walk(child, function)


def _mutate(node: ast.AST) -> Iterator[tuple[str, Any, str]]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if "TYPE_CHECKING" not in ast.dump(test):
            yield "boolean", test, f"not ({ast.unparse(test)})"
        case ast.Expr(value=ast.Call() | ast.Await()) if "logger" not in ast.unparse(node):
            yield "statement", node, "pass"
        case ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign() | ast.Delete():
            yield "statement", node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", node, "pass"
        case ast.expr():
            yield from _mutate_expression(node)


def _mutate_expression(node: ast.expr) -> Iterator[tuple[str, ast.AST, str]]:
    match node:
        case ast.Compare(ops=[operator, *others]):
            flipped = ast.Compare(node.left, [OPPOSITES[type(operator)](), *others], node.comparators)
            yield "comparison", node, ast.unparse(flipped)
        case ast.BoolOp():
            yield "boolean", node, ast.unparse(ast.BoolOp(OPPOSITES[type(node.op)](), node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield "boolean", node, ast.unparse(node.operand)
        case ast.Constant(value=bool()):
            yield "constant", node, str(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", node, repr(number + 1)
        case ast.BinOp(op=operator) if type(operator) in OPPOSITES:
            yield "arithmetic", node, ast.unparse(ast.BinOp(node.left, OPPOSITES[type(operator)](), node.right))


def choose_faults(tree: Path, seed: int, count: int) -> Sequence[Fault]:
    """Choose as many of each kind."""
    kinds: dict[str, list[Fault]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((tree / package).rglob("*.py")):
            for fault, _ in list_faults(path.read_text(encoding="utf-8"), str(path.relative_to(tree))):
                kinds[fault.kind].append(fault)
    chance = random.Random(seed)
    names = sorted(kinds)
    return [chance.choice(kinds[names[number % len(names)]]) for number in range(count)]


@contextmanager
def made(tree: Path, faults: Sequence[Fault], probes: Path | None = None) -> Iterator[bool]:
    """Make faults, or put probes at their places; yields whether the places are still there."""
    changed: dict[Path, bytes] = {}
    places: dict[Path, list[tuple[Span, bytes]]] = defaultdict(list)
    for number, fault in enumerate(faults):
        if (path := tree / fault.path).is_file():
            spans = dict(list_faults(path.read_text(encoding="utf-8"), fault.path))
            if fault in spans:
                places[path].append((spans[fault], _write(fault, number if probes else None)))
    try:
        for path, spans_here in places.items():
            changed[path] = source = path.read_bytes()
            limit = len(source)
            for span, text in sorted(spans_here, key=lambda each: -each[0].start):
                if span.end <= limit:  # where one place is within another, the inner has the probe
                    source = source[: span.start] + text + source[span.end :]
                    limit = span.start
            path.write_bytes(source + PROBE.format(path=str(probes)).encode() if probes else source)
        yield bool(places)
    finally:
        for path, source in changed.items():
            path.write_bytes(source)


def _write(fault: Fault, probe: int | None) -> bytes:
    if probe is None:
        return (fault.instead if fault.kind == "statement" else f"({fault.instead})").encode()
    hit = f"globals().get('_probe', bool)({probe})"  # which is missing yet while the file is imported
    return (f"{hit}; {fault.text}" if fault.kind == "statement" else f"({hit}, ({fault.text}))[1]").encode()


def run_pytest(arguments: Sequence[str], log: Path, seconds: float) -> int | None:
    """Run pytest, and whatever it starts, in a fork that has imported only what is not ours; return its exit code."""
    child = os.fork()
    if not child:
        os.setsid()
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream, number in ((os.open(os.devnull, os.O_RDONLY), 0), (said, 1), (said, 2)):
            os.dup2(stream, number)
        import pytest

        options = ("-p", "no:cacheprovider", "-rfE", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        os._exit(int(pytest.main([*options, *arguments])))
    until = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and what it left behind
    if not ended[0]:
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(ended[1])


def find_tests(
    tree: Path, faults: Sequence[Fault], folder: Path, options: Sequence[str]
) -> Mapping[int, Sequence[str]]:
    """Run tests with probes; return those that came by each fault, in the order in which to try them."""
    hits, report = folder / "hits", folder / "report.xml"
    if not report.exists():
        hits.write_text("")
        with made(tree, faults, hits):
            run_pytest([f"--junitxml={report}", *options], folder / "probes.log", seconds=7_200)
    seconds = {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}": float(case.get("time", 0))
        for case in ET.parse(report).iter("testcase")
        if not len(case)  # neither skipped nor failed
    }
    found: dict[int, set[str]] = defaultdict(set)
    for line in hits.read_text().splitlines():
        number, _, test = line.partition(" ")
        found[int(number)].add(test.rpartition(" (")[0])
    every = set(seconds)  # in place of those that come by only while they import
    return {number: _sort(each, found[number] & every or every, seconds) for number, each in enumerate(faults)}


def _sort(fault: Fault, tests: set[str], seconds: Mapping[str, float]) -> Sequence[str]:
    """Sort by nearness of the folder and shortness, file by file, and leave out what takes too long in all."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests, key=lambda each: seconds[each]):
        files[test.partition("::")[0]].append(test)

    def measure_distance(file: str) -> tuple[int, float]:
        folder = Path("tests", fault.path).parent
        nearest = next(parent for parent in Path(file).parents if folder.is_relative_to(parent))
        return -len(nearest.parts), seconds[files[file][0]]

    chosen: list[str] = []
    left = MAX_SECONDS
    for test in (test for file in sorted(files, key=measure_distance) for test in files[file]):
        if len(chosen) < MAX_TESTS and (not chosen or seconds[test] <= left):
            chosen.append(test)
            left -= seconds[test]
    return chosen


def try_fault(tree: Path, fault: Fault, tests: Sequence[str], folder: Path) -> dict[str, Any]:
    """Make a fault and run tests; return whether it was noticed, and by which test."""
    (folder / "tests.txt").write_text("\n".join(tests))
    log = folder / "fault.log"
    with made(tree, [fault]) as is_there:
        if not is_there:
            return {"state": "gone", "by": "", "tests": 0}
        code = run_pytest(["-x", f"@{folder / 'tests.txt'}"], log, seconds=RUN_SECONDS)
    said = log.read_text(errors="replace")
    failures = [line.partition(" ")[2] for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    by = next((test for test in sorted(tests, key=len, reverse=True) for each in failures if each.startswith(test)), "")
    state = "alive" if code == 0 else "killed" if code in {None, 1, 2} else f"unknown ({code})"
    return {"state": state, "by": by or "; ".join(failures) or ("" if code == 0 else said[-300:]), "tests": len(tests)}


def main() -> None:
    """Choose faults, find their tests, and try one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--probe", default="", metavar="ARGUMENTS", help="of pytest, for the run with probes")
    options = parser.parse_args()
    os.nice(10)
    tree, folder = Path.cwd(), options.notes.absolute().with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tree, capture_output=True, text=True, check=True)
    if status.stdout:
        sys.exit(f"{tree} has changes: commit them first")
    before = json.loads(options.before.read_text()) if options.before else None
    notes: dict[str, Any] = {"seed": options.seed, "results": {}}
    with suppress(FileNotFoundError):
        notes = json.loads(options.notes.read_text())
    say(f"seed {notes['seed']}")
    for name in LIBRARIES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    if before:
        faults = [Fault(**each) for each in before["faults"]]
    else:
        faults = list(choose_faults(tree, notes["seed"], options.count))
    notes["faults"] = [asdict(each) for each in faults]
    options.notes.write_text(json.dumps(notes, indent=1))
    tests = find_tests(tree, faults, folder, shlex.split(options.probe))
    for number, fault in enumerate(faults):
        if str(number) in notes["results"]:
            continue
        chosen = list(tests[number])
        killer = before["results"][str(number)]["by"] if before else ""
        if killer in chosen:
            chosen.insert(0, chosen.pop(chosen.index(killer)))
        result = notes["results"][str(number)] = try_fault(tree, fault, chosen, folder)
        options.notes.write_text(json.dumps(notes, indent=1))
        say(f"{number} {result['state']} {fault}: {result['by']}")
    say(str(Counter(each["state"] for each in notes["results"].values())))


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
