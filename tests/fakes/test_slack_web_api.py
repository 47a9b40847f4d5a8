"""The fake Slack's Web API answers the real SDK as Slack does: arguments, tokens, messages, pages, uploads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack import Clock, FakeSlack
from tests.fakes.slack_clients import client_of, refusal, section

JSON = dict[str, Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack(clock=Clock(frozen=True)) as slack:
        slack.limits.enabled = False
        yield slack


@pytest.fixture
def client(fake: FakeSlack) -> AsyncWebClient:
    return client_of(fake)


@pytest.mark.parametrize("form", ["query", "form", "json"])
async def test_arguments_are_read_however_they_come(fake: FakeSlack, form: str) -> None:
    channel = fake.add_channel("general")
    words = {"channel": channel, "text": "hello"}
    sent: JSON = {"query": {"params": words}, "form": {"data": words}, "json": {"json": words}}[form]
    headers = {"Authorization": f"Bearer {fake.bot_token}"}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{fake.api_url}chat.postMessage", headers=headers, **sent) as response:
            assert (await response.json())["ok"]
        async with session.get(f"{fake.api_url}conversations.info", headers=headers, params=words) as response:
            assert (await response.json())["channel"]["id"] == channel

    assert [call.form for call in fake.calls] == [form, "query"]
    assert fake.messages(channel)[0].text == "hello"


async def test_reading_methods_ignore_a_json_body(fake: FakeSlack, client: AsyncWebClient) -> None:
    call = client.api_call("conversations.info", json={"channel": fake.add_channel("general")})

    assert await refusal(call) == "invalid_arguments"


async def test_tokens_and_scopes_are_checked(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada = fake.add_user("ada")
    assert await refusal(client.auth_test(token="xoxb-other")) == "invalid_auth"
    assert await refusal(client.apps_connections_open(app_token=fake.bot_token)) == "not_allowed_token_type"
    assert await refusal(client.api_call("chat.unheard")) == "unknown_method"
    assert await refusal(client.team_info()) == "missing_scope"
    fake.access.scopes.remove("users:read")
    assert await refusal(client.users_info(user=ada)) == "missing_scope"
    fake.access.refusal = "token_revoked"
    assert await refusal(client.auth_test()) == "token_revoked"
    fake.access.refusal = None

    answer = await client.auth_test()
    assert answer["user_id"] == fake.bot_user
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


async def test_updates_know_their_message_and_keep_its_blocks(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    theirs = await fake.message(channel, ada, "mine")
    ts = (await client.chat_postMessage(channel=channel, text="a", blocks=[section("old")]))["ts"]
    await client.chat_update(channel=channel, ts=ts, text="b")
    assert fake.messages(channel)[1].text == "old"
    await client.chat_update(channel=channel, ts=ts, text="b", blocks=[])
    fake.workspace.edit_window = 60
    fake.clock.advance(61)

    assert fake.messages(channel)[1].text == "b"
    assert await refusal(client.chat_update(channel=channel, ts=theirs, text="x")) == "cant_update_message"
    assert await refusal(client.chat_update(channel=channel, ts="1.000001", text="x")) == "message_not_found"
    assert await refusal(client.chat_update(channel=channel, ts=ts, text="x")) == "edit_window_closed"


async def test_writing_needs_a_channel_where_the_bot_is(fake: FakeSlack, client: AsyncWebClient) -> None:
    strange, ada = fake.add_channel("strange", bot=False), fake.add_user("ada")
    general = fake.add_channel("general")

    assert await refusal(client.chat_postMessage(channel="C9", text="x")) == "channel_not_found"
    assert await refusal(client.chat_postMessage(channel=strange, text="x")) == "not_in_channel"
    assert await refusal(client.conversations_history(channel=strange)) == "not_in_channel"
    assert await refusal(client.chat_postEphemeral(channel=general, user=ada, text="x")) == "user_not_in_channel"


async def test_a_whisper_is_seen_by_one_person_alone(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada, ben = fake.add_user("ada"), fake.add_user("ben")
    channel = fake.add_channel("general", members=(ada, ben))
    await client.chat_postEphemeral(channel=channel, user=ada, text="psst")

    assert [message.text for message in fake.ephemeral(channel, ada)] == ["psst"]
    assert (fake.ephemeral(channel, ben), fake.messages(channel)) == ([], [])


async def test_threads_and_channels_come_in_pages(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    root = await fake.message(channel, ada, "root")
    for number in range(6):
        await fake.message(channel, ada, f"r{number}", root, broadcast=number == 5)
    await fake.message(channel, ada, "last")
    first = await client.conversations_replies(channel=channel, ts=root, limit=3)
    pages = [[message["text"] for message in page["messages"]] async for page in first]
    history = await client.conversations_history(channel=channel)

    assert pages == [["root", "r0", "r1"], ["r2", "r3", "r4"], ["r5"]]
    assert [message["text"] for message in history["messages"]] == ["last", "r5", "root"]
    assert history["messages"][2]["reply_count"] == 6
    assert await refusal(client.conversations_replies(channel=channel, ts="1.000001")) == "thread_not_found"
    assert await refusal(client.conversations_replies(channel=channel, ts=root, limit=1001)) == "invalid_limit"


async def test_a_thread_is_read_between_two_times(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    root, *replies = [await fake.message(channel, ada, "root")]
    for number in range(3):
        fake.clock.advance(10)
        replies.append(await fake.message(channel, ada, f"r{number}", root))
    fake.conversations.root_on_every_page = True
    found = await client.conversations_replies(channel=channel, ts=root, oldest=replies[0], latest=replies[2])
    both = await client.conversations_replies(channel=channel, ts=root, oldest=replies[0], inclusive=True)

    assert [message["text"] for message in found["messages"]] == ["root", "r1"]
    assert [message["text"] for message in both["messages"]] == ["root", "r0", "r1", "r2"]


async def test_metadata_is_found_again_in_the_thread(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    root = await fake.message(channel, ada, "root")
    mark = {"event_type": "run", "event_payload": {"id": "7"}}
    await client.chat_postMessage(channel=channel, thread_ts=root, text="answer", metadata=mark)
    found = await client.conversations_replies(channel=channel, ts=root, include_all_metadata=True)

    assert found["messages"][1]["metadata"] == mark


async def test_an_upload_ends_as_a_file_in_the_thread(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    root = await fake.message(channel, ada, "root")
    done = await client.files_upload_v2(
        channel=channel, thread_ts=root, filename="answer.md", content="# All", initial_comment="the whole answer"
    )

    shared = fake.thread(channel, root)[1]
    assert (shared.text, shared.files) == ("the whole answer", ("answer.md",))
    assert fake.files.stored[done["file"]["id"]].content == b"# All"
    missing = client.files_completeUploadExternal(files=[{"id": "F9", "title": "x"}], channel_id=channel)
    assert await refusal(missing) == "file_not_found"


async def test_reactions_come_and_go_once(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    ts = await fake.message(channel, ada, "hello")
    await client.reactions_add(channel=channel, timestamp=ts, name="eyes")
    assert fake.messages(channel)[0].reactions == {"eyes": (fake.bot_user,)}
    assert await refusal(client.reactions_add(channel=channel, timestamp=ts, name="eyes")) == "already_reacted"
    await client.reactions_remove(channel=channel, timestamp=ts, name="eyes")

    assert fake.messages(channel)[0].reactions == {}
    assert await refusal(client.reactions_remove(channel=channel, timestamp=ts, name="eyes")) == "no_reaction"


async def test_people_and_channels_tell_who_is_from_outside(fake: FakeSlack, client: AsyncWebClient) -> None:
    eve = fake.add_user("eve", outside=True)
    shared = fake.add_channel("shared", external=True, members=(eve,))
    here = (await client.auth_test())["team_id"]

    assert (await client.users_info(user=eve))["user"]["team_id"] != here
    assert (await client.conversations_info(channel=shared))["channel"]["is_ext_shared"]
    assert eve in (await client.conversations_members(channel=shared))["members"]
    assert (await client.conversations_open(users=eve))["channel"]["id"] == fake.dm_channel(eve)
    assert [each["name"] for each in (await client.conversations_list())["channels"]] == ["shared"]


async def test_a_home_is_published_over_the_version_it_knows(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada = fake.add_user("ada")
    view = {"type": "home", "blocks": [section("repositories")]}
    first = await client.views_publish(user_id=ada, view=view)
    await client.views_publish(user_id=ada, view=view, hash=first["view"]["hash"])

    assert fake.home(ada) == "repositories"
    assert await refusal(client.views_publish(user_id=ada, view=view, hash="old")) == "hash_conflict"
    modal = {"type": "modal", "blocks": [section("x")]}
    assert await refusal(client.views_publish(user_id=ada, view=modal)) == "invalid_arguments"
    assert await refusal(client.views_open(trigger_id="1", view=modal)) == "invalid_trigger_id"


async def test_a_status_clears_with_time_and_with_a_post(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada = fake.add_user("ada")
    channel = fake.dm_channel(ada)
    root = await fake.dm(ada, "hello")
    seen: list[str] = []
    for ending in ("time", "post"):
        await client.assistant_threads_setStatus(channel_id=channel, thread_ts=root, status=f"reads until {ending}")
        seen.append(fake.status(channel, root))
        if ending == "time":
            fake.clock.advance(120)
        else:
            await client.chat_postMessage(channel=channel, thread_ts=root, text="done")
        seen.append(fake.status(channel, root))

    assert seen == ["reads until time", "", "reads until post", ""]
    many = client.assistant_threads_setStatus(
        channel_id=channel, thread_ts=root, status="x", loading_messages=["m"] * 11
    )
    assert await refusal(many) == "invalid_arguments"
    prompts = [{"title": "t", "message": "m"}] * 5
    assert await refusal(client.assistant_threads_setSuggestedPrompts(channel_id=channel, prompts=prompts)) == (
        "invalid_arguments"
    )


async def test_a_session_warns_where_its_stop_would_not_be_heard(fake: FakeSlack, client: AsyncWebClient) -> None:
    ada = fake.add_user("ada")
    root, channel = await fake.dm(ada, "hello"), fake.dm_channel(ada)
    heard = await client.agents_sessions_setStatus(channel_id=channel, thread_ts=root, status="processing")
    fake.events.subscriptions.remove("agent_session_stopped")
    deaf = await client.agents_sessions_setStatus(channel_id=channel, thread_ts=root, status="active")
    await client.assistant_threads_setTitle(channel_id=channel, thread_ts=root, title="Greeting")
    prompts = [{"title": "Ask", "message": "Where is it?"}]
    await client.assistant_threads_setSuggestedPrompts(channel_id=channel, prompts=prompts)

    assert "warning" not in heard.data
    assert deaf["warning"] == "missing_agent_session_stopped_event_subscription"
    assert fake.workspace.sessions[channel, root] == "active"
    assert fake.workspace.titles[channel, root] == "Greeting"
    assert fake.workspace.prompts[channel, ""] == prompts


async def test_what_rings_and_what_previews_is_seen(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel = fake.add_channel("general")
    text = "<!channel> and `<!here>` see https://example.test"
    await client.chat_postMessage(channel=channel, text=text)
    await client.chat_postMessage(channel=channel, text=text, unfurl_links=False, unfurl_media=False)
    loud, quiet = fake.messages(channel)

    assert (loud.pings, loud.previews, quiet.previews) == (("<!channel>",), True, False)


async def test_a_deleted_root_stays_as_a_tombstone(fake: FakeSlack, client: AsyncWebClient) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    root, lonely = await fake.message(channel, ada, "root"), await fake.message(channel, ada, "lonely")
    posted = await client.chat_postMessage(channel=channel, thread_ts=root, text="answer")
    await fake.delete(channel, root)
    await fake.delete(channel, lonely)
    assert [message.text for message in fake.messages(channel)] == ["This message was deleted."]
    await client.chat_delete(channel=channel, ts=posted["ts"])

    assert len(fake.thread(channel, root)) == 1
    assert (len(fake.sent("message_changed")), len(fake.sent("message_deleted"))) == (1, 2)
