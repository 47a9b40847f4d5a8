"""A goal run that gets SIGKILL at a point: a name, a sign and a number, as in `tests.fakes.dying`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import SecretStr

import agent.goals.goal_graph
from agent.events import AsyncEventBus
from agent.llm.models import open_models
from agent.persistence.checkpointer import open_saver
from tests.agent.goals.conftest import KILLED, PARSER, GoalBench
from tests.fakes.dying import Fuse
from tests.fakes.gemini import FakeGemini
from tests.fakes.unconfined import FolderCopies
from tests.forks import import_all

NODES = ("plan", "act", "evaluate")


class GoalFuse(Fuse):
    """Kills the process when a goal run passes a point for the n-th time."""

    def arm(self, *_: object) -> None:
        """Make the nodes, the checkpointer and the events pass their points."""
        for name in NODES:
            setattr(agent.goals.goal_graph, name, self._node_with_points(getattr(agent.goals.goal_graph, name), name))
        setattr(AsyncSqliteSaver, "aput", self._stepping(AsyncSqliteSaver.aput))  # noqa: B010 - mypy minds an assignment
        setattr(AsyncEventBus, "publish", self._telling(AsyncEventBus.publish))  # noqa: B010


async def run(url: str, database: Path, folder: Path) -> None:
    """Run towards the goal."""
    copies = folder / "dying"
    copies.mkdir()
    async with (
        open_saver(database) as saver,
        open_models(google_api_key=SecretStr("k"), google_base_url=url) as models,
    ):
        bench = GoalBench(
            saver=saver, models=models, gemini=FakeGemini(), copies=FolderCopies(PARSER, copies), files=dict(PARSER)
        )
        await bench.run(KILLED)


def warm_up() -> None:
    """Import what a model imports as soon as it is asked."""
    import_all("langchain_google_genai")


def run_and_die(url: str, database: str, folder: str, point: str) -> None:
    """Run towards the goal in this process until the point."""
    GoalFuse(point).arm()
    asyncio.run(run(url, Path(database), Path(folder)))
