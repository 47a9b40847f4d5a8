"""Server-sent events over a real server: to those who read, who do not, and who have gone."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.http.event_streams import HEARTBEAT, EventStream, wait_while_connected, write_event
from bot.http.server import make_application, run_http_server
from tests.fakes.raw_http import read_answer, write_request
from tests.waiting import LIMIT_SECONDS, expect

PATIENT = 60.0


@dataclass
class Source:
    """Events as the test sends them, and whether anybody still takes them."""

    queue: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    taken: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def events(self) -> AsyncGenerator[bytes, None]:
        try:
            async with expect("events"):  # which minds in which task it ends
                while (event := await self.queue.get()) is not None:
                    self.taken.release()
                    yield event
        finally:
            self.closed.set()


@asynccontextmanager
async def serving(source: Source, *, beat: float = PATIENT) -> AsyncIterator[str]:
    async def answer(_: Request) -> Response:
        return EventStream(source.events(), beat=beat)

    async def answer_whole(request: Request) -> Response:
        async def take_all() -> bytes:
            return b"".join([each async for each in source.events()])

        return Response(await wait_while_connected(request, take_all()))

    server = make_application()
    server.router.routes += [Route("/events", answer), Route("/whole", answer_whole)]
    async with run_http_server(server, host="127.0.0.1", port=0) as address:
        yield address


def parse(raw: bytes) -> list[tuple[str, str, str]]:
    """Read a stream as the standard says a browser does: name, data and id of each event."""
    found: list[tuple[str, str, str]] = []
    name, last = "", ""
    data: list[str] = []
    for line in re.split(r"\r\n|\r|\n", raw.decode()):
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                found.append((name, "\n".join(data), last))
            name, data = "", []
        elif key == "event":
            name = value
        elif key == "data":
            data.append(value)
        elif key == "id":
            last = value
    return found


@given(st.text(st.characters(exclude_categories=["Cs"])), st.from_regex(r"[a-z]{0,5}", fullmatch=True))
def test_what_is_sent_is_what_a_browser_reads(data: str, name: str) -> None:
    raw = write_event(data, name=name, id="7")

    assert parse(raw) == [(name, re.sub(r"\r\n|\r", "\n", data), "7")]


@pytest.mark.parametrize("bad", [{"name": "a\nb"}, {"id": "1\rdata: x"}], ids=["name", "id"])
def test_a_name_of_two_lines_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one line"):
        write_event("x", **bad)


async def test_events_come_as_they_happen_and_the_stream_ends_with_them() -> None:
    source = Source()
    async with serving(source) as address, aiohttp.ClientSession() as session:  # noqa: SIM117
        async with session.get(f"{address}/events") as answer:
            source.queue.put_nowait(write_event("one", name="text"))
            first = await answer.content.readuntil(b"\n\n")
            source.queue.put_nowait(write_event("two"))
            source.queue.put_nowait(None)
            rest = await answer.content.read()

    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert parse(first) == [("text", "one", "")]
    assert parse(rest) == [("", "two", "")]
    assert source.closed.is_set()


async def test_a_heartbeat_comes_while_nothing_happens() -> None:
    source = Source()
    async with serving(source, beat=0.01) as address, aiohttp.ClientSession() as session:  # noqa: SIM117
        async with session.get(f"{address}/events") as answer:
            beat = await answer.content.readexactly(len(HEARTBEAT))
            source.queue.put_nowait(None)
            rest = await answer.content.read()

    assert beat == HEARTBEAT
    assert parse(rest) == []


@pytest.mark.parametrize("path", ["/events", "/whole"])
@pytest.mark.parametrize(
    "more", [b"", b"\r\n", write_request("GET", "/events")], ids=["nothing", "a line", "a request"]
)
async def test_who_goes_away_ends_what_they_asked_for_and_nothing_else_does(path: str, more: bytes) -> None:
    source = Source()
    async with serving(source) as address:
        where = urlsplit(address)
        _, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(write_request("GET", path))
        async with expect("source.taken"):
            for sent in (more, b""):
                source.queue.put_nowait(write_event("one"))
                await source.taken.acquire()
                writer.write(sent)
                for _ in range(5):  # of the loop, within which the server reads it
                    await asyncio.sleep(0)
        writer.close()

        async with expect("source.closed"):
            await source.closed.wait()


async def test_who_never_reads_is_left_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.http.server._PATIENCE_SECONDS", 0.2)
    source = Source()
    async with serving(source) as address:
        where = urlsplit(address)
        line = await asyncio.to_thread(socket.create_connection, (where.hostname, where.port), LIMIT_SECONDS)
        line.sendall(write_request("GET", "/events"))
        for _ in range(200):
            source.queue.put_nowait(write_event("x" * 200_000))
        async with expect("source.closed"):
            await source.closed.wait()
        taken = source.queue.qsize()
        answer = await asyncio.to_thread(read_answer, line)
        line.close()

    assert taken > 0, "all was taken for somebody who reads nothing"
    assert len(answer.raw) < 200 * 200_000


async def test_an_error_on_the_way_cuts_the_stream_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> AsyncGenerator[bytes, None]:
        yield write_event("one")
        raise RuntimeError("broken on purpose")

    async def answer(_: Request) -> Response:
        return EventStream(fail())

    server = make_application()
    server.router.routes.append(Route("/events", answer))
    async with run_http_server(server, host="127.0.0.1", port=0) as address, aiohttp.ClientSession() as session:  # noqa: SIM117
        async with session.get(f"{address}/events") as got:
            with pytest.raises(aiohttp.ClientPayloadError):
                await got.content.read()

    assert "broken on purpose" in caplog.text
