"""Messages of earlier layouts are answered in this one; `layouts` has what the citebot of each layout wrote."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.persistence.migrations import list_copies
from bot.errors import InboxError, NotAllowed
from bot.messages import Place
from bot.repositories.choice_store import ChoiceStore
from bot.storage.database import load_message_schema, open_database
from bot.storage.inbox import Inbox
from bot.storage.rate_limits import QuestionCounter, QuestionLimits
from bot.storage.threads import ThreadStore
from bot.storage.turn_records import TurnRecordStore
from tests.bot.chat import handle, message
from tests.fakes.clock import FakeClock
from tests.fakes.disks import ROOT
from tests.waiting import LIMIT_SECONDS

# Opens both databases of a folder once it is told to, as `citebot serve` does, and says how that went.
OPENING = """
import asyncio, sys
from pathlib import Path
from agent.persistence.checkpointer import open_saver
from bot.storage.database import open_database
async def main():
    home = Path(sys.argv[1])
    async with open_database(home / "inbox.sqlite"), open_saver(home / "conversations.sqlite"):
        print("done", flush=True)
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""
ADDED = ("shared_answers", "answer_records", "living_answers", "cited_places", "stored_queries", "followed_commits")
LAYOUTS = Path(__file__).parent / "layouts"
WRITTEN_AT = 1_000_000.0


def load_layout(number: int, folder: Path) -> Path:
    """Make a database as a citebot of an earlier layout left it, with rows in every table."""
    path = folder / "inbox.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((LAYOUTS / f"inbox_{number}.sql").read_text(encoding="utf-8"))
    return path


@pytest.fixture(params=[1, 2])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return load_layout(request.param, tmp_path)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return load_layout(1, tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(WRITTEN_AT)


def read_all(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table."""
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


def leave_out_states(tables: dict[str, list[tuple[object, ...]]]) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every table, except the states of messages, which have other names, and when they were edited."""
    return {**tables, "inbox": [(*row[:7], *row[8:18]) for row in tables["inbox"]]}


async def test_nothing_of_an_earlier_layout_is_lost(earlier: Path, tmp_path: Path) -> None:
    before = read_all(earlier)
    assert len(before) == 9
    assert all(before.values())

    async with open_database(earlier) as database, open_database(tmp_path / "new.sqlite") as new:
        objects = "SELECT name, sql FROM sqlite_schema ORDER BY name"
        assert await database.rows(objects) == await new.rows(objects)
        assert await database.row("PRAGMA user_version") == (load_message_schema().newest,)

    after = read_all(earlier)
    (copy,) = list_copies(earlier)
    assert read_all(copy) == before
    assert leave_out_states({name: after[name] for name in before}) == leave_out_states(before)


async def test_messages_of_the_layout_before_were_never_edited(tmp_path: Path, clock: FakeClock) -> None:
    path = load_layout(5, tmp_path)
    before = read_all(path)
    assert all(before.values())

    async with open_database(path) as database:
        after = read_all(path)
        assert after["inbox"] == [(*row, 0.0) for row in before["inbox"]]
        edited = replace(message("in other words", id="1"), edited_at=5.0)
        assert await Inbox(database, clock, "me").revise(edited) is not None
    assert {name: rows for name, rows in after.items() if name not in {"inbox", "uptimes", *ADDED}} == {
        name: rows for name, rows in before.items() if name not in {"inbox", "uptimes"}
    }


async def test_what_asked_a_person_something_waits_for_the_answer(tmp_path: Path, clock: FakeClock) -> None:
    """Of those that were over, two had asked; another one had, too, and its conversation has gone on since."""
    async with open_database(load_layout(2, tmp_path)) as database:
        inbox = Inbox(database, clock, "me")
        found = [await inbox.find(message(id=str(number)).key) for number in range(1, 10)]

        assert [entry.state if entry else None for entry in found] == [
            "received", "running", "settled", "paused", "settled", "settled", "paused", "closed", "withdrawn",
        ]  # fmt: skip
        assert await inbox.revise(message("in the shop", id="7")) is not None


async def test_what_was_waiting_in_an_earlier_layout_is_answered(earlier: Path, clock: FakeClock) -> None:
    async with open_database(earlier) as database:
        inbox = Inbox(database, clock, "me")
        await inbox.take_from("host/1/0000")

        waiting, begun = await inbox.list_unfinished()

        assert (waiting.message.text, waiting.tries, waiting.deaths) == ("where is send?", 0, 0)
        assert (begun.message.text, begun.state, begun.tries) == ("who calls it?", "running", begun.deaths)
        assert begun.handles == (handle("9.2"),)
        taken = await inbox.claim(begun.id)
        assert taken is not None
        assert await inbox.settle(taken, "settled")


async def test_threads_ratings_and_choices_of_an_earlier_layout_are_read_on(earlier: Path, clock: FakeClock) -> None:
    async with open_database(earlier) as database:
        thread = await ThreadStore(database, clock).find(Place(platform="fake", workspace="W", channel="C", thread="1"))
        (rating,) = await TurnRecordStore(database, clock).feedback()
        choices = ChoiceStore(database, clock)
        asked = await choices.last_asked_back("c:1", "U1ANN")
        counter = QuestionCounter(database, clock, QuestionLimits(per_minute=1))

        assert thread is not None
        assert (thread.muted, thread.repository) == (True, "shop")
        assert (rating.person, rating.opinion) == ("U1ANN", "good")
        assert rating.record is not None
        assert rating.record.files == ("a.py",)
        assert await choices.recent("c:") == ["shop"]
        assert asked is not None
        assert asked.names == ("shop", "till")
        assert await choices.together("c:2") == ("shop", "till")
        await counter.count(message())  # counted for each workspace before: the minute of the upgrade starts over
        with pytest.raises(NotAllowed, match="You have asked 1 questions this minute"):
            await counter.count(message())


async def test_an_inbox_without_the_later_columns_and_tables_gets_them(first: Path, clock: FakeClock) -> None:
    with closing(sqlite3.connect(first)) as db:
        for column in ("deaths", "under_way"):
            db.execute(f"ALTER TABLE inbox DROP COLUMN {column}")
        db.executescript("DROP TABLE topics; DROP TABLE routes; DROP TABLE asked_back; DROP TABLE pulse;")

    async with open_database(first, lease_clock=clock.now) as database:
        inbox = Inbox(database, clock, "me")
        await inbox.check()
        assert [entry.deaths for entry in await inbox.list_unfinished()] == [0]
        assert await ChoiceStore(database, clock).topic("c:3") is None


async def test_a_step_that_cannot_be_taken_is_a_sentence_of_the_inbox(first: Path) -> None:
    with closing(sqlite3.connect(first)) as db:
        db.executescript("DROP TABLE usage; CREATE VIEW usage AS SELECT 1; DROP TABLE turns; CREATE TABLE turns (x);")
    before = read_all(first)

    with pytest.raises(InboxError, match=r"cannot be brought from layout 1 to \d+ .*Nothing was changed"):
        async with open_database(first):
            pass

    assert read_all(first) == before


@pytest.mark.exhaustive
def test_citebots_that_start_at_once_share_their_databases(earlier: Path) -> None:
    before = read_all(earlier)
    command = [sys.executable, "-P", "-c", OPENING, str(earlier.parent)]  # one is earlier, the other new
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    assert [process.communicate(timeout=LIMIT_SECONDS)[0] for process in started] == ["done\n"] * 4
    assert len(list_copies(earlier)) == 1
    assert len(read_all(earlier)["inbox"]) == len(before["inbox"])


def test_the_steps_have_numbers_that_follow_each_other() -> None:
    schema = load_message_schema()

    assert sorted(schema.steps) == [*range(2, schema.newest + 1)]
