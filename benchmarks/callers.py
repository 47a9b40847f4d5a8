"""Measures callers against calls found by reading: `python -m benchmarks.callers --mirrors DIR`.

`callers.json` holds the sample and says how it was chosen and judged. Precision and recall are of call sites (path and
line), pooled over the definitions of a language: of the edges that are claimed without reserve, of those and the ones
marked ambiguous, and of the baseline, every call of the plain name. A repository that is missing is skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.retrieval import _commit, _mirror
from indexer.calls.call_graph import CallGraph
from indexer.index import CodeIndex
from indexer.store.catalog import Catalog

SAMPLE = Path(__file__).with_name("callers.json")

Sites = frozenset[tuple[str, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One definition and the places that call it."""

    repository: str
    language: str
    name: str
    path: str
    sites: Sites

    @property
    def plain_name(self) -> str:
        """The name without what is around it."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What was claimed of one definition; `claimed` holds the unambiguous edges too."""

    subject: Subject
    certain: Sites
    claimed: Sites
    named: Sites
    milliseconds: float


def read_sample(file: Path) -> tuple[dict[str, dict[str, str]], list[Subject]]:
    """The repositories of the sample by name, and its definitions."""
    sample = json.loads(file.read_text(encoding="utf-8"))
    return sample["repositories"], [_subject(each) for each in sample["definitions"]]


def _subject(entry: dict[str, Any]) -> Subject:
    sites = frozenset((path, line) for path, lines in entry["sites"].items() for line in lines)
    return Subject(
        repository=entry["repository"],
        language=entry["language"],
        name=entry["name"],
        path=entry["path"],
        sites=sites,
    )


async def open_catalog(path: Path, ref: str, home: Path) -> Catalog:
    """Index a repository into a folder of its own and read what was found in it."""
    index = await CodeIndex.open(path, home=home, ref=ref)
    try:
        await index.refresh()
    finally:
        await index.aclose()
    return Catalog(_catalog_below(home))


def _catalog_below(home: Path) -> Path:
    (catalog,) = home.glob("repositories/*/catalog.sqlite")
    return catalog


def measure(catalog: Catalog, subjects: Iterable[Subject]) -> Iterator[Outcome]:
    """Ask for the callers of each definition."""
    current = catalog.current()
    if current is None:
        return
    for subject in subjects:
        graph = CallGraph(catalog, current.id)
        started = time.perf_counter()
        edges = [
            edge
            for edge in graph.callers(subject.name)
            if edge.callee and (edge.callee.path, edge.callee.symbol.qualified_name) == (subject.path, subject.name)
        ]
        yield Outcome(
            subject=subject,
            milliseconds=(time.perf_counter() - started) * 1000,
            certain=frozenset((edge.path, edge.line) for edge in edges if not edge.ambiguous),
            claimed=frozenset((edge.path, edge.line) for edge in edges),
            named=frozenset(
                (path, use.line)
                for path, use in catalog.list_references_to(current.id, subject.plain_name)
                if use.kind == "call"
            ),
        )


def table(outcomes: Sequence[Outcome]) -> str:
    """One line a language and one for all: precision and recall of the three ways to claim."""
    lines = [
        f"{'':12} {'defs':>4} {'sites':>5}   {'unambiguous':^15}   {'all edges':^15}   {'calls of name':^15}",
        f"{'':12} {'':>4} {'':>5}   " + "   ".join(["precision recall"] * 3),
    ]
    languages = dict.fromkeys(outcome.subject.language for outcome in outcomes)
    lines += [_row(name, [each for each in outcomes if each.subject.language == name]) for name in languages]
    lines.append(_row("all", outcomes))
    times = [outcome.milliseconds for outcome in outcomes]
    lines.append(f"One question takes {statistics.median(times):.1f} ms (median), {max(times):.0f} ms at most.")
    return "\n".join(lines)


def _row(label: str, outcomes: Sequence[Outcome]) -> str:
    cells = [
        _precision_and_recall([(each.certain, each.subject.sites) for each in outcomes]),
        _precision_and_recall([(each.claimed, each.subject.sites) for each in outcomes]),
        _precision_and_recall([(each.named, each.subject.sites) for each in outcomes]),
    ]
    sites = sum(len(each.subject.sites) for each in outcomes)
    return f"{label:12} {len(outcomes):4} {sites:5}   " + "   ".join(cells)


def _precision_and_recall(pairs: Sequence[tuple[Sites, Sites]]) -> str:
    right = sum(len(claimed & true) for claimed, true in pairs)
    precision = _share(right, sum(len(claimed) for claimed, _ in pairs))
    recall = _share(right, sum(len(true) for _, true in pairs))
    return f"{precision:>9} {recall:>6}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def differences(outcome: Outcome) -> Iterator[str]:
    """What was claimed wrongly, and what was missed, one line each."""
    subject = outcome.subject
    for path, line in sorted(outcome.claimed - subject.sites):
        kind = "wrong" if (path, line) in outcome.certain else "wrong, ambiguous"
        yield f"{subject.repository} {subject.name}: {kind} {path}:{line}"
    for path, line in sorted(subject.sites - outcome.certain):
        kind = "ambiguous" if (path, line) in outcome.claimed else "missed"
        yield f"{subject.repository} {subject.name}: {kind} {path}:{line}"


async def run(arguments: argparse.Namespace) -> None:
    """Measure every repository that is there and print the table."""
    repositories, subjects = read_sample(arguments.sample)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        for name, repository in repositories.items():
            path = _mirror(arguments.mirrors, repository["url"], name)
            if path is None:
                print(f"skipped {name}: no copy of {repository['url']} below {arguments.mirrors}")
                continue
            catalog = await open_catalog(path, _commit(path, repository["commit"]), home / name)
            try:
                outcomes += measure(catalog, [each for each in subjects if each.repository == name])
            finally:
                catalog.close()
    if arguments.differences:
        print("\n".join(line for outcome in outcomes for line in differences(outcome)))
    print(table(outcomes) if outcomes else "Nothing to measure.")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help="definitions and who calls them")
    parser.add_argument("--home", type=Path, help="keep the indexes here")
    parser.add_argument("--differences", action="store_true", help="also list what was wrong and what was missed")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
