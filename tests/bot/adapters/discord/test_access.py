"""Access in Discord goes by channel, role and server; a private thread has the access of its channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from bot.access import AccessPolicy, AccessRule
from bot.conversations.assembly import ChatPolicy
from tests.bot.contract import settled, until
from tests.bot.discord_worlds import DiscordWorld
from tests.bot.worlds import HOSTS
from tests.fakes.answerer import FakeRepositories
from tests.fakes.discord import FakeDiscord

REFUSED = "There are no repositories here that you may ask about."
Opened = Callable[[AccessPolicy], Awaitable[DiscordWorld]]


@asynccontextmanager
async def opened(path: Path, *, servers: bool = False) -> AsyncIterator[DiscordWorld]:
    """A world that has not begun yet."""
    async with FakeDiscord() as fake:
        world = DiscordWorld(fake, path / "inbox.sqlite", servers=(fake.guild_id,) if servers else ())
        world.repositories = FakeRepositories("secret")
        yield world
        await world.end()


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[DiscordWorld]:
    async with opened(tmp_path) as made:
        yield made


def rule(world: DiscordWorld, **only: tuple[str, ...]) -> None:
    policy = AccessPolicy(open=False, rules=(AccessRule(repositories=("secret",), **only),))
    world.policy = ChatPolicy(hosts=HOSTS, access=policy)


async def test_a_role_opens_a_repository_in_channels_and_in_dms(world: DiscordWorld) -> None:
    role = world.fake.add_role("security")
    world.fake.give_role(world.people["ann"], role)
    rule(world, people=(f"role:{role}",))
    await world.begin()
    await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.mention("where is send?", author="bob")
    await settled(world, "Answer to", REFUSED)
    await world.direct("where is send?", author="bob")
    await settled(world, "Answer to", REFUSED, REFUSED)
    await world.direct("where is send?")
    await settled(world, "Answer to", REFUSED, REFUSED, "Answer to")


async def test_a_role_that_was_taken_away_opens_nothing_any_more(world: DiscordWorld) -> None:
    role = world.fake.add_role("security")
    world.fake.give_role(world.people["ann"], role)
    rule(world, people=(f"role:{role}",))
    await world.begin()
    await world.direct("where is send?")
    await settled(world, "Answer to")
    world.fake.world.guilds[world.fake.guild_id].members[world.people["ann"]].roles.remove(role)
    world.fake.clock.advance(61)
    await world.direct("where is send?")
    await settled(world, "Answer to", REFUSED)


async def test_roles_are_looked_up_of_who_wrote_while_nobody_listened(world: DiscordWorld) -> None:
    role = world.fake.add_role("security")
    world.fake.give_role(world.people["ann"], role)
    rule(world, people=(f"role:{role}",))
    await world.mention("where is send?")
    await world.mention("where is send?", author="bob")
    await world.begin()
    await settled(world, "Answer to", REFUSED)


async def test_roles_that_cannot_be_looked_up_open_nothing(world: DiscordWorld) -> None:
    role = world.fake.add_role("security")
    world.fake.give_role(world.people["ann"], role)
    rule(world, people=(f"role:{role}",))
    await world.begin()
    world.fake.faults.http("get_guild_member", 503, times=None)
    await world.direct("where is send?")
    await settled(world, "in this organization")


async def test_who_has_left_the_server_is_told_nothing_in_a_dm(world: DiscordWorld) -> None:
    await world.begin()
    await world.direct("where is send?")
    await settled(world, "Answer to")
    del world.fake.world.guilds[world.fake.guild_id].members[world.people["ann"]]
    world.fake.clock.advance(61)
    await world.direct("where is send?")
    await settled(world, "Answer to", "in this organization")
    assert len(world.agent.asked) == 1


async def test_a_channel_opens_a_repository_in_its_threads_alone(world: DiscordWorld) -> None:
    rule(world, channels=(world.channel,))
    await world.begin()
    thread = world.fake.start_thread(world.channel, world.people["ann"], "talk", private=True)
    world.fake.add_to_thread(thread, world.fake.bot_id)
    await world.mention("where is send?", thread=thread)
    await settled(world, "Answer to")
    other = world.fake.add_channel("random")
    world.fake.mention(other, world.people["ann"], "where is send?")
    await settled(world, "Answer to", REFUSED)
    await world.direct("where is send?")
    await settled(world, "Answer to", REFUSED, REFUSED)


@pytest.mark.parametrize("command", ["ask", "citebot status"])
async def test_commands_are_held_to_the_same_rules(world: DiscordWorld, command: str) -> None:
    rule(world, channels=(world.channel,))
    await world.begin()
    other = world.fake.add_channel("random")
    options = {"question": "where is send?"} if command == "ask" else {}
    using = world.fake.slash(other, world.people["ann"], command, **options)
    await world.fake.until(lambda: using.response and REFUSED in using.response.text)
    typing = world.fake.autocomplete(other, world.people["ann"], "citebot use", "repository", "se")
    await world.fake.until(lambda: typing.acknowledged)

    assert typing.choices == []


async def test_a_server_that_does_not_count_is_outside(tmp_path: Path) -> None:
    async with opened(tmp_path, servers=True) as world:
        stranger_server = world.fake.add_guild("elsewhere")
        channel = world.fake.add_channel("general", guild=stranger_server)
        eve = world.fake.add_user("eve", guild=stranger_server)
        await world.begin()
        world.fake.mention(channel, eve, "where is send?")
        await until(world, lambda said: len(said) == 1 and "outside your organization" in said[0])
        world.fake.dm(eve, "where is send?")
        await until(world, lambda said: len(said) == 2 and "in this organization" in said[1])
        await world.mention("where is send?")
        await settled(world, "outside", "in this organization", "Answer to")
        using = world.fake.slash(channel, eve, "ask", question="where is send?")
        await world.fake.until(lambda: bool(using.response))
        assert len(world.agent.asked) == 1


@pytest.mark.parametrize("restart", [False, True])
async def test_a_secret_in_a_question_does_not_name_its_thread(world: DiscordWorld, restart: bool) -> None:
    if not restart:
        await world.begin()
    question = await world.mention("why is hunter2 refused?")
    if restart:
        await world.begin()
    await settled(world, "Answer to")

    assert world.fake.thread(question).name == "why is [REDACTED] refused?"
