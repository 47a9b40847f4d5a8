"""Measures several processes over one Postgres, and what that costs where SQLite is enough.

`python -m benchmarks.cluster` measures turns, answerers, pushes and deaths, one after the other.

The address of a Postgres is read from `CITEBOT_TEST_POSTGRES`; a database is made in it, and dropped. Turns over both
databases take turns, so that whatever else the machine does slows both. The ratio is what to read; the milliseconds are
those of this machine.

`python -m benchmarks.cluster --chaos 500` asks so many questions of 3 fronts, 3 answerers and 2 indexers, of which one
after the other dies, stalls for longer than its lease, or loses Postgres; it prints what became of them.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.database import Outcome
from agent.persistence.postgres.database import PostgresDatabase
from agent.persistence.postgres.saver import open_postgres_saver
from benchmarks.cluster_processes import measure_pushes, measure_recovery, measure_throughput
from tests.bot.chaos import make_large, run_chaos
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.postgres import make_database
from tests.fakes.scripted_model import ScriptedModel, ScriptedModels
from tests.fakes.shop import SHOP
from tests.forks import open_fork_server

TURNS = 40
QUESTION = "who calls parse_date?"
LOOK = [("find_symbol", {"name": "Order.pay"})]
ANSWER = "`Order.pay` pays an order [E1]."


@dataclass
class Counted:
    """Counts the transactions of all pools, each of which is one trip or two to the server."""

    calls: int = 0

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        run = PostgresDatabase.run_all

        async def count(database: PostgresDatabase, *arguments: Any, **options: Any) -> Outcome | None:
            self.calls += 1
            return await run(database, *arguments, **options)

        setattr(PostgresDatabase, "run_all", count)  # noqa: B010 - mypy minds an assignment
        try:
            yield
        finally:
            setattr(PostgresDatabase, "run_all", run)  # noqa: B010


def redact(text: str) -> str:
    return text


async def answer_without_model(saver: ConversationSaver, thread: str) -> None:
    await _ask(Agent(FakeLibrary(FakeCode(SHOP)), saver, redact), thread)


async def answer_with_model(saver: ConversationSaver, thread: str) -> None:
    """Let a model that answers at once call tools in two rounds, and write the answer in a third."""
    model = ScriptedModel({"executor_llm": [LOOK, [("grep", {"pattern": "time.sleep"})], ANSWER]})
    await _ask(Agent(FakeLibrary(FakeCode(SHOP)), saver, redact, models=ScriptedModels(model)), thread)


async def _ask(agent: Agent, thread: str) -> None:
    events = [event async for event in agent.ask(QUESTION, thread=thread)]
    assert events[-1].payload["answer"].route != "failed", events[-1]


async def compare_turns(name: str, turn: Callable[[ConversationSaver, str], Awaitable[None]]) -> dict[str, str]:
    """Take turns over both databases in conversations of their own, one after the other."""
    counted = Counted()
    seconds: dict[str, list[float]] = {"SQLite": [], "Postgres": []}
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = await stack.enter_async_context(make_database())
        savers: dict[str, Any] = {
            "SQLite": await stack.enter_async_context(open_saver(Path(folder) / "c.db")),
            "Postgres": await stack.enter_async_context(open_postgres_saver(url)),
        }
        for saver in savers.values():
            await turn(saver, "warm up")
        await stack.enter_async_context(counted.watch())
        for number in range(TURNS):
            for database, saver in savers.items():
                began = time.perf_counter()
                await turn(saver, str(number))
                seconds[database].append(time.perf_counter() - began)
    sqlite, postgres = (statistics.median(each) for each in seconds.values())
    return {
        f"{name}: turn p50, SQLite": f"{sqlite * 1000:.1f} ms",
        f"{name}: turn p50, Postgres": f"{postgres * 1000:.1f} ms, {postgres / sqlite:.2f} x",
        f"{name}: transactions of Postgres a turn": f"{counted.calls / TURNS:.1f}",
    }


async def measure() -> dict[str, str]:
    """Take all measurements, one after the other."""
    return {
        **await compare_turns("without a model", answer_without_model),
        **await compare_turns("with a model", answer_with_model),
        **await measure_throughput(),
        **await measure_pushes(),
        **await measure_recovery(),
    }


def run_chaos_in(folder: Path, questions: int, seed: int) -> dict[str, str]:
    """Let processes die, and say what became of the questions."""
    with open_fork_server() as forks:
        report = asyncio.run(run_chaos(forks, make_large(questions), folder, seed=seed))
    for found in (*report.unclean, *report.missing_pushes, *report.dead_leases):
        print(f"not clean: {found}")
    return report.list_figures()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chaos", type=int, metavar="QUESTIONS", help="let processes die instead")
    parser.add_argument("--seed", type=int, default=7, help="of what befalls them")
    parser.add_argument("--folder", type=Path, help="where their logs go; by default nowhere")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.folder or Path(folder)
        figures = run_chaos_in(place, arguments.chaos, arguments.seed) if arguments.chaos else asyncio.run(measure())
    for name, figure in figures.items():
        print(f"{name:<56}{figure}")


if __name__ == "__main__":
    main()
