"""Commands: told from questions, corrected, and carried out for those who may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from bot.access import AccessPolicy
from bot.conversations.assembly import ChatPolicy
from bot.conversations.commands import COMMANDS, ParsedCommand, UnknownCommand, format_help, parse_command
from bot.drawings.drawing_requests import DrawingRequest, parse_drawing
from bot.questions.answer_run import RunStats
from bot.questions.descriptions import (
    describe_commit_read,
    describe_freshness,
    describe_progress,
    describe_refresh,
    explain_answer,
    format_age,
)
from bot.storage.turn_records import TurnRecord
from indexer.errors import IndexDamaged
from indexer.types import Drift, Progress, RefreshReport
from tests.bot.contract import settled
from tests.bot.worlds import FakeWorld
from tests.fakes.answerer import FakeRepositories
from tests.fakes.parts import ANSWER, HEAD, FakeCode, FakeIndex, event
from tests.waiting import expect

REPOSITORIES = ("demo", "acme/shop")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("help", ParsedCommand(command="help")),
        ("", ParsedCommand(command="help")),
        ("/reindex acme/shop full", ParsedCommand(command="reindex", repository="acme/shop", full=True)),
        ("status demo", ParsedCommand(command="status", repository="demo")),
        ("please stop", ParsedCommand(command="stop")),
        ("Stopp!", ParsedCommand(command="stop")),
        ("止めて", ParsedCommand(command="stop")),
    ],
)
def test_a_command_is_read(text: str, read: ParsedCommand) -> None:
    assert parse_command(text, slash=False, repositories=REPOSITORIES) == read


@pytest.mark.parametrize(
    "text",
    [
        "why does parse_date fail?",
        "help me find the parser",
        "use of Session in tests?",
        "forget about caching; who calls it?",
        "status orders",
        "mutex",
        "stop the server",
    ],
)
def test_a_question_that_begins_like_a_command_is_a_question(text: str) -> None:
    assert parse_command(text, slash=False, repositories=REPOSITORIES) is None


@pytest.mark.parametrize(
    ("text", "slash", "hint"),
    [
        ("reindx", False, "Did you mean `reindex`?"),
        ("unmtue", False, "Did you mean `unmute`?"),
        ("statsu demo", True, "Did you mean `status`?"),
        ("use dmeo", False, "Did you mean `demo`?"),
        ("use", False, "Write `use <repo>`."),
        ("use nothing-like-it", True, "`repos` lists"),
        ("mute now please", True, "Write `mute`."),
    ],
)
def test_a_slip_is_told_with_what_was_meant(text: str, slash: bool, hint: str) -> None:
    read = parse_command(text, slash=slash, repositories=REPOSITORIES)

    assert isinstance(read, UnknownCommand)
    assert hint in read.sentence


def test_a_question_after_a_slash_is_a_question() -> None:
    assert parse_command("where is the date parsed?", slash=True, repositories=REPOSITORIES) is None


@given(st.text(max_size=80), st.booleans())
def test_reading_never_fails(text: str, slash: bool) -> None:
    read = parse_command(text, slash=slash, repositories=REPOSITORIES)

    assert read is None or isinstance(read, ParsedCommand | UnknownCommand)


def test_help_lists_every_command() -> None:
    assert all(f"`/citebot {command.usage}`" in format_help("/citebot ") for command in COMMANDS)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[FakeWorld]:
    access = AccessPolicy.model_validate(
        {"reindex": ["ann"], "rules": [{"repositories": ["secret"], "people": ["ann"]}]}
    )
    made = FakeWorld(tmp_path / "i.sqlite", policy=ChatPolicy(access=access))
    made.repositories = FakeRepositories("demo", "shop", "secret")
    async with made.running():
        yield made


async def test_reindexing_tells_what_has_changed(world: FakeWorld) -> None:
    await world.mention("reindex shop full")

    await settled(world, "`shop` is indexed at 0123456")
    assert world.repositories.indexes["shop"].refreshes == [True]


async def test_reindexing_by_others_is_refused(world: FakeWorld) -> None:
    await world.mention("reindex shop", author="bob")

    await settled(world, "You aren't allowed to do that")
    assert world.repositories.indexes["shop"].refreshes == []


async def test_a_repository_in_use_is_the_one_that_is_meant(world: FakeWorld) -> None:
    await world.mention("use shop")
    await settled(world, "about `shop` from now on")
    await world.mention("where is send?")
    await settled(world, "`shop`", "Answer to")

    assert [repository for _, _, repository in world.agent.asked] == ["shop"]


async def test_repositories_that_may_not_be_asked_about_are_not_listed(world: FakeWorld) -> None:
    await world.mention("repos", author="bob")
    (said,) = await settled(world, "demo at 0123456")
    assert "secret" not in said

    await world.mention("use secret", author="bob")
    await settled(world, "demo", "There is no repository `secret`")


async def test_a_conversation_is_forgotten(world: FakeWorld) -> None:
    thread = await world.mention("in demo, where is send?")
    await settled(world, "Answer to")
    await world.mention("forget", thread=thread)
    await settled(world, "Answer to", "I have forgotten this conversation.")
    await world.mention("why", thread=thread)

    await settled(world, "Answer to", "forgotten", "not answered anything")
    assert world.agent.forgotten == [world.agent.asked[0][1]]


async def test_there_may_be_nothing_to_stop(world: FakeWorld) -> None:
    await world.mention("stop")

    await settled(world, "There is nothing to stop here.")


@pytest.mark.parametrize(
    ("seconds", "said"), [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")]
)
def test_ages_are_told_in_the_largest_unit(seconds: float, said: str) -> None:
    assert format_age(seconds) == said


async def test_freshness_tells_what_is_missing() -> None:
    status = replace(await FakeIndex().status(), commits_behind=2)

    assert describe_freshness(status, 120.0) == "demo at 0123456 on main, indexed 2 minutes ago, 2 commits behind"
    assert describe_freshness(await FakeIndex(commit=None).status(), 0.0) == "demo is not indexed yet"


async def test_an_answer_tells_the_commit_that_it_was_read_at() -> None:
    status = await FakeIndex().status()
    unchanged = Drift(behind=0, changed=())

    assert (
        describe_commit_read("demo", HEAD, status, unchanged, 120.0)
        == "Read demo at 0123456 (main), indexed 2 minutes ago"
    )
    newer = describe_commit_read("demo", "f" * 40, status, Drift(behind=2, changed=("a.py",)), 120.0)
    assert newer == "Read demo at fffffff · 2 commits behind · 1 cited file changed since"
    edited = describe_commit_read("demo", "f" * 40, status, Drift(behind=0, changed=(), uncommitted=("a.py",)), 120.0)
    assert edited == "Read demo at fffffff · uncommitted changes in a.py not read"
    more = describe_commit_read("demo", "f" * 40, status, Drift(behind=0, changed=(), uncommitted=("a", "b")), 120.0)
    assert more == "Read demo at fffffff · uncommitted changes in 2 cited files not read"
    assert (
        describe_commit_read("demo", "f" * 40, status, Drift(behind=None, changed=None), 0.0) == "Read demo at fffffff"
    )


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (Progress(stage="listing", done=0, total=0), "Indexing demo: listing files …"),
        (Progress(stage="parsing", done=1_200, total=4_800), "Indexing demo: reading files, 1,200 of 4,800 (25 %) …"),
        (Progress(stage="embedding", done=9, total=8), "Indexing demo: embedding, 8 of 8 (100 %) …"),
    ],
)
def test_progress_is_counts_and_a_percentage(progress: Progress, said: str) -> None:
    assert describe_progress("demo", progress) == said


async def test_reindexing_shows_how_far_it_has_come_in_its_own_message(world: FakeWorld) -> None:
    gate = threading.Event()
    world.repositories.indexes["shop"].held = gate
    await world.mention("reindex shop")
    async with expect("'Indexing shop: reading files, 1 of 3 (33 %) …' in wo..."):
        while "Indexing shop: reading files, 1 of 3 (33 %) …" not in world.said():
            await world.clock.advance(1)
    gate.set()
    (done,) = await settled(world, "`shop` is indexed at 0123456")

    assert "Indexing" not in done


async def test_a_first_question_shows_how_far_its_repository_is_indexed(world: FakeWorld) -> None:
    gate = threading.Event()
    world.repositories.indexes["shop"] = FakeIndex(commit=None)
    world.repositories.indexes["shop"].held = gate
    await world.mention("in the shop repo, where is send?")
    async with expect("'Indexing shop: reading files, 1 of 3 (33 %) …' in wo..."):
        await asyncio.to_thread(world.repositories.indexes["shop"].begun.wait, 5)
        while "Indexing shop: reading files, 1 of 3 (33 %) …" not in world.said():
            await world.clock.advance(1)
    assert world.agent.asked == []
    gate.set()

    await settled(world, "Answer to")
    assert world.repositories.indexes["shop"].refreshes == [False]


class DamagedIndex(FakeIndex):
    """An index that must be built again before it can be read."""

    async def pin(self) -> FakeCode:
        if not self.refreshes:
            raise IndexDamaged("The index of shop was damaged, and is being rebuilt.")
        return await super().pin()


async def test_who_asks_about_a_damaged_index_is_told_that_it_is_built_again(world: FakeWorld) -> None:
    gate = threading.Event()
    world.repositories.indexes["shop"] = DamagedIndex()
    world.repositories.indexes["shop"].held = gate
    said = "The index of shop was damaged, and is being rebuilt. Indexing shop: reading files, 1 of 3 (33 %) …"
    await world.mention("in the shop repo, where is send?")
    async with expect("said in world.said()"):
        await asyncio.to_thread(world.repositories.indexes["shop"].begun.wait, 5)
        while said not in world.said():
            await world.clock.advance(1)
    gate.set()

    await settled(world, "Answer to")


def test_a_refresh_that_changed_nothing_says_so() -> None:
    report = RefreshReport(commit=HEAD, previous=HEAD, changed=0, removed=0, files=1, chunks=1, seconds=0.1)

    assert describe_refresh(report, "demo") == "`demo` was up to date at 0123456."


def test_many_files_are_counted() -> None:
    record = TurnRecord(
        repository="demo", commit=HEAD, route="broad", model=None, seconds=1.0, files=tuple(f"f{n}" for n in range(12))
    )

    assert "and 2 more" in explain_answer(record)


def test_a_watched_turn_and_orders_in_the_evidence_are_explained() -> None:
    record = TurnRecord(
        repository="demo", commit=HEAD, route="broad", model="m:1", seconds=1.0, watched=True, flagged=2
    )

    assert "- Guard: the message looked like an attack on me" in explain_answer(record)
    assert "- Guard: 2 passages that were read give orders" in explain_answer(record)
    assert "Guard" not in explain_answer(replace(record, watched=False, flagged=0))


def test_what_the_guard_did_is_kept_of_a_turn() -> None:
    tally = RunStats()
    tally.take(event("step_end", node="security_gateway", changes={"gateway_verdict": "watch"}))
    tally.take(event("flagged", source="tools", count=2, rules=["hide"]))
    tally.take(event("flagged", source="repository", count=1, rules=["hide"]))

    record = tally.record(ANSWER)
    assert (record.watched, record.flagged) == (True, 3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("draw who calls send", DrawingRequest(name="send", subject="callers")),
        ("draw me the callers of `Session.send()`?", DrawingRequest(name="Session.send", subject="callers")),
        ("Draw what send calls in demo", DrawingRequest(name="send", subject="callees", repository="demo")),
        ("draw who calls send as Mermaid", DrawingRequest(name="send", subject="callers", as_mermaid=True)),
        ("draw the architecture of src/api", DrawingRequest(name="src/api", subject="modules")),
        ("draw me a map of `src/api/` in demo!", DrawingRequest(name="src/api/", subject="modules", repository="demo")),
        ("draw architecture", DrawingRequest(name="", subject="modules")),
        ("draw the architecture of demo", DrawingRequest(name="", subject="modules", repository="demo")),
    ],
)
def test_a_drawing_is_asked_for_in_words(text: str, wanted: DrawingRequest) -> None:
    parsed = parse_command(text, slash=False, repositories=REPOSITORIES)

    assert isinstance(parsed, ParsedCommand)
    assert (parsed.command, parsed.drawing, parsed.repository) == ("draw", wanted, wanted.repository)


@pytest.mark.parametrize("text", ["draw a conclusion from the tests", "draw the line somewhere"])
def test_what_is_no_drawing_is_a_question_and_after_a_slash_explained(text: str) -> None:
    assert parse_command(text, slash=False, repositories=REPOSITORIES) is None
    assert isinstance(parse_command(f"/{text}", slash=True, repositories=REPOSITORIES), UnknownCommand)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draw", "Write `draw who calls NAME`"),
        ("draw who calls send in nowhere", "There is no repository `nowhere`."),
        ("draw the architecture of src in nowhere", "There is no repository `nowhere`."),
    ],
)
def test_a_drawing_that_lacks_something_is_explained(text: str, said: str) -> None:
    parsed = parse_command(text, slash=False, repositories=REPOSITORIES)

    assert isinstance(parsed, UnknownCommand)
    assert said in parsed.sentence


@given(st.text(max_size=300))
def test_any_wish_for_a_drawing_is_read_or_passed_over(text: str) -> None:
    wanted = parse_drawing(text)

    assert wanted is None or len(wanted.name) <= 200
