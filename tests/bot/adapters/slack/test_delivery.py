"""Slack's events are each handled once in both modes, through pairs, retries and reconnects."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from starlette.routing import Route

from bot.access import AccessPolicy
from bot.adapters.slack.adapter import SlackAdapter, SlackOptions
from bot.adapters.slack.endpoint import PATH
from bot.clock import SystemClock
from bot.conversations.dispatcher import Conversations
from bot.errors import InboxError, SettingsError
from bot.http.server import LatePostRoutes, make_application, run_http_server
from bot.messages import ButtonPress, IncomingMessage, MessageKey, Place
from bot.storage.database import open_database
from tests.bot.adapters.slack.conftest import IN_BOTH_MODES
from tests.bot.contract import settled
from tests.bot.slack_worlds import Mode, SlackWorld
from tests.fakes.answerer import FakeAnswerer, FakeRepositories
from tests.fakes.slack import Clock, FakeSlack


class Core:
    """Keeps what it hears; the database is broken for as many messages as `failures` says."""

    def __init__(self, failures: int = 0) -> None:
        self.heard: list[IncomingMessage] = []
        self.failures = failures

    def overhears(self, place: Place) -> bool:
        return False

    async def receive(self, message: IncomingMessage) -> None:
        if self.failures:
            self.failures -= 1
            raise InboxError("The disk is full.")
        self.heard.append(message)

    async def list_recent_channels(self, platform: str, workspace: str, *, most: int) -> list[str]:
        return []

    async def handle_edit(self, message: IncomingMessage) -> None:
        await self.receive(message)

    async def handle_deletion(self, key: MessageKey) -> None: ...

    async def handle_press(self, press: ButtonPress) -> str:
        return ""


@pytest.mark.parametrize("message_first", [False, True])
async def test_the_two_events_of_a_mention_get_one_answer(world: SlackWorld, message_first: bool) -> None:
    world.fake.events.message_first = message_first
    await world.mention("where is send?")

    await settled(world, "Answer to: where is send?")
    await world.fake.delivered()

    assert [question for question, _, _ in world.agent.asked] == ["where is send?"]
    assert len(world.replies()) == 1


async def test_an_edit_that_comes_again_is_not_answered_again(world: SlackWorld) -> None:
    message = await world.mention("where is send?")
    await settled(world, "Answer to")
    await world.edit(message, "where is receive?")
    await settled(world, "Answer to: where is receive?")

    for delivery in world.fake.sent("message_changed"):
        await world.fake.deliveries.resend(delivery)

    assert [question for question, _, _ in world.agent.asked] == ["where is send?", "where is receive?"]


async def find_run(folder: Path) -> object:
    """The run of the only message."""
    async with open_database(folder / "inbox.sqlite") as database:
        return await database.row("SELECT run_id FROM inbox")


async def test_an_edit_that_two_fronts_hear_of_is_answered_once(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        worlds = [SlackWorld(fake, tmp_path / "inbox.sqlite", mode="http", agent=FakeAnswerer()) for _ in range(2)]
        for world in worlds:
            await world.begin()
        one, other = worlds
        message = await other.mention("where is send?")
        await settled(other, "Answer to: where is send?")
        await other.edit(message, "where is receive?")
        await settled(other, "Answer to: where is receive?")

        fake.serve_http(f"{one.address}/slack/events")
        before = await find_run(tmp_path)
        for delivery in fake.sent("message_changed"):
            assert delivery.acked
            await fake.deliveries.resend(delivery)
        assert await find_run(tmp_path) == before
        await other.edit(message, "where is parse?")
        await settled(one, "Answer to: where is parse?")

        assert [question for question, _, _ in other.agent.asked] == ["where is send?", "where is receive?"]
        assert [question for question, _, _ in one.agent.asked] == ["where is parse?"]
        for world in worlds:
            await world.end()


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(mode: Mode) -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake:
        core, server, doors = Core(failures=1), make_application(), LatePostRoutes()
        server.router.routes.append(Route(PATH, doors.receive, methods=["POST"]))
        options = SlackOptions(
            bot_token=fake.bot_token, app_token=fake.app_token, signing_secret=fake.signing_secret, mode=mode,
            api_url=fake.api_url, connections=1,
        )  # fmt: skip
        async with (
            SlackAdapter.open(options, SystemClock()) as slack,  # so that only Slack sleeps by the other clock
            slack.listen(cast("Conversations", core), FakeRepositories(), AccessPolicy(), doors),
            run_http_server(server, host="127.0.0.1", port=0) as address,
        ):
            if mode == "http":
                fake.serve_http(f"{address}{PATH}")
            else:
                await fake.connected()
            await fake.dm(fake.add_user("ann"), "where is send?")
            delivery = fake.deliveries.sent[0]
            if mode == "socket":
                await fake.clock.jump()
            await fake.until(lambda: core.heard)
            await fake.delivered()

    assert [attempt.outcome.acked for attempt in delivery.attempts] == [False, True]
    assert [message.text for message in core.heard] == ["where is send?"]


async def test_a_forwarded_message_is_read_with_the_question(world: SlackWorld) -> None:
    words = f"<@{world.fake.bot_user}> why does send fail?"
    await world.fake.message(world.channel, world.people["ann"], words, forwarded="KeyError: 'a<b' in the shop")
    await settled(world, "Answer to: why does send fail?")
    assert [one.text for one in world.agent.attached[0].texts] == ["KeyError: 'a<b' in the shop"]


async def test_a_file_that_the_app_may_not_read_is_told_and_the_question_is_answered(world: SlackWorld) -> None:
    world.fake.access.scopes.discard("files:read")
    await world.attach("why does send fail?", {"app.log": b"KeyError: 'cart'"})
    (said,) = await settled(world, "Answer to: why does send fail?")
    assert "`app.log` could not be read. The platform wants me to log in for it" in said


async def test_the_bot_token_is_sent_nowhere_but_to_slack(world: SlackWorld) -> None:
    hostile = {"id": "F1", "name": "x.log", "size": 3, "mimetype": "text/plain"}
    files = (hostile | {"url_private": "http://127.0.0.1:1/steal"}, hostile | {"url_private": 7}, hostile)
    words = f"<@{world.fake.bot_user}> why does send fail?"
    await world.fake.message(world.channel, world.people["ann"], words, files=files)
    (said,) = await settled(world, "Answer to: why does send fail?")
    assert said.count("citebot is not allowed to download from that location.") == 3


@IN_BOTH_MODES
async def test_everything_that_slack_delivers_is_acknowledged_at_once(world: SlackWorld) -> None:
    fake, ann = world.fake, world.people["ann"]
    said = await fake.message(world.channel, ann, "see https://example.test for setup.py")
    await fake.unfurl(world.channel, said)
    await fake.react(world.channel, said, ann, "x")
    await fake.edit(world.channel, said, "never mind")
    await fake.delete(world.channel, said)
    await fake.other_bot(world.channel, f"<@{fake.bot_user}> deployed")
    await fake.message(world.channel, ann, "a picture", files=("picture.png",))
    await fake.join(world.channel)
    await fake.open_home(ann)
    await fake.open_home(ann, "messages")
    await fake.look_at(ann, world.channel)
    await fake.start_assistant_thread(ann)
    again = await fake.message(world.channel, ann, "hello")
    await fake.shortcut("unknown", world.channel, again, user=ann)
    await fake.delivered()

    attempts = [[each.outcome.acked for each in delivery.attempts] for delivery in fake.deliveries.sent]
    assert attempts == [[True]] * len(fake.deliveries.sent)
    assert len(attempts) > 12
    assert world.agent.asked == []


async def test_bots_and_citebot_itself_are_not_answered(world: SlackWorld) -> None:
    await world.fake.other_bot(world.channel, f"<@{world.fake.bot_user}> where is send?")
    await world.mention("where is receive?")

    await settled(world, "where is receive?")
    await world.fake.delivered()

    assert [question for question, _, _ in world.agent.asked] == ["where is receive?"]


async def test_a_link_preview_is_no_edit(world: SlackWorld) -> None:
    message = await world.mention("where is https://example.test used?")
    await settled(world, "Answer to")

    await world.fake.unfurl(world.channel, message)
    await world.fake.delivered()

    assert len(world.agent.asked) == 1


async def test_a_question_with_a_file_or_sent_to_the_channel_is_answered(world: SlackWorld) -> None:
    thread = await world.mention("where is send?")
    await settled(world, "Answer to")
    ann, mention = world.people["ann"], f"<@{world.fake.bot_user}>"

    await world.fake.message(world.channel, ann, f"{mention} and receive?", thread, broadcast=True)
    await settled(world, "send?", "receive?")
    await world.fake.message(world.channel, ann, f"{mention} and retry?", thread, files=("log.txt",))
    await settled(world, "send?", "receive?", "retry?")


async def test_a_mention_that_an_edit_adds_is_answered(world: SlackWorld) -> None:
    message = await world.fake.message(world.channel, world.people["ann"], "where is send?")

    await world.edit(message, "where is send?")

    await settled(world, "Answer to: where is send?")


async def test_a_new_connection_takes_over_without_a_loss(tmp_path: Path) -> None:
    async with FakeSlack() as fake, SlackWorld(fake, tmp_path / "inbox.sqlite").running() as world:
        await fake.socket.disconnect("refresh_requested")
        await fake.until(lambda: fake.socket.opened == 2)
        await world.mention("where is send?")
        await settled(world, "Answer to: where is send?")


async def test_what_came_while_the_connection_was_lost_is_answered(tmp_path: Path) -> None:
    async with FakeSlack() as fake, SlackWorld(fake, tmp_path / "inbox.sqlite").running() as world:
        fake.socket.abort()
        await world.mention("where is send?")
        await fake.until(lambda: fake.socket.opened == 2)
        await fake.connected()
        fake.clock.advance(60)
        await settled(world, "Answer to: where is send?")


async def test_requests_that_slack_did_not_sign_are_refused(tmp_path: Path) -> None:
    async with FakeSlack() as fake, SlackWorld(fake, tmp_path / "inbox.sqlite", mode="http").running() as world:
        event = {"type": "app_mention", "channel": world.channel, "user": "U1", "ts": "1.000001", "text": "hello"}
        body = {"type": "event_callback", "event_id": "Ev1", "team_id": "T0HOME", "event": event}

        assert await fake.forge(body, secret="another") == 401
        assert await fake.forge(body, age=600) == 401
        assert await fake.verify_url()
        assert world.agent.asked == []


def test_http_mode_without_a_secret_is_refused() -> None:
    with pytest.raises(SettingsError, match="SLACK_SIGNING_SECRET"):
        SlackOptions(bot_token="xoxb", mode="http")
    with pytest.raises(SettingsError, match="SLACK_APP_TOKEN"):
        SlackOptions(bot_token="xoxb")


def test_tokens_are_not_shown() -> None:
    assert "xoxb-secret" not in repr(SlackOptions(bot_token="xoxb-secret", app_token="xapp-secret"))


async def test_an_app_token_without_its_scope_is_told_at_once(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        world = SlackWorld(fake, tmp_path / "inbox.sqlite")
        fake.access.app_scopes = set()

        with pytest.raises(ExceptionGroup) as refused:
            await world.begin()

    assert "connections:write" in str(refused.value.exceptions[0])
