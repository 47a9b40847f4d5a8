"""A Gemini that speaks its HTTP protocol over loopback; so far the embeddings of it."""

from __future__ import annotations

import json
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

FULL_DIMENSIONS = 3072

JSON = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """One request: the method after the colon of its path, its API key and its body."""

    method: str
    model: str
    key: str
    body: JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What to answer in place of a result."""

    status: int
    message: str = "the fake was told to fail"
    reason: str = "UNKNOWN"

    @property
    def body(self) -> JSON:
        """Google's form of an error."""
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": self.reason}]
        return {"error": {"code": self.status, "message": self.message, "status": self.reason, "details": details}}


class FakeGemini:
    """Remembers what it was asked, and answers as scripted: failures first, then results."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.failures: deque[Failure] = deque()
        self.forget_one = False  # answer with a vector too few
        self.released = Event()  # while `hanging`, requests wait for this
        self.hanging = False
        self.most_at_once = 0
        self._now = 0
        self._lock = Lock()

    def answer(self, request: Received) -> tuple[int, JSON]:
        """Return the status and body for a request."""
        with self._lock:
            self.received.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            failure = self.failures.popleft() if self.failures else None
        try:
            if self.hanging:
                self.released.wait(timeout=30)
            if failure:
                return failure.status, failure.body
            return self._result(request)
        finally:
            with self._lock:
                self._now -= 1

    def _result(self, request: Received) -> tuple[int, JSON]:
        if request.method != "batchEmbedContents":
            return Failure(status=404, message=f"the fake has no {request.method}").status, {}
        vectors = [{"values": _embed(each)} for each in request.body["requests"]]
        return 200, {"embeddings": vectors[1:] if self.forget_one else vectors}


def _embed(request: JSON) -> list[float]:
    """Count words in buckets, so that texts with the same words are alike; as with Gemini the length is not 1."""
    text = " ".join(part["text"] for part in request["content"]["parts"])
    vector = [0.0] * request.get("outputDimensionality", FULL_DIMENSIONS)
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % len(vector)] += 3.0
    return vector


@contextmanager
def running_gemini() -> Iterator[FakeGemini]:
    """Serve a fake until the block ends; its `url` is the `base_url` of a client."""
    fake = FakeGemini()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model, _, method = self.path.partition("?")[0].rpartition("/")[2].partition(":")
            key = self.headers.get("x-goog-api-key", "")
            status, answer = fake.answer(Received(method=method, model=model, key=key, body=body))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.released.set()
        server.shutdown()
        thread.join(timeout=5)
        server.server_close()
