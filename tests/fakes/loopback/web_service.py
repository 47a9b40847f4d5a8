"""A service on loopback, in a thread of its own, that answers as a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request, whatever its method."""

    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The response to it."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def serving(answer: Callable[[Request], Reply]) -> Iterator[str]:
    """Serve; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            reply = answer(Request(path=self.path, headers=self.headers, body=body))
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving_json(answers: Mapping[str, object], status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve JSON by path, where an empty path stands for all others; yield the address, and the bodies that came."""
    asked: list[dict[str, Any]] = []

    def answer(request: Request) -> Reply:
        if request.body:
            asked.append(json.loads(request.body))
        body = json.dumps(answers.get(request.path, answers.get(""))).encode() + b"\n"
        return Reply(body=body, status=status, headers={"Content-Type": "application/json"})

    with serving(answer) as url:
        yield url, asked
