"""Measures how soon a push can be found: `python -m benchmarks.refresh --source FOLDER-OR-TAR.GZ`.

The source (Django's release, say) is put into git as it is, and four times over, and served over HTTP on loopback by
git itself. Files are changed and pushed, the watcher is told as a webhook would tell it, and the clock runs from the
end of the push until a search finds what was written. Each size is measured in a process of its own. The memory of
twenty repositories is that of one process that has opened them and asked each the same questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from typing import Any

import psutil

from benchmarks.index import COPIES, QUESTIONS, commit, git, indexing, percentiles, put_in_git, table
from bot.clock import SystemClock
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.library import RepositoryLibrary
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import IndexStatus, Progress, RefreshReport
from indexer.watcher import Watcher, WatchIntervals
from tests.fakes.git_host import GitHost, published, serving

CHANGES = (1, 10, 50)
ROUNDS = 10
BUSY_ROUNDS = 5
TEAM = 20
NAME = "project"
APART = 0.05  # seconds between questions
LOOK = 0.01
LONGEST = 120.0


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="unpacked source release, or its .tar.gz")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pushes of each kind (default: {ROUNDS})")
    parser.add_argument("--part", choices=[*_PARTS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(asyncio.run(_PARTS[arguments.part](arguments.folder, arguments.rounds))))
    elif not arguments.source.exists():
        print(f"skipped: there is nothing at {arguments.source}")
    else:
        _measure_all(arguments.source, arguments.rounds)


def _measure_all(source: Path, rounds: int) -> None:
    print(f"{os.cpu_count()} cores, of which others kept {os.getloadavg()[0]:.1f} busy\n")
    rows = []
    for copies in COPIES:
        with tempfile.TemporaryDirectory() as temporary:
            put_in_git(source, Path(temporary) / "work", copies)
            rows.append(_in_own_process(source, "pushes", Path(temporary), rounds))
    print(table(rows))
    with tempfile.TemporaryDirectory() as temporary:
        put_in_git(source, Path(temporary) / "whole", 1)
        sizes = _make_team(Path(temporary) / "whole", Path(temporary) / "team")
        _in_own_process(source, "fill", Path(temporary), rounds)
        figures = _in_own_process(source, "team", Path(temporary), rounds)
    print(
        f"\n{len(sizes)} repositories of {min(sizes)} to {max(sizes)} files, {statistics.median(sizes):g} in the middle"
    )
    for name, value in figures.items():
        print(f"{name:26}{value:>12}")


def _in_own_process(source: Path, part: str, folder: Path, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.refresh", "--source", str(source), "--rounds", str(rounds)]
    command += ["--part", part, "--folder", str(folder)]
    row: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return row


class Unseen:
    """A display that shows nothing."""

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        yield lambda _: None

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)


class Timed:
    """The library as the watcher sees it; keeps how long the refreshes took."""

    def __init__(self, library: RepositoryLibrary) -> None:
        self._library = library
        self.seconds: list[float] = []

    async def status(self, name: str) -> IndexStatus:
        return await self._library.status(name)

    async def index_here(self, name: str) -> RefreshReport:
        report = await self._library.index_here(name)
        self.seconds.append(report.seconds)
        return report


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A repository on a host, watched and indexed here."""

    work: Path
    index: CodeIndex
    library: RepositoryLibrary
    timed: Timed
    watcher: Watcher
    paths: list[str]
    words: Iterator[str]
    chosen: random.Random

    async def push(self, files: int) -> tuple[str, str]:
        """Change so many files and push them; the commit, and a word that is in all of them and nowhere else."""
        word = next(self.words)
        for path in self.chosen.sample(self.paths, files):
            with (self.work / path).open("a", encoding="utf-8") as file:
                file.write(f"\n\ndef {word}(first, second):\n    return first.merge(second)\n")
        await asyncio.to_thread(commit, self.work, word)
        await asyncio.to_thread(git, self.work, "push", "--quiet", "origin", "HEAD")
        return (self.work / ".git" / _head(self.work)).read_text().strip(), word

    async def found(self, sha: str, word: str) -> None:
        """Wait until a search finds what was pushed."""
        async with asyncio.timeout(LONGEST):
            while (reader := await self.index.pin()).commit.sha != sha:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(LOOK)
        hits = await reader.search(word)
        if not any(word in hit.text for hit in hits):
            raise AssertionError(f"{word} is indexed and not found")

    async def asked(self, questions: Iterator[str]) -> float:
        """Ask one question of the newest generation; the seconds it took."""
        await asyncio.sleep(APART)
        started = time.perf_counter()
        await (await self.index.pin()).search(next(questions))
        return time.perf_counter() - started


def _head(work: Path) -> str:
    return (work / ".git" / "HEAD").read_text().removeprefix("ref: ").strip()


async def pushes(folder: Path, rounds: int) -> dict[str, Any]:
    """All figures of one size; `folder` has the repository as `work`."""
    async with serving(GitHost(folder / "host", looks_around=False)) as host:
        work, home = folder / "work", folder / "home"
        published(work, host, f"{NAME}.git")
        git(work, "remote", "add", "origin", f"{host.url}/{NAME}.git")
        clone = RemoteClone(RemoteRepository(name=NAME, url=f"{host.url}/{NAME}.git"), home)
        await clone.newest()
        index = await CodeIndex.open(clone.path, home=home, name=NAME)
        try:
            figures = await indexing(index, work)
            async with _watched(index, clone, work) as bench:
                for files in CHANGES:
                    figures |= await _push_figures(bench, files, rounds)
                figures |= await _query_figures(bench)
        finally:
            await index.aclose()
    return figures


@asynccontextmanager
async def _watched(index: CodeIndex, clone: RemoteClone, work: Path) -> AsyncIterator[Bench]:
    jobs = LocalRefreshJobs()
    library = RepositoryLibrary({NAME: index}, Unseen(), jobs)
    timed = Timed(library)
    # No gap: every push is measured as if none had come before it.
    watcher = Watcher(timed, SystemClock(), polled=[clone], pace=WatchIntervals(poll=3_600, gap=0))
    watching = asyncio.create_task(watcher.run())
    files = await (await index.pin()).files()
    try:
        async with jobs.work_on_refreshes(library.index_now):
            yield Bench(
                work=work,
                index=index,
                library=library,
                timed=timed,
                watcher=watcher,
                paths=sorted(entry.path for entry in files if entry.language == "python"),
                words=(f"pushedword{number}" for number in count()),
                chosen=random.Random(1),
            )
    finally:
        watching.cancel()
        await asyncio.wait({watching})


async def _push_figures(bench: Bench, files: int, rounds: int) -> dict[str, Any]:
    seconds = []
    bench.timed.seconds.clear()
    for _ in range(rounds):
        sha, word = await bench.push(files)
        started = time.perf_counter()
        bench.watcher.notify(NAME, "refs/heads/main", sha)
        await bench.found(sha, word)
        seconds.append(time.perf_counter() - started)
    name = f"push of {files}"
    return percentiles(name, seconds) | {f"{name}, indexing p50": _milliseconds(bench.timed.seconds)}


def _milliseconds(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)


async def _query_figures(bench: Bench) -> dict[str, Any]:
    questions = cycle(QUESTIONS)
    await bench.asked(questions)
    idle = [await bench.asked(questions) for _ in range(10 * len(QUESTIONS))]
    during: list[float] = []
    for _ in range(BUSY_ROUNDS):
        sha, word = await bench.push(CHANGES[-1])
        bench.watcher.notify(NAME, "refs/heads/main", sha)
        finding = asyncio.create_task(bench.found(sha, word))
        while not finding.done():
            during.append(await bench.asked(questions))
        await finding
    indexed = asyncio.create_task(bench.library.index_here(NAME, full=True))
    whole: list[float] = []
    while not indexed.done() and len(whole) < len(idle):
        whole.append(await bench.asked(questions))
    indexed.cancel()  # closing the library ends what it waited for
    return (
        percentiles("query idle", idle) | percentiles("query in refresh", during) | percentiles("query in full", whole)
    )


def _make_team(whole: Path, target: Path) -> list[int]:
    """Make the largest folders two steps below the project's top repositories of their own; how many files each has."""
    top = whole
    while len(below := [each for each in top.iterdir() if each.is_dir() and each.name != ".git"]) == 1:
        (top,) = below
    sizes = {folder: sum(each.is_file() for each in folder.rglob("*.py")) for folder in top.glob("*/*/")}
    largest = sorted(sizes, key=lambda folder: (-sizes[folder], folder))[:TEAM]
    for folder in largest:
        put_in_git(folder, target / f"{folder.parent.name}-{folder.name}", 1)
    return [sizes[folder] for folder in largest]


async def fill(folder: Path, _: int) -> dict[str, Any]:
    """Index the repositories of a team."""
    for repository in sorted((folder / "team").iterdir()):
        index = await CodeIndex.open(repository, home=folder / "home")
        await index.refresh()
        await index.aclose()
    return {}


async def team(folder: Path, _: int) -> dict[str, Any]:
    """Open the repositories of a team and ask them; what memory that takes."""
    process = psutil.Process()
    figures = {"MB before": round(process.memory_info().rss / 1e6)}
    indexes: list[CodeIndex] = []
    chunks = 0
    repositories = sorted((folder / "team").iterdir())
    for number, repository in enumerate(repositories, start=1):
        index = await CodeIndex.open(repository, home=folder / "home")
        indexes.append(index)
        reader = await index.pin()
        for question in QUESTIONS:
            await reader.search(question)
        chunks += (await index.status()).chunks
        if number in {1, len(repositories)}:
            figures[f"MB with {number} asked"] = round(process.memory_info().rss / 1e6)
    figures["chunks"] = chunks
    for index in indexes:
        await index.aclose()
    return figures


_PARTS = {"pushes": pushes, "fill": fill, "team": team}

if __name__ == "__main__":
    main()
