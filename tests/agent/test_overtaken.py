"""Two processes at one run: the one that stalled and wakes up late changes nothing of what the other has finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.agent import Agent
from agent.conversations import prune_conversations
from agent.errors import CheckpointOvertaken
from agent.events import AgentEvent
from agent.persistence.checkpointer import SqliteConversations, open_saver
from tests.agent.conftest import redact, remembered
from tests.agent.test_graph import QUESTION, agent_with, research
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP
from tests.waiting import wait_for

# The transactions of a run: the first two claim the conversation, the fourth notes the commit.
TRANSACTIONS = {"begin": 3, "clean-up": 5}


class StallingSaver:
    """Holds one of the transactions of a run, as a process does that is not scheduled."""

    def __init__(self, saver: SqliteConversations, call: int) -> None:
        self.reached, self.wakes = asyncio.Event(), asyncio.Event()
        database = saver._database
        self._run, self._left = database.run_all, call
        setattr(database, "run_all", self._stall)  # noqa: B010 - mypy minds an assignment

    async def _stall(self, *arguments: Any, **options: Any) -> Any:
        self._left -= 1
        if not self._left:
            self.reached.set()
            await self.wakes.wait()
        return await self._run(*arguments, **options)


async def list_events(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    return [event async for event in events]


async def read_all(saver: SqliteConversations) -> list[list[tuple[Any, ...]]]:
    """Every row that the daily sweep leaves."""
    await prune_conversations(saver, before=0.0)
    tables = ("checkpoints", "writes", "evidence")
    return [await saver.rows(f"SELECT * FROM {table}") for table in tables]


@pytest.mark.parametrize("late", TRANSACTIONS)
async def test_a_run_that_stalled_before_a_write_changes_nothing_that_another_process_does(
    tmp_path: Path, late: str
) -> None:
    async with open_saver(tmp_path / "c.db") as one, open_saver(tmp_path / "c.db") as two:
        library = FakeLibrary(FakeCode(SHOP))
        stalled, other = Agent(library, one, redact), Agent(library, two, redact)
        stall = StallingSaver(one, TRANSACTIONS[late])
        asking = asyncio.create_task(list_events(stalled.ask("where is send?", thread="t", run_id="r")))
        await wait_for(stall.reached.wait(), "stall.reached")

        answer = (await list_events(other.ask("where is send?", thread="t", run_id="r")))[-1].payload["answer"]
        finished = await read_all(two)
        stall.wakes.set()
        with pytest.raises(CheckpointOvertaken):
            await wait_for(asking, "the end of asking")

        assert await read_all(two) == finished
        again = (await list_events(other.resume("r", thread="t")))[-1].payload["answer"]
        assert again.text == answer.text


async def test_a_stopped_run_that_was_overtaken_closes_nothing_of_the_run_that_goes_on(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as one, open_saver(tmp_path / "c.db") as two:
        library = FakeLibrary(FakeCode(SHOP))
        stalled, other = Agent(library, one, redact), Agent(library, two, redact)
        stall, goes_on = StallingSaver(one, 3), StallingSaver(two, 3)
        asking = asyncio.create_task(list_events(stalled.ask("where is send?", thread="t", run_id="r")))
        await wait_for(stall.reached.wait(), "stall.reached")
        answering = asyncio.create_task(list_events(other.ask("where is send?", thread="t", run_id="r")))
        await wait_for(goes_on.reached.wait(), "goes_on.reached")
        before = await read_all(two)

        assert await stalled.stop("r")
        await wait_for(asking, "the end of asking")
        assert await read_all(two) == before

        goes_on.wakes.set()
        assert (await wait_for(answering, "the end of answering"))[-1].payload["answer"].citations


@dataclass(frozen=True)
class Permit:
    """What the inbox says of messages: whether this one may begin, and which runs may be replied to."""

    begins: bool = True
    stands: Collection[str] = ()

    async def may_begin(self) -> bool:
        return self.begins

    async def may_be_replied_to(self, run_id: str) -> bool:
        return run_id in self.stands


async def test_a_process_that_lost_the_message_while_it_claimed_begins_nothing(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as one:
        agent = Agent(FakeLibrary(FakeCode(SHOP)), one, redact)
        with pytest.raises(CheckpointOvertaken):
            await list_events(agent.ask("where is send?", thread="t", permit=Permit(begins=False)))
        assert await read_all(one) == [[], [], []]


async def test_a_conversation_is_forgotten_after_a_run_only_where_that_is_the_newest(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as one:
        agent = Agent(FakeLibrary(FakeCode(SHOP)), one, redact)
        for run in ("r", "later"):
            await list_events(agent.ask("where is send?", thread="t", run_id=run))

        await agent.forget("t", run_id="r")
        assert len(await remembered(agent)) == 2
        await agent.forget("t", run_id="later")
        assert await remembered(agent) == []
        assert await one.rows("SELECT * FROM conversations") == []


@pytest.mark.parametrize("stands", [True, False])
async def test_what_was_edited_or_deleted_while_it_waited_for_a_person_is_not_replied_to(
    saver: SqliteConversations, stands: bool
) -> None:
    agent, _ = agent_with(saver, research("Find pay", "Read send"), approval_calls=0)
    asked = (await list_events(agent.ask(QUESTION, thread="t", run_id="r")))[-1].payload["answer"]
    assert asked.route == "paused"

    permit = Permit(stands=["r"] if stands else [])
    reply = (await list_events(agent.ask("approve", thread="t", run_id="s", permit=permit)))[-1].payload["answer"]

    assert ("session [1]" in reply.text) == stands
    assert ([one["question"] for one in await remembered(agent)] == [QUESTION]) == stands
