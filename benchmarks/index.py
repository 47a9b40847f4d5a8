"""Measures indexing, queries and refreshes on a large project: `python -m benchmarks.index --source DIR`.

The source (Django's release, say) is put into git as it is, and four times over. Each size is measured in a process of
its own, so that peak memory is its own; rank-bm25's `get_scores` and ripgrep run on the same questions beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rank_bm25 import BM25Okapi

from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.search.postings import PostingsStack
from indexer.text.tokens import tokenize_question
from tests.fakes.bags import read_bags

COPIES = (1, 4)
CHANGES = (1, 10, 50)
ROUNDS = 5
SLOW_ROUNDS = 10  # questions put to rank-bm25's own loop and to ripgrep

QUESTIONS = (
    "QuerySet",
    "get_absolute_url",
    "where are migrations recorded?",
    "csrf token check",
    "template loader cache",
    "how is a session cookie signed?",
    "password hashing iterations",
    "sql compiler for aggregates",
    "atomic transaction savepoint",
    "url resolver reverse",
    "middleware order",
    "file upload handlers",
    "static files finder",
    "admin changelist filters",
    "How does the framework decide which database a query on a model is sent to when several databases are configured?",
    "What happens between the moment a request arrives at the handler and the call of the view the resolver found?",
    "Which part of the form machinery turns the posted text of a field into a Python value and collects the errors?",
    "Why does the autoreloader start a second process and how do the two tell each other that a file has changed?",
    "In what way are translations looked up when a language variant has no catalogue but its parent has?",
    "How are the values of an annotation with a window expression put into the SELECT clause by the compiler?",
)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="unpacked source release, or its .tar.gz")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asyncio.run(measure(arguments.measure))))
        return
    if not arguments.source.exists():
        print(f"skipped: there is nothing at {arguments.source}")
        return
    with tempfile.TemporaryDirectory() as temporary:
        rows = [_in_own_process(put_in_git(arguments.source, Path(temporary) / f"x{each}", each)) for each in COPIES]
    print(table(rows))


def _in_own_process(repository: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.index", "--source", str(repository), "--measure", str(repository)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row: dict[str, Any] = json.loads(output)
    return row


def put_in_git(source: Path, target: Path, copies: int) -> Path:
    """Put the source into a new git repository, once or in several folders."""
    target.mkdir(parents=True)
    for number in range(copies):
        folder = target / f"copy{number}" if copies > 1 else target
        _unpack(source, folder)
    git(target, "init", "--quiet")
    commit(target, "source release")
    return target


def _unpack(source: Path, folder: Path) -> None:
    if source.is_dir():
        others = shutil.ignore_patterns("site-packages", "__pycache__")
        shutil.copytree(source, folder, ignore=others, dirs_exist_ok=True)
        return
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")


def git(repository: Path, *arguments: str) -> None:
    """Run git as somebody."""
    author = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost", "-c", "core.autocrlf=false"]
    subprocess.run(["git", "-C", str(repository), *author, *arguments], check=True, capture_output=True)


def commit(repository: Path, message: str) -> None:
    """Commit the whole working tree."""
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--message", message)


async def measure(repository: Path) -> dict[str, Any]:
    """All figures of one repository, by name."""
    with tempfile.TemporaryDirectory() as home:
        index = await CodeIndex.open(repository, home=Path(home))
        try:
            figures = await indexing(index, repository)
            figures |= _queries(await index.pin(), repository)
            for count in CHANGES:
                figures |= await _refreshes(index, repository, count)
        finally:
            await index.aclose()
    return figures


async def indexing(index: CodeIndex, repository: Path) -> dict[str, Any]:
    """Index from nothing; `repository` has the files of the commit."""
    processor = time.process_time()
    report = await index.refresh()
    files = await (await index.pin()).files()
    size = sum((repository / entry.path).stat().st_size for entry in files)
    return {
        "files": report.files,
        "MB": round(size / 1e6, 1),
        "chunks": report.chunks,
        "index s": round(report.seconds, 1),
        "index CPU s": round(time.process_time() - processor, 1),
        "files/s": round(report.files / report.seconds),
        "MB/s": round(size / 1e6 / report.seconds, 2),
        "chunks/s": round(report.chunks / report.seconds),
        "peak MB after indexing": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _RSS_UNIT),
        "disk MB": round((await index.status()).disk_bytes / 1e6),
    }


_RSS_UNIT = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kilobytes


def _queries(reader: IndexReader, repository: Path) -> dict[str, Any]:
    reader.search_now("warm up")
    ours = [_timed(partial(reader.search_now, text)) for _ in range(ROUNDS) for text in QUESTIONS]
    lexical = reader.snapshot.lexical
    terms = PostingsStack([each.terms for each in reader.snapshot.segments], reader.snapshot.selection.chunks)
    loop = BM25Okapi([list(bag.elements()) for bag in read_bags(terms, reader.snapshot.terms.words())])
    few = QUESTIONS[:: len(QUESTIONS) // SLOW_ROUNDS][:SLOW_ROUNDS]
    plain = [_timed(partial(loop.get_scores, tokenize_question(text))) for text in few]
    sparse = [_timed(partial(lexical.get_scores, tokenize_question(text))) for text in few]
    figures = percentiles("query", ours) | percentiles("BM25 sparse", sparse) | percentiles("get_scores", plain)
    if shutil.which("rg"):
        grep = [_timed(partial(_ripgrep, repository, text)) for text in few]
        figures |= percentiles("ripgrep", grep)
    figures["get_scores / sparse"] = round(statistics.median(plain) / statistics.median(sparse))
    return figures


def _ripgrep(repository: Path, text: str) -> None:
    pattern = "|".join(sorted(set(tokenize_question(text))))
    subprocess.run(["rg", "--count", "--ignore-case", pattern, str(repository)], capture_output=True, check=False)


async def _refreshes(index: CodeIndex, repository: Path, count: int) -> dict[str, Any]:
    paths = sorted(entry.path for entry in await (await index.pin()).files() if entry.language == "python")
    chosen = random.Random(count)
    seconds = []
    for number in range(ROUNDS):
        for path in chosen.sample(paths, count):
            with (repository / path).open("a", encoding="utf-8") as file:
                file.write(f"\n\ndef added_{number}():\n    return {number}\n")
        commit(repository, f"change {number}")
        seconds.append((await index.refresh()).seconds)
    return {
        f"refresh {count} p50 s": round(statistics.median(seconds), 2),
        f"refresh {count} max s": round(max(seconds), 2),
    }


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def percentiles(name: str, seconds: list[float]) -> dict[str, float]:
    """Half and nearly all of the times, in milliseconds."""
    ordered = sorted(seconds)
    return {
        f"{name} p50 ms": round(statistics.median(ordered) * 1000, 1),
        f"{name} p95 ms": round(ordered[int(len(ordered) * 0.95)] * 1000, 1),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """A line a figure, a column a size, and the ratio of the last to the first."""
    return "\n".join(_lines(rows))


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{'':26}" + "".join(f"{f'{copies}x':>12}" for copies in COPIES) + f"{'ratio':>8}"
    for name in rows[0]:
        values = [row[name] for row in rows]
        ratio = f"{values[-1] / values[0]:8.1f}" if values[0] else ""
        yield f"{name:26}" + "".join(f"{value:>12}" for value in values) + ratio


if __name__ == "__main__":
    main()
