"""The HTTP server under people who hold its connections and send nothing, or too much, or too slowly."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.clock import RareWarnings
from bot.http.connections import Connections, keep_open
from bot.http.requests import BodyReader
from bot.http.server import make_application, run_http_server
from tests.fakes.loop_clock import LoopClock
from tests.fakes.raw_http import exchange, read_answer, write_request
from tests.waiting import LIMIT_SECONDS, expect

SLOW_HEADERS = b"POST /in HTTP/1.1\r\nHost: x\r\nX: "
SLOW_BODY = b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx"


class Site:
    """A server that reads bodies at /in, keeps who waits at /stay, and says at /alive that it lives."""

    def __init__(self, connections: Connections, bodies: BodyReader) -> None:
        self.connections = connections
        self.bodies = bodies
        self.address = ""
        self.held: list[socket.socket] = []
        self.stayed = asyncio.Semaphore(0)
        self.leave = asyncio.Event()

    async def hold(self, sent: bytes = b"") -> socket.socket:
        """Open a connection and send something; it is closed by the server, or at the end."""
        where = urlsplit(self.address)
        line = await asyncio.to_thread(socket.create_connection, (where.hostname, where.port), LIMIT_SECONDS)
        self.held.append(line)
        with suppress(ConnectionError):
            line.sendall(sent)
        return line

    async def is_alive(self) -> bool:
        answer = await asyncio.to_thread(exchange, self.address, write_request("GET", "/alive"))
        return answer.status == 200


@asynccontextmanager
async def serving(
    *, most: int = 8, most_long: int = 8, seconds: float = 60.0, bodies: BodyReader | None = None
) -> AsyncIterator[Site]:
    bounds = Connections(most=most, most_long=most_long, seconds=seconds)
    site = Site(bounds, bodies or BodyReader(largest=1_000, seconds=60.0, total=1_000))

    async def take(request: Request) -> Response:
        return PlainTextResponse(str(len(await site.bodies.read(request))))

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive")

    async def stay(request: Request) -> Response:
        keep_open(request, "ann", seconds=float(request.query_params["seconds"]))
        site.stayed.release()
        await site.leave.wait()
        return PlainTextResponse("stayed")

    server = make_application()
    server.router.routes += [Route("/in", take, methods=["POST"]), Route("/stay", stay), Route("/alive", alive)]
    async with run_http_server(server, host="127.0.0.1", port=0, connections=site.connections) as site.address:
        try:
            yield site
        finally:
            for line in site.held:
                line.close()


async def read_to_end(line: socket.socket) -> bytes:
    """Read until the server ends the connection; `TimeoutError` if it does not."""
    return (await asyncio.to_thread(read_answer, line)).raw


@pytest.mark.parametrize("sent", [b"", b"GET", SLOW_HEADERS, SLOW_BODY], ids=["nothing", "a verb", "headers", "body"])
async def test_who_sends_no_whole_request_in_time_is_left(sent: bytes) -> None:
    async with serving(seconds=0.2) as site:
        line = await site.hold(sent)

        assert await read_to_end(line) == b""
        assert site.connections.closed["slow"] == 1
        assert len(site.connections) == 0


async def test_dribbling_does_not_prolong_a_connection() -> None:
    async with serving(seconds=0.5) as site:
        line = await site.hold(SLOW_HEADERS)
        ending = asyncio.create_task(read_to_end(line))
        async with expect("the end of the connection"):
            while not ending.done():
                with suppress(ConnectionError):
                    line.sendall(b"x")
                await asyncio.wait({ending}, timeout=0.02)


async def test_a_connection_that_was_answered_is_not_kept() -> None:
    async with serving() as site:
        answer = await read_to_end(await site.hold(write_request("GET", "/alive") * 3))

    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in answer


@pytest.mark.parametrize("sent", [b"", SLOW_HEADERS, SLOW_BODY], ids=["idle", "headers", "body"])
async def test_who_holds_all_connections_keeps_nobody_out(sent: bytes) -> None:
    async with serving(most=4) as site:
        for _ in range(40):
            await site.hold(sent)
        alive = [await site.is_alive() for _ in range(3)]
        count = len(site.connections)

    assert alive == [True] * 3
    assert count <= 4
    assert site.connections.closed["crowded"] >= 36


async def test_a_connection_that_is_kept_open_outlives_the_others() -> None:
    async with serving(most=2, seconds=60) as site:
        clock = LoopClock()
        line = await site.hold(write_request("GET", "/stay?seconds=1e9"))
        await site.stayed.acquire()
        for _ in range(5):  # they crowd out each other alone
            await site.hold()
        dropped = asyncio.create_task(read_to_end(await site.hold()))
        while not dropped.done():
            clock.advance(61)
            await asyncio.wait({dropped}, timeout=0.02)
        site.leave.set()

        assert dropped.result() == b""
        assert (await read_to_end(line)).endswith(b"stayed")


async def test_only_so_many_connections_are_kept_open() -> None:
    async with serving(most_long=1) as site:
        first = await site.hold(write_request("GET", "/stay?seconds=60"))
        await site.stayed.acquire()
        second = await read_to_end(await site.hold(write_request("GET", "/stay?seconds=60")))
        site.leave.set()

        assert second.startswith(b"HTTP/1.1 503")
        assert (await read_to_end(first)).endswith(b"stayed")
        third = await read_to_end(await site.hold(write_request("GET", "/stay?seconds=60")))
        assert third.endswith(b"stayed")
        assert len(site.connections) == 0


async def test_what_is_kept_open_ends_in_time_as_well() -> None:
    async with serving() as site:
        line = await site.hold(write_request("GET", "/stay?seconds=0.2"))

        assert await read_to_end(line) == b""
        assert (site.connections.closed["slow"], len(site.connections)) == (1, 0)
        site.leave.set()


async def test_connections_that_are_closed_are_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(most=1) as site:
        for _ in range(20):
            await site.hold()
        assert await site.is_alive()

    assert [each.getMessage() for each in caplog.records if each.name == "bot.http.connections"] == [
        "a connection was closed: crowded; so far {'crowded': 1}"
    ]


def test_a_warning_says_how_many_were_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    warnings = RareWarnings(logging.getLogger("bot.test"))
    for _ in range(5):
        warnings.warn("refused %s", "x")
    now[0] += 60
    warnings.warn("refused %s", "y")

    assert [each.getMessage() for each in caplog.records] == [
        "refused x",
        "refused y (4 more like this since the last warning)",
    ]


async def test_bodies_that_are_too_much_together_give_way_to_newer_ones() -> None:
    bodies = BodyReader(largest=1_000, seconds=60.0, total=3_000)
    async with serving(most=100, bodies=bodies) as site:
        big = write_request("POST", "/in", body=b"x" * 900, length=1_000)
        held = [await site.hold(big) for _ in range(20)]
        answer = await asyncio.to_thread(exchange, site.address, write_request("POST", "/in", body=b"x" * 1_000))
        first = await read_to_end(held[0])
        waiting = bodies._held

    assert (answer.status, answer.body) == (200, b"1000")
    assert first.startswith(b"HTTP/1.1 503")
    assert waiting <= 3_000


async def test_nothing_is_kept_of_bodies_that_were_read() -> None:
    bodies = BodyReader(largest=1_000, seconds=60.0, total=3_000)
    async with serving(bodies=bodies) as site:
        for size in (0, 1, 1_000, 1_001):
            await asyncio.to_thread(exchange, site.address, write_request("POST", "/in", body=b"x" * size))

    assert (bodies._held, bodies._deadlines) == (0, {})


async def test_a_slow_body_is_refused_in_time() -> None:
    async with serving(bodies=BodyReader(largest=1_000, seconds=0.2, total=1_000)) as site:
        assert (await read_to_end(await site.hold(SLOW_BODY))).startswith(b"HTTP/1.1 408")


async def test_garbage_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="bot")
    async with serving() as site:
        for garbage in (b"\x16\x03\x01\r\n\r\n", b"POST /in HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            answer = await asyncio.to_thread(exchange, site.address, garbage)
            assert answer.status == 400

    assert not [each for each in caplog.records if each.exc_info or each.levelno > logging.INFO]
    assert any("could not be read" in each.message for each in caplog.records)


@pytest.mark.parametrize("head", [b"X: " + b"x" * 60_000, b"X: x\r\n" * 10_000 + b"Y: y"], ids=["a line", "lines"])
async def test_a_long_head_is_refused_however_fast_it_comes(head: bytes) -> None:
    async with serving() as site:
        answer = await asyncio.to_thread(
            exchange, site.address, b"GET /alive HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n"
        )

    assert answer.status == 400


async def test_no_connection_outlives_the_server() -> None:
    bounds = Connections()
    async with run_http_server(make_application(), host="127.0.0.1", port=0, connections=bounds) as address:
        host, port = address.removeprefix("http://").split(":")
        held = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        late = socket.create_connection((host, int(port)))

    assert len(bounds) == 0
    for reader, writer in held:
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    late.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"xoxb-secret-in-a-line /in HTTP/1.1\r\n\r\n", 400),
        (b"GET /in HTTP/1.1\r\nxoxb secret: 1\r\n\r\n", 400),
        (b"GET /alive HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /xoxb-secret HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ],
)
async def test_no_response_names_the_server_or_repeats_what_was_sent(sent: bytes, status: int) -> None:
    async with serving() as site:
        answer = await asyncio.to_thread(exchange, site.address, sent)

    assert answer.status == status
    assert b"xoxb" not in answer.raw
    assert b"uvicorn" not in answer.raw
    assert b"Python" not in answer.raw
