"""A person stops a run: whatever it waits for, over the real model class too, it ends and the thread is usable."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

import agent.graph
from agent.agent import Agent
from agent.errors import UnknownRun
from agent.llm.models import ChatModels, RetryPolicy, open_models
from agent.lookups.tool import Tool, ToolEvidence
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Deps, Runtime
from agent.state import AgentState
from agent.tools.registry import ToolRegistry, make_tool_registry
from tests.agent.conftest import answer_to, by_forms, redact, remembered
from tests.agent.test_crashes import ANSWERING, IN_PARTS, OFF_TOPIC, QUESTION, TASKS, task_of
from tests.agent.test_crashes import script as whole_script
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.gemini import Failure, FakeGemini, Received, Reply, calls, fills, hangs, says
from tests.fakes.shop import SHOP
from tests.waiting import wait_for

HALF = "Half"
PATIENT = RetryPolicy(whole=60, first=60, idle=60, backoff=60)


class NoArguments(BaseModel):
    """Nothing."""


class HangingTool(Tool[NoArguments]):
    """A tool that never comes to an end."""

    name = "wait_for_ever"
    description = "Wait."
    arguments = NoArguments

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def run(self, args: NoArguments, deps: Deps) -> ToolEvidence:
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError


@dataclass(kw_only=True)
class Bench:
    """An agent with the real model class, before a Gemini that investigates, and holds one task."""

    gemini: FakeGemini
    models: ChatModels
    saver: SqliteConversations

    def __post_init__(self) -> None:
        self.reached = asyncio.Event()
        self.tool = HangingTool()
        self.question = QUESTION
        self.begin()

    def begin(self) -> None:
        """Open an agent over the nodes as they are now."""
        tools = ToolRegistry([*make_tool_registry()._tools.values(), self.tool])
        library = FakeLibrary(FakeCode(SHOP))
        self.agent = Agent(library, self.saver, redact, models=self.models, tools=tools)

    def answer_with_tools(self) -> None:
        """Have a question answered by the model that has tools, and whose evidence gives no orders."""
        self.question = "how does `parse_date` read a date?"
        for chat in self.models.main:
            chat.calls_tools = True

    def hold(self, held: str, answer: Reply | Failure) -> None:
        """Give this answer to a task, and say that it has been asked."""
        loop = asyncio.get_running_loop()

        def script(request: Received) -> Reply | Failure:
            if (task := task_of(request)) == held:
                if HALF not in str(answer):  # there the first words tell that it is reached
                    loop.call_soon_threadsafe(self.reached.set)
                return answer
            return investigation(request) if task != "router" or held != "grade_documents" else fills(SEARCH)

        self.gemini.script = script

    async def stopped(self, reached: asyncio.Event) -> list[Any]:
        """Ask, wait until the run is where it hangs, stop it, and return what was told."""
        asking = asyncio.create_task(self.told())
        await wait_for(reached.wait(), "reached")
        assert await self.agent.stop("run")
        return await wait_for(asking, "the end of asking")

    async def told(self) -> list[Any]:
        events = []
        async for event in self.agent.ask(self.question, thread="t", run_id="run"):
            events.append(event)
            if event.kind == "token" and HALF in event.payload["text"]:
                self.reached.set()
        return events


SEARCH = {"route": "retrieve", "requests": [{"query": "bank"}]}


def investigation(request: Received) -> Reply:
    """Investigate at once, and do otherwise as the script of a whole turn."""
    if task_of(request) == "router":
        return fills({"route": "investigate"})
    if task_of(request) == ANSWERING:
        return says("It is paid by `pay` [E1].")
    return whole_script(request)


@pytest.fixture
async def bench(gemini: FakeGemini, saver: SqliteConversations) -> AsyncIterator[Bench]:
    key = SecretStr("k")
    async with open_models(google_api_key=key, google_base_url=gemini.url, retry=PATIENT) as models:
        yield Bench(gemini=gemini, models=by_forms(models), saver=saver)


async def assert_usable(bench: Bench, events: list[Any]) -> None:
    """The run says that it was stopped, nothing of it is left, and the thread answers."""
    answer = events[-1].payload["answer"]
    assert (answer.route, answer.text) == ("stopped", "Stopped, as you asked.")
    assert (await bench.agent._turns.state("t"))["messages"] == []
    with pytest.raises(UnknownRun):
        await anext(bench.agent.resume("run", thread="t"))
    assert await bench.saver.rows("SELECT * FROM evidence") == []
    assert await remembered(bench.agent) == []
    bench.gemini.script = investigation
    assert (await answer_to(bench.agent, "how are payments sent to the bank?")).citations


@pytest.mark.parametrize("task", TASKS.values())
async def test_a_call_that_hangs_is_stopped(bench: Bench, task: str) -> None:
    bench.hold(task, hangs())
    await assert_usable(bench, await bench.stopped(bench.reached))


async def test_an_answer_is_stopped_in_the_middle(bench: Bench) -> None:
    bench.hold("synthesis", hangs(f"{HALF} of an answer is here and "))
    events = await bench.stopped(bench.reached)

    assert any(event.kind == "token" for event in events)
    await assert_usable(bench, events)


@pytest.mark.parametrize("task", ["router", "executor_llm"])
async def test_a_pause_before_another_try_is_stopped(bench: Bench, task: str) -> None:
    bench.hold(task, Failure(status=503))
    await assert_usable(bench, await bench.stopped(bench.reached))


async def test_a_tool_that_hangs_is_stopped(bench: Bench) -> None:
    bench.hold("executor_llm", calls(("wait_for_ever", {})))
    await assert_usable(bench, await bench.stopped(bench.tool.reached))


# The model that answers with tools


async def test_a_round_that_hangs_is_stopped(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.hold(ANSWERING, hangs())
    await assert_usable(bench, await bench.stopped(bench.reached))


async def test_an_answer_of_the_model_with_tools_is_stopped_in_the_middle(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.hold(ANSWERING, hangs(f"{HALF} of an answer [E1] is here and "))
    events = await bench.stopped(bench.reached)

    assert any(event.kind == "token" for event in events)
    await assert_usable(bench, events)


async def test_a_pause_before_another_round_is_stopped(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.hold(ANSWERING, Failure(status=503))
    await assert_usable(bench, await bench.stopped(bench.reached))


async def test_a_tool_that_hangs_beside_others_is_stopped(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.hold(ANSWERING, calls(("grep", {"pattern": "pay"}), ("wait_for_ever", {})))
    await assert_usable(bench, await bench.stopped(bench.tool.reached))


# Every way through the graph


async def test_steps_side_by_side_are_stopped_while_one_has_its_reply(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.question = IN_PARTS
    loop = asyncio.get_running_loop()
    asked: list[Received] = []

    def script(request: Received) -> Reply | Failure:
        if task_of(request) != "executor_llm":
            return whole_script(request)
        asked.append(request)
        if len(asked) == 1:
            return whole_script(request)
        loop.call_soon_threadsafe(bench.reached.set)
        return hangs()

    bench.gemini.script = script
    await assert_usable(bench, await bench.stopped(bench.reached))
    assert len(asked) == 2


IN_TURN = (
    "security_gateway input_preprocessor router retrieval grade_documents setup_executor executor_llm planner "
    "tool_node aggregate refinery check_citations conversation_memory"
).split()
POINTS = [
    *((IN_PARTS, node, is_done) for node in IN_TURN for is_done in (False, True)),
    (OFF_TOPIC, "out_of_scope", False),
    (OFF_TOPIC, "out_of_scope", True),
    (QUESTION, "clarify", False),  # when it is done, a person is asked and the run has ended
]


@pytest.mark.parametrize(
    ("question", "node", "is_done"),
    [
        pytest.param(*point, marks=() if number % 8 == 0 else pytest.mark.exhaustive)
        for number, point in enumerate(POINTS)
    ],
)
async def test_a_run_is_stopped_at_every_node(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, question: str, node: str, is_done: bool
) -> None:
    work = getattr(agent.graph, node)

    @functools.wraps(work)
    async def wait(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
        if is_done:
            await work(state, runtime)
        bench.reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(agent.graph, node, wait)
        bench.begin()
        bench.answer_with_tools()
        bench.question = question
        bench.gemini.script = whole_script
        events = await bench.stopped(bench.reached)
    bench.begin()
    await assert_usable(bench, events)


async def test_a_run_that_waits_for_a_person_is_not_running_and_its_thread_is_usable(bench: Bench) -> None:
    bench.answer_with_tools()
    bench.gemini.script = lambda _: calls(("ask_person", {"question": "Which date?"}))
    paused = (await bench.told())[-1].payload["answer"]

    assert (paused.route, await bench.agent.stop("run")) == ("paused", False)
    bench.hold(ANSWERING, hangs())
    bench.question = "the one in the header"
    events = await bench.stopped(bench.reached)
    assert events[-1].payload["answer"].route == "stopped"
    bench.gemini.script = investigation
    assert (await answer_to(bench.agent, "how are payments sent to the bank?")).citations
