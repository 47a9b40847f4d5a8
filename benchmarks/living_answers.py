"""How long a push takes to be noticed by 10,000 answers: python -m benchmarks.living_answers [ANSWERS]."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bot.app import open_code_push
from bot.clock import SystemClock
from bot.living.following import AnswerFollower
from bot.messages import MessageContent
from bot.storage.database import open_database
from bot.storage.living_answers import AnswerEvidence, CitedPlace, FollowedPlace, LivingAnswer, LivingAnswerStore
from indexer import IndexStatus
from tests.fakes.repositories import GitRepo

FILES, LINES, PLACES, PUSHES, TOUCHED = 400, 200, 3, 20, 12


class CountingStore(LivingAnswerStore):
    """A store that counts the places that it returns."""

    places_read = 0

    async def _list_places(self, *args: object) -> list[FollowedPlace]:
        found = list(await super()._list_places(*args))  # type: ignore[arg-type]
        self.places_read += len(found)
        return found


class OneRepository:
    """A repository that is always indexed at its newest commit."""

    def __init__(self, repository: GitRepo) -> None:
        self._repository = repository

    def list_names(self) -> list[str]:
        return ["shop"]

    async def status(self, _: str) -> IndexStatus:
        return IndexStatus(
            repository="shop", path=str(self._repository.root), commit=self._repository.sha(), branch="main",
            indexed_at=0.0, commits_behind=0, files=0, chunks=0, symbols=0, embedder="", disk_bytes=0, skipped={},
        )  # fmt: skip


def write_files(repository: GitRepo, rng: random.Random) -> None:
    for number in range(FILES):
        lines = [f"value_{number}_{line} = compute({rng.randrange(10_000)})" for line in range(LINES)]
        repository.write(f"src/file_{number}.py", "\n".join(lines) + "\n")


def push(repository: GitRepo, rng: random.Random) -> None:
    """Change a line, and insert one, in some files."""
    for number in rng.sample(range(FILES), TOUCHED):
        path = repository.root / f"src/file_{number}.py"
        lines = path.read_text().split("\n")
        lines[rng.randrange(LINES)] = f"changed = {rng.randrange(10_000)}"
        lines.insert(rng.randrange(LINES), "inserted = 1")
        path.write_text("\n".join(lines))
    repository.commit("push")


async def keep_answers(store: LivingAnswerStore, commit: str, count: int, rng: random.Random) -> None:
    for number in range(count):
        places = []
        for mark in range(1, PLACES + 1):
            start = rng.randrange(1, LINES - 20)
            places.append(CitedPlace(
                mark=mark, repository="shop", commit=commit, path=f"src/file_{rng.randrange(FILES)}.py",
                start_line=start, end_line=start + rng.randrange(12), words=frozenset({f"value_{start}"}),
            ))  # fmt: skip
        answer = LivingAnswer(
            run_id=f"{number:020}", entry=number, content=MessageContent(text="An answer."), question="?",
            commits={"shop": commit},
        )  # fmt: skip
        await store.keep(answer, "conversation", AnswerEvidence(commits={"shop": commit}, places=places))


async def measure(count: int, folder: Path) -> None:
    rng, repository = random.Random(1), GitRepo(folder / "shop")
    write_files(repository, rng)
    commit = repository.commit("first")
    async with open_database(folder / "inbox.sqlite") as database:
        store = CountingStore(database, SystemClock())
        await database.write("PRAGMA synchronous = OFF")
        await keep_answers(store, commit, count, rng)
        follower = AnswerFollower(store, OneRepository(repository), open_code_push, pages={})  # type: ignore[arg-type]
        await follower.follow("shop")
        seconds, used, read = [], [], []
        for _ in range(PUSHES):
            push(repository, rng)
            store.places_read = 0
            began, cpu = time.perf_counter(), time.process_time()
            await follower.follow("shop")
            seconds.append(time.perf_counter() - began)
            used.append(time.process_time() - cpu)
            read.append(store.places_read)
        outdated = await database.row("SELECT count(*) FROM living_answers WHERE due = 1")
    print(json.dumps({
        "answers": count, "places": count * PLACES, "pushes": PUSHES,
        "seconds p50": round(statistics.median(seconds), 3), "seconds p95": round(sorted(seconds)[-2], 3),
        "cpu seconds p50": round(statistics.median(used), 3), "rows read p50": statistics.median(read),
        "rows read most": max(read), "outdated": outdated,
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, Path(folder)))
