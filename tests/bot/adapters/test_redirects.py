"""Requests to platforms follow no redirect, so no token or message goes anywhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from bot.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from bot.adapters.slack.client import open_client
from bot.adapters.slack.ephemeral import SlackEphemeralMessages, make_ephemeral_place
from bot.clock import SystemClock
from bot.errors import PlatformUnreachable
from bot.messages import MessageContent, Place
from tests.bot.slack_worlds import SlackWorld
from tests.fakes.loopback.closing import close_server
from tests.fakes.slack import FakeSlack

STATUSES = [302, 307]  # the second one takes the body along


@asynccontextmanager
async def elsewhere() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that is asked for what it should not be, and remembers it."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.path} {request.headers.get('Authorization', '')} {await request.text()}")
        return web.json_response({"ok": True, "team_id": "T", "user_id": "U"})

    async with running(answer) as address:
        yield address, asked


@asynccontextmanager
async def running(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    server = web.Application()
    server.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(server, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await close_server(runner)


@pytest.mark.parametrize("status", STATUSES)
async def test_slack_is_not_followed_elsewhere(status: int) -> None:
    async with elsewhere() as (other, asked):

        async def redirect(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": f"{other}{request.path}"})

        async with (
            running(redirect) as address,
            open_client("xoxb-planted", SystemClock(), base_url=f"{address}/api/") as calls,
        ):
            with pytest.raises(PlatformUnreachable, match="Redirected"):
                await calls.identity()

    assert asked == []


@pytest.mark.parametrize("status", STATUSES)
async def test_discord_is_not_followed_elsewhere(status: int) -> None:
    async with elsewhere() as (other, asked):

        async def redirect(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": f"{other}{request.path}"})

        async with running(redirect) as address:
            options = DiscordOptions(token="planted.discord.token", api_url=f"{address}/api/v10")
            with pytest.raises(PlatformUnreachable, match="Redirected"):
                async with DiscordAdapter.open(options, SystemClock()):
                    pass

    assert asked == []


@pytest.mark.parametrize("url", ["{other}/response/1", "http://hooks.slack.com/x", "https://slack.com.example.com/x",
                                 "https://evilslack.com/x", "https://[", ""])  # fmt: skip
async def test_an_answer_for_one_person_goes_to_slack_alone(url: str) -> None:
    async with FakeSlack() as fake, elsewhere() as (other, asked):
        ann = fake.add_user("ann")
        channel = fake.add_channel("general", members=(ann,))
        async with open_client(fake.bot_token, SystemClock(), base_url=fake.api_url) as calls:
            whispers = SlackEphemeralMessages(calls)
            line = url.format(other=other.replace("127.0.0.1", "localhost"))
            place = make_ephemeral_place(
                Place(platform="slack", workspace="T", channel=channel), ann, response_url=line
            )
            await whispers.send(place, MessageContent(text="For you alone."))

        assert [each.text for each in fake.ephemeral(channel, ann)] == ["For you alone."]
        assert asked == []


async def test_a_command_is_answered_by_the_address_that_slack_gives(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        async with SlackWorld(fake, tmp_path / "inbox.sqlite").running() as world:
            await fake.slash("/citebot", "repos", channel=world.channel, user=world.people["ann"])
            await fake.until(lambda: fake.ephemeral(world.channel, world.people["ann"]))

        assert fake.calls_of("chat.postEphemeral") == []
