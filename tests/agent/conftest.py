"""Fixtures of the agent's tests: the small shop, an agent over it, and a way to ask a question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.runtime import Runtime

from agent.agent import Agent
from agent.events import AgentEvent, EventKind
from agent.llm.models import ChatModels
from agent.persistence.checkpointer import SqliteConversations, open_saver
from agent.ports import Answer, Deps
from agent.state import PastTurn
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

SECRET = "hunter2secret"


def redact(text: str) -> str:
    """Mask the one secret that the shop holds."""
    return text.replace(SECRET, "[REDACTED:password]")


@dataclass
class Told:
    """Remembers what a node told its listeners."""

    events: list[tuple[EventKind, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, kind: EventKind, /, **payload: Any) -> None:
        self.events.append((kind, payload))

    def text(self) -> str:
        return "".join(payload["text"] for kind, payload in self.events if kind == "token")


@pytest.fixture
def code() -> FakeCode:
    return FakeCode(SHOP)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def runtime(code: FakeCode, told: Told) -> Runtime[Deps]:
    return Runtime(context=Deps(code=code, redact=redact, emit=told))


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[SqliteConversations]:
    async with open_saver(tmp_path / "conversations.db") as opened:
        yield opened


@pytest.fixture
def agent(code: FakeCode, saver: SqliteConversations) -> Agent:
    return Agent(FakeLibrary(code), saver, redact)


def by_forms(models: ChatModels) -> ChatModels:
    """Return models that are known to fill in forms and to call no tools."""
    for chat in (*models.main, *models.small):
        chat.calls_tools = False
    return models


async def events_of(agent: Agent, question: str, thread: str = "t") -> list[AgentEvent]:
    """Put a question and return everything that was told."""
    return [event async for event in agent.ask(question, thread=thread)]


async def remembered(agent: Agent, thread: str = "t") -> list[PastTurn]:
    """What the next question of a conversation can be about."""
    return (await agent._turns.state(thread)).get("conversation_history", [])


async def answer_to(agent: Agent, question: str, thread: str = "t") -> Answer:
    """Put a question and return the answer."""
    answer = (await events_of(agent, question, thread))[-1].payload["answer"]
    assert isinstance(answer, Answer)
    return answer
