"""Measures real processes that share the work: answers a second, pushes until they are served, deaths until fixed."""

from __future__ import annotations

import asyncio
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bot.tasks import run_in_background
from tests.bot.chaos import SMALL, Asked, Scene, open_scene, watch_answers
from tests.fakes.gemini import FakeGemini, Reply, running_gemini
from tests.forks import open_fork_server

MODEL_SECONDS = 0.3
PLACES = 8  # of one answerer: MAX_CONCURRENT_ANSWERS
ANSWERERS = (1, 2, 4)
QUESTIONS = 60
ROUNDS = 6
SLOW_SECONDS = 2.0  # of the model, so that a process is killed while it answers
_LOOK_SECONDS = 0.02  # nobody tells of what processes do


def make_variables(gemini: FakeGemini, seconds: float) -> Mapping[str, str]:
    """Let a model answer in one piece, after so many seconds."""
    gemini.script = lambda _: Reply(parts=({"text": "`parse_date` reads a date [E1]."},), pause=seconds)
    return {
        "GOOGLE_API_KEY": "a-key-of-the-benchmark",
        "GOOGLE_API_BASE_URL": gemini.url,
        "MAX_CONCURRENT_ANSWERS": str(PLACES),
        "CITEBOT_POLL_SECONDS": "5",
    }


@asynccontextmanager
async def open_team(answerers: int, *, model_seconds: float) -> AsyncIterator[tuple[Scene, Path]]:
    """Start an indexer, a front and answerers, each of which has answered once."""
    with tempfile.TemporaryDirectory() as folder, running_gemini() as gemini, open_fork_server() as forks:
        async with open_scene(forks, SMALL, Path(folder), make_variables(gemini, model_seconds)) as scene:
            scene.cluster.is_hurried = True
            for role in ("index", "front", *["answer"] * answerers):
                await scene.cluster.start(role)  # type: ignore[arg-type]
            async with run_in_background(watch_answers(scene)):
                await ask_at_once(scene, answerers * PLACES)
                yield scene, Path(folder)


async def ask_at_once(scene: Scene, questions: int) -> Sequence[Asked]:
    """Ask questions, each in a thread of its own, and wait for all answers."""
    asked = [await scene.ask(f"how does parse_date read a date? ({number})", "slack") for number in range(questions)]
    while any(each.seconds is None for each in asked):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    return asked


async def measure_throughput() -> dict[str, str]:
    """Settle many questions with some answerers; the ideal has nothing to wait for but its model."""
    figures: dict[str, str] = {}
    first = 0.0
    for count in ANSWERERS:
        async with open_team(count, model_seconds=MODEL_SECONDS) as (scene, _):
            began = time.perf_counter()
            await ask_at_once(scene, QUESTIONS)
            rate = QUESTIONS / (time.perf_counter() - began)
        first = first or rate
        ideal = count * PLACES / MODEL_SECONDS
        figures[f"settled a second with {count} answerers"] = (
            f"{rate:.1f}, {rate / first:.2f} x one; ideal {ideal:.0f}, {count} x"
        )
    return figures


async def measure_pushes() -> dict[str, str]:
    """Commit, and wait until the answerer has the new index on its disk."""
    indexed, served = [], []
    async with open_team(1, model_seconds=0.0) as (scene, folder):
        for number in range(ROUNDS):
            ((version,),) = await scene.database.rows("SELECT max(version) FROM manifests")
            scene.repository.write(f"shop/part_{number}.py", f"def find_part_{number}():\n    return {number}\n")
            await asyncio.to_thread(scene.repository.commit, f"Push {number}")
            began = time.perf_counter()
            while (await scene.database.rows("SELECT max(version) FROM manifests"))[0][0] <= version:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
            indexed.append(time.perf_counter() - began)
            while not list(folder.glob(f"home */generations/*/{version + 1}-{'?' * 64}")):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
            served.append(time.perf_counter() - began - indexed[-1])
    return {
        "push until it is published, p50, longest": f"{statistics.median(indexed):.2f} s, {max(indexed):.2f} s",
        "published until it is served, p50, longest": f"{statistics.median(served):.2f} s, {max(served):.2f} s",
    }


async def measure_recovery() -> dict[str, str]:
    """Kill the process that answers a question, and wait for the answer of another one on the same machine."""
    seconds = []
    async with open_team(2, model_seconds=SLOW_SECONDS) as (scene, _):
        (whole,) = await ask_at_once(scene, 1)
        for number in range(ROUNDS):
            asked = await scene.ask(f"how does parse_date read a date? (again {number})", "slack")
            sql = "SELECT owner FROM inbox WHERE message = ? AND state = 'running' AND owner <> ''"
            while not (rows := await scene.database.rows(sql, [asked.message])):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
            pid = int(str(rows[0][0]).split("/")[1])
            dying = next(member for member in scene.cluster.members if member.fork.pid == pid)
            killed = time.monotonic()
            await scene.cluster.end(dying, signal.SIGKILL)
            while asked.seconds is None:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
            seconds.append(asked.began + asked.seconds - killed)
            await scene.cluster.start("answer")
    p50, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {
        f"SIGKILL until the answer, p50, p95 of {ROUNDS}": f"{p50:.1f} s, {p95:.1f} s",
        "the same question without a death": f"{whole.seconds:.1f} s",
    }
