"""Commands, buttons, shortcuts and their answers pass between the fake Slack and the real Bolt in both modes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.fakes.slack import FakeSlack
from tests.fakes.slack_clients import app_of, by_http, by_socket, refusal

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


async def test_a_command_is_acknowledged_with_a_note_for_its_author(fake: FakeSlack, front: Front) -> None:
    app = app_of(fake)

    @app.command("/citebot")
    async def run(ack: Any, command: JSON, respond: Any) -> None:
        await ack(f"got {command['text']}")
        await respond(text="for all", response_type="in_channel")

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with front(fake, app):
        delivery = await fake.slash("/citebot", "status", channel=channel, user=ada)
        await fake.until(lambda: fake.ephemeral(channel, ada) and fake.messages(channel))

    assert (delivery.acked, delivery.answer) == (True, {"text": "got status"})
    assert fake.ephemeral(channel, ada)[0].text == "got status"
    assert fake.messages(channel)[0].text == "for all"


async def test_a_command_that_nobody_takes_is_not_repeated(fake: FakeSlack) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with by_http(fake, app_of(fake)):
        delivery = await fake.slash("/nobody", "", channel=channel, user=ada)
        await fake.until(lambda: delivery.settled)

    assert (delivery.dropped, len(delivery.attempts)) == (True, 1)


async def test_pressed_buttons_carry_their_value_and_replace_the_message(fake: FakeSlack, front: Front) -> None:
    app, pressed = app_of(fake), []

    @app.action("stop")
    @app.action("rate")
    async def act(ack: Any, action: JSON, respond: Any) -> None:
        await ack()
        pressed.append((action["type"], action["value"]))
        await respond(text="stopped", replace_original=True, blocks=[])

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    feedback = {"type": "feedback_buttons", "action_id": "rate"}
    for name in ("positive", "negative"):
        feedback[f"{name}_button"] = {"text": {"type": "plain_text", "text": name}, "value": name}  # type: ignore[assignment]
    button = {"type": "button", "action_id": "stop", "text": {"type": "plain_text", "text": "Stop"}, "value": "7"}
    blocks = [{"type": "actions", "elements": [button]}, {"type": "context_actions", "elements": [feedback]}]
    async with front(fake, app):
        posted = await app.client.chat_postMessage(channel=channel, text="working", blocks=blocks)
        ts = str(posted["ts"])
        assert fake.messages(channel)[0].buttons == ("stop", "rate")
        await fake.press(channel, ts, "rate", user=ada, value="negative")
        await fake.until(lambda: fake.messages(channel)[0].text == "stopped")
        with pytest.raises(LookupError, match="no 'stop' to press"):
            await fake.press(channel, ts, "stop", user=ada)

    assert pressed == [("feedback_buttons", "negative")]


async def test_a_response_url_is_good_for_five_answers(fake: FakeSlack) -> None:
    app = app_of(fake)

    @app.command("/citebot")
    async def run(ack: Any) -> None:
        await ack()

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    async with by_socket(fake, app):
        delivery = await fake.slash("/citebot", "", channel=channel, user=ada)
        statuses = [(await AsyncWebhookClient(delivery.response_url).send(text="hi")).status_code for _ in range(6)]

    assert statuses == [200] * 5 + [404]
    assert len(fake.ephemeral(channel, ada)) == 5


async def test_a_trigger_opens_one_view_within_three_seconds(fake: FakeSlack) -> None:
    app = app_of(fake)

    @app.command("/citebot")
    async def run(ack: Any) -> None:
        await ack()

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    view = {"type": "modal", "title": {"type": "plain_text", "text": "Ask"}, "blocks": []}
    async with by_socket(fake, app):
        first, second = [await fake.slash("/citebot", "", channel=channel, user=ada) for _ in range(2)]
        await app.client.views_open(trigger_id=first.trigger_id, view=view)
        assert await refusal(app.client.views_open(trigger_id=first.trigger_id, view=view)) == "exchanged_trigger_id"
        fake.clock.advance(4)
        assert await refusal(app.client.views_open(trigger_id=second.trigger_id, view=view)) == "expired_trigger_id"

    assert [modal["title"]["text"] for modal in fake.workspace.modals] == ["Ask"]


async def test_home_buttons_and_shortcuts_reach_the_app(fake: FakeSlack, front: Front) -> None:
    app, heard = app_of(fake), []

    @app.action("refresh")
    @app.shortcut("ask_about")
    async def act(ack: Any, body: JSON) -> None:
        await ack()
        heard.append(body)

    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    ts = await fake.message(channel, ada, "what is this?")
    button = {"type": "button", "action_id": "refresh", "text": {"type": "plain_text", "text": "Refresh"}}
    async with front(fake, app):
        home = {"type": "home", "blocks": [{"type": "actions", "elements": [button]}]}
        await app.client.views_publish(user_id=ada, view=home)
        pressed = await fake.press_home(ada, "refresh")
        used = await fake.shortcut("ask_about", channel, ts, user=ada)
        await fake.until(lambda: pressed.settled and used.settled)

    assert {body["type"]: (body.get("view") or body["message"])["type"] for body in heard} == {
        "block_actions": "home",
        "message_action": "message",
    }
