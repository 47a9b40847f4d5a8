"""The fake Slack delivers as Slack does, to the real Bolt in both modes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp

from tests.fakes.slack import Clock, FakeSlack
from tests.fakes.slack_clients import app_of, by_http, by_socket, client_of

Front = Callable[[FakeSlack, AsyncApp], AbstractAsyncContextManager[Any]]
JSON = dict[str, Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as slack:
        yield slack


@pytest.fixture(params=[by_socket, by_http], ids=["socket", "http"])
def front(request: pytest.FixtureRequest) -> Front:
    found: Front = request.param
    return found


def listening(fake: FakeSlack, *kinds: str) -> tuple[AsyncApp, list[JSON]]:
    """An app that keeps the events of these types."""
    app, heard = app_of(fake), []

    async def hear(body: JSON) -> None:
        heard.append(body)
        fake.changes.tell()

    for kind in kinds:
        app.event(kind)(hear)
    return app, heard


async def test_a_mention_arrives_as_two_events_of_one_message(fake: FakeSlack, front: Front) -> None:
    app, heard = listening(fake, "app_mention", "message")
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with front(fake, app):
        ts = await fake.mention(channel, ada, "where is `a < b` in setup.py?")
        await fake.until(lambda: len(heard) == 2)
        await fake.delivered()

    events = [body["event"] for body in heard]
    assert {event["type"] for event in events} == {"app_mention", "message"}
    assert {event["ts"] for event in events} == {ts}
    assert len({body["event_id"] for body in heard}) == 2
    assert events[0]["text"] == f"<@{fake.bot_user}> where is `a &lt; b` in <http://setup.py|setup.py>?"
    assert all(delivery.acked and len(delivery.attempts) == 1 for delivery in fake.deliveries.sent)
    assert fake.thread(channel, ts)[0].text.endswith("`a < b` in setup.py?")


async def test_an_answer_in_a_thread_is_seen_there_and_its_echo_ignored(fake: FakeSlack, front: Front) -> None:
    app, heard = listening(fake, "message")

    @app.event("app_mention")
    async def reply(event: JSON, say: Any) -> None:
        posted = await say(text="thinking", thread_ts=event["ts"])
        await app.client.chat_update(channel=event["channel"], ts=posted["ts"], text="done")

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with front(fake, app):
        ts = await fake.mention(channel, ada, "hello?")
        await fake.until(lambda: [answer.text for answer in fake.answers(channel, ts)] == ["done"])
        await fake.delivered()

    answer = fake.thread(channel, ts)[1]
    assert (answer.edits, answer.versions, answer.is_bot) == (1, ("thinking", "done"), True)
    assert [body["event"]["ts"] for body in heard] == [ts]
    assert [len(fake.sent(name)) for name in ("app_mention", "message_changed")] == [1, 1]
    assert [message.text for message in fake.messages(channel)] == [f"<@{fake.bot_user}> hello?"]


async def test_an_envelope_that_nobody_acknowledges_is_sent_four_times() -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake, by_socket(fake, app_of(fake)):
        started = fake.clock.now()
        await fake.dm(fake.add_user("ada"), "anyone?")
        delivery = fake.deliveries.sent[0]
        for _ in range(6):  # four acknowledgements that do not come, two delays
            await fake.clock.jump()
        await fake.until(lambda: delivery.settled)

    assert delivery.dropped
    assert [round(attempt.at - started) for attempt in delivery.attempts] == [0, 3, 66, 369]
    assert {attempt.outcome.reason for attempt in delivery.attempts} == {"timeout"}


async def test_an_event_that_is_answered_with_404_is_sent_four_times() -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake, by_http(fake, app_of(fake)):
        started = fake.clock.now()
        await fake.dm(fake.add_user("ada"), "anyone?")
        delivery = fake.deliveries.sent[0]
        for count in (2, 3):
            await fake.until(lambda count=count: len(delivery.attempts) == count)  # type: ignore[misc]
            await fake.clock.jump()
        await fake.until(lambda: delivery.settled)

    assert fake.http.statuses == [404] * 4
    assert [round(attempt.at - started) for attempt in delivery.attempts] == [0, 0, 60, 360]


async def test_a_failing_middleware_leaves_the_event_for_a_retry(fake: FakeSlack) -> None:
    app, heard = listening(fake, "message")
    tries: list[JSON] = []

    @app.middleware
    async def store(req: Any, next_: Any) -> Any:
        tries.append(dict(req.headers))
        if len(tries) == 1:
            raise OSError("the disk is full")
        return await next_()

    ada = fake.add_user("ada")
    async with by_http(fake, app):
        await fake.dm(ada, "hello")
        await fake.until(lambda: heard)
        await fake.delivered()

    assert [attempt.outcome.reason for attempt in fake.deliveries.sent[0].attempts] == ["http_error", ""]
    assert tries[1]["x-slack-retry-num"] == ["1"]
    assert tries[1]["x-slack-retry-reason"] == ["http_error"]
    assert heard[0]["event"]["channel_type"] == "im"


async def test_a_failing_middleware_leaves_its_envelope_unacknowledged() -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake:
        app, heard = listening(fake, "message")
        tries: list[JSON] = []

        @app.middleware
        async def store(req: Any, next_: Any) -> Any:
            tries.append(dict(req.headers))
            if len(tries) == 1:
                raise OSError("the disk is full")
            return await next_()

        async with by_socket(fake, app):
            await fake.dm(fake.add_user("ada"), "hello")
            await fake.clock.jump()
            await fake.until(lambda: heard)
            await fake.delivered()

    assert [attempt.outcome.acked for attempt in fake.deliveries.sent[0].attempts] == [False, True]
    assert tries[1]["x-slack-retry-num"] == ["1"]


@pytest.mark.parametrize("message_first", [False, True])
async def test_the_events_of_a_mention_come_in_either_order(fake: FakeSlack, message_first: bool) -> None:
    fake.events.message_first = message_first
    await fake.mention(fake.add_channel("general"), fake.add_user("ada"), "hello")

    kinds = [delivery.payload["event"]["type"] for delivery in fake.deliveries.sent]
    assert kinds == (["message", "app_mention"] if message_first else ["app_mention", "message"])


async def test_a_lost_connection_gets_its_events_again_on_the_next(fake: FakeSlack) -> None:
    app, heard = listening(fake, "message")
    ada = fake.add_user("ada")
    async with by_socket(fake, app, ping_interval=0.5):
        fake.socket.abort()
        await fake.dm(ada, "hello")
        await fake.until(lambda: fake.socket.opened == 2)
        await fake.connected()
        fake.clock.advance(60)
        await fake.until(lambda: heard)
        await fake.delivered()

    assert [attempt.outcome.acked for attempt in fake.deliveries.sent[0].attempts] == [False, False, True]


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_disconnect_frame_makes_the_app_connect_anew(fake: FakeSlack, reason: Any) -> None:
    app, heard = listening(fake, "message")
    ada = fake.add_user("ada")
    async with by_socket(fake, app):
        first = fake.socket.connections[0]
        await fake.socket.disconnect(reason)
        await fake.until(lambda: fake.socket.opened == 2 and first not in fake.socket.connections)
        await fake.dm(ada, "hello")
        await fake.until(lambda: heard)

    assert len(fake.calls_of("apps.connections.open")) == 2


async def test_two_connections_share_the_events_between_them(fake: FakeSlack) -> None:
    app, heard = listening(fake, "message")
    ada = fake.add_user("ada")
    async with by_socket(fake, app), by_socket(fake, app):
        for word in ("one", "two", "three", "four"):
            await fake.dm(ada, word)
        await fake.until(lambda: len(heard) == 4)
        await fake.delivered()

    ways = [delivery.attempts[0].by for delivery in fake.deliveries.sent]
    assert sorted(ways) == ["S1", "S1", "S2", "S2"]


async def test_a_delivery_can_be_repeated_after_its_acknowledgement(fake: FakeSlack, front: Front) -> None:
    app, heard = listening(fake, "message")
    ada = fake.add_user("ada")
    async with front(fake, app):
        await fake.dm(ada, "hello")
        await fake.delivered()
        await fake.deliveries.resend(fake.deliveries.sent[0])
        await fake.until(lambda: len(heard) == 2)

    assert heard[0]["event_id"] == heard[1]["event_id"]


async def test_a_request_url_is_verified_and_forgeries_are_refused(fake: FakeSlack) -> None:
    app, heard = listening(fake, "message")
    async with by_http(fake, app):
        assert await fake.verify_url()
        forged = await fake.forge({"type": "event_callback", "event": {"type": "message"}}, secret="guessed")
        stale = await fake.forge({"type": "event_callback", "event": {"type": "message"}}, age=600)

    assert (forged, stale, heard) == (401, 401, [])


async def test_an_app_may_ask_for_no_retry(fake: FakeSlack) -> None:
    app = app_of(fake)

    @app.middleware
    async def refuse() -> BoltResponse:
        return BoltResponse(status=500, headers={"X-Slack-No-Retry": "1"})

    async with by_http(fake, app):
        await fake.dm(fake.add_user("ada"), "hello")
        await fake.delivered()

    assert fake.http.statuses == [500]


async def test_a_request_url_that_is_down_gets_the_event_later(fake: FakeSlack) -> None:
    app, heard = listening(fake, "message")
    fake.serve_http("http://127.0.0.1:9/slack/events")
    await fake.dm(fake.add_user("ada"), "hello")
    delivery = fake.deliveries.sent[0]
    await fake.until(lambda: len(delivery.attempts) == 2)
    async with by_http(fake, app):
        await fake.clock.jump()
        await fake.until(lambda: heard)

    assert delivery.attempts[0].outcome.reason == "connection_failed"


async def test_an_eleventh_connection_is_sent_away(fake: FakeSlack) -> None:
    client = client_of(fake)
    async with aiohttp.ClientSession() as session:
        sockets = []
        for _ in range(11):
            opened = await client.apps_connections_open(app_token=fake.app_token)
            sockets.append(await session.ws_connect(str(opened["url"])))
        hello, away = await sockets[0].receive_json(), await sockets[10].receive_json()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(str(opened["url"]))

    assert (hello["type"], hello["debug_info"]["approximate_connection_time"]) == ("hello", 18060)
    assert (away["type"], away["reason"]) == ("disconnect", "too_many_websockets")


async def test_a_late_acknowledgement_does_not_count() -> None:
    async with FakeSlack(clock=Clock(frozen=True)) as fake, aiohttp.ClientSession() as session:
        opened = await client_of(fake).apps_connections_open(app_token=fake.app_token)
        socket = await session.ws_connect(str(opened["url"]))
        await socket.receive_json()
        await fake.dm(fake.add_user("ada"), "hello")
        first = await socket.receive_json()
        await fake.clock.jump()
        again = await socket.receive_json()
        await socket.send_json({"envelope_id": first["envelope_id"]})
        await fake.until(lambda: fake.socket.late_acks)
        await socket.send_json({"envelope_id": again["envelope_id"]})
        await fake.delivered()

    assert fake.socket.late_acks == [first["envelope_id"]]
    assert [first["retry_attempt"], again["retry_attempt"], again["retry_reason"]] == [0, 1, "timeout"]
    assert fake.deliveries.sent[0].acked


async def test_a_connection_without_pongs_is_given_up(fake: FakeSlack) -> None:
    fake.socket.answers_pings = False
    async with by_socket(fake, app_of(fake), ping_interval=0.2):
        await fake.until(lambda: fake.socket.opened >= 2)


async def test_every_other_kind_of_event_reaches_its_listener(fake: FakeSlack, front: Front) -> None:
    kinds = ("message", "app_home_opened", "app_context_changed", "agent_session_stopped", "reaction_added")
    app, heard = listening(fake, *kinds, "member_joined_channel", "assistant_thread_started")
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with front(fake, app):
        ts = await fake.message(channel, ada, "first")
        await fake.edit(channel, ts, "second")
        await fake.unfurl(channel, ts)
        await fake.react(channel, ts, ada, "x")
        await fake.message(channel, ada, "also here", ts, broadcast=True)
        await fake.message(channel, ada, "look", files=("trace.txt",))
        await fake.other_bot(channel, "deployed")
        await fake.open_home(ada, "messages")
        await fake.look_at(ada, channel)
        await fake.stop_session(channel, ts, ada)
        await fake.start_assistant_thread(ada)
        await fake.delete(channel, ts)
        await fake.join(fake.add_channel("new", bot=False))
        await fake.until(lambda: len(heard) == 13)
        await fake.delivered()

    found = sorted(f"{body['event']['type']} {body['event'].get('subtype', '')}".strip() for body in heard)
    assert found == sorted([
        "agent_session_stopped", "app_context_changed", "app_home_opened", "assistant_thread_started",
        "member_joined_channel", "message", "message bot_message", "message file_share", "message message_changed",
        "message message_changed", "message message_changed", "message thread_broadcast", "reaction_added",
    ])  # fmt: skip


async def test_the_app_hears_only_what_it_may(front: Front) -> None:
    async with FakeSlack(subscriptions=frozenset({"app_mention", "message.im"})) as fake:
        app, heard = listening(fake, "message", "app_mention")
        strange, known = fake.add_channel("strange", bot=False), fake.add_channel("known")
        ada, eve = fake.add_user("ada"), fake.add_user("eve", outside=True)
        shared = fake.add_channel("shared", external=True)
        async with front(fake, app):
            await fake.mention(strange, ada, "you are not here")
            await fake.message(known, ada, "not subscribed to")
            await fake.mention(shared, eve, "hello")
            await fake.dm(ada, "hi")
            await fake.delivered()
            await fake.until(lambda: len(heard) == 2)

    kinds = {body["event"]["type"]: body for body in heard}
    assert kinds["app_mention"]["is_ext_shared_channel"]
    assert kinds["app_mention"]["event"]["team"] != kinds["app_mention"]["team_id"]
    assert kinds["message"]["event"]["channel"] == fake.dm_channel(ada)
