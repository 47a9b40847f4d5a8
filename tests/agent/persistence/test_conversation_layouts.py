"""Conversations of earlier layouts go on in this one; `layouts` has what the citebot of each layout wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.errors import CheckpointVersion
from agent.persistence.checkpointer import open_saver
from agent.persistence.conversation_schema import create_checkpoint_tables, load_conversation_schema
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.migrations import list_copies, migrate_database
from agent.persistence.run_store import RunStore
from tests.agent.conftest import answer_to, redact, remembered
from tests.fakes.code import FakeCode, FakeLibrary

LAYOUTS = Path(__file__).parent / "layouts"


@pytest.fixture(params=sorted(LAYOUTS.glob("*.sql")), ids=lambda path: path.stem)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database as a citebot of an earlier layout left it, with rows in every table."""
    path = tmp_path / "conversations.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(request.param.read_text(encoding="utf-8"))
    return path


def read_all(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table."""
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


async def test_nothing_of_an_earlier_layout_is_lost(earlier: Path) -> None:
    before = read_all(earlier)
    assert set(before) == {"checkpoints", "writes", "agent_executions", "evidence"}
    assert all(before.values())

    async with open_saver(earlier) as saver:
        assert await saver.rows("PRAGMA user_version") == [(load_conversation_schema().newest,)]

    assert read_all(earlier) == before
    (copy,) = list_copies(earlier)
    assert read_all(copy) == before


async def test_a_conversation_of_an_earlier_layout_goes_on(earlier: Path, code: FakeCode) -> None:
    async with open_saver(earlier) as saver:
        agent = Agent(FakeLibrary(code), saver, redact)

        assert [turn["question"] for turn in await remembered(agent, "c:3")] == ["where is parse_date defined?"]
        assert "3 calls of `parse_date`" in (await answer_to(agent, "and who calls it?", "c:3")).text


async def test_the_runs_and_the_evidence_of_an_earlier_layout_are_read_on(earlier: Path) -> None:
    async with open_saver(earlier) as saver:
        running, paused = await RunStore(saver).find("run 2"), await RunStore(saver).find("run 1")

        assert running is not None
        assert (running.thread, running.question, running.status) == ("c:2", "who calls it?", "running")
        assert paused is not None
        assert (paused.status, paused.tries) == ("paused", 0)
        assert await EvidenceStore(saver).of("c:2").texts(["e1"]) == {"e1": "def send(self):"}


async def test_a_start_that_was_killed_before_all_tables_were_made_is_made_up_for(tmp_path: Path) -> None:
    path = tmp_path / "conversations.sqlite"
    with closing(sqlite3.connect(path)) as db:
        create_checkpoint_tables(db)
        db.execute("PRAGMA user_version = 2")

    async with open_saver(path) as saver:
        assert await RunStore(saver).find("none") is None
        assert await EvidenceStore(saver).of("t").texts(["e1"]) == {}


async def test_conversations_of_the_first_layout_are_refused(earlier: Path) -> None:
    with closing(sqlite3.connect(earlier)) as db:
        db.execute("PRAGMA user_version = 1")
    before = read_all(earlier)

    with pytest.raises(CheckpointVersion, match=r"conversation database .* another version of citebot \(layout 1;"):
        async with open_saver(earlier):
            pass

    assert read_all(earlier) == before
    assert list_copies(earlier) == []


def test_the_steps_have_numbers_that_follow_each_other(tmp_path: Path) -> None:
    schema = load_conversation_schema()

    assert sorted(schema.steps) == [*range(3, schema.newest + 1)]
    migrate_database(tmp_path / "c.sqlite", schema)
    assert set(read_all(tmp_path / "c.sqlite")) == {"agent_executions", "evidence"}
