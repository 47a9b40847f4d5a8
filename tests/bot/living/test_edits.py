"""Outdated answers on the fake platform: edited within limits, for those who may ask now, and not twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.access import AccessPolicy, AccessRule
from bot.errors import PlatformUnreachable
from bot.living.edits import LivingEdits
from bot.settings import LivingTable
from bot.storage.living_answers import DAY, STUCK_SECONDS, AnswerEvidence, LivingAnswerStore
from tests.bot.contract import settled, until
from tests.bot.worlds import HOSTS, FakeWorld

NEW = "b" * 40
CHANGES = ("1 of 1 cited places changed", "[`src/session.py:10-24`](https://git.example.com/demo/compare/a...b)")
MARK = "Outdated since `bbbbbbb`: 1 of 1 cited places changed ([`src/session.py:10-24`]"


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[FakeWorld]:
    async with FakeWorld(tmp_path / "inbox.sqlite").running() as made:
        made.agent.cites = True
        await made.pass_time(2 * DAY)  # of which none was edited in the last
        yield made


def store(world: FakeWorld) -> LivingAnswerStore:
    kept = world.conversations.deps.living
    assert kept is not None
    return kept


def edits(world: FakeWorld, *, access: AccessPolicy | None = None, table: LivingTable | None = None) -> LivingEdits:
    deps = world.conversations.deps
    return LivingEdits(
        store=store(world), inbox=deps.inbox, access=access or deps.access, settings=table or LivingTable(),
        clock=world.clock, transports=world.conversations.turns.transports, hosts=HOSTS, told=asyncio.Event(),
    )  # fmt: skip


async def ask(world: FakeWorld, text: str = "where is send?") -> str:
    """Ask, and return the run of the answer once that is followed."""
    await world.mention(text)
    await until(world, lambda said: any(f"Answer to: {text}" in one and "demo at" in one for one in said))
    handle = list(world.platform.messages.values())[-1].handle
    entry = await world.conversations.deps.inbox.find_by_reply(handle)
    assert entry is not None
    await world.conversations.turns.wait_for(entry.id)
    return entry.run_id


async def outdate(world: FakeWorld, text: str = "where is send?") -> str:
    """Ask, and let a push have changed what the answer cites."""
    run = await ask(world, text)
    assert await store(world).note_changes(run[:20], NEW, CHANGES)
    return run


async def test_an_outdated_answer_says_so_until_it_is_given_again(world: FakeWorld) -> None:
    await outdate(world)
    await edits(world).edit_due()

    (said,) = world.said()
    assert said.startswith("Answer to: where is send?")
    assert MARK in said
    assert await world.choose("Answer again", author="bob") == ""
    (renewed,) = await until(world, lambda said: "Answered again." in said[0] and "demo at" in said[0])
    assert "Since the earlier answer, 1 of 1 cited places changed:" in renewed
    assert "Outdated" not in renewed
    assert [question for question, _, _ in world.agent.asked] == ["where is send?"] * 2


async def test_only_who_may_ask_now_and_only_listed_channels_see_an_edit(world: FakeWorld) -> None:
    await outdate(world)
    nobody = AccessPolicy(rules=(AccessRule(repositories=("demo",), people=("carol",)),))

    await edits(world, access=nobody).edit_due()
    await edits(world, table=LivingTable(channels=("C-other",))).edit_due()
    await edits(world).edit_due()  # which nothing is left for

    (said,) = world.said()
    assert "Outdated" not in said


async def test_an_answer_in_progress_comes_first(world: FakeWorld) -> None:
    await outdate(world)
    world.agent.gate = asyncio.Event()
    await world.mention("where is the rest?", thread="2")
    await world.agent.begun.acquire()
    await world.agent.begun.acquire()

    await edits(world).edit_due()
    assert "Outdated" not in world.said()[0]

    world.agent.gate.set()
    await settled(world, "where is send?", "where is the rest?")
    await until(world, lambda said: "demo at" in said[1])
    await edits(world).edit_due()
    assert MARK in world.said()[0]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_edit_that_a_killed_process_began_is_shown_by_the_next(world: FakeWorld, after: bool) -> None:
    """Whether the platform had taken the edit or not, there is one reply with one remark."""
    await outdate(world)
    frozen = world.platform.freeze(1, after=after)
    dying = asyncio.create_task(edits(world).edit_due())
    await frozen.wait()
    dying.cancel()
    await asyncio.wait({dying})

    await edits(world).edit_due()
    assert (MARK in world.said()[0]) is after  # it may still be at it
    await world.pass_time(STUCK_SECONDS + 1)
    await edits(world).edit_due()

    (said,) = world.said()
    assert said.count("Outdated") == 1


async def test_an_edit_is_tried_again_when_the_platform_is_back(world: FakeWorld) -> None:
    await outdate(world)
    world.platform.fail("edit", PlatformUnreachable("away"))

    await edits(world).edit_due()
    assert "Outdated" not in world.said()[0]
    await edits(world).edit_due()

    assert MARK in world.said()[0]


async def test_a_deleted_question_and_a_forgotten_conversation_are_not_followed(world: FakeWorld) -> None:
    await outdate(world)
    await world.delete("1")
    await outdate(world, "where is more?")
    await world.mention("forget", thread="2")
    await until(world, lambda said: "forgot" in said[-1].lower())

    assert await store(world).list_due(per_hour=9, most=9) == []


async def test_a_question_that_came_with_more_than_its_text_is_not_asked_again(world: FakeWorld) -> None:
    """What came with it is not kept, so that it would be another question."""
    message = replace(world.written[await world.mention("warm up")], id="9", quoted=("Traceback",), text="why?")
    await settled(world, "warm up")
    await world.conversations.receive(replace(message, place=replace(message.place, thread="9")))
    await until(world, lambda said: len(said) == 2 and "demo at" in said[1])
    entry = await world.conversations.deps.inbox.find_by_reply(list(world.platform.messages.values())[-1].handle)
    assert entry is not None
    await world.conversations.turns.wait_for(entry.id)
    await store(world).note_changes(entry.run_id[:20], NEW, CHANGES)

    await edits(world).edit_due()

    shown = list(world.platform.messages.values())[-1].content
    assert MARK in shown.footer
    assert "again" not in {button.action for button in shown.buttons}


@pytest.mark.parametrize(("call", "after"), [(0, True), (1, False), (1, True), (2, False), (2, True)])
async def test_who_watches_an_answer_is_told_once(world: FakeWorld, call: int, after: bool) -> None:
    """Also where the process is killed between the edit and the note, or before it has noted that it wrote one."""
    run = await ask(world)
    assert await world.press("watch", author="bob") == ""
    assert "once" in await world.press("watch")
    await store(world).note_changes(run[:20], NEW, CHANGES)
    if call:
        frozen = world.platform.freeze(call, after=after)
        dying = asyncio.create_task(edits(world).edit_due())
        await frozen.wait()
        dying.cancel()
        await asyncio.wait({dying})
        await world.pass_time(STUCK_SECONDS + 1)

    for _ in range(2):
        await edits(world).edit_due()
        await world.pass_time(2 * DAY)
        await store(world).note_changes(run[:20], NEW, (*CHANGES, "and more"))

    first, told = world.said()
    assert MARK in first
    assert told.startswith(f"The answer that you watch has changed. {MARK}")
    assert await world.choose("Answer again", author="bob") == ""  # as below the answer itself
    await until(world, lambda said: "Answered again." in said[0] and "demo at" in said[0])


async def test_who_watches_no_more_or_may_not_ask_any_more_is_not_told(world: FakeWorld) -> None:
    for text, undo in (("where is send?", "unwatch"), ("where is more?", "")):
        run = await ask(world, text)
        await world.press("watch")
        if undo:
            await world.press("unwatch")
        await store(world).note_changes(run[:20], NEW, CHANGES)
        nobody = AccessPolicy(rules=(AccessRule(repositories=("demo",), people=("carol",)),))
        await edits(world, access=None if undo else nobody).edit_due()

    assert ["Outdated" in said for said in world.said()] == [True, False]


async def test_links_to_lines_that_moved_follow_them_and_nothing_is_said(world: FakeWorld) -> None:
    run = await ask(world)
    (place,) = await store(world).list_places(run)
    old = f"https://git.example.com/demo/blob/{place.cited.commit}/src/session.py#L10-L24"
    kept = await store(world).find(run)
    assert kept is not None
    text = f"It is in [[1]]({old})."
    evidence = AnswerEvidence(commits=kept.commits, places=[place.cited])
    await store(world).keep(replace(kept, content=replace(kept.content, text=text)), "c", evidence)
    new, foreign = old.replace("L10-L24", "L30-L44"), "https://evil.example/x"

    for links in ({old: foreign}, {old: new}):
        assert await store(world).note_changes(run[:20], NEW, (), links)
        await edits(world).edit_due()
        await world.pass_time(7 * DAY + 1)

    (said,) = world.said()
    assert said.startswith(f"It is in [[1]]({new}).")
    assert "Outdated" not in said
    assert foreign not in said


async def test_an_answer_that_its_asker_shared_is_marked_where_everybody_sees_it(world: FakeWorld) -> None:
    await world.command("where is send?")
    await until(world, lambda said: bool(said) and "demo at" in said[0])
    handle = list(world.platform.messages.values())[-1].handle
    entry = await world.conversations.deps.inbox.find_by_reply(handle)
    assert entry is not None
    await world.conversations.turns.wait_for(entry.id)
    await store(world).note_changes(entry.run_id[:20], NEW, CHANGES)
    await edits(world).edit_due()  # which changes nothing that one person sees
    assert await world.press("share") == ""
    await edits(world).edit_due()

    private, shared = [shown.content for shown in world.platform.messages.values()]
    assert "Outdated" not in private.footer
    assert MARK in shared.footer
    assert shared.buttons == ()
