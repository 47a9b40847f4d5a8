"""`POST /api/ask`: answers as JSON and as events, refusals, and clients that leave, wait or repeat themselves."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from bot.errors import LimitReached
from bot.http.connections import MAX_EACH
from bot.messages import IncomingMessage
from bot.storage.rate_limits import QuestionCounter
from bot.surfaces.questions import ENDING
from tests.bot.http.test_event_streams import parse
from tests.bot.surfaces.api.conftest import OTHER, TOKEN, URL, World, open_world
from tests.fakes.raw_http import write_request
from tests.waiting import LIMIT_SECONDS, expect

EVENTS = {"Accept": "text/event-stream"}
PROBLEM = "application/problem+json"


class Refusing(QuestionCounter):
    """A counter that refuses the first questions."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals
        self.counted = 0
        self.seconds = 7.2

    async def count(self, message: IncomingMessage) -> None:
        self.counted += 1
        if self.counted <= self.left:
            raise LimitReached("You have asked 10 questions this minute.", retry_after=self.seconds)

    async def count_lookup(self, message: IncomingMessage) -> None: ...

    async def count_command(self, message: IncomingMessage) -> None: ...

    async def forget_old(self) -> None: ...


def events_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, json.loads(data)) for name, data, _ in parse(text.encode())]


async def test_an_answer_comes_with_its_citations_and_its_commit(world: World) -> None:
    reply = await world.ask("where are events sent?")

    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json")
    assert reply.body["text"] == "Events are sent by `Session.send` [1]."
    assert reply.body["linked"].startswith(f"Events are sent by `Session.send` [[1]]({URL}).")
    assert [(each["mark"], each["path"], each["url"]) for each in reply.body["citations"]] == [
        (1, "src/session.py", URL)
    ]
    assert (reply.body["repository"], len(reply.body["commit"])) == ("demo", 40)
    assert reply.headers["Cache-Control"] == "no-store"


async def test_events_tell_how_an_answer_comes_about(world: World) -> None:
    reply = await world.ask("where are events sent?", headers=EVENTS)
    events = events_in(reply.body)

    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert [name for name, _ in events] == ["begun", "stage", "evidence", "text", "answer"]
    assert events[2][1]["places"][0]["path"] == "src/session.py"
    assert events[-1][1]["text"] == "Events are sent by `Session.send` [1]."


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("text/event-stream;q=0.2, application/json", "application/json"),
        ("text/event-stream;q=0", "application/json"),
        ("application/json;q=0.9, Text/Event-Stream", "text/event-stream"),
    ],
)
async def test_the_form_is_what_the_client_prefers(world: World, accept: str, kind: str) -> None:
    reply = await world.ask("what?", headers={"Accept": accept})

    assert (reply.status, reply.headers["Content-Type"].split(";")[0]) == (200, kind)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN} {TOKEN}"],
)
async def test_who_has_no_token_learns_nothing(world: World, header: str) -> None:
    headers = {"Authorization": header} if header else {}
    reply = await world.request("POST", "/api/ask", token=None, headers=headers, data=b"{")

    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert "demo" not in json.dumps(reply.body)
    assert world.answerer.asked == []


@pytest.mark.parametrize("path", ["/api/status", "/v1/models"])
async def test_nothing_is_told_without_a_token(world: World, path: str) -> None:
    reply = await world.request("GET", path, token=None)

    assert (reply.status, "demo" in json.dumps(reply.body)) == (401, False)


@pytest.mark.parametrize(
    ("status", "options"),
    [
        (400, {"data": b"{", "headers": {"Content-Type": "application/json"}}),
        (400, {"data": b'{"question": "\xff"}', "headers": {"Content-Type": "application/json"}}),
        (400, {"data": b"[" * 5_000, "headers": {"Content-Type": "application/json"}}),
        (400, {"json": {"question": 7}}),
        (400, {"json": {"question": "what?", "conversation": "../x"}}),
        (400, {"json": {"question": "what?"}, "headers": {"Idempotency-Key": "a b"}}),
        (413, {"data": io.BytesIO(b" " * 2_100_000), "headers": {"Content-Type": "application/json"}}),
        (415, {"data": b"{}", "headers": {"Content-Type": "text/plain"}}),
        (415, {"data": b"{}", "headers": {"Content-Type": "application/json", "Content-Encoding": "br"}}),
        (422, {"json": {"question": "x" * 5_000}}),
    ],
)
async def test_what_cannot_be_read_is_refused_with_a_reason(world: World, status: int, options: dict[str, Any]) -> None:
    reply = await world.request("POST", "/api/ask", **options)

    assert (reply.status, reply.headers["Content-Type"].split(";")[0]) == (status, PROBLEM)
    assert (reply.body["status"], reply.body["type"]) == (status, "about:blank")
    assert reply.body["detail"].endswith((".", "."))
    assert world.answerer.asked == []


async def test_a_path_or_method_that_is_not_there_is_a_problem_too(world: World) -> None:
    lost = await world.request("GET", "/api/nothing")
    wrong = await world.request("PUT", "/api/ask")

    assert (lost.status, lost.headers["Content-Type"].split(";")[0]) == (404, PROBLEM)
    assert (wrong.status, wrong.headers["Allow"], wrong.body["code"]) == (405, "POST", "method_not_allowed")


@pytest.mark.parametrize("path", ["/api/ask/", "/v1/chat/completions/", "/mcp/"])
async def test_no_path_leads_to_the_host_that_a_request_names(world: World, path: str) -> None:
    reply = await world.request("POST", path, headers={"Host": "evil.example"}, allow_redirects=False)

    assert (reply.status, reply.headers.get("Location")) == (404, None)


async def test_a_repository_that_is_not_yours_is_one_that_is_not_there(world: World) -> None:
    hidden = await world.ask("what?", repository="secret")
    absent = await world.ask("what?", repository="absent")

    assert hidden.status == absent.status == 404
    assert json.dumps(hidden.body).replace("secret", "absent") == json.dumps(absent.body)
    assert world.answerer.asked == []


async def test_a_limit_says_when_to_come_back() -> None:
    async with open_world(counter=Refusing(1)) as world:
        reply = await world.ask("what?", headers=EVENTS)

    assert (reply.status, reply.headers["Retry-After"], reply.body["code"]) == (429, "8", "limit")


async def test_a_failure_on_the_way_is_the_last_event(world: World) -> None:
    world.answerer.error = RuntimeError("broken on purpose")
    reply = await world.ask("what?", headers=EVENTS)
    whole = await world.ask("what?")

    assert [name for name, _ in events_in(reply.body)][-1] == "failed"
    assert (whole.status, whole.body["code"]) == (500, "failed")


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["JSON", "events"])
async def test_who_goes_away_in_mid_answer_ends_the_run(
    headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world(gate=asyncio.Event()) as world:
        asking = asyncio.create_task(world.ask("what?", headers=headers))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        asking.cancel()
        await world.until_idle()

        assert world.answerer.runs.answered == {}
        assert world.observer.outcomes == ["stopped"]
    assert [each for each in caplog.records if each.levelname in {"WARNING", "ERROR"}] == []


async def test_a_conversation_goes_on_by_its_name_and_is_its_askers_own(world: World) -> None:
    first = await world.ask("what?")
    name = first.body["conversation"]
    await world.ask("and then?", conversation=name)
    await world.ask("and mine?", conversation=name, token=OTHER)
    threads = [thread for _, thread, _ in world.answerer.asked]

    assert threads[0] == threads[1] != threads[2]


async def test_a_request_that_comes_again_is_answered_by_the_same_run() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate) as world:
        key = {"Idempotency-Key": "8e03978e"}
        first = asyncio.create_task(world.ask("what?", headers=key))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        second = asyncio.create_task(world.ask("what?", headers={**key, **EVENTS}))
        first.cancel()  # what a client does whose time is up
        await asyncio.wait({first})
        gate.set()
        streamed = events_in((await second).body)
        third = await world.ask("what?", headers=key)

    assert len(world.answerer.asked) == 1
    assert streamed[-1][1]["run_id"] == third.body["run_id"]


async def test_a_key_is_for_one_question_of_one_person(world: World) -> None:
    key = {"Idempotency-Key": "8e03978e"}
    await world.ask("what?", headers=key)
    reused = await world.ask("where?", headers=key)
    others = await world.ask("where?", headers=key, token=OTHER)

    assert (reused.status, reused.body["code"]) == (422, "key_reused")
    assert others.status == 200


async def test_what_was_refused_may_be_asked_again_with_its_key() -> None:
    async with open_world(counter=Refusing(1)) as world:
        key = {"Idempotency-Key": "8e03978e"}
        statuses = [(await world.ask("what?", headers=key)).status for _ in range(3)]

    assert statuses == [429, 200, 200]
    assert len(world.answerer.asked) == 1


async def test_a_repeated_request_that_nobody_waits_for_ends_after_a_while() -> None:
    async with open_world(gate=asyncio.Event(), grace=0.01) as world:
        asking = asyncio.create_task(world.ask("what?", headers={"Idempotency-Key": "1"}))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        asking.cancel()
        await world.until_idle()
        world.answerer.gate = None
        again = await world.ask("what?", headers={"Idempotency-Key": "1"})

    assert again.status == 200
    assert len(world.answerer.asked) == 2


async def test_one_person_holds_only_so_many_answers_and_nobody_else_waits() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate, places=20) as world:
        held = [asyncio.create_task(world.ask("what?")) for _ in range(MAX_EACH)]
        for _ in held:
            async with expect("world.answerer.begun"):
                await world.answerer.begun.acquire()
        refused = await world.ask("what?")
        other = asyncio.create_task(world.ask("what?", token=OTHER))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        gate.set()
        replies = [await each for each in [*held, other]]

    assert (refused.status, "Retry-After" in refused.headers) == (429, True)
    assert {each.status for each in replies} == {200}


async def test_where_all_connections_are_waiting_the_next_is_asked_to_come_back() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate, most_long=1) as world:
        first = asyncio.create_task(world.ask("what?"))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
        refused = await world.ask("what?", token=OTHER)
        gate.set()

        assert (refused.status, "Retry-After" in refused.headers) == (503, True)
        assert (await first).status == 200


async def test_the_end_of_the_process_is_told_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.serving.service.DRAIN_SECONDS", 0.0)
    async with open_world(gate=asyncio.Event()) as world:
        asking = asyncio.create_task(world.ask("what?", headers=EVENTS))
        async with expect("world.answerer.begun"):
            await world.answerer.begun.acquire()
    name, last = events_in((await asking).body)[-1]

    assert (name, last["text"]) == ("failed", ENDING)


async def test_before_its_core_is_there_a_surface_asks_to_come_back(world: World) -> None:
    world.surfaces._core.close()
    reply = await world.ask("what?")

    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    assert reply.body["detail"].startswith("citebot is starting or shutting down")


async def test_who_never_reads_holds_nobody_up() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate, places=2) as world:
        world.answerer.repeats = 20_000
        where = urlsplit(world.address)
        body = json.dumps({"question": "what is it that is too much to be read?"}).encode()
        headers = (
            ("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"), ("Accept", "text/event-stream"),
        )  # fmt: skip
        lines = [
            await asyncio.to_thread(socket.create_connection, (where.hostname, where.port), LIMIT_SECONDS)
            for _ in range(2)
        ]
        for line in lines:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
            line.sendall(write_request("POST", "/api/ask", headers, body))
        for _ in lines:
            async with expect("world.answerer.begun"):
                await world.answerer.begun.acquire()
        gate.set()
        reply = await world.ask("where?", token=OTHER)
        for line in lines:
            line.close()

    assert reply.status == 200
    assert len(reply.body["text"]) < 100


async def test_a_browser_of_another_site_gets_no_leave(world: World) -> None:
    reply = await world.request(
        "OPTIONS", "/api/ask", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )

    assert reply.status == 405
    assert "Access-Control-Allow-Origin" not in reply.headers


async def test_a_body_that_comes_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.surfaces.api.http_api.SECONDS", 0.1)
    async with open_world() as world:
        where = urlsplit(world.address)
        headers = (("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json"))
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(write_request("POST", "/api/ask", headers, b"{", length=100))
        async with expect("a body that comes slowly is given up"):
            answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408")
    assert PROBLEM.encode() in answer


async def test_a_client_library_reads_the_stream_as_it_grows() -> None:
    gate = asyncio.Event()
    async with open_world(gate=gate) as world, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {TOKEN}", **EVENTS}
        async with session.post(f"{world.address}/api/ask", json={"question": "what?"}, headers=headers) as answer:
            first = await answer.content.readuntil(b"\n\n")
            assert not gate.is_set()
            gate.set()
            rest = await answer.text()

    assert parse(first)[0][0] == "begun"
    assert events_in(rest)[-1][0] == "answer"
