"""A process that is killed while it answers.

Which message is in progress is noted beside the database before the agent is asked, as the inbox of a bot does. The way
is `tools`, `joined` for the same about two repositories, or `forms` for a model that calls none; the url, if there is
one, is of conversations in Postgres.

A point is a name, a sign and, from the second time on, a number: a node begins (`router<`), has returned but nothing
of it is saved (`router|`), the step is over for the checkpointer (`router>2`, and `begin>` for the first of all), which
is about to save that a person was asked or has replied, or has (`asked<`, `replied+2`); the code is about to be pinned,
the run taken through the graph, its end cleaned up, or each of these is done (`pin<`, `take>`, `end<`); an event is
told (`token!5`); one of several replies was kept (`reply>2`).
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import tempfile
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.runtime import Runtime
from pydantic import SecretStr

import agent.agent
import agent.answering.rounds
import agent.graph
from agent.agent import Agent
from agent.conversations import open_conversations
from agent.errors import UnknownRun
from agent.events import AgentEvent, AsyncEventBus
from agent.llm.models import ChatModels, open_models
from agent.persistence.evidence_store import EvidenceStore
from agent.ports import Answer, Deps
from agent.runs.graph_runner import GraphRunner
from agent.state import AgentState
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.gemini import calls, running_gemini, says
from tests.fakes.shop import SHOP
from tests.forks import import_all

THREAD = "t"
JOINED = ("shop", "store")  # which hold the same
WHICH = "Do you mean orders or parcels?"
WHAT = "the orders, please"
YES = "approve"
NODES = tuple(agent.graph.build_graph().nodes)
SPECIAL = {"__interrupt__": "asked", "__resume__": "replied"}  # what the graph writes beside the nodes
NOTED: tuple[tuple[object, str, str], ...] = (
    (agent.agent, "pin_repositories", "pin"),
    (GraphRunner, "take", "take"),
    (EvidenceStore, "drop", "end"),
    (agent.answering.rounds.KeptReply, "keep", "reply"),
)

Node = Callable[[AgentState, Runtime[Deps]], Awaitable[AgentState]]


class Fuse:
    """Kills the process when a point is passed for the n-th time."""

    def __init__(self, point: str) -> None:
        found = re.fullmatch(r"(\w+[<|+>!])(\d*)", point)
        assert found is not None, f"no such point: {point}"
        self._name = found[1]
        self._left = int(found[2] or 1)
        self._node = "begin"  # the one that has returned last

    def burn(self, name: str) -> None:
        """Pass a point."""
        self._left -= name == self._name
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self, *more: tuple[object, str, str]) -> None:
        """Make the nodes, the checkpointer, the agent and the events of this process pass their points.

        Each of `more` is an owner, the name of what it does, and that of the points before and after it.
        """
        for name in NODES:
            setattr(agent.graph, name, self._node_with_points(getattr(agent.graph, name), name))
        for saver in (AsyncSqliteSaver, AsyncPostgresSaver):
            setattr(saver, "aput", self._stepping(saver.aput))  # noqa: B010 - mypy minds an assignment
            setattr(saver, "aput_writes", self._writing(saver.aput_writes))  # noqa: B010
        for owner, name, point in (*NOTED, *more):
            setattr(owner, name, self._noting(getattr(owner, name), point))
        setattr(AsyncEventBus, "publish", self._telling(AsyncEventBus.publish))  # noqa: B010 - mypy minds an assignment

    def _node_with_points(self, node: Node, name: str) -> Node:
        @functools.wraps(node)
        async def deadly(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
            self.burn(f"{name}<")
            changes = await node(state, runtime)
            self._node = name
            self.burn(f"{name}|")
            return changes

        return deadly

    def _stepping(self, save: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def deadly(*arguments: Any) -> Any:
            saved = await save(*arguments)
            self.burn(f"{self._node}>")
            return saved

        return deadly

    def _writing(self, save: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(save)  # the graph looks at its parameters
        async def deadly(saver: object, config: Any, writes: Sequence[tuple[str, Any]], *rest: Any) -> Any:
            special = [SPECIAL[channel] for channel, _ in writes if channel in SPECIAL]
            for name in special:
                self.burn(f"{name}<")
            saved = await save(saver, config, writes, *rest)
            for name in special:
                self.burn(f"{name}+")
            return saved

        return deadly

    def _telling(self, publish: Callable[[AsyncEventBus, AgentEvent], None]) -> Callable[..., None]:
        def deadly(bus: AsyncEventBus, event: AgentEvent) -> None:
            self.burn(f"{event.kind}!")
            publish(bus, event)

        return deadly

    def _noting(self, note: Callable[..., Awaitable[Any]], name: str) -> Callable[..., Awaitable[Any]]:
        async def deadly(*arguments: Any, **options: Any) -> Any:
            self.burn(f"{name}<")
            noted = await note(*arguments, **options)
            self.burn(f"{name}>")
            return noted

        return deadly


@asynccontextmanager
async def open_agent(database: Path, url: str | None, models: ChatModels) -> AsyncGenerator[Agent]:
    """Open an agent that asks for approval of every plan."""
    async with open_conversations(database, SecretStr(url) if url else None) as saver:
        yield Agent(FakeLibrary(FakeCode(SHOP)), saver, redact, models=models, approval_calls=0)


def redact(text: str) -> str:
    """Mask nothing."""
    return text


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Somebody who puts questions to an agent, as a bot does: what is in progress is noted before it is asked."""

    agent: Agent
    database: Path
    way: str

    async def put(self, question: str) -> Answer:
        """Put a question, and reply for as long as a question comes back."""
        return await self._reply(await self._ask(question))

    async def take_up(self) -> Answer:
        """Continue as the next process does with the message that was in progress."""
        run_id, text = json.loads(self._note.read_text(encoding="utf-8"))
        try:
            answer = await end_of(self.agent.resume(run_id, thread=THREAD))
        except UnknownRun:
            answer = await self._ask(text, run_id)
        return await self._reply(answer)

    async def _ask(self, text: str, run_id: str = "") -> Answer:
        run_id = run_id or uuid.uuid4().hex
        self._note.write_text(json.dumps([run_id, text]), encoding="utf-8")
        names = JOINED if self.way == "joined" and text not in {WHAT, YES} else ()
        return await end_of(self.agent.ask(text, thread=THREAD, repositories=names, run_id=run_id))

    async def _reply(self, answer: Answer) -> Answer:
        while answer.route == "paused":
            answer = await self._ask(WHAT if answer.text == WHICH else YES)
        return answer

    @property
    def _note(self) -> Path:
        return self.database.with_suffix(".inbox")


async def end_of(events: AsyncGenerator[AgentEvent, None]) -> Answer:
    """Listen to a run up to its answer."""
    answer: Answer = [event async for event in events][-1].payload["answer"]
    return answer


async def answer(gemini_url: str, database: Path, url: str | None, question: str, way: str) -> None:
    """Answer a question from its beginning to its end."""
    async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini_url) as models:
        for chat in models.main:
            chat.calls_tools = way != "forms"
        async with open_agent(database, url, models) as agent:
            await Asking(agent=agent, database=database, way=way).put(question)


def warm_up() -> None:
    """Answer a question, for what is compiled at the first one: patterns, forms, and the schemas of a model's tools."""
    import_all("langgraph.checkpoint.postgres.aio", "psycopg_pool")
    with running_gemini() as gemini, tempfile.TemporaryDirectory() as folder:
        gemini.replies += [calls(("grep", {"pattern": "sleep"})), says("`Order.pay` pays [E1].")]
        asyncio.run(answer(gemini.url, Path(folder, "c.db"), None, "how do orders get paid?", "tools"))


def answer_and_die(gemini_url: str, database: str, url: str | None, point: str, question: str, way: str) -> None:
    """Answer a question in this process, which gets SIGKILL at a point."""
    Fuse(point).arm()
    asyncio.run(answer(gemini_url, Path(database), url, question, way))
