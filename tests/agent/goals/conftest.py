"""Fixtures of the tests of goal runs: a small parser with a bug, an agent over it, and a scripted Gemini."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import UnknownRun
from agent.events import AgentEvent
from agent.goals.checks.goal_registry import GoalRegistry
from agent.goals.goal import GoalRequest
from agent.goals.goal_agent import GOAL_LIMITS, GoalAgent
from agent.goals.goal_verdict import GoalVerdict
from agent.goals.sandbox_tools import make_goal_tools
from agent.limits import TurnLimits
from agent.llm.models import ChatModels, open_models
from agent.persistence.checkpointer import SqliteConversations, open_saver
from agent.ports import Answer
from agent.sandbox.sandbox import SandboxLimits
from indexer.types import Commit
from tests.agent.conftest import redact
from tests.fakes.code import COMMIT, FakeCode, FakeLibrary
from tests.fakes.gemini import FakeGemini
from tests.fakes.unconfined import FolderCopies, UnconfinedSandbox

PARSER = {
    "parser.py": "def parse(text):\n    return [int(part) for part in text.split(',')]\n",
    "test_parser.py": (
        "from parser import parse\n\n\n"
        "def test_numbers():\n    assert parse('1,2') == [1, 2]\n\n\n"
        "def test_empty():\n    assert parse('') == []\n"
    ),
    "README.md": "# Parser\n",
}
MENDED = "def parse(text):\n    return [int(part) for part in text.split(',') if part]\n"
REQUEST = GoalRequest(
    goal="pytest", arguments={"select": ["test_parser.py"]}, task="make the parser accept empty input", max_iterations=4
)

# What processes that are killed work on: a check without pytest, as each of them makes it several times.
KILLED = GoalRequest(
    goal="command",
    arguments={"argv": ["sh", "-c", "grep -q 'if part' parser.py && cat notes.txt"]},
    task="mend the parser",
    max_iterations=5,
)


@dataclass
class GoalBench:
    """A goal agent over the parser, and what it works with."""

    saver: SqliteConversations
    models: ChatModels
    gemini: FakeGemini
    copies: FolderCopies
    files: dict[str, str]
    sandbox: UnconfinedSandbox = field(default_factory=UnconfinedSandbox)
    goals: GoalRegistry = field(default_factory=GoalRegistry)
    limits: TurnLimits = GOAL_LIMITS
    commit: Commit = COMMIT  # that is indexed

    def open_agent(self) -> GoalAgent:
        code = FakeCode(self.files)
        code.commit = self.commit
        return GoalAgent(
            FakeLibrary(code),
            self.saver,
            redact,
            sandbox=self.sandbox,
            open_copy=self.copies.open,
            goals=self.goals.make,
            tools=make_goal_tools(),
            models=self.models,
            limits=self.limits,
            sandbox_limits=SandboxLimits(seconds=20),
        )

    async def run(self, request: GoalRequest = REQUEST) -> Ran:
        agent = self.open_agent()
        proposal = await agent.propose(request)
        return Ran([event async for event in agent.start(proposal, thread="goal", run_id="run")])

    async def take_up(self, database: Path) -> Ran:
        """Continue with the run of a process that has died."""
        async with open_saver(database) as saver:
            agent = replace(self, saver=saver).open_agent()
            try:
                return Ran([event async for event in agent.resume("run", thread="goal")])
            except UnknownRun:  # it died before anything was saved
                proposal = await agent.propose(KILLED)
                return Ran([event async for event in agent.start(proposal, thread="goal", run_id="run")])


@dataclass
class Ran:
    """The events of a run, and what is in the last of them."""

    events: list[AgentEvent]

    @property
    def answer(self) -> Answer:
        answer: Answer = self.events[-1].payload["answer"]
        return answer

    @property
    def verdict(self) -> GoalVerdict:
        (verdict,) = (event.payload["verdict"] for event in self.events if event.kind == "goal_end")
        assert isinstance(verdict, GoalVerdict)
        return verdict

    def payloads(self, kind: str) -> list[Any]:
        return [event.payload for event in self.events if event.kind == kind]


@pytest.fixture
async def bench(gemini: FakeGemini, saver: SqliteConversations, tmp_path: Path) -> AsyncIterator[GoalBench]:
    folder = tmp_path / "copies"
    folder.mkdir()
    async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url) as models:
        yield GoalBench(
            saver=saver, models=models, gemini=gemini, copies=FolderCopies(PARSER, folder), files=dict(PARSER)
        )
