"""The choice of a repository for a question, and the sentence that tells its author."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.access import AccessPolicy
from bot.clock import Clock
from bot.conversations.assembly import ChatPolicy
from bot.messages import ButtonPress, MessageContent, MessageHandle, ThreadMessage
from bot.repositories.choice_store import ChoiceStore, PendingQuestion, RepositoryChoice
from bot.repositories.hints import HintLookup, find_hints
from bot.repositories.names import RepositoryProfile
from bot.storage.database import open_database
from tests.bot.contract import settled, until
from tests.bot.worlds import HOSTS, FakeWorld
from tests.fakes.answerer import FakeRepositories
from tests.fakes.clock import FakeClock
from tests.fakes.code import FakeCode as MemoryCode
from tests.fakes.parts import FakeIndex

NAMES = ("shop", "website", "secret", *(f"service-{number}" for number in range(17)))
POLICY = ChatPolicy(
    hosts=HOSTS,
    access=AccessPolicy.model_validate({"rules": [{"repositories": ["secret"], "people": ["ann"]}]}),
    signs={
        "website": RepositoryProfile(page="https://git.example.com/team/site"),
        "service-3": RepositoryProfile(channels=("fake:OPS",)),
        "service-4": RepositoryProfile(channels=("direct",)),
        "secret": RepositoryProfile(channels=("fake:OPS",)),
    },
)


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[FakeWorld]:
    made = FakeWorld(tmp_path / "inbox.sqlite", policy=POLICY)
    made.repositories = FakeRepositories(*NAMES)
    await made.begin()
    yield made
    await made.end()


def about(world: FakeWorld) -> list[str | None]:
    return [repository for _, _, repository in world.agent.asked]


def shown(world: FakeWorld) -> MessageContent:
    return list(world.platform.messages.values())[-1].content


def labels(world: FakeWorld) -> list[str]:
    return [button.label for button in shown(world).buttons]


def knows(world: FakeWorld, repository: str, *names: str) -> None:
    world.repositories.indexes[repository].code.names += names


async def test_a_name_in_the_question_is_followed(world: FakeWorld) -> None:
    await world.mention("why is service-7 slow?")

    await settled(world, "service-7 at 0123456")


async def test_a_link_to_a_repository_names_it(world: FakeWorld) -> None:
    await world.mention("what is https://git.example.com/team/site/blob/abc/a.py#L3 for?")

    await settled(world, "website at 0123456")


async def test_the_only_one_with_the_names_of_the_question_is_taken(world: FakeWorld) -> None:
    knows(world, "service-5", "parse_date")
    thread = await world.mention("who calls parse_date?")
    await settled(world, "service-5 at 0123456")
    await world.mention("why", thread=thread)

    await settled(world, "service-5", "Because: what you name is there: `parse_date`")


async def test_the_only_one_with_the_file_of_the_question_is_taken(world: FakeWorld) -> None:
    world.repositories.indexes["service-5"].code.paths.append("shop/orders.py")
    await world.mention("what does shop/orders.py do?")

    await settled(world, "service-5 at 0123456")


async def test_where_two_have_the_names_their_buttons_come_first(world: FakeWorld) -> None:
    knows(world, "service-5", "parse_date")
    knows(world, "service-16", "parse_date")
    await world.mention("who calls parse_date?")

    await settled(world, "Which repository do you mean? Press its button, or say `use NAME`. `repos` lists all 20.")
    assert labels(world)[:2] == ["service-5", "service-16"]
    assert len(labels(world)) == 5
    assert len({button.value for button in shown(world).buttons}) == 5


async def test_what_the_channel_asks_about_comes_first(world: FakeWorld) -> None:
    await world.mention("service-9: where is send?")
    await settled(world, "service-9")
    await world.mention("where is send?")

    await settled(world, "service-9", "Which repository")
    assert labels(world)[0] == "service-9"


async def test_only_what_the_asker_may_see_is_offered_or_taken(world: FakeWorld) -> None:
    knows(world, "secret", "hidden_one")
    await world.mention("who calls hidden_one? in secret?", author="bob")

    (said,) = await settled(world, "`repos` lists all 19.")
    assert "secret" not in (*labels(world), said)
    await world.mention("who calls hidden_one?", author="ann")
    await settled(world, "Which repository", "secret at 0123456")


async def test_a_channel_has_its_repository(world: FakeWorld) -> None:
    await world._write("where is send?", "bob", "", 1, kind="mention", channel="OPS")

    await settled(world, "service-3 at 0123456")


async def test_a_channel_with_two_repositories_offers_them_first(world: FakeWorld) -> None:
    await world._write("where is send?", "ann", "", 1, kind="mention", channel="OPS")

    await settled(world, "Which repository")
    assert labels(world)[:2] == ["secret", "service-3"]


async def test_what_is_in_use_in_a_channel_is_meant_there(world: FakeWorld) -> None:
    await world.mention("use website")
    await settled(world, "about `website` from now on")
    await world.mention("where is send?")

    await settled(world, "about `website`", "website at 0123456")


async def test_a_direct_conversation_stays_with_its_repository(world: FakeWorld) -> None:
    await world.direct("where is send?")
    await settled(world, "service-4 at")
    await world.direct("use shop")
    await settled(world, "service-4 at", "about `shop`")
    await world.direct("and who calls it?")

    await settled(world, "service-4 at", "about `shop`", "shop at")


async def test_what_only_its_author_sees_stays_with_a_repository_for_a_while(world: FakeWorld) -> None:
    async def whisper(text: str) -> None:
        await world._write(text, "ann", "@ann", 1, kind="command", private=True)

    await whisper("shop: where is send?")
    await settled(world, "shop at")
    await whisper("and who calls it?")
    await settled(world, "shop at", "shop at")
    await world.clock.advance(3_600)
    await whisper("and its tests?")
    await settled(world, "shop at", "shop at", "Which repository")
    await whisper("website")

    await settled(world, "shop at", "shop at", "Which repository", "Answer to: and its tests?\nRead website at")


async def test_a_conversation_whose_repository_is_gone_is_not_moved_to_another(world: FakeWorld) -> None:
    thread = await world.mention("shop: where is send?")
    await settled(world, "shop at")
    del world.repositories.indexes["shop"]
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "shop at", "This conversation is about `shop`, which is gone")
    await world.mention("use website", thread=thread)
    await world.follow_up("who calls it?", thread=thread)

    await settled(world, "shop at", "is gone", "about `website`", "website at")


async def test_the_last_repository_does_not_take_over_the_conversations_of_others(world: FakeWorld) -> None:
    thread = await world.mention("shop: where is send?")
    await settled(world, "shop at")
    for name in NAMES[2:]:
        del world.repositories.indexes[name]
    del world.repositories.indexes["shop"]
    await world.follow_up("and who calls it?", thread=thread)
    await settled(world, "shop at", "This conversation is about `shop`, which is gone")
    await world.mention("and who calls it?")

    await settled(world, "shop at", "is gone", "website at")


async def test_who_may_not_see_the_repository_of_a_thread_is_refused(world: FakeWorld) -> None:
    thread = await world.mention("in secret, where is send?")
    await settled(world, "secret at")
    await world.mention("and who calls it?", thread=thread, author="bob")

    await settled(world, "secret at", "which is gone, or hidden from you here")
    assert about(world) == ["secret"]


async def test_a_choice_by_two_presses_at_once_is_answered_once(world: FakeWorld) -> None:
    await world.mention("where is send?")
    await settled(world, "Which repository")
    await asyncio.gather(world.choose("shop"), world.choose("shop"), world.choose("shop"))

    await settled(world, "shop at 0123456")
    assert len(world.agent.asked) == 1


async def test_an_old_button_does_nothing(world: FakeWorld) -> None:
    await world.mention("where is send?")
    await settled(world, "Which repository")
    message = list(world.platform.messages.values())[-1]
    button = message.content.buttons[0]
    await world.choose("shop")
    await settled(world, "shop at 0123456")

    for value in (button.value, "", "nonsense", button.value.replace(".0", ".99")):
        press = ButtonPress(handle=message.handle, action="choose", author="ann", value=value)
        assert "already answered" in await world.conversations.handle_press(press)
    assert len(world.agent.asked) == 1


async def test_a_repository_that_was_closed_to_the_asker_is_not_taken_by_its_button(world: FakeWorld) -> None:
    await world.mention("where is send?")
    await settled(world, "Which repository")
    chosen = next(each for each in shown(world).buttons if each.label == "secret")
    handle: MessageHandle = list(world.platform.messages.values())[-1].handle
    await world.end()
    closed = AccessPolicy.model_validate({"rules": [{"repositories": ["secret"], "people": ["bob"]}]})
    world.policy = replace(POLICY, access=closed)
    await world.begin()
    await world.conversations.handle_press(
        ButtonPress(handle=handle, action="choose", author="ann", value=chosen.value)
    )

    await settled(world, "You don't have access to `secret`")
    assert world.agent.asked == []


async def test_saying_use_answers_what_was_asked(world: FakeWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Which repository")
    await world.mention("use shop", thread=thread)
    await settled(world, "Which repository", "Answer to: where is send?")
    await world.follow_up("and who calls it?", thread=thread)

    await settled(world, "Which repository", "shop at", "shop at")


async def test_words_of_others_choose_nothing(world: FakeWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Which repository")
    await world.mention("website", thread=thread, author="bob")

    await settled(world, "Which repository", "Which repository")


async def test_a_question_that_is_edited_or_deleted_is_not_kept(world: FakeWorld, tmp_path: Path) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Which repository")
    await world.edit(message, "shop: where is send?")
    await settled(world, "shop at")
    other = await world.mention("where is send?")
    await settled(world, "shop at", "Which repository")
    await world.delete(other)
    await settled(world, "shop at")

    async with open_database(tmp_path / "inbox.sqlite") as database:
        assert await database.rows("SELECT * FROM asked_back") == []


async def test_asking_back_is_not_counted_as_another_question(tmp_path: Path) -> None:
    limited = replace(POLICY, limits=replace(POLICY.limits, per_minute=1))
    world = FakeWorld(tmp_path / "inbox.sqlite", policy=limited)
    world.repositories = FakeRepositories("shop", "website")
    await world.begin()
    await world.mention("where is send?")
    await settled(world, "Which repository")
    await world.choose("shop")

    await settled(world, "shop at 0123456")
    await world.end()


async def test_a_forgotten_conversation_is_about_nothing(world: FakeWorld) -> None:
    thread = await world.mention("across shop and website, where is send?")
    await settled(world, "website at")
    await world.mention("shop: who calls it?", thread=thread)
    await settled(world, "website at", "shop at")
    await world.mention("forget", thread=thread)
    await settled(world, "website at", "shop at", "forgotten")
    await world.mention("where is send?", thread=thread)

    await settled(world, "website at", "shop at", "forgotten", "Which repository")
    assert {conversation for _, conversation, _ in world.agent.asked} <= set(world.agent.forgotten)


async def test_with_one_visible_repository_nobody_is_asked(tmp_path: Path) -> None:
    only_shop = AccessPolicy.model_validate({"open": False, "rules": [{"repositories": ["shop"]}]})
    world = FakeWorld(tmp_path / "inbox.sqlite", policy=ChatPolicy(access=only_shop))
    world.repositories = FakeRepositories(*NAMES)
    await world.begin()
    await world.mention("in website, where is send?")
    await settled(world, "shop at 0123456")
    await world.mention("help")

    _, said = await settled(world, "shop at", "Ask me about your code")
    assert "several repositories" not in said
    await world.end()


async def test_commands_do_not_guess_a_repository(world: FakeWorld) -> None:
    await world.mention("reindex")
    await settled(world, "Write which one: `reindex NAME`")
    await world.mention("status shop")
    await settled(world, "which one", "shop at 0123456")
    thread = await world.mention("website: where is send?")
    await settled(world, "which one", "shop at", "website at")
    await world.mention("status", thread=thread)

    await settled(world, "which one", "shop at", "website at", "website at 0123456 on main, indexed")
    assert "1,234 chunks" in world.said()[-1]


async def test_the_status_of_none_in_particular_lists_them_all(world: FakeWorld) -> None:
    await world.mention("status", author="bob")

    said = await until(world, lambda said: any("service-16 at 0123456" in each for each in said))
    assert "".join(said).count("at 0123456 on main") == 19
    assert "secret" not in "".join(said)


@pytest.mark.parametrize("text", ["thanks!", "hello there", "what did I ask before?"])
async def test_whoever_asks_nothing_of_the_code_is_not_asked_back(world: FakeWorld, text: str) -> None:
    thread = await world.mention(text)
    await settled(world, f"Answer to: {text}")
    await world.follow_up("where is send?", thread=thread)

    await settled(world, "Answer to", "Which repository")


async def test_what_people_wrote_before_tells_the_repository_as_well(world: FakeWorld) -> None:
    knows(world, "service-5", "parse_date")
    world.platform._threads = [ThreadMessage(id="0", author="bob", text="it fails in `parse_date`")]
    await world.mention("where is this?", thread="0")

    await settled(world, "service-5 at 0123456")


async def test_what_is_decided_is_decided_again_after_a_kill(world: FakeWorld) -> None:
    knows(world, "service-5", "parse_date")
    world.agent.gate = asyncio.Event()
    thread = await world.mention("who calls parse_date?")
    await world.agent.begun.acquire()
    await world.crash()
    knows(world, "service-6", "parse_date")
    world.agent.gate = None
    await world.begin()
    await settled(world, "service-5 at 0123456")
    await world.mention("why", thread=thread)

    await settled(world, "service-5 at", "Because: what you name is there")


async def test_all_repositories_are_the_five_likeliest(world: FakeWorld) -> None:
    knows(world, "service-16", "parse_date")
    await world.mention("in all repositories, who calls parse_date?")

    (said,) = await settled(world, "leave 15 out")
    assert said.count("Answer to: who calls parse_date?") == 1
    (named,) = about(world)
    assert (named or "").split(", ")[0] == "service-16"
    assert len((named or "").split(", ")) == 5


async def test_all_repositories_are_sorted_by_what_they_hold(world: FakeWorld) -> None:
    source = "def save(order):\n    # an order goes to the database\n    return order\n"
    for name in ("service-3", "service-9"):
        code = MemoryCode({"shop/orders.py": source})
        world.repositories.indexes[name].code.search = code.search  # type: ignore[method-assign]
    await world.mention("in all repositories, how does an order get to the database?")
    await settled(world, "leave 15 out")

    (named,) = about(world)
    assert set((named or "").split(", ")[:2]) == {"service-3", "service-9"}


async def test_an_answer_about_several_repositories_ends_in_time(world: FakeWorld) -> None:
    world.agent.slow, world.agent.begins_with = "website", "Answer so far."
    await world.mention("across shop and website, where is send?")
    await world.agent.begun.acquire()
    await world.clock.advance(151)

    (said,) = await settled(world, "This took too long")
    assert "Answer so far." in said


async def test_why_names_all_repositories_and_ratings_are_kept(world: FakeWorld) -> None:
    thread = await world.mention("across secret and website, where is send?")
    await settled(world, "website at")
    await world.press("good", author="bob")
    await world.mention("why", thread=thread)
    (_, said) = await settled(world, "website at", "Because: the question is about all of them")
    assert "Repository: secret at 0123456, website at 0123456" in said
    assert "`secret/src/session.py`" in said
    await world.mention("why", thread=thread, author="bob")

    await settled(world, "website at", "Because", "You don't have access to `secret`")


async def test_a_thread_about_several_is_closed_to_who_may_not_see_all_of_them(world: FakeWorld) -> None:
    thread = await world.mention("across secret and website, where is send?")
    await settled(world, "website at")
    await world.mention("and who calls it?", thread=thread, author="bob")

    await settled(world, "website at", "This conversation is about `secret`, which is gone, or hidden from you here.")
    assert len(world.agent.asked) == 1


async def test_a_thread_about_one_stays_with_it_after_a_question_about_several(world: FakeWorld) -> None:
    thread = await world.mention("shop: where is send?")
    await settled(world, "shop at")
    await world.mention("across shop and website, who calls it?", thread=thread)
    await settled(world, "shop at", "the conversation stays with `shop`")
    await world.mention("and its tests?", thread=thread)
    await settled(world, "shop at", "website at", "shop at")

    assert about(world) == ["shop", "shop, website", "shop"]


async def test_what_an_earlier_release_has_kept_of_topics_is_still_read(world: FakeWorld, tmp_path: Path) -> None:
    thread = await world.mention("website: where is send?")
    await settled(world, "website at")
    await world.end()
    with closing(sqlite3.connect(tmp_path / "inbox.sqlite")) as database:
        assert database.execute("SELECT repository FROM topics").fetchall() == [("website",)]
    await world.begin()
    await world.mention("and who calls it?", thread=thread)

    await settled(world, "website at", "website at")


async def test_a_repository_that_does_not_answer_is_not_waited_for() -> None:
    repositories = FakeRepositories("shop", "website", "docs")
    repositories.indexes["website"].code.gate = asyncio.Event()
    repositories.indexes["docs"] = FakeIndex(commit=None)
    clues = find_hints("who calls Session.send?")
    findings = await HintLookup(repositories, seconds=0.05).find(clues, repositories.list_names())

    assert not findings.complete
    assert {clue.text for clue in findings.found["shop"]} == {"Session.send"}
    assert (list(findings.found["website"]), list(findings.found["docs"])) == ([], [])


async def test_what_could_not_be_looked_at_keeps_anything_from_being_taken(world: FakeWorld) -> None:
    knows(world, "service-5", "parse_date")
    world.repositories.indexes["shop"].code.gate = asyncio.Event()
    await world.mention("who calls parse_date?")

    await settled(world, "Which repository")
    assert labels(world)[0] == "service-5"


async def test_the_ledger_forgets_what_is_old(tmp_path: Path) -> None:
    clock: Clock = FakeClock()
    async with open_database(tmp_path / "inbox.sqlite") as database:
        ledger = ChoiceStore(database, clock)
        await ledger.set_topic("c", "shop")
        await ledger.decide(
            "r", "c", RepositoryChoice(repositories=("shop",), why="it is named", question="secret words")
        )
        await ledger.ask_back("c", "ann", PendingQuestion(run_id="r", question="half \ud800 a pair", names=("a", "b")))
        kept = json.dumps(await database.rows("SELECT * FROM routes"))
        waiting = await ledger.find_pending_question("r")
        await ledger.forget_old(clock.now() + 1)

        assert "secret words" not in kept
        assert waiting == PendingQuestion(run_id="r", question="half ? a pair", names=("a", "b"), at=clock.now())
        assert (await ledger.topic("c"), await ledger.find_route("r"), await ledger.find_pending_question("r")) == (
            None,
            None,
            None,
        )
