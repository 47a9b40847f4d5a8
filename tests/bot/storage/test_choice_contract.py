"""The contract of routing: what a conversation is about, how its turns were routed, and what its author was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.repositories.choice_store import ChoiceStore, ConversationTopic, PendingQuestion, RepositoryChoice
from tests.bot.storage.conftest import ChatStore, OpenStore
from tests.fakes.clock import FakeClock

ROUTE = RepositoryChoice(repositories=("shop",), why="it is named", question="secret words")
ASKED = PendingQuestion(run_id="r", question="half \ud800 a pair \0 100% ?", names=("a", "b"))


@pytest.fixture
def choices(store: ChatStore) -> ChoiceStore:
    return store.choices


async def test_what_a_conversation_is_about_is_what_was_set_last(choices: ChoiceStore, clock: FakeClock) -> None:
    assert await choices.topic("c") is None
    await choices.set_topic("c", ("shop",))
    await clock.advance(1)
    await choices.set_topic("c", ("till", "website"))

    assert await choices.topic("c") == ConversationTopic(repositories=("till", "website"), at=clock.now())


async def test_what_a_channel_is_about_is_what_its_conversations_are_newest_first(
    choices: ChoiceStore, clock: FakeClock
) -> None:
    for conversation, names in (
        ("slack:T:C1:1", ("shop",)),
        ("slack:T:C1:2", ("till", "shop")),
        ("slack:T:C11:1", ("elsewhere",)),
        ("slack:T:C", ("above",)),
        ("slack:t:c1:1", ("small",)),
        ("slack:T:C1:\U0001f389", ("party",)),
    ):
        await choices.set_topic(conversation, names)
        await clock.advance(1)

    assert await choices.recent("slack:T:C1:") == ["party", "till", "shop"]
    assert await choices.recent("slack:T:%") == []


async def test_a_route_is_kept_without_its_question(choices: ChoiceStore) -> None:
    await choices.decide("r", "c", ROUTE)
    await choices.decide("r", "c", replace(ROUTE, why="it was chosen"))

    assert await choices.find_route("r") == replace(ROUTE, why="it was chosen", question="")
    assert await choices.find_route("other") is None


async def test_repositories_that_were_asked_about_together_are_known(choices: ChoiceStore) -> None:
    await choices.decide("1", "c", replace(ROUTE, repositories=("shop", "till")))
    await choices.decide("2", "c", replace(ROUTE, repositories=("website",)))
    await choices.decide("3", "other", replace(ROUTE, repositories=("a", "b")))

    assert sorted(await choices.together("c")) == ["shop", "till"]


async def test_a_question_waits_for_the_choice_of_its_author(choices: ChoiceStore, clock: FakeClock) -> None:
    await choices.ask_back("c", "ann", ASKED)
    await choices.ask_back("c", "ben", replace(ASKED, run_id="s"))

    waiting = await choices.find_pending_question("r")
    assert waiting is not None
    assert waiting.question.startswith("half ? a pair ")
    assert (waiting.names, waiting.at) == (("a", "b"), clock.now())
    assert await choices.last_asked_back("c", "ann") == waiting
    assert await choices.last_asked_back("c", "cas") is None


async def test_of_questions_at_one_moment_the_later_one_is_the_last(choices: ChoiceStore) -> None:
    for number in range(3):
        await choices.ask_back("c", "ann", replace(ASKED, run_id=str(number)))

    last = await choices.last_asked_back("c", "ann")

    assert last is not None
    assert last.run_id == "2"


async def test_nothing_is_left_of_a_turn_that_is_closed_nor_of_what_is_forgotten(
    choices: ChoiceStore, clock: FakeClock
) -> None:
    for run in ("closed", "kept"):
        await choices.decide(run, "c", ROUTE)
        await choices.ask_back("c", "ann", replace(ASKED, run_id=run))
    await choices.set_topic("c", ("shop",))

    await choices.close("closed")
    assert await choices.find_route("closed") is None
    assert await choices.find_pending_question("closed") is None
    assert await choices.find_route("kept") is not None
    await choices.forget_old(clock.now())
    assert await choices.topic("c") is not None
    await choices.forget("c")

    assert await choices.topic("c") is None
    assert await choices.find_route("kept") is None
    assert await choices.find_pending_question("kept") is None


async def test_another_process_reads_what_was_decided(open_store: OpenStore) -> None:
    async with open_store() as one:
        await one.choices.decide("r", "c", ROUTE)
    async with open_store() as two:
        assert await two.choices.find_route("r") == replace(ROUTE, question="")
