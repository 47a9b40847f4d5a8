"""Conversations of earlier layouts continue in this one; `layouts` has what the citebot of each layout wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.errors import CheckpointError
from agent.persistence.checkpointer import open_saver
from agent.persistence.evidence_store import EvidenceStore
from agent.persistence.migrations import (
    create_checkpoint_tables,
    list_copies,
    load_conversation_schema,
    migrate_database,
)
from tests.agent.conftest import answer_to, redact, remembered
from tests.agent.test_graph import QUESTION, agent_with, research
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.dying import end_of

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
    assert set(before) - {"agent_executions", "run_tokens"} == {"checkpoints", "writes", "evidence"}
    assert all(before.values())

    async with open_saver(earlier) as saver:
        assert await saver.rows("PRAGMA user_version") == [(load_conversation_schema().newest,)]

    (copy,) = list_copies(earlier)
    assert read_all(copy) == before
    before.pop("agent_executions", None)  # what it says of runs is in the checkpoints, too
    claimed = [(thread, 0, None, used_at, None) for thread, _, used_at in before.pop("run_tokens", [])]
    assert read_all(earlier) == before | {"conversations": claimed, "claims": [(0,)]}


async def test_a_conversation_of_an_earlier_layout_goes_on(earlier: Path, code: FakeCode) -> None:
    async with open_saver(earlier) as saver:
        agent = Agent(FakeLibrary(code), saver, redact)

        assert [turn["question"] for turn in await remembered(agent, "c:3")] == ["where is parse_date defined?"]
        assert "3 calls of `parse_date`" in (await answer_to(agent, "and who calls it?", "c:3")).text


async def test_the_evidence_of_an_earlier_layout_is_read_on(earlier: Path) -> None:
    ((thread, key, text),) = read_all(earlier)["evidence"]

    async with open_saver(earlier) as saver:
        assert await EvidenceStore(saver).of(str(thread)).texts([str(key)]) == {key: text}


# Runs that earlier versions had in a journal, or under a token


@pytest.fixture(params=[3, 5])
def journaled(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database in which "run 1" asks back, "run 2" asks for approval, "run 3" is over, and "run 4" was killed."""
    path = tmp_path / "conversations.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((LAYOUTS / f"conversations_{request.param}.sql").read_text(encoding="utf-8"))
    return path


@pytest.mark.parametrize(
    ("thread", "reply", "labels"), [("c:1", "orders, please", {""}), ("c:2", "approve", {"shop", "store"})]
)
async def test_what_waited_for_a_person_goes_on_with_the_reply(
    journaled: Path, thread: str, reply: str, labels: set[str]
) -> None:
    async with open_saver(journaled) as saver:
        agent, _ = agent_with(saver, research("Find pay", "Read send"))
        answer = await answer_to(agent, reply, thread)

        assert answer.route not in {"paused", "failed"}
        assert "session [1]" in answer.text
        assert {one.repository for one in answer.citations} <= labels
        assert [one["question"] for one in await remembered(agent, thread)] == [QUESTION]


async def test_what_was_killed_is_not_begun_again(journaled: Path) -> None:
    async with open_saver(journaled) as saver:
        script = research("Find pay")
        agent, model = agent_with(saver, {**script, "executor_llm": script["executor_llm"][1:]})
        answer = await end_of(agent.resume("run 4", thread="c:4"))

        assert model.tasks == ["executor_llm", "refinery", "synthesis"]
        assert list(answer.commits) == ["shop", "store"]


async def test_what_was_over_gives_its_answer_again(journaled: Path, code: FakeCode) -> None:
    async with open_saver(journaled) as saver:
        answer = await end_of(Agent(FakeLibrary(code), saver, redact).resume("run 3", thread="c:3"))

        assert "`parse_date` is defined" in answer.text


async def test_a_start_that_was_killed_before_all_tables_were_made_is_made_up_for(tmp_path: Path) -> None:
    path = tmp_path / "conversations.sqlite"
    with closing(sqlite3.connect(path)) as db:
        create_checkpoint_tables(db)
        db.execute("PRAGMA user_version = 2")

    async with open_saver(path) as saver:
        assert await EvidenceStore(saver).of("t").texts(["e1"]) == {}


async def test_conversations_of_the_first_layout_are_refused(earlier: Path) -> None:
    with closing(sqlite3.connect(earlier)) as db:
        db.execute("PRAGMA user_version = 1")
    before = read_all(earlier)

    with pytest.raises(CheckpointError, match=r"conversation database .* another version of citebot \(layout 1;"):
        async with open_saver(earlier):
            pass

    assert read_all(earlier) == before
    assert list_copies(earlier) == []


def test_the_steps_have_numbers_that_follow_each_other(tmp_path: Path) -> None:
    schema = load_conversation_schema()

    assert sorted(schema.steps) == [*range(3, schema.newest + 1)]
    migrate_database(tmp_path / "c.sqlite", schema)
    assert set(read_all(tmp_path / "c.sqlite")) == {"evidence", "conversations", "claims"}
