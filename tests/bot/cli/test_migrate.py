"""Conversations and messages in Postgres by `DATABASE_URL`, and data folders that are moved there and back."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.types import Command

from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_saver import ConversationSaver
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.postgres.saver import open_postgres_saver
from bot.maintenance.disk_usage import CONVERSATIONS
from bot.maintenance.migration import DRAFT, list_tables
from bot.storage.data_folder_access import hold_shared_lock
from bot.storage.database import INBOX_FILE, open_database
from tests.agent.persistence.test_saver_contract import build_talk, run
from tests.fakes.citebot import Citebot, converse
from tests.fakes.postgres import make_database

pytestmark = pytest.mark.needs("postgres")

QUESTION = "who calls parse_date?"


@pytest.fixture
def url() -> Iterator[str]:
    with asyncio.Runner() as runner:
        database = make_database()
        yield runner.run(database.__aenter__())
        runner.run(database.__aexit__(None, None, None))


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return [*connection.execute(sql).fetchall()]


def test_with_an_address_conversations_are_kept_in_postgres_alone(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    assert "shop/" in converse(citebot, QUESTION).out

    assert rows(url, "SELECT count(*) FROM checkpoint_migrations WHERE v > 0") != [(0,)]
    assert not (home / "conversations.sqlite").exists()


def fill(home: Path) -> None:
    """Make a data folder with rows in every table, and a run that waits for a person."""

    async def write() -> None:
        async with open_database(home / INBOX_FILE) as database:
            for table, columns in (await list_tables(database)).items():
                for number in range(3):
                    values = [make_value(table, column, number) for column in columns]
                    await database.write(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        async with open_saver(home / CONVERSATIONS) as saver:
            await run(saver, build_talk(), {"said": []})
            await EvidenceStore(saver).of("t").keep("e1", "text")

    home.mkdir(exist_ok=True)
    asyncio.run(write())


def make_value(table: str, column: str, number: int) -> Any:
    if column == "state":
        return "closed"
    if column in {"handles", "people", "names", "body"}:
        return "[]"
    if column in {"at", "edited_at", "ends", "last_at", "lease_until", "received_at", "updated_at", "until"}:
        return 1_700_000_000.25 + number
    if column in COUNTED:
        return number + (10 if column == "id" else 0)
    return f"{column} {9 - number} 漢 a\0b"


COUNTED = set(
    "claims count deaths due end_line entry id linked_at mark muted number pinned start_line stop takes_part token "
    "tries under_way watch".split()
)


async def go_on(saver: ConversationSaver) -> Any:
    return await run(saver, build_talk(), Command(resume="the second"))


def checksums(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if path.suffix == ".sqlite"}


def test_a_data_folder_is_moved_to_postgres_and_a_run_that_waits_goes_on_there(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer() -> Any:
        async with open_postgres_saver(url) as saver:
            return await go_on(saver)

    fill(home)
    before = checksums(home)
    monkeypatch.setenv("DATABASE_URL", url)

    moved = citebot("migrate", "--to-postgres", "--json").answer

    assert set(moved["tables"].values()) == {3}
    assert (moved["conversations"], moved["evidence"]) == (1, 1)
    assert checksums(home) == before
    assert asyncio.run(answer()) == {"said": ["begun", "the second"], "calls": 1}
    assert rows(url, "SELECT max(id), count(*) FROM inbox") == [(12, 3)]
    (sequence,) = rows(url, "SELECT pg_get_serial_sequence('inbox', 'id')")[0]
    assert rows(url, f"SELECT nextval('{sequence}')") == [(13,)]


def test_a_data_folder_is_moved_back_and_a_run_that_waits_goes_on_there(
    citebot: Citebot, home: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer() -> Any:
        async with open_saver(tmp_path / "back" / CONVERSATIONS) as saver:
            return await go_on(saver)

    fill(home)
    monkeypatch.setenv("DATABASE_URL", url)
    there = citebot("migrate", "--to-postgres", "--json").answer
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "back"))

    back = citebot("migrate", "--to-sqlite")

    assert (back.code, "DATABASE_URL" in back.out) == (0, True)
    with (
        closing(sqlite3.connect(tmp_path / "back" / INBOX_FILE)) as db,
        closing(sqlite3.connect(home / INBOX_FILE)) as old,
    ):
        for table in there["tables"]:
            order = "rowid" if table in {"inbox", "turns", "feedback", "asked_back"} else "1"
            found, was = (each.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall() for each in (db, old))
            assert repr(found) == repr(was).replace("\\x00", ""), table
    assert asyncio.run(answer()) == {"said": ["begun", "the second"], "calls": 1}
    assert sorted(path.name for path in (tmp_path / "back").glob("*.sqlite*")) == [CONVERSATIONS, INBOX_FILE]


def test_a_target_that_holds_something_is_refused(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    monkeypatch.setenv("DATABASE_URL", url)
    assert citebot("migrate", "--to-postgres").code == 0

    assert "already. Name one that is empty" in citebot("migrate", "--to-postgres").complaint
    assert "already. Move it away" in citebot("migrate", "--to-sqlite").complaint


def test_a_move_that_fails_half_way_leaves_both_as_they_were(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def keep_evidence() -> None:
        async with open_postgres_saver(url) as saver:
            await EvidenceStore(saver).of("t").keep("e1", "text")

    fill(home)
    before = checksums(home)
    asyncio.run(keep_evidence())  # which is noticed after the tables of messages were copied
    monkeypatch.setenv("DATABASE_URL", url)

    assert "holds conversations already" in citebot("migrate", "--to-postgres").complaint

    assert checksums(home) == before
    assert rows(url, "SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM checkpoints)") == [(0, 0)]
    assert not (home / DRAFT).exists()


def test_what_a_citebot_uses_is_not_moved(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    monkeypatch.setenv("DATABASE_URL", url)

    with hold_shared_lock(home):
        assert "Another citebot is using" in citebot("migrate", "--to-postgres").complaint
    with psycopg.connect(url, application_name="citebot"):
        assert "Another citebot is connected" in citebot("migrate", "--to-postgres").complaint


def test_where_there_is_nothing_or_no_address_a_sentence_says_so(
    citebot: Citebot, home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert citebot("migrate").code == 2
    assert "Set DATABASE_URL" in citebot("migrate", "--to-postgres").complaint
    monkeypatch.setenv("DATABASE_URL", url)
    assert "There is nothing to move in" in citebot("migrate", "--to-postgres").complaint
    assert "There is nothing to move in" in citebot("migrate", "--to-sqlite").complaint
    assert not (home / INBOX_FILE).exists()
