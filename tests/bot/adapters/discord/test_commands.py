"""Commands, their completion and buttons in Discord: acknowledged in time, and told to whom they concern."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent.ports import Answer
from bot.access import AccessPolicy
from bot.conversations.assembly import ChatPolicy
from bot.repositories.names import RepositoryProfile
from tests.bot.contract import settled, until
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.worlds import HOSTS
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.discord import FakeDiscord, Interaction, Permission
from tests.waiting import expect

MANAGER = AccessPolicy(reindex=("*",))


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[DiscordWorld]:
    async with FakeDiscord() as fake:
        signs: dict[str, RepositoryProfile] = {}
        policy = ChatPolicy(hosts=HOSTS, access=MANAGER, deadline=2_000, signs=signs)
        made = DiscordWorld(fake, tmp_path / "inbox.sqlite", policy=policy)
        signs["demo"] = RepositoryProfile(page="", channels=(made.channel, "direct"))
        made.repositories = FakeRepositories("demo", "shop", "my-shop")
        async with made.running():
            yield made


def ask(world: DiscordWorld, question: str = "where is send?", *, where: str = "", **options: bool) -> Interaction:
    return world.fake.slash(where or world.channel, world.people["ann"], "ask", question=question, **options)


async def answered(world: DiscordWorld, interaction: Interaction, text: str) -> str:
    """Wait until the person who used a command reads some text; return all that they read."""

    def shown() -> str:
        return "\n".join(seen.text for seen in interaction.responses)

    await world.fake.until(lambda: text in shown())
    return shown()


async def test_a_question_by_command_is_answered_for_its_asker_alone(world: DiscordWorld) -> None:
    asking = ask(world)
    said = await answered(world, asking, "Answer to: where is send?")

    assert "demo at 0123456" in said
    assert asking.response is not None
    assert asking.response.ephemeral
    assert list(asking.response.buttons) == ["Helpful", "Not helpful", "Share"]
    assert world.fake.messages(world.channel) == []


async def test_a_question_by_command_is_acknowledged_before_it_is_answered(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    asking = ask(world)
    await answered(world, asking, "Searching")

    assert asking.callback == 5
    world.agent.gate.set()
    await answered(world, asking, "Answer to")


async def test_questions_by_command_are_one_conversation_of_their_asker(world: DiscordWorld) -> None:
    await answered(world, ask(world), "Answer to")
    await answered(world, ask(world, "and who calls it?"), "who calls it?")
    other = world.fake.slash(world.channel, world.people["bob"], "ask", question="where is receive?")
    await answered(world, other, "receive")

    conversations = [conversation for _, conversation, _ in world.agent.asked]
    assert conversations[0] == conversations[1] != conversations[2]


async def test_a_private_answer_is_shared_when_its_asker_says_so(world: DiscordWorld) -> None:
    thread = world.fake.start_thread(world.channel, world.people["bob"], "talk")
    asking = ask(world, where=thread)
    await answered(world, asking, "Answer to")
    await until(world, lambda _: not world.conversations.turns.list_active())
    assert asking.response is not None
    world.fake.press(asking.response.id, world.people["ann"], "Share")
    await world.fake.until(lambda: world.fake.answers(thread))

    assert "Answer to: where is send?" in world.fake.answers(thread)[0].text
    again = world.fake.press(asking.response.id, world.people["ann"], "Share")
    await answered(world, again, "This answer has been shared")
    assert len(world.fake.answers(thread)) == 1


async def test_a_shared_question_is_shown_and_answered_in_a_thread(world: DiscordWorld) -> None:
    asking = ask(world, "where is @everyone sent?", share=True)
    await world.fake.until(lambda: asking.response and asking.response.thread)
    (question,) = world.fake.messages(world.channel)
    await world.fake.until(lambda: any("Answer to" in seen.text for seen in world.fake.answers(question.id)))

    assert "asks: where is @" in question.text
    assert (question.pings, question.ephemeral) == ((), False)
    await world.follow_up("and who calls it?", thread=question.id)
    await world.fake.until(lambda: any("who calls it?" in seen.text for seen in world.fake.answers(question.id)))


async def test_a_shared_question_in_a_thread_is_answered_there(world: DiscordWorld) -> None:
    thread = world.fake.start_thread(world.channel, world.people["bob"], "talk")
    world.fake.message(thread, world.people["bob"], "The build fails.")
    ask(world, where=thread, share=True)
    await world.fake.until(lambda: any("Answer to" in seen.text for seen in world.fake.answers(thread)))

    assert "> person 1: The build fails." in world.agent.asked[0][0]


async def test_a_question_by_command_in_a_dm_goes_on_with_the_conversation(world: DiscordWorld) -> None:
    await world.direct("where is send?")
    await settled(world, "where is send?")
    asking = ask(world, "and who calls it?", where=world.fake.dm_channel(world.people["ann"]))
    await answered(world, asking, "who calls it?")

    assert len({conversation for _, conversation, _ in world.agent.asked}) == 1


async def test_a_private_answer_is_stopped_by_its_button(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    asking = ask(world)
    await answered(world, asking, "Searching")
    assert asking.response is not None
    world.fake.press(asking.response.id, world.people["ann"], "Stop")
    await answered(world, asking, "Stopped, as you asked.")


async def test_a_killed_private_answer_is_completed_in_its_place(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    asking = ask(world)
    await world.agent.begun.acquire()
    await world.crash()
    world.agent.gate = None
    await world.begin()
    await answered(world, asking, "Answer to: where is send?")

    assert len(asking.responses) == 1
    assert world.fake.messages(world.channel) == []


@pytest.mark.parametrize("after", [False, True])
async def test_a_private_answer_that_nobody_noted_is_completed_in_its_place(world: DiscordWorld, after: bool) -> None:
    gate = world.fake.faults.hang("edit_original_interaction_response", after=after)
    asking = ask(world)
    await world.fake.until(lambda: gate.waiting)
    await world.crash()
    world.fake.faults.clear()
    await world.begin()
    await answered(world, asking, "Answer to: where is send?")

    assert len(asking.responses) == 1


async def test_an_acknowledgement_that_got_no_answer_is_taken_for_one(world: DiscordWorld) -> None:
    world.fake.faults.reset("create_interaction_response", after=True)
    await answered(world, ask(world), "Answer to: where is send?")


async def test_an_answer_that_outlives_its_token_comes_as_a_direct_message(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    asking = ask(world)
    await world.agent.begun.acquire()
    await world.crash()
    world.fake.clock.advance(900)
    world.agent.gate = None
    await world.begin()
    dm = world.fake.dm_channel(world.people["ann"])
    await world.fake.until(lambda: any("Answer to: where is send?" in seen.text for seen in world.fake.answers(dm)))

    assert asking.expired
    assert world.fake.messages(world.channel) == []


async def test_a_token_that_ends_while_the_answer_grows_loses_nothing_of_it(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    asking = ask(world)
    await world.agent.begun.acquire()
    world.fake.clock.advance(841)
    world.agent.gate.set()
    dm = world.fake.dm_channel(world.people["ann"])
    await until(world, lambda _: not world.conversations.turns.list_active())

    (seen,) = world.fake.answers(dm)
    assert "Answer to: where is send?" in seen.text
    assert len(asking.responses) == 1


async def test_a_shared_question_that_harmlessness_makes_longer_is_shown(world: DiscordWorld) -> None:
    ask(world, "<@" * 750, share=True)
    await world.fake.until(lambda: world.fake.threads_in(world.channel))

    assert len(world.fake.messages(world.channel)[0].text) <= 2_000


class Talkative(FakeAnswerer):
    """Answers at length."""

    def _answer(self, question: str, *, stopped: bool) -> Answer:
        return replace(super()._answer(question, stopped=stopped), text=f"Answer to: {question}\n\n" + "words " * 800)


async def test_a_long_private_answer_goes_on_in_further_messages(tmp_path: Path) -> None:
    async with (
        FakeDiscord() as fake,
        DiscordWorld(fake, tmp_path / "inbox.sqlite", agent=Talkative()).running() as world,
    ):
        asking = ask(world)
        said = await answered(world, asking, "demo at")

    assert said.count("words") == 800
    assert [seen.ephemeral for seen in asking.responses] == [True] * 3
    assert fake.messages(world.channel) == []


async def test_a_private_answer_longer_than_a_message_is_shared_whole(tmp_path: Path) -> None:
    async with (
        FakeDiscord() as fake,
        DiscordWorld(fake, tmp_path / "inbox.sqlite", agent=Talkative()).running() as world,
    ):
        thread = fake.start_thread(world.channel, world.people["bob"], "talk")
        asking = ask(world, where=thread)
        await answered(world, asking, "demo at")
        await until(world, lambda _: not world.conversations.turns.list_active())
        fake.press(asking.responses[-1].id, world.people["ann"], "Share")
        await fake.until(lambda: len(fake.answers(thread)) == 3)

    assert sum(seen.text.count("words") for seen in fake.answers(thread)) == 800


@pytest.mark.parametrize("word", ["stop", "status", "help"])
async def test_every_command_is_answered_for_its_user_alone(world: DiscordWorld, word: str) -> None:
    used = world.fake.slash(world.channel, world.people["ann"], f"citebot {word}")
    await world.fake.until(lambda: used.response and used.response.text)

    assert used.response is not None
    assert used.response.ephemeral
    assert world.fake.messages(world.channel) == []


async def test_commands_in_a_thread_are_about_the_thread(world: DiscordWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    why = world.fake.slash(thread, world.people["ann"], "citebot why")
    assert "Route: fast_path" in await answered(world, why, "Route")
    mute = world.fake.slash(thread, world.people["ann"], "citebot mute")
    await answered(world, mute, "answer only mentions")
    await world.follow_up("and who calls it?", thread=thread)
    await world.mention("and who tests it?", thread=thread)
    await settled(world, "where is send?", "who tests it?")


async def test_a_command_in_a_thread_stops_the_answer_there(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    thread = await world.mention("where is send?")
    await world.agent.begun.acquire()
    stop = world.fake.slash(thread, world.people["ann"], "citebot stop")
    await answered(world, stop, "Stopped.")
    await settled(world, "Stopped, as you asked.")


async def test_indexing_is_told_to_everybody_in_the_channel(world: DiscordWorld) -> None:
    using = world.fake.slash(world.channel, world.fake.owner, "reindex", repository="shop", full=True)
    await until(world, lambda said: any("`shop`" in each for each in said))

    assert [seen.reply_to for seen in world.fake.answers(world.channel)] == [None]
    assert using.response is not None
    assert using.response.ephemeral


async def test_a_refusal_to_index_is_for_its_author_alone(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, tmp_path / "inbox.sqlite")
        async with world.running():
            using = fake.slash(world.channel, fake.owner, "reindex", repository="demo")

            await answered(world, using, "You aren't allowed to do that.")

            assert fake.answers(world.channel) == []


async def test_indexing_is_told_alone_where_citebot_may_not_write(world: DiscordWorld) -> None:
    world.fake.deny(world.channel, world.fake.bot_id, Permission.SEND_MESSAGES)
    using = world.fake.slash(world.channel, world.fake.owner, "reindex")
    await answered(world, using, "`demo`")


async def test_indexing_is_for_those_who_manage_the_server(world: DiscordWorld) -> None:
    with pytest.raises(PermissionError):
        world.fake.slash(world.channel, world.people["ann"], "reindex")


async def test_names_of_repositories_are_completed(world: DiscordWorld) -> None:
    typing = world.fake.autocomplete(world.channel, world.people["ann"], "citebot use", "repository", "sh")
    await world.fake.until(lambda: typing.choices)

    assert [each["value"] for each in typing.choices] == ["shop", "my-shop"]


async def test_commands_are_registered_when_they_have_changed(world: DiscordWorld) -> None:
    await world.fake.until(lambda: world.fake.commands.writes == 1)
    await world.end()
    await world.begin()
    assert world.fake.commands.writes == 1
    scope = world.fake.commands.scopes[""]
    next(iter(scope.values()))["description"] = "something else"
    await world.end()
    await world.begin()
    await world.fake.until(lambda: world.fake.commands.writes == 2)


@pytest.mark.parametrize("call", ["get_global_application_commands", "bulk_overwrite_global_application_commands"])
async def test_commands_are_registered_in_the_end_where_discord_is_away_at_first(tmp_path: Path, call: str) -> None:
    async with FakeDiscord() as fake:
        fake.faults.http(call, 503, times=2)
        async with DiscordWorld(fake, tmp_path / "inbox.sqlite").running(), expect("fake.commands.writes != 0"):
            while fake.commands.writes == 0:
                fake.clock.advance(1)
                await asyncio.sleep(0.01)


async def test_citebot_works_where_commands_cannot_be_registered(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        fake.faults.refuse("bulk_overwrite_global_application_commands", 30034)
        async with DiscordWorld(fake, tmp_path / "inbox.sqlite").running() as world:
            await world.mention("where is send?")
            await settled(world, "Answer to: where is send?")


async def test_a_button_of_somebody_else_is_told_to_be_theirs(world: DiscordWorld) -> None:
    world.agent.gate = asyncio.Event()
    await world.mention("where is send?")
    await world.agent.begun.acquire()
    assert "Only the person who asked" in await world.press("stop", author="bob")
    world.agent.gate.set()
    await settled(world, "Answer to")


async def test_an_interaction_that_comes_too_late_is_left(world: DiscordWorld) -> None:
    world.fake.faults.refuse("create_interaction_response", 10062)
    ask(world)
    await world.mention("where is receive?")
    await settled(world, "receive")

    assert [question for question, _, _ in world.agent.asked] == ["where is receive?"]
