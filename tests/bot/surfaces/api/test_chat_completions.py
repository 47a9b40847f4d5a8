"""`/v1` as OpenAI's own client sees it: answers, streams, citations, errors, and what it tries again on its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import openai
import pytest

from agent import BACKGROUND_HEADING
from bot.http.event_streams import HEARTBEAT, EventStream
from bot.surfaces.api.chat_completions import REPLACED, _Completion
from bot.surfaces.api.completion_messages import (
    ATTACHMENTS_UNREAD,
    IMAGES_UNSEEN,
    ChatTurn,
    CompletionRequest,
    describe_place,
    find_marks,
    read_messages,
)
from bot.surfaces.ask_events import Answered, AskEvent, CitedPlace, RunBegun, TextPart
from tests.bot.surfaces.api.conftest import CITED, OTHER, TOKEN, URL, World, open_world
from tests.bot.surfaces.api.test_ask_requests import Refusing
from tests.waiting import LIMIT_SECONDS, expect

WHERE: list[Any] = [{"role": "user", "content": "where are events sent?"}]
WHAT: list[Any] = [{"role": "user", "content": "what?"}]
SENT = "Events are sent by `Session.send` [1]."


@asynccontextmanager
async def calling(world: World, *, token: str = TOKEN, retries: int = 2) -> AsyncIterator[openai.AsyncOpenAI]:
    client = openai.AsyncOpenAI(
        base_url=f"{world.address}/v1", api_key=token, max_retries=retries, timeout=LIMIT_SECONDS
    )
    async with client:
        yield client


async def test_a_completion_has_links_annotations_and_usage(world: World) -> None:
    async with calling(world) as client:
        done = await client.chat.completions.create(model="citebot", messages=WHERE, temperature=0.3)
    message = done.choices[0].message
    (note,) = message.annotations or []
    content = message.content or ""

    assert content.startswith(f"Events are sent by `Session.send` [[1]]({URL}).")
    assert (note.type, note.url_citation.url) == ("url_citation", URL)
    assert content[note.url_citation.start_index : note.url_citation.end_index] == "[1]"
    assert note.url_citation.title == "src/session.py:10-24"
    assert (done.choices[0].finish_reason, done.model) == ("stop", "citebot")
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (100, 20, 120)


async def test_a_stream_grows_and_ends_with_its_sources_and_usage(world: World) -> None:
    async with (
        calling(world) as client,
        client.chat.completions.stream(
            model="citebot/demo", messages=WHERE, stream_options={"include_usage": True}
        ) as stream,
    ):
        done = await stream.get_final_completion()
    message = done.choices[0].message
    content = message.content or ""
    (note,) = message.annotations or []

    assert content.startswith(f"{SENT}\n\n[1] `src/session.py:10-24`\n\n[1]: <{URL}>")
    assert content[note.url_citation.start_index : note.url_citation.end_index] == "[1]"
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert done.usage.total_tokens == 120


async def test_text_arrives_before_the_answer_is_whole() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate) as world, calling(world) as client:
        world.answerer.begins_with = "The beginning of a long answer, which goes on for a while."
        stream = await client.chat.completions.create(model="citebot", messages=WHAT, stream=True)
        text = ""
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if text and not gate.is_set():
                before = text
                gate.set()

    assert before.startswith("The beginning")
    assert "what?" in text


async def test_models_are_citebot_and_each_repository_that_may_be_asked_about(world: World) -> None:
    async with calling(world) as client:
        listed = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("citebot/demo")
        with pytest.raises(openai.NotFoundError) as hidden:
            await client.models.retrieve("citebot/secret")
        with pytest.raises(openai.NotFoundError) as absent:
            await client.chat.completions.create(model="citebot/absent", messages=WHAT)

    assert listed == ["citebot", "citebot/demo"]
    assert one.owned_by == "citebot"
    assert hidden.value.message.replace("secret", "absent") == absent.value.message
    assert hidden.value.code == absent.value.code == "model_not_found"
    assert world.answerer.asked == []


async def test_what_was_said_before_is_background_and_instructions_are_not_followed(world: World) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "user", "content": "what is Session?"},
        {"role": "assistant", "content": "Session sends events."},
        {"role": "user", "content": [{"type": "text", "text": "and who calls it?"}]},
    ]
    async with calling(world) as client:
        await client.chat.completions.create(model="citebot", messages=messages)
    question = world.answerer.asked[0][0]

    assert question.split("\n") == [
        "and who calls it?",
        "",
        BACKGROUND_HEADING,
        "> the person who asks: what is Session?",
        "> citebot: Session sends events.",
    ]


async def test_an_image_that_nobody_saw_is_told(world: World) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "what is this?"}, picture]}]
    async with calling(world) as client:
        done = await client.chat.completions.create(model="citebot", messages=messages)

    assert IMAGES_UNSEEN in (done.choices[0].message.content or "")
    assert world.answerer.asked[0][0] == "what is this?"


async def test_a_wrong_token_and_a_wrong_request_are_errors_of_the_client(world: World) -> None:
    async with calling(world, token="wrong") as client:
        with pytest.raises(openai.AuthenticationError) as unknown:
            await client.models.list()
    async with calling(world) as client:
        with pytest.raises(openai.BadRequestError) as mute:
            await client.chat.completions.create(model="citebot", messages=[{"role": "system", "content": "x"}])
        with pytest.raises(openai.BadRequestError) as several:
            await client.chat.completions.create(model="citebot", messages=WHAT, n=2)
        with pytest.raises(openai.UnprocessableEntityError):
            await client.chat.completions.create(model="citebot", messages=[{"role": "user", "content": " "}])

    assert unknown.value.type == "authentication_error"
    assert (mute.value.param, several.value.param) == ("messages", "n")
    assert world.answerer.asked == []


FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.parametrize(
    ("sent", "said", "param"),
    [
        ({"n": 2}, "n: citebot gives one answer; ask for one.", "n"),
        (
            {"response_format": FORM},
            "response_format: citebot answers only in Markdown.",
            "response_format",
        ),
        (
            {"tools": TOOLS, "tool_choice": "required"},
            "tool_choice: citebot answers in text, and calls no tools of the client.",
            "tool_choice",
        ),
        ({"messages": []}, "messages: List should have at least 1 item, not 0.", "messages"),
        (
            {"messages": [{"role": "user", "content": 5}]},
            "messages.0.content: Write text, or a list of at most 1000 parts.",
            "messages.0.content",
        ),
        ({"messages": [*WHAT, {"content": "x"}]}, "messages.1.role: Field required.", "messages.1.role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]},
            "messages: The last one has no text. I have not seen the image: I read only text.",
            "messages",
        ),
    ],
)
async def test_what_citebot_cannot_do_is_refused_in_a_sentence(
    world: World, sent: dict[str, Any], said: str, param: str
) -> None:
    async with calling(world) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(**{"model": "citebot", "messages": WHAT, **sent})

    body: Any = refused.value.body
    assert (body["message"], body["type"], body["param"]) == (said, "invalid_request_error", param)
    assert world.answerer.asked == []


async def test_tools_that_may_be_left_alone_and_two_hundred_messages_are_no_mistake(world: World) -> None:
    said: list[Any] = [
        {"role": ("user", "assistant")[number % 2], "content": f"{number} " * 50} for number in range(200)
    ]
    more: dict[str, Any] = {"tools": TOOLS, "tool_choice": "auto", "response_format": {"type": "text"}, "n": 1}
    async with calling(world) as client:
        done = await client.chat.completions.create(model="citebot", messages=[*said, *WHAT], **more)

    assert done.choices[0].finish_reason == "stop"
    assert world.answerer.asked[0][0].startswith("what?\n")
    assert len(world.answerer.asked[0][0]) < 4_000


async def test_a_file_that_nobody_read_is_told(world: World) -> None:
    parts: list[Any] = [{"type": "text", "text": "what is this?"}, {"type": "file", "file": {"file_id": "x"}}]
    async with calling(world) as client:
        done = await client.chat.completions.create(model="citebot", messages=[{"role": "user", "content": parts}])

    assert ATTACHMENTS_UNREAD in (done.choices[0].message.content or "")


async def test_what_citebot_does_not_have_is_told_in_the_words_of_the_client(world: World) -> None:
    async with calling(world) as client:
        with pytest.raises(openai.NotFoundError, match="/v1/chat/completions and /v1/models"):
            await client.embeddings.create(model="citebot", input="x")


async def test_a_limit_is_waited_for_by_the_client_and_the_question_asked_once() -> None:
    counter = Refusing(1)
    async with open_world(counter=counter) as world, calling(world) as client:
        counter.seconds = 0.01
        done = await client.chat.completions.create(model="citebot", messages=WHAT)

    assert done.choices[0].finish_reason == "stop"
    assert (counter.counted, len(world.answerer.asked)) == (2, 1)


async def test_a_question_that_failed_is_not_asked_again_by_the_client(world: World) -> None:
    world.answerer.error = RuntimeError("broken on purpose")
    async with calling(world) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(model="citebot", messages=WHAT)

    assert failed.value.response.headers["x-should-retry"] == "false"
    assert len(world.answerer.asked) == 1


async def test_a_client_that_lost_its_answer_gets_it_without_asking_twice() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate) as world:
        body = {"model": "citebot", "messages": WHAT}
        first = asyncio.create_task(
            world.request("POST", "/v1/chat/completions", json=body, headers={"X-Stainless-Retry-Count": "0"})
        )
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        first.cancel()
        await asyncio.wait({first})
        gate.set()
        again = await world.request("POST", "/v1/chat/completions", json=body, headers={"X-Stainless-Retry-Count": "1"})
        anew = await world.request("POST", "/v1/chat/completions", json=body, headers={"X-Stainless-Retry-Count": "0"})

    assert (again.status, anew.status) == (200, 200)
    assert len(world.answerer.asked) == 2


async def test_a_stream_that_breaks_off_raises_an_error() -> None:
    async with open_world(gate=asyncio.Event()) as world, calling(world) as client:
        stream = await client.chat.completions.create(model="citebot", messages=WHAT, stream=True)
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        for run_id in list(world.answerer._stops):
            await world.answerer.stop(run_id)
        with pytest.raises(openai.APIError, match=r"[Ss]topped"):
            async for _ in stream:
                pass


async def test_heartbeats_keep_a_silent_stream_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.surfaces.api.ask_requests.EventStream", partial(EventStream, beat=0.01))
    gate = asyncio.Event()
    async with open_world(gate=gate) as world, aiohttp.ClientSession() as session:
        headers, body = {"Authorization": f"Bearer {TOKEN}"}, {"model": "citebot", "messages": WHAT, "stream": True}
        async with session.post(f"{world.address}/v1/chat/completions", json=body, headers=headers) as answer:
            async with expect("heartbeats keep a silent stream alive"):
                beats = await answer.content.readuntil(HEARTBEAT)
            gate.set()
            rest = await answer.text()

    assert beats.endswith(HEARTBEAT)
    assert rest.endswith("data: [DONE]\n\n")


def follow(said: list[Any], done: Any, *texts: str) -> list[Any]:
    """Return the messages of the next request."""
    answer = {"role": "assistant", "content": done.choices[0].message.content}
    return [*said, answer, *({"role": "user", "content": text} for text in texts)]


async def test_the_next_question_goes_on_with_the_conversation(world: World) -> None:
    async with calling(world) as client:
        first = await client.chat.completions.create(model="citebot", messages=WHAT)
        stream = client.chat.completions.stream(model="citebot", messages=follow(WHAT, first, "and then?"))
        async with stream as streaming:
            second = await streaming.get_final_completion()
        messages = follow(follow(WHAT, first, "and then?"), second, "and who?")
        await client.chat.completions.create(model="citebot", messages=messages)
    threads = [thread for _, thread, _ in world.answerer.asked]

    assert [question for question, _, _ in world.answerer.asked] == ["what?", "and then?", "and who?"]
    assert len(set(threads)) == 1


async def test_another_try_at_an_earlier_question_is_a_conversation_of_its_own(world: World) -> None:
    async with calling(world) as client:
        first = await client.chat.completions.create(model="citebot", messages=WHAT)
        for text in ("and then?", "and now?"):
            await client.chat.completions.create(model="citebot", messages=follow(WHAT, first, text))
    async with calling(world, token=OTHER) as client:
        await client.chat.completions.create(model="citebot", messages=follow(WHAT, first, "and mine?"))
    (_, begun, _), (_, then, _), (again, now, _), (_, others, _) = world.answerer.asked

    assert then == begun
    assert len({begun, now, others}) == 3
    assert f"{BACKGROUND_HEADING}\n> the person who asks: what?\n> citebot: Answer to: what?" in again


def write(*texts: tuple[str, bool], final: str) -> list[dict[str, Any]]:
    """Return the chunks of a stream with these parts and that answer."""
    sent = CompletionRequest.model_validate({"model": "citebot", "messages": WHAT})
    writing = _Completion(sent, unread="")
    events: list[AskEvent] = [
        RunBegun(run_id="7"),
        *(TextPart(text=text, replaces=replaces) for text, replaces in texts),
    ]
    chunks = [chunk for event in events for chunk in writing.write_chunks(event)]
    chunks += writing.write_chunks(Answered(run_id="7", text=final, linked=final))
    assert chunks[-1] == "[DONE]"
    return [json.loads(chunk) for chunk in chunks[:-1]]


def read(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


def test_text_that_was_replaced_is_told_to_be() -> None:
    chunks = write(("One. ", False), ("Two.", False), ("Three.", True), (" Four.", False), final="Three. Four. Five.")

    assert read(chunks) == f"One. Two.{REPLACED}Three. Four. Five."
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-7"}


def test_text_that_goes_on_from_what_was_sent_is_no_replacement() -> None:
    assert read(write(("One.", False), ("One. Two.", True), final="One. Two.")) == "One. Two."


def test_marks_in_code_are_no_citations() -> None:
    content = "`a[1]` and\n```\nb[2]\n```\nsee [[3]](https://x) and [4]."

    assert {mark: content[begin:end] for mark, (begin, end) in find_marks(content).items()} == {3: "[3]", 4: "[4]"}


def test_only_what_people_and_citebot_said_is_read() -> None:
    turns = [
        ChatTurn(role="developer", content="Obey."),
        ChatTurn(role="user", content="one"),
        ChatTurn(role="tool", content="two"),
        ChatTurn(role="assistant", content=None),
        ChatTurn(role="user", content="three"),
        ChatTurn(role="assistant", content="a beginning that the model is to go on with"),
    ]

    asked = read_messages(turns, str)

    assert (asked.question, asked.background) == ("three", ("> the person who asks: one",))


def test_secrets_that_were_said_before_are_masked() -> None:
    turns = [ChatTurn(role="user", content="my key is hunter2"), ChatTurn(role="user", content="what?")]

    assert "hunter2" not in "".join(read_messages(turns, lambda text: text.replace("hunter2", "***")).background)


def test_a_place_has_one_line_and_no_backtick() -> None:
    place = CitedPlace(mark=1, repository="demo", commit=CITED.commit, path="a`b\nc", first_line=3, last_line=3)

    assert describe_place(place) == "a'b c:3"
    assert describe_place(replace_path(place, "")) == CITED.commit[:12]


def replace_path(place: CitedPlace, path: str) -> CitedPlace:
    return place.model_copy(update={"path": path})
