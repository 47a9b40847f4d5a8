"""How long a push takes to be noticed by 10,000 answers: python -m benchmarks.living_answers [ANSWERS]."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bot.app import open_code_push
from bot.clock import SystemClock
from bot.living.edits import LivingEdits
from bot.living.following import AnswerFollower
from bot.messages import MessageContent
from bot.settings import LivingTable
from bot.storage.database import open_database
from bot.storage.living_answers import DAY, AnswerEvidence, CitedPlace, FollowedPlace, LivingAnswer, LivingAnswerStore
from indexer import IndexStatus
from tests.bot.contract import until
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack

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

    def __init__(self, repository: GitRepo, name: str = "shop") -> None:
        self._repository = repository
        self._name = name

    def list_names(self) -> list[str]:
        return [self._name]

    async def status(self, _: str) -> IndexStatus:
        return IndexStatus(
            repository=self._name, path=str(self._repository.root), commit=self._repository.sha(), branch="main",
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


async def keep_answers(
    store: LivingAnswerStore, commit: str, count: int, rng: random.Random, name: str = "shop"
) -> None:
    for number in range(count):
        places = []
        for mark in range(1, PLACES + 1):
            start = rng.randrange(1, LINES - 20)
            places.append(CitedPlace(
                mark=mark, repository=name, commit=commit, path=f"src/file_{rng.randrange(FILES)}.py",
                start_line=start, end_line=start + rng.randrange(12), words=frozenset({f"value_{start}"}),
            ))  # fmt: skip
        answer = LivingAnswer(
            run_id=f"{number:020}", entry=number, content=MessageContent(text="An answer."), question="?",
            commits={name: commit},
        )  # fmt: skip
        await store.keep(answer, "conversation", AnswerEvidence(commits={name: commit}, places=places))


async def measure_shown(count: int, folder: Path) -> None:
    """Measure from an indexed push until the fake Slack shows that an answer is outdated, beside so many others."""
    rng, repository = random.Random(2), GitRepo(folder / "shop")
    write_files(repository, rng)
    commit = repository.commit("first")
    async with FakeSlack() as fake, SlackWorld(fake, folder / "inbox.sqlite").running() as world:
        world.agent.cites = True
        await world.pass_time(2 * DAY)
        deps = world.conversations.deps
        assert deps.living is not None
        for number in range(PUSHES):
            await world.mention(f"where is thing {number}?")
            await until(world, lambda said, number=number: sum("demo at" in one for one in said) > number)  # type: ignore[misc]
            entry = (await deps.inbox.list_newest("slack", most=1))[0]
            await world.conversations.turns.wait_for(entry.id)
            kept = await deps.living.find(entry.run_id)
            assert kept is not None
            place = CitedPlace(
                mark=1, repository="demo", commit=commit, path=f"src/file_{number}.py", start_line=1, end_line=3,
                words=frozenset({f"value_{number}_0"}),
            )  # fmt: skip
            own = replace(kept, commits={"demo": commit})
            await deps.living.keep(own, entry.conversation, AnswerEvidence(commits=own.commits, places=[place]))
            await world.pass_time(61.0)  # so many questions may be asked a minute
        await keep_answers(deps.living, commit, count, rng, "demo")
        follower = AnswerFollower(deps.living, OneRepository(repository, "demo"), open_code_push, pages={})  # type: ignore[arg-type]
        edits = LivingEdits(
            store=deps.living, inbox=deps.inbox, access=deps.access, settings=LivingTable(edits_per_hour=1_000),
            clock=world.clock, transports=world.conversations.turns.transports, hosts=(), told=asyncio.Event(),
        )  # fmt: skip
        await follower.follow("demo")
        seconds = []
        for number in range(PUSHES):
            path = repository.root / f"src/file_{number}.py"
            path.write_text(path.read_text().replace(f"value_{number}_0 ", f"other_{number}_0 ", 1))
            push(repository, rng)
            began = time.perf_counter()
            await follower.follow("demo")
            await edits.edit_due()
            await until(world, lambda said, number=number: sum("Outdated" in one for one in said) > number)  # type: ignore[misc]
            seconds.append(time.perf_counter() - began)
            await world.pass_time(1.0)
    print(json.dumps({
        "shown p50": round(statistics.median(seconds), 3), "shown p95": round(sorted(seconds)[-2], 3),
    }))  # fmt: skip


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
    for run in (measure, measure_shown):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, Path(folder)))
