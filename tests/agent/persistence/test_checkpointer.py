"""The conversation database: safe writes, and a sentence for each way in which it can be unusable."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from agent.errors import (
    CheckpointError,
)
from agent.persistence.checkpointer import SqliteConversations, open_saver
from agent.persistence.conversation_saver import locate_checkpoints
from agent.persistence.evidence_store import EvidenceStore
from tests.waiting import wait_for_end


async def put(saver: SqliteConversations) -> None:
    claim = await saver.claim_run("t")
    await EvidenceStore(saver).of("t", claim).keep("e1", "text")


async def open_once(path: Path) -> None:
    async with open_saver(path, busy_seconds=0.05) as saver:
        await put(saver)


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    await open_once(tmp_path / "deep" / "down" / "c.db")
    assert (tmp_path / "deep" / "down" / "c.db").exists()


async def test_a_file_that_is_no_database_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(CheckpointError, match=r"is damaged\. Move it away"):
        await open_once(path)
    assert path.read_bytes().startswith(b"not a database")


async def test_a_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("PRAGMA user_version = 99")
    conn.close()
    with pytest.raises(CheckpointError, match="another version"):
        await open_once(path)


async def test_a_foreign_database_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("CREATE TABLE recipes (name TEXT)")
    conn.close()
    with pytest.raises(CheckpointError):
        await open_once(path)


async def test_a_folder_that_is_a_file_is_called_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(CheckpointError, match="cannot be made"):
        await open_once(tmp_path / "file" / "c.db")


async def test_a_path_that_is_a_folder_is_called_unwritable(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Make the file and its folder writable"):
        await open_once(tmp_path)


@pytest.mark.parametrize(
    ("pragma", "said"), [("query_only = ON", "Make the file"), ("max_page_count = 1", "Free some space")]
)
async def test_a_database_that_takes_no_writes_is_called_unwritable_and_loses_nothing(
    tmp_path: Path, pragma: str, said: str
) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await put(saver)
        before = (await saver.find_newest("t"))[0]
        big = {**empty_checkpoint(), "channel_values": {"filler": "x" * 200_000}}
        with pytest.raises(CheckpointError, match=said):
            async with saver.open_checkpoints() as checkpoints:
                await checkpoints.conn.execute(f"PRAGMA {pragma}")
                await checkpoints.aput(locate_checkpoints("t#9"), cast("Any", big), {}, {})
        assert (await saver.find_newest("t"))[0] == before
        await put(saver)


async def test_a_database_locked_at_the_start_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    await open_once(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(CheckpointError, match="Another process holds"):
            await open_once(path)
    finally:
        other.close()


async def test_a_failed_write_leaves_no_transaction_behind(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path, busy_seconds=0.05) as saver:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CheckpointError):
            await put(saver)
        with pytest.raises(CheckpointError):
            async with saver.open_checkpoints() as checkpoints:
                await checkpoints.aput(locate_checkpoints("t#9"), empty_checkpoint(), {}, {})
        other.execute("ROLLBACK")
        other.close()
        await put(saver)


async def test_a_cancelled_write_is_carried_out(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        for done in range(1, 21):
            write = asyncio.create_task(saver.write("INSERT INTO evidence VALUES ('t', ?, 'text')", (f"e{done}",)))
            await asyncio.sleep(0)
            write.cancel()
            await wait_for_end(write, "the end of write")
            assert write.cancelled()
            assert await saver.rows("SELECT count(*) FROM evidence") == [(done,)]
