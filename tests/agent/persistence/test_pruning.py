"""Idle conversations are forgotten as a whole, and nothing else is."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.conversations import prune_idle_conversations
from agent.errors import CheckpointError
from agent.persistence.checkpointer import SqliteConversations, open_saver
from agent.persistence.conversation_saver import list_threads
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.sqlite import SqliteDatabase
from tests.agent.conftest import answer_to, remembered
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.shop import SHOP

DAY = 86_400.0


async def threads_in(saver: SqliteConversations) -> set[str]:
    return {*await list_threads(saver)}


async def end_millisecond(saver: SqliteConversations) -> float:
    """Return a time that is later than what was done, and not later than what is yet to be done.

    The database counts whole milliseconds: what is used in the same one as a time seems to be older than that.
    """
    now = time.time()
    while (await saver.rows(f"SELECT {SqliteDatabase.clock}"))[0][0] <= now:
        pass
    return now


async def test_only_what_is_idle_for_long_is_forgotten(
    agent: Agent, saver: SqliteConversations, tmp_path: Path
) -> None:
    await answer_to(agent, "where is parse_date defined?", "old")
    between = await end_millisecond(saver)
    await answer_to(agent, "where is parse_date defined?", "young")

    assert await prune_idle_conversations(tmp_path / "conversations.db", before=between - 90 * DAY) == 0
    assert await prune_idle_conversations(tmp_path / "conversations.db", before=between) == 1

    assert await threads_in(saver) == {"young"}
    assert await remembered(agent, "old") == []
    assert len(await remembered(agent, "young")) == 1


async def test_an_old_conversation_that_goes_on_is_kept(
    agent: Agent, saver: SqliteConversations, tmp_path: Path
) -> None:
    await answer_to(agent, "where is parse_date defined?")
    between = time.time()
    await answer_to(agent, "and who calls it?")

    assert await prune_idle_conversations(tmp_path / "conversations.db", before=between) == 0
    assert len(await remembered(agent)) == 2


async def test_what_a_crash_left_behind_is_dropped(agent: Agent, saver: SqliteConversations, tmp_path: Path) -> None:
    await answer_to(agent, "where is parse_date defined?", "kept")
    await EvidenceStore(saver).of("left").keep("e1", "text")

    await prune_idle_conversations(tmp_path / "conversations.db", before=0.0)

    assert await threads_in(saver) == {"kept"}


async def test_a_sweep_beside_answers_disturbs_none_of_them(saver: SqliteConversations, tmp_path: Path) -> None:
    agent = Agent(FakeLibrary(FakeCode(SHOP)), saver, lambda text: text)
    for number in range(5):
        await answer_to(agent, "where is parse_date defined?", f"old {number}")
    before = await end_millisecond(saver)

    sweeping = asyncio.create_task(prune_idle_conversations(tmp_path / "conversations.db", before=before))
    answers = await asyncio.gather(
        *(answer_to(agent, "where is parse_date defined?", f"new {number}") for number in range(5))
    )

    assert await sweeping == 5
    assert all(answer.citations for answer in answers)
    assert await threads_in(saver) == {f"new {number}" for number in range(5)}


async def test_the_file_shrinks_with_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path) as saver:
        for number in range(50):
            await EvidenceStore(saver).of(f"left {number}").keep("e1", "text " * 8_000)
    before = path.stat().st_size

    assert await prune_idle_conversations(path, before=0.0) == 50

    assert before > 2_000_000
    assert path.stat().st_size < 200_000
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA freelist_count").fetchone() == (0,)


async def test_where_there_is_no_database_none_is_made(tmp_path: Path) -> None:
    assert await prune_idle_conversations(tmp_path / "c.db", before=0.0) == 0
    assert not (tmp_path / "c.db").exists()


async def test_a_damaged_database_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"not a database at all" * 100)

    with pytest.raises(CheckpointError, match=r"is damaged\. Move it away"):
        await prune_idle_conversations(tmp_path / "c.db", before=0.0)
