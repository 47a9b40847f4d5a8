"""Measures retrieval on questions over real repositories: `python -m benchmarks.retrieval --eval DIR --mirrors DIR`.

Four views: S, short queries over each benchmark's root folder; F, the same over whole repositories; Q, long questions
over whole repositories; P, three questions of Q asked as one, which the agent searches part by part. S and F are
NDCG@10 of chunks (duplicates of a file use up ranks), Q and P are NDCG@10 of distinct files. Of the targets that have
lines, it is also measured how many of these lines are among the first 2,000, 4,000 and 8,000 tokens of the passages
that a model reads. A repository that is missing is skipped, and said so. So are targets that tell nothing: files
that the measured commit does not have, and stubs that only include another file; a question without any other target
is not asked.
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

from agent.evidence.lookups import MAX_PASSAGES
from agent.evidence.requests import request_search
from agent.evidence.search import search_parts
from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.search.ranking import RankingWeights
from indexer.types import Filters, Hit, Location, SearchAim, SearchMode

DEPTH = 50  # hits asked for; more than ten so that ten distinct files are among them
STUBS = frozenset({"include/fmt/core.h"})  # a dozen lines that include the file which the questions are about


TOKEN_BUDGETS = (2_000, 4_000, 8_000)
TOKEN_CHARACTERS = 4  # of code, on average
QUESTIONS_IN_ONE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where an answer lies; no lines means the whole file. `spans` are further lines, which only Q's targets have."""

    path: str
    start: int | None = None
    end: int | None = None
    spans: tuple[tuple[int, int], ...] = ()

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
    lines: tuple[float, ...] = ()  # the share of the truth's lines within each of `TOKEN_BUDGETS`


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


def measure_lines(hits: Sequence[Hit], targets: Sequence[Target]) -> tuple[float, ...]:
    """The share of the targets' lines that passages hold within each of `TOKEN_BUDGETS`; empty without such lines."""
    spans = ((target.path, *span) for target in targets for span in target.spans)
    wanted = {(path, line) for path, start, end in spans for line in range(start, end + 1)}
    if not wanted:
        return ()
    shares = []
    for budget in TOKEN_BUDGETS:
        left, found = budget * TOKEN_CHARACTERS, set[tuple[str, int]]()
        for hit in hits:
            left -= len(hit.location.path) + len(hit.text)
            if left < 0:
                break
            inside = range(hit.location.start_line, hit.location.end_line + 1)
            found |= {(path, line) for path, line in wanted if line in inside and _same_file(hit.location.path, path)}
        shares.append(len(found) / len(wanted))
    return tuple(shares)


def subjects(folder: Path, mirrors: Path) -> Iterator[Subject]:
    """Every repository of the evaluation that is there, in each of its views."""
    for suite, views in (("semble", ("S", "F")), ("sweqa", ("Q", "P"))):
        for repository in json.loads((folder / suite / "repos.json").read_text(encoding="utf-8")):
            path = _mirror(mirrors, repository["url"], repository["name"])
            if path is None:
                print(f"skipped {repository['name']}: no copy of {repository['url']} below {mirrors}")
                continue
            commit = _commit(path, repository["commit"])
            queries = tuple(_queries(folder / suite / f"{repository['name']}.json", _list_files(path, commit)))
            for view in views:
                yield Subject(
                    view=view,
                    name=repository["name"],
                    path=path,
                    commit=commit,
                    root=repository["root"] if view == "S" else "",
                    queries=_join_queries(queries) if view == "P" else queries,
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


def _list_files(path: Path, commit: str) -> tuple[str, ...]:
    """The files of a commit that can be the answer to something."""
    command = ["git", "-C", str(path), "ls-tree", "-r", "-z", "--name-only", commit]
    names = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    return tuple(name for name in names.split("\0") if name and name not in STUBS)


def _queries(file: Path, known: Sequence[str]) -> Iterator[Query]:
    for entry in json.loads(file.read_text(encoding="utf-8")):
        named = [_target(each) for each in [*entry["relevant"], *entry.get("secondary", ())]]
        targets = [target for target in named if any(_same_file(path, target.path) for path in known)]
        if targets:
            yield Query(text=entry["query"], targets=tuple(dict.fromkeys(targets)))


def _join_queries(queries: Sequence[Query]) -> tuple[Query, ...]:
    """Ask neighbouring questions as one; those that are left over are not asked."""
    joined = zip(*(queries[first::QUESTIONS_IN_ONE] for first in range(QUESTIONS_IN_ONE)), strict=False)
    return tuple(
        Query(
            text=" ".join(query.text for query in group),
            targets=tuple(dict.fromkeys(target for query in group for target in query.targets)),
        )
        for group in joined
    )


def _target(named: dict[str, Any]) -> Target:
    return Target(
        path=named["path"],
        start=named.get("start_line"),
        end=named.get("end_line"),
        spans=tuple((start, end) for start, end in named.get("spans", ())),
    )


async def measure(subject: Subject, home: Path, recipes: dict[str, RankingWeights]) -> dict[str, list[Score]]:
    """Index a subject and ask its queries with each recipe."""
    include = [f"/{subject.root}/**"] if subject.root else []
    index = await CodeIndex.open(subject.path, home=home, include=include, ref=subject.commit)
    try:
        await index.refresh()
        reader = await index.pin()
        return {
            name: [await _ask(reader, recipe, subject, query) for query in subject.queries]
            for name, recipe in recipes.items()
        }
    finally:
        await index.aclose()


async def _ask(reader: IndexReader, recipe: RankingWeights, subject: Subject, query: Query) -> Score:
    started = time.perf_counter()
    if subject.view == "P":
        hits = await _search_parts(reader, recipe, query, limit=DEPTH)
    else:
        hits = reader.search_now(query.text, limit=DEPTH, recipe=recipe)
    milliseconds = (time.perf_counter() - started) * 1000
    by_file = file_ranks(hits, query.targets)
    ranks = by_file if subject.view in "QP" else chunk_ranks(hits, query.targets)
    found = sum(rank is not None and rank <= 5 for rank in by_file)
    return Score(
        view=subject.view,
        name=subject.name,
        ndcg=ndcg(ranks, len(query.targets)),
        recall5=found / len(query.targets),
        milliseconds=milliseconds,
        lines=await _measure_passages(reader, recipe, query),
    )


class _RecipeSearch:
    """An index as the agent searches it, with other ranking weights."""

    def __init__(self, reader: IndexReader, recipe: RankingWeights) -> None:
        self._reader = reader
        self._recipe = recipe
        self.grep = reader.grep

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        return self._reader.search_now(query, limit=limit, filters=filters, mode=mode, aim=aim, recipe=self._recipe)


async def _measure_passages(reader: IndexReader, recipe: RankingWeights, query: Query) -> tuple[float, ...]:
    """The share of the truth's lines in what the agent fetches for a model to read."""
    if not any(target.spans for target in query.targets):
        return ()
    return measure_lines(await _search_parts(reader, recipe, query, limit=MAX_PASSAGES), query.targets)


async def _search_parts(reader: IndexReader, recipe: RankingWeights, query: Query, *, limit: int) -> list[Hit]:
    request = request_search(query.text, reasoning="a question of the benchmark")
    return list((await search_parts(_RecipeSearch(reader, recipe), request, limit=limit)).hits)


def table(scores: dict[str, list[Score]]) -> str:
    """One line a recipe: NDCG@10 and recall@5 of each view, lines by tokens, and the median time of a query."""
    views = list(dict.fromkeys(row.view for rows in scores.values() for row in rows))
    lined = [view for view in views if view in "QP"]
    titles = [*views, *(f"{view} r@5" for view in views)]
    titles += [f"{view} {tokens // 1000}k" for view in lined for tokens in TOKEN_BUDGETS] + ["p50 ms"]
    lines = [f"{'recipe':24} {' '.join(f'{title:>6}' for title in titles)}"]
    for name, rows in scores.items():
        cells = [_mean([row.ndcg for row in rows if row.view == view]) for view in views]
        cells += [_mean([row.recall5 for row in rows if row.view == view]) for view in views]
        for view in lined:
            with_lines = [row.lines for row in rows if row.lines and row.view == view]
            cells += [_mean([shares[place] for shares in with_lines]) for place in range(len(TOKEN_BUDGETS))]
        median = statistics.median(row.milliseconds for row in rows)
        lines.append(f"{name:24} {' '.join(cells)} {median:6.1f}")
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
    parser.add_argument("--views", default="", help="S, F, Q, P or several of them")
    parser.add_argument("--ablate", action="store_true", help="also without each part of the recipe")
    arguments = parser.parse_args()
    if not arguments.eval.is_dir():
        print(f"skipped: there is no folder {arguments.eval}")
        return
    asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
