"""The conversation database: safe writes, and a sentence for each way in which it can be unusable."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.errors import (
    CheckpointDamaged,
    CheckpointError,
    CheckpointLocked,
    CheckpointOvertaken,
    CheckpointUnreachable,
    CheckpointUnwritable,
    CheckpointVersion,
)
from agent.persistence.checkpointer import SafeSqliteSaver, open_saver
from tests.waiting import wait_for_end

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def put(saver: SafeSqliteSaver) -> RunnableConfig:
    return await saver.aput(CONFIG, empty_checkpoint(), {}, {})


async def open_once(path: Path) -> None:
    async with open_saver(path, busy_seconds=0.05) as saver:
        await put(saver)


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    await open_once(tmp_path / "deep" / "down" / "c.db")
    assert (tmp_path / "deep" / "down" / "c.db").exists()


async def test_a_file_that_is_no_database_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(CheckpointDamaged, match="Move the file away"):
        await open_once(path)
    assert path.read_bytes().startswith(b"not a database")


async def test_a_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    await open_once(path)
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("PRAGMA user_version = 99")
    conn.close()
    with pytest.raises(CheckpointVersion, match="another version"):
        await open_once(path)


async def test_a_foreign_database_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("CREATE TABLE recipes (name TEXT)")
    conn.close()
    with pytest.raises(CheckpointVersion):
        await open_once(path)


async def test_a_folder_that_is_a_file_is_called_unwritable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(CheckpointUnwritable):
        await open_once(tmp_path / "file" / "c.db")


async def test_a_path_that_is_a_folder_is_called_unwritable(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnwritable, match="Make the file and its folder writable"):
        await open_once(tmp_path)


async def test_a_read_only_database_is_called_unwritable(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await saver.conn.execute("PRAGMA query_only = ON")
        with pytest.raises(CheckpointUnwritable):
            await put(saver)


async def test_a_full_disk_is_called_unwritable_and_loses_nothing(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await put(saver)
        await saver.conn.execute("PRAGMA max_page_count = 9")
        big: Any = {"filler": "x" * 200_000}
        with pytest.raises(CheckpointUnwritable, match="Free some space"):
            await saver.aput(CONFIG, {**empty_checkpoint(), "channel_values": big}, {}, {})
        assert not saver.conn.in_transaction
        assert await saver.aget_tuple(CONFIG) is not None


async def test_a_database_locked_at_the_start_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    await open_once(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(CheckpointLocked):
            await open_once(path)
    finally:
        other.close()


async def test_a_failed_write_leaves_no_transaction_behind(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path, busy_seconds=0.05) as saver:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CheckpointLocked):
            await put(saver)
        other.execute("ROLLBACK")
        other.close()
        assert not saver.conn.in_transaction
        await put(saver)


async def test_a_cancelled_write_is_whole(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        for done in range(1, 21):
            write = asyncio.create_task(put(saver))
            await asyncio.sleep(0)
            write.cancel()
            await wait_for_end(write, "the end of write")
            assert write.cancelled()
            assert await saver.rows("SELECT count(*) FROM checkpoints") == [(done,)]
            assert not saver.conn.in_transaction


async def test_a_write_of_a_cancelled_run_that_fails_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        await saver.conn.execute("PRAGMA query_only = ON")
        write = asyncio.create_task(put(saver))
        await asyncio.sleep(0)
        write.cancel()
        await wait_for_end(write, "the end of write")
        await saver.rows("SELECT 1")
    assert write.cancelled()
    assert "the last write of a cancelled run failed" in caplog.text


class Backwards(JsonPlusSerializer):
    """A serializer that no other one can read."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return kind, data[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return super().loads_typed((data[0], data[1][::-1]))


async def test_everything_is_written_and_read_by_the_serializer_of_the_saver(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        saver.serde = Backwards()
        await saver.aput_writes(await put(saver), [("answer", "not yet")], "task")
        found = await saver.aget_tuple(CONFIG)
        assert [found] == [each async for each in saver.alist(CONFIG)]


async def steps_in(path: Path) -> list[str]:
    """The checkpoints that another process would find, oldest first."""
    async with open_saver(path) as other:
        return [found.checkpoint["id"] async for found in other.alist(CONFIG)][::-1]


async def test_a_reader_who_finds_the_database_locked_costs_a_run_no_step(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with open_saver(path, busy_seconds=0.05) as saver:
        async with saver.defer_checkpoints("t"):
            newest = await put(saver)
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(CheckpointLocked):
                await saver.aget_tuple(CONFIG)
            other.close()
        assert await steps_in(path) == [newest["configurable"]["checkpoint_id"]]


async def test_a_run_fails_of_its_own_error_where_its_last_step_cannot_be_written_either(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        with pytest.raises(ZeroDivisionError):
            async with saver.defer_checkpoints("t"):
                await put(saver)
                await saver.conn.execute("PRAGMA query_only = ON")
                raise ZeroDivisionError
    assert "the progress of a run was not saved" in caplog.text


async def test_a_run_whose_last_step_cannot_be_written_fails(tmp_path: Path) -> None:
    async with open_saver(tmp_path / "c.db") as saver:
        with pytest.raises(CheckpointUnwritable):
            async with saver.defer_checkpoints("t"):
                await put(saver)
                await saver.conn.execute("PRAGMA query_only = ON")


def test_every_checkpoint_error_is_one_of_a_family() -> None:
    family = {
        CheckpointDamaged,
        CheckpointLocked,
        CheckpointOvertaken,
        CheckpointUnreachable,
        CheckpointUnwritable,
        CheckpointVersion,
    }
    assert family == set(CheckpointError.__subclasses__())
