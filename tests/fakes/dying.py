"""Processes that are killed while they answer: `python -m tests.fakes.dying GEMINI_URL`.

Each line of its input, `[database, point, question, way]`, starts a process that answers the question and gets
SIGKILL at the point; the line that comes back is how it ended. The way is `tools`, `joined` for the same about two
repositories, or `forms` for a model that calls none. The processes are forked: what takes seconds to import is imported
once.

A point is a name, a sign and, from the second time on, a number: a node begins (`router<`), has returned but nothing
of it is saved (`router|`), the step is over for the checkpointer (`router>2`), which has saved that a person was asked
or has replied (`asked+`, `replied+2`); the journal is about to note something, or has (`pause<`, `pause>`); an event is
told (`token!5`); one of several replies was kept (`reply>2`).
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langgraph.runtime import Runtime
from pydantic import SecretStr

import agent.answering.replies
import agent.graph
from agent.agent import Agent
from agent.events import AgentEvent, AsyncEventBus
from agent.llm.chat_model import LangChainChatModel
from agent.llm.models import DEFAULT_MODEL, ChatModels
from agent.llm.providers import parse_model_spec
from agent.persistence.checkpointer import SafeSqliteSaver, open_saver
from agent.persistence.run_store import AgentRun, RunStore
from agent.ports import Answer, Deps
from agent.state import AgentState
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

THREAD = "t"
JOINED = ("shop", "store")  # which hold the same
WHICH = "Do you mean orders or parcels?"
WHAT = "the orders, please"
NODES = tuple(agent.graph.build_graph().nodes)
SPECIAL = {"__interrupt__": "asked+", "__resume__": "replied+"}  # what the graph writes beside the nodes
NOTED: tuple[tuple[type, str, str], ...] = (
    (RunStore, "begin", "begin"),
    (RunStore, "begin_unless_paused", "begin"),
    (RunStore, "pause", "pause"),
    (SafeSqliteSaver, "prune_thread", "end"),
    (agent.answering.replies.KeptReply, "keep", "reply"),
)

Node = Callable[[AgentState, Runtime[Deps]], Awaitable[AgentState]]


class Fuse:
    """Kills the process when a point is passed for the n-th time."""

    def __init__(self, point: str) -> None:
        found = re.fullmatch(r"(\w+[<|+>!])(\d*)", point)
        assert found is not None, f"no such point: {point}"
        self._name = found[1]
        self._left = int(found[2] or 1)
        self._node = ""  # the one that has returned last

    def burn(self, name: str) -> None:
        """Pass a point."""
        self._left -= name == self._name
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Make the nodes, the checkpointer, the journal and the events of this process pass their points."""
        for name in NODES:
            setattr(agent.graph, name, self._node_with_points(getattr(agent.graph, name), name))
        setattr(SafeSqliteSaver, "aput", self._stepping(SafeSqliteSaver.aput))  # noqa: B010 - mypy minds an assignment
        setattr(SafeSqliteSaver, "aput_writes", self._writing(SafeSqliteSaver.aput_writes))  # noqa: B010
        for owner, name, point in NOTED:
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
        async def deadly(saver: SafeSqliteSaver, config: Any, writes: Sequence[tuple[str, Any]], *rest: Any) -> Any:
            saved = await save(saver, config, writes, *rest)
            for channel, _ in writes:
                self.burn(SPECIAL.get(channel, ""))
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
            if not (isinstance(noted, AgentRun) and noted.status == "paused"):  # which was noted before
                self.burn(f"{name}>")
            return noted

        return deadly


@asynccontextmanager
async def open_agent(database: Path, models: ChatModels) -> AsyncGenerator[Agent]:
    """Open an agent that asks for approval of every plan."""
    async with open_saver(database) as saver:
        yield Agent(FakeLibrary(FakeCode(SHOP)), saver, redact, models=models, approval_calls=0)


def redact(text: str) -> str:
    """Mask nothing."""
    return text


async def put(agent: Agent, question: str, way: str) -> Answer:
    """Put a question, and reply for as long as a question comes back."""
    names = JOINED if way == "joined" else ()
    return await replied(agent, await end_of(agent.ask(question, thread=THREAD, repositories=names)))


async def replied(agent: Agent, answer: Answer) -> Answer:
    """Reply for as long as the answer is a question."""
    while answer.route == "paused":
        reply = WHAT if answer.text == WHICH else "approve"
        answer = await end_of(agent.ask(reply, thread=THREAD))
    return answer


async def end_of(events: AsyncGenerator[AgentEvent, None]) -> Answer:
    """Listen to a run up to its answer."""
    answer: Answer = [event async for event in events][-1].payload["answer"]
    return answer


async def built(gemini_url: str) -> ChatModels:
    """Return models with the real class behind them, as it is before it is first asked."""
    chat = LangChainChatModel(
        parse_model_spec(DEFAULT_MODEL, google_api_key=SecretStr("k"), google_base_url=gemini_url)
    )
    await chat._get_model()
    return ChatModels(main=(chat,), small=(chat,))


async def die(models: ChatModels, database: str, point: str, question: str, way: str) -> None:
    """Answer, and be killed on the way."""
    for chat in models.main:
        chat.calls_tools = way != "forms"
    Fuse(point).arm()
    async with open_agent(Path(database), models) as agent:
        await put(agent, question, way)


def killed(models: ChatModels, line: str) -> int:
    """Run a process to its end, and return how it ended."""
    child = os.fork()
    if not child:
        asyncio.run(die(models, *json.loads(line)))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(gemini_url: str) -> None:
    """Start a process for each line, one after the other."""
    models = asyncio.run(built(gemini_url))
    for line in sys.stdin:
        print(killed(models, line), flush=True)  # noqa: T201 - the other side reads it


if __name__ == "__main__":
    main(sys.argv[1])
