"""The inbox in SQLite: what is wrong with the file is a sentence, and processes that have ended are known."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from bot.errors import InboxError
from bot.storage.database import open_database
from bot.storage.inbox import Inbox, is_process_dead, make_process_name
from tests.bot.chat import message
from tests.fakes.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_a_locked_database_becomes_a_sentence(tmp_path: Path, clock: FakeClock) -> None:
    async with open_database(tmp_path / "i.sqlite", busy_seconds=0.01) as database:
        inbox = Inbox(database, clock, "here")
        other = sqlite3.connect(tmp_path / "i.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InboxError, match="Another process holds"):
            await inbox.store(message(), "c")
        other.execute("COMMIT")
        other.close()

        assert await inbox.store(message(), "c") is not None


async def test_a_file_that_is_no_database_becomes_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "i.sqlite").write_bytes(b"no database at all" * 100)

    with pytest.raises(InboxError, match=r"is damaged\. Move it away"):
        async with open_database(tmp_path / "i.sqlite"):
            pass


async def test_a_database_of_another_version_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "i.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(InboxError, match="another version"):
        async with open_database(tmp_path / "i.sqlite"):
            pass


async def test_a_folder_that_cannot_be_made_becomes_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InboxError, match="cannot be made"):
        async with open_database(tmp_path / "file" / "i.sqlite"):
            pass


def test_an_ended_process_is_told_from_a_living_one() -> None:
    own, host = make_process_name(), make_process_name().split("/", maxsplit=1)[0]
    parent = f"{host}/{os.getppid()}/abcd"

    assert is_process_dead(f"{host}/{os.getpid()}/00000000", own)  # the number was given to us since
    assert is_process_dead(f"{host}/4194305/abcd", own)  # beyond any that Linux gives
    assert not is_process_dead(own, own)
    assert not is_process_dead(parent, own)
    assert not is_process_dead("elsewhere/4194305/abcd", own)
    assert not is_process_dead("odd", own)
