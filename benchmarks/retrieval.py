"""Measures retrieval on questions over real repositories: `python -m benchmarks.retrieval --eval DIR --mirrors DIR`.

Three views: S, short queries over each benchmark's root folder; F, the same over whole repositories; Q, long questions
over whole repositories. S and F are NDCG@10 of chunks (duplicates of a file use up ranks), Q is NDCG@10 of distinct
files. A repository that is not there is skipped, and said so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.search.ranking import RankingWeights
from indexer.types import Hit, Location

DEPTH = 50  # hits asked for; more than ten so that ten distinct files are among them


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where an answer lies; no lines means the whole file."""

    path: str
    start: int | None = None
    end: int | None = None

    def is_covered_by(self, location: Location) -> bool:
        """Whether a chunk overlaps the target."""
        if not _same_file(location.path, self.path):
            return False
        if self.start is None or self.end is None:
            return True
        return not (location.end_line < self.start or location.start_line > self.end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question and all of its targets."""

    text: str
    targets: tuple[Target, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One repository in one view."""

    view: str
    name: str
    path: Path
    commit: str
    root: str
    queries: tuple[Query, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """What one query got."""

    view: str
    name: str
    ndcg: float
    recall5: float
    milliseconds: float


def _same_file(one: str, other: str) -> bool:
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def ndcg(ranks: Sequence[int | None], relevant: int, depth: int = 10) -> float:
    """Normalised discounted cumulative gain of binary relevance; `ranks` are 1-based."""
    gain = sum(1 / math.log2(rank + 1) for rank in {rank for rank in ranks if rank is not None and rank <= depth})
    ideal = sum(1 / math.log2(place + 2) for place in range(min(relevant, depth)))
    return gain / ideal if ideal else 0.0


def chunk_ranks(hits: Sequence[Hit], targets: Sequence[Target]) -> list[int | None]:
    """The first of the ten best chunks that covers each target."""
    top = list(enumerate((hit.location for hit in hits[:10]), start=1))
    return [next((rank for rank, place in top if target.is_covered_by(place)), None) for target in targets]


def file_ranks(hits: Sequence[Hit], targets: Sequence[Target]) -> list[int | None]:
    """The rank of each target's file among the distinct files."""
    files = list(dict.fromkeys(hit.location.path for hit in hits))[:10]
    return [
        next((rank for rank, path in enumerate(files, start=1) if _same_file(path, target.path)), None)
        for target in targets
    ]


def subjects(folder: Path, mirrors: Path) -> Iterator[Subject]:
    """Every repository of the evaluation that is there, in each of its views."""
    for suite, views in (("semble", ("S", "F")), ("sweqa", ("Q",))):
        for repository in json.loads((folder / suite / "repos.json").read_text(encoding="utf-8")):
            path = _mirror(mirrors, repository["url"], repository["name"])
            if path is None:
                print(f"skipped {repository['name']}: no copy of {repository['url']} below {mirrors}")
                continue
            queries = tuple(_queries(folder / suite / f"{repository['name']}.json"))
            for view in views:
                yield Subject(
                    view=view,
                    name=repository["name"],
                    path=path,
                    commit=_commit(path, repository["commit"]),
                    root=repository["root"] if view == "S" else "",
                    queries=queries,
                )


def _mirror(mirrors: Path, url: str, name: str) -> Path | None:
    owner, project = url.rstrip("/").split("/")[-2:]
    for candidate in (mirrors / f"{owner}+{project}" / "repo", mirrors / name):
        if candidate.is_dir():
            return candidate
    return None


def _commit(path: Path, wanted: str) -> str:
    """The wanted commit, or HEAD where a source release stands in for a repository that lacks it."""
    known = subprocess.run(
        ["git", "-C", path, "cat-file", "-e", f"{wanted}^{{commit}}"], capture_output=True, check=False
    )
    return wanted if known.returncode == 0 else "HEAD"


def _queries(file: Path) -> Iterator[Query]:
    for entry in json.loads(file.read_text(encoding="utf-8")):
        named = [*entry["relevant"], *entry.get("secondary", ())]
        targets = [_target(each) for each in named]
        yield Query(text=entry["query"], targets=tuple(dict.fromkeys(targets)))


def _target(named: dict[str, Any]) -> Target:
    return Target(path=named["path"], start=named.get("start_line"), end=named.get("end_line"))


async def measure(subject: Subject, home: Path, recipes: dict[str, RankingWeights]) -> dict[str, list[Score]]:
    """Index a subject and ask its queries with each recipe."""
    include = [f"/{subject.root}/**"] if subject.root else []
    index = await CodeIndex.open(subject.path, home=home, include=include, ref=subject.commit)
    try:
        await index.refresh()
        reader = await index.pin()
        return {
            name: [_ask(reader, recipe, subject, query) for query in subject.queries]
            for name, recipe in recipes.items()
        }
    finally:
        await index.aclose()


def _ask(reader: IndexReader, recipe: RankingWeights, subject: Subject, query: Query) -> Score:
    started = time.perf_counter()
    hits = reader.search_now(query.text, limit=DEPTH, recipe=recipe)
    milliseconds = (time.perf_counter() - started) * 1000
    by_file = file_ranks(hits, query.targets)
    ranks = by_file if subject.view == "Q" else chunk_ranks(hits, query.targets)
    found = sum(rank is not None and rank <= 5 for rank in by_file)
    return Score(
        view=subject.view,
        name=subject.name,
        ndcg=ndcg(ranks, len(query.targets)),
        recall5=found / len(query.targets),
        milliseconds=milliseconds,
    )


def table(scores: dict[str, list[Score]]) -> str:
    """One line a recipe: NDCG@10 and recall@5 of each view, and the median time of a query."""
    lines = [f"{'recipe':24} {'S':>6} {'F':>6} {'Q':>6}   {'S r@5':>6} {'F r@5':>6} {'Q r@5':>6}  {'p50 ms':>6}"]
    for name, rows in scores.items():
        cells = [_mean([row.ndcg for row in rows if row.view == view]) for view in "SFQ"]
        cells += [_mean([row.recall5 for row in rows if row.view == view]) for view in "SFQ"]
        median = statistics.median(row.milliseconds for row in rows)
        lines.append(f"{name:24} {cells[0]} {cells[1]} {cells[2]}   {cells[3]} {cells[4]} {cells[5]}  {median:6.1f}")
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    return f"{statistics.fmean(values):6.3f}" if values else f"{'-':>6}"


def recipes(ablate: bool) -> dict[str, RankingWeights]:
    """The recipe, with rank fusion and without vectors; with `ablate` also without each of its other parts."""
    recipe = RankingWeights()
    chosen = {
        "recipe": recipe,
        "rrf in place of scores": replace(recipe, fusion="rrf"),
        "no vectors": replace(recipe, vector=0.0),
    }
    if not ablate:
        return chosen
    return chosen | {
        "no file BM25": replace(recipe, file=0.0),
        "no coherence": replace(recipe, coherence=0.0),
        "no exact names": replace(recipe, exact_name=0.0),
        "no partial names": replace(recipe, partial_name=0.0),
        "no paths": replace(recipe, path=0.0),
        "no call graph": replace(recipe, rank=0.0),
        "no decay": replace(recipe, same_file_decay=1.0),
        "no penalties": replace(recipe, test=1.0, doc=1.0, config=1.0, example=1.0, secondary=1.0),
    }


async def run(arguments: argparse.Namespace) -> None:
    """Measure everything that is there and print the table."""
    chosen = recipes(arguments.ablate)
    scores: dict[str, list[Score]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        for subject in subjects(arguments.eval, arguments.mirrors):
            if arguments.views and subject.view not in arguments.views:
                continue
            for name, rows in (await measure(subject, home / subject.view, chosen)).items():
                scores[name] += rows
                if name == "recipe":
                    print(f"{subject.view} {subject.name:20} {_mean([row.ndcg for row in rows])}", flush=True)
    if not any(scores.values()):
        print("Nothing to measure.")
        return
    print(table(scores))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--eval", type=Path, default=Path("../shared/eval"), help="folder with semble/ and sweqa/")
    parser.add_argument("--mirrors", type=Path, default=Path("../.mirror"), help="folder of clones")
    parser.add_argument("--home", type=Path, help="keep the indexes here")
    parser.add_argument("--views", default="", help="S, F, Q or several of them")
    parser.add_argument("--ablate", action="store_true", help="also without each part of the recipe")
    arguments = parser.parse_args()
    if not arguments.eval.is_dir():
        print(f"skipped: there is no folder {arguments.eval}")
        return
    asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
