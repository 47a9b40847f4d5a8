"""Measures how soon a branch that nobody has asked about can be searched: `python -m benchmarks.refs --source F`.

The source (Django's release, say) is put into git and indexed. Then branches are made, each with some changed files,
and asked about once. The clock runs from the name of the branch until a search has found a line that only it has.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.index import git, put_in_git
from benchmarks.segments import change_files
from indexer.index import CodeIndex
from indexer.refs.repository_refs import RepositoryRefs
from indexer.store.data_folder import measure_folder

CHANGES = (1, 50)
ROUNDS = 5


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="unpacked source release, or its .tar.gz")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"branches of each kind (default: {ROUNDS})")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = put_in_git(arguments.source, Path(folder, "project"), 1)
        asyncio.run(measure(repository, Path(folder, "home"), arguments.rounds))


async def measure(repository: Path, home: Path, rounds: int) -> None:
    """Print the median and the slowest of each kind, and what they take on the disk."""
    index = await CodeIndex.open(repository, home=home, name="project")
    await index.refresh()
    before = measure_folder(index.folder.root)
    refs = RepositoryRefs(index, most=rounds)
    print(f"{'':<14}{'p50 s':>9}{'slowest':>9}{'again s':>9}{'MB each':>9}")
    try:
        for count in CHANGES:
            first, again = [], []
            for number in range(rounds):
                name = f"benchmark_{count}_{number}"
                make_branch(repository, name, count)
                first.append(await time_search(refs, name))
                again.append(await time_search(refs, name))
            growth = (measure_folder(index.folder.root) - before) / 1e6 / rounds
            figures = (statistics.median(first), max(first), statistics.median(again), growth)
            print(f"{count:>4} changed  " + "".join(f"{figure:9.2f}" for figure in figures))
    finally:
        await refs.aclose()
        await index.aclose()


def make_branch(repository: Path, name: str, count: int) -> None:
    """Commit a change of some files to a branch of its own."""
    git(repository, "checkout", "--quiet", "-b", name)
    change_files(repository, count, name)
    git(repository, "checkout", "--quiet", "-")


async def time_search(refs: RepositoryRefs, name: str) -> float:
    """Find out how long a first search on a branch takes."""
    began = time.perf_counter()
    ref = await refs.find(name)
    assert ref is not None, name
    code = await refs.pin(ref)
    hits = await code.search(name, limit=5)
    seconds = time.perf_counter() - began
    assert any(name in hit.text for hit in hits), name
    return seconds


if __name__ == "__main__":
    main()
