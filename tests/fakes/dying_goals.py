"""A goal run that gets SIGKILL at a point.

A point is a name, a sign and a number, as in `tests.fakes.dying`: a node begins for the n-th time (`plan<2`), has
returned (`plan|2`), or its step is saved (`plan>2`); an event is told (`command!1`).
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import SecretStr

import agent.goals.goal_graph
from agent.events import AgentEvent, AsyncEventBus
from agent.llm.models import open_models
from agent.persistence.checkpointer import SafeSqliteSaver, open_saver
from tests.agent.goals.conftest import KILLED, PARSER, GoalBench
from tests.fakes.gemini import FakeGemini
from tests.fakes.unconfined import FolderCopies
from tests.forks import import_all

NODES = ("plan", "act", "evaluate")


class Fuse:
    """Kills the process when a point is passed for the n-th time."""

    def __init__(self, point: str) -> None:
        found = re.fullmatch(r"(\w+[<|>!])(\d+)", point)
        assert found is not None
        self._name, self._left = found[1], int(found[2])
        self._node = ""

    def burn(self, name: str) -> None:
        """Pass a point."""
        self._left -= name == self._name
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Make the nodes, the checkpointer and the events pass their points; every step is saved."""
        for name in NODES:
            setattr(agent.goals.goal_graph, name, self._surround(getattr(agent.goals.goal_graph, name), name))
        save, publish = SafeSqliteSaver.aput, AsyncEventBus.publish

        async def aput(saver: SafeSqliteSaver, *arguments: Any) -> Any:
            saver.flush_next("goal")
            saved = await save(saver, *arguments)
            self.burn(f"{self._node}>")
            return saved

        def tell(bus: AsyncEventBus, event: AgentEvent) -> None:
            self.burn(f"{event.kind}!")
            publish(bus, event)

        setattr(SafeSqliteSaver, "aput", aput)  # noqa: B010 - mypy minds an assignment
        setattr(AsyncEventBus, "publish", tell)  # noqa: B010

    def _surround(self, node: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(node)
        async def deadly(state: Any, runtime: Any) -> Any:
            self.burn(f"{name}<")
            changes = await node(state, runtime)
            self._node = name
            self.burn(f"{name}|")
            return changes

        return deadly


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
    Fuse(point).arm()
    asyncio.run(run(url, Path(database), Path(folder)))
