"""Requests to the HTTP API, as anybody with a token can send them."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from bot.surfaces.api.ask_requests import AskRequest, wants_events
from bot.surfaces.api.completion_messages import CompletionRequest, find_marks, read_messages
from bot.surfaces.api.problems import RequestProblem, parse_json
from tests.fuzz.texts import among, halves, json_values, objects

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
NAMES = (
    "model", "messages", "role", "content", "type", "text", "image_url", "stream", "stream_options",
    "question", "n",
)  # fmt: skip
texts = among(("where is `send`?", "[1]", "```", "`", "> ", "https://x", "citebot/shop", "text", "\n"), most=6) | halves
anything = json_values(NAMES, texts)
turns = objects(
    {
        "role": st.sampled_from(ROLES) | texts,
        "content": texts | st.lists(objects({"type": st.just("text") | texts, "text": texts}), max_size=3) | anything,
    }
)
bodies = objects({"model": texts, "messages": st.lists(turns, min_size=1, max_size=5) | anything, "stream": anything})


@given(bodies | anything)
def test_a_conversation_is_read_or_refused_with_a_reason(body: object) -> None:
    with suppress(RequestProblem):
        sent = parse_json(json.dumps(body).encode(), CompletionRequest)
        asked = read_messages(sent.messages, str)
        assert all(line.startswith("> ") and "\n" not in line for line in asked.background)


@given(st.binary(max_size=200) | anything.map(json.dumps).map(str.encode))
def test_a_question_is_read_or_refused_with_a_reason(body: bytes) -> None:
    with suppress(RequestProblem):
        assert parse_json(body, AskRequest).question


@given(texts)
def test_each_mark_stands_where_it_is_said_to(content: str) -> None:
    for mark, (begin, end) in find_marks(content).items():
        assert content[begin:end] == f"[{mark}]" or int(content[begin + 1 : end - 1]) == mark


@given(among(("text/event-stream", "application/json", "*/*", ";q=", "0", "1", ".", "5", ","), most=10))
def test_a_preference_is_read_whatever_it_is(accept: str) -> None:
    shown = accept.encode("ascii", "replace").decode().replace("\r", "").replace("\n", "")
    assert wants_events(Headers({"Accept": shown})) in {True, False}
