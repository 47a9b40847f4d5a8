"""Tools that fail, hang or never stop talking, called by a Gemini over HTTP: the answer comes all the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from agent.agent import Agent
from agent.answering.rounds import WRITE_NOW
from agent.llm.models import ChatModels, open_models
from agent.persistence.checkpointer import SqliteConversations
from agent.tools.registry import ToolRegistry, make_tool_registry
from tests.agent.conftest import answer_to, redact
from tests.agent.test_loop import PLAIN_SHOP, QUESTION, Broken
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.gemini import FakeGemini, Received, Reply, calls, says

pytestmark = pytest.mark.exhaustive

LONGEST_PROMPT = 200_000
WRITTEN = "An order is paid through its session [E1]."


@pytest.fixture
async def models(gemini: FakeGemini) -> AsyncIterator[ChatModels]:
    async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url) as opened:
        yield opened


def agent_with(saver: SqliteConversations, models: ChatModels, tool: Broken) -> Agent:
    tools = ToolRegistry([*make_tool_registry()._tools.values(), tool], seconds=0.3)
    return Agent(FakeLibrary(FakeCode(PLAIN_SHOP)), saver, redact, models=models, tools=tools)


def contents_of(request: Received) -> str:
    return str(request.body["contents"])


TOLD = [("fails", "fails failed."), ("hangs", "took longer than"), ("talks", "talk talk")]


@pytest.mark.parametrize(("name", "told"), TOLD)
async def test_a_tool_that_breaks_beside_one_that_works_leaves_the_answer(
    saver: SqliteConversations, models: ChatModels, gemini: FakeGemini, name: str, told: str
) -> None:
    gemini.replies += [calls((name, {}), ("grep", {"pattern": "time.sleep"})), says(WRITTEN)]
    answer = await answer_to(agent_with(saver, models, Broken(name)), QUESTION)

    first, second = gemini.received
    assert told in contents_of(second)
    assert "time.sleep" in contents_of(second)
    assert len(contents_of(second)) - len(contents_of(first)) < LONGEST_PROMPT
    assert answer.text.endswith("session [1].")


@pytest.mark.parametrize(("name", "told"), TOLD)
async def test_a_tool_that_breaks_in_every_round_is_called_once_and_the_answer_comes(
    saver: SqliteConversations, models: ChatModels, gemini: FakeGemini, name: str, told: str
) -> None:
    tool = Broken(name)
    gemini.script = lambda asked: says(WRITTEN) if WRITE_NOW in contents_of(asked) else calls((name, {}))
    answer = await answer_to(agent_with(saver, models, tool), QUESTION)

    assert tool.ran == 1
    assert told in contents_of(gemini.received[-1])
    assert len(contents_of(gemini.received[-1])) < LONGEST_PROMPT
    assert answer.text.endswith("session [1].")


@pytest.mark.parametrize("name", [name for name, _ in TOLD])
async def test_a_step_whose_tool_breaks_does_not_hold_the_step_beside_it(
    saver: SqliteConversations, models: ChatModels, gemini: FakeGemini, name: str
) -> None:
    def script(asked: Received) -> Reply:
        if "make_plan" in str(asked.body.get("tools")) and "Notes of the research" not in asked.prompt:
            return calls(("make_plan", {"steps": ["Find what pays", "Find what sends"]}))
        if not asked.prompt.startswith("You research"):
            return says(WRITTEN)
        is_first = "what pays" in asked.prompt.partition("The step")[2]
        if "functionResponse" in contents_of(asked):
            return says("The first step has nothing." if is_first else "`Order.pay` sends it [E1].")
        return calls((name, {}) if is_first else ("find_symbol", {"name": "Order.pay"}))

    gemini.script = script
    answer = await answer_to(agent_with(saver, models, Broken(name)), QUESTION)

    told = gemini.received[-1].prompt
    assert "step_1: Find what pays\nThe first step has nothing." in told
    assert "step_2: Find what sends\n`Order.pay` sends it [E1]." in told
    assert answer.text.endswith("session [1].")
