"""Measures what a push costs where one machine indexes and another answers: `python -m benchmarks.segments --source F`.

The source (Django's release, say) is put into git, indexed and published in an object store on loopback that speaks
S3's protocol, and served from another folder. Then files are changed and pushed: a line is added to each. The clock of
"searchable" runs from the commit until a search on the other machine finds it, through its follower, told at once.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.index import commit, put_in_git
from indexer.embedding.factory import open_embedder
from indexer.index import CodeIndex
from indexer.search.ranking import RankingWeights
from indexer.segments.bucket import open_bucket
from indexer.segments.local_generations import LocalGenerations
from indexer.segments.opened_generation import ReadingParts
from indexer.segments.publisher import Publisher
from indexer.segments.shared_index import Follower, SharedIndex
from tests.fakes.manifests import ManifestFile
from tests.fakes.s3 import BUCKET, serve_s3

CHANGES = (1, 50)
ROUNDS = 5
NAME = "project"


@dataclass(frozen=True, kw_only=True)
class Machines:
    """The one that indexes and the one that answers."""

    index: CodeIndex
    publisher: Publisher
    shared: SharedIndex
    follower: Follower
    generations: LocalGenerations


@dataclass(frozen=True, kw_only=True)
class Push:
    """What one push took, in seconds and bytes."""

    indexed: float
    published: float
    searchable: float
    sent: int
    puts: int
    fetched: int
    gets: int
    hit_rate: float


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="unpacked source release, or its .tar.gz")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pushes of each kind (default: {ROUNDS})")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = put_in_git(arguments.source, Path(folder, "project"), 1)
        asyncio.run(measure(repository, Path(folder), arguments.rounds))


async def measure(repository: Path, folder: Path, rounds: int) -> None:
    """Print a line for the first publication and one for each kind of push."""
    async with open_machines(repository, folder) as machines:
        names = ("index s", "publish s", "found s", "sent KB", "PUT", "got KB", "GET", "hits")
        print(" " * 16 + "".join(f"{name:>10}" for name in names))
        print_row("first", [await push(machines)])
        for count in CHANGES:
            pushes = []
            for number in range(rounds):
                change_files(repository, count, f"{count}_{number}")
                pushes.append(await push(machines, f"benchmark_{count}_{number}"))
            print_row(f"{count} changed", pushes)


@asynccontextmanager
async def open_machines(repository: Path, folder: Path) -> AsyncIterator[Machines]:
    """Open two machines that share nothing but an object store and manifests."""
    async with serve_s3() as fake:
        store, manifests = (
            open_bucket(f"s3://{BUCKET}", options=fake.options),
            ManifestFile(folder / "manifests.sqlite"),
        )
        index = await CodeIndex.open(repository, home=folder / "indexer", name=NAME)
        generations = LocalGenerations(folder / "answerer", 2**40)
        parts = ReadingParts(name=NAME, web_url=None, embedder=open_embedder("static"), recipe=RankingWeights())
        shared = SharedIndex(parts, store=store, manifests=manifests, generations=generations)
        try:
            yield Machines(
                index=index,
                publisher=Publisher(store, manifests, folder / "publishing"),
                shared=shared,
                follower=Follower({NAME: shared}, manifests),
                generations=generations,
            )
        finally:
            generations.close()
            await index.aclose()


async def push(machines: Machines, wanted: str = "") -> Push:
    """Index, publish and follow what was committed, and find it."""
    counts = machines.generations.counts
    found, fetched, gets = counts.found_bytes, counts.fetched_bytes, counts.requests
    began = time.perf_counter()
    await machines.index.refresh()
    indexed = time.perf_counter()
    publication = await machines.publisher.publish(machines.index)
    published = time.perf_counter()
    await machines.follower.look()
    reader = await machines.shared.pin()
    if wanted and not any(wanted in hit.text for hit in await reader.search(wanted)):
        raise AssertionError(f"{wanted} is not found")
    done = time.perf_counter()
    found, fetched = counts.found_bytes - found, counts.fetched_bytes - fetched
    return Push(
        indexed=indexed - began,
        published=published - indexed,
        searchable=done - began,
        sent=publication.sent_bytes,
        puts=publication.sent_objects,
        fetched=fetched,
        gets=counts.requests - gets,
        hit_rate=found / max(found + fetched, 1),
    )


def change_files(repository: Path, count: int, name: str) -> None:
    """Add a function to some files, and commit that."""
    files = sorted(path for path in repository.rglob("*.py") if path.stat().st_size > 1000)
    for path in random.Random(name).sample(files, count):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef benchmark_{name}():\n    return {name!r}\n")
    commit(repository, f"change {name}")


def print_row(name: str, pushes: list[Push]) -> None:
    """Print the medians of some pushes."""

    def median(part: str) -> float:
        return float(statistics.median(getattr(each, part) for each in pushes))

    print(
        f"{name:16}{median('indexed'):10.2f}{median('published'):10.2f}{median('searchable'):10.2f}"
        f"{median('sent') / 1000:10.0f}{median('puts'):10.0f}{median('fetched') / 1000:10.0f}{median('gets'):10.0f}"
        f"{median('hit_rate'):10.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()
