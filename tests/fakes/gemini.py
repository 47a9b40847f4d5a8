"""A Gemini that speaks its HTTP protocol over loopback: embeddings, and chat as a script says."""

from __future__ import annotations

import json
import re
import socket
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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

    @property
    def prompt(self) -> str:
        """All text of a chat request, system instruction included."""
        contents = [self.body.get("systemInstruction", {}), *self.body.get("contents", [])]
        return "\n".join(part["text"] for content in contents for part in content.get("parts", []) if "text" in part)

    @property
    def is_form(self) -> bool:
        """Whether JSON of a given schema is asked for."""
        return "responseJsonSchema" in self.body.get("generationConfig", {})


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """What to answer in place of a result."""

    status: int
    message: str = "the fake was told to fail"
    reason: str = "UNKNOWN"
    location: str = ""  # where a redirect leads
    retry_delay: str = ""  # how long to wait, as in "7s"

    @property
    def body(self) -> JSON:
        """Google's form of an error."""
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": self.reason}]
        if self.retry_delay:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": self.retry_delay})
        return {"error": {"code": self.status, "message": self.message, "status": self.reason, "details": details}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One answer of a chat model, streamed a part at a time where a stream is asked for.

    After `breaks_after` parts the connection is reset, after `hangs_after` parts nothing more comes. Before each part
    of a stream, `pause` seconds pass. A reset loses what the client has not read yet: a test that
    wants the parts sets `read` once it has them, and the reset waits for that.
    """

    parts: tuple[JSON, ...] = ()
    finish: str = "STOP"
    feedback: JSON = field(default_factory=dict)
    usage: tuple[int, int] = (100, 20)
    breaks_after: int | None = None
    hangs_after: int | None = None
    read: Event | None = None
    pause: float = 0.0

    def chunks(self) -> list[JSON]:
        """The answer in pieces; the last one carries the reason for ending and the usage."""
        pieces = [self._chunk([part]) for part in self.parts[:-1]]
        last = self._chunk(list(self.parts[-1:]))
        if "candidates" in last:
            last["candidates"][0]["finishReason"] = self.finish
        prompt, answer = self.usage
        counts = {"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
        return [*pieces, {**last, "usageMetadata": counts}]

    def whole(self) -> JSON:
        """The answer in one piece."""
        last = self.chunks()[-1]
        if "candidates" in last:
            last["candidates"][0]["content"]["parts"] = list(self.parts)
        return last

    def _chunk(self, parts: list[JSON]) -> JSON:
        if self.feedback:
            return {"promptFeedback": self.feedback}
        content = {"role": "model", "parts": parts} if parts else {"role": "model"}
        return {"candidates": [{"content": content, "index": 0}], "modelVersion": "fake"}


def says(text: str, **details: Any) -> Reply:
    """Answer with text, streamed word by word."""
    return Reply(parts=tuple({"text": word} for word in re.findall(r"\S*\s*", text) if word), **details)


def fills(form: Any, **details: Any) -> Reply:
    """Answer with JSON."""
    return Reply(parts=({"text": json.dumps(form)},), **details)


def calls(*tools: tuple[str, Mapping[str, Any]], signature: str = "c2lnbmF0dXJl", **details: Any) -> Reply:
    """Answer with calls of tools; the first carries a thought signature."""
    parts: list[JSON] = [{"functionCall": {"name": name, "args": dict(args)}} for name, args in tools]
    if signature:
        parts[0]["thoughtSignature"] = signature
    return Reply(parts=tuple(parts), **details)


def withholds(finish: str = "SAFETY") -> Reply:
    """Answer without content, for a reason (SAFETY, MALFORMED_FUNCTION_CALL, MAX_TOKENS, STOP ...)."""
    return Reply(finish=finish)


def blocks_prompt(reason: str = "PROHIBITED_CONTENT") -> Reply:
    """Refuse to look at the prompt: no candidate at all."""
    return Reply(feedback={"blockReason": reason})


def hangs(text: str = "") -> Reply:
    """Write this much, and then nothing until the server is stopped."""
    reply = says(text)
    return Reply(parts=(*reply.parts, {"text": "never sent"}), hangs_after=len(reply.parts))


def breaks(text: str = "", *, read: Event | None = None) -> Reply:
    """Write this much, and then reset the connection, once `read` is set where there is one."""
    reply = says(text)
    return Reply(parts=(*reply.parts, {"text": "never sent"}), breaks_after=len(reply.parts), read=read)


Script = Callable[[Received], "Reply | Failure"]


class FakeGemini:
    """Remembers what it was asked, and answers as scripted: failures first, then results.

    `replies` are given to chat requests in order; if there are none left, `script` is asked for one. Whoever asks
    whether a test asserts a claim gets `reading`.
    """

    def __init__(self) -> None:
        self.reading: Reply | Failure = fills({"asserts_claim": True})
        self.replies: deque[Reply | Failure] = deque()
        self.script: Script = lambda _: Failure(status=500, message="the script of the fake is over")
        self.url = ""
        self.received: list[Received] = []
        self.failures: deque[Failure] = deque()
        self.forget_one = False  # answer with a vector too few
        self.released = Event()  # while `hanging`, requests wait for this
        self.on_hang: Callable[[], object] = lambda: None  # called once a request has got as far as it ever will
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
                self.released.wait()
            if failure:
                return failure.status, failure.body
            return self._result(request)
        finally:
            with self._lock:
                self._now -= 1

    def chat(self, request: Received) -> Reply | Failure:
        """Return the next answer of the script."""
        if "asserts_claim" in str(request.body.get("generationConfig")):
            return self.reading
        with self._lock:
            self.received.append(request)
            failure = self.failures.popleft() if self.failures else None
            planned = self.replies.popleft() if failure is None and self.replies else None
        return failure or planned or self.script(request)

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fake: FakeGemini) -> None:
        self.fake = fake
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or else the body of each answer comes 40 ms after its head

    @property
    def fake(self) -> FakeGemini:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model, _, method = self.path.partition("?")[0].rpartition("/")[2].partition(":")
        key = self.headers.get("x-goog-api-key", "")
        received = Received(method=method, model=model, key=key, body=body)
        if method in {"generateContent", "streamGenerateContent"}:
            self._chat(self.fake.chat(received), streamed=method == "streamGenerateContent")
        else:
            self._send(*self.fake.answer(received))

    def _chat(self, reply: Reply | Failure, *, streamed: bool) -> None:
        if isinstance(reply, Failure):
            self._send(reply.status, reply.body, reply.location)
        elif streamed:
            self._stream(reply)
        elif not self._stops(reply, 0, at_all=True):
            self._send(200, reply.whole())

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for sent, chunk in enumerate(reply.chunks()):
            if self._stops(reply, sent):
                return
            if reply.pause:
                self.fake.released.wait(timeout=reply.pause)
            event = f"data: {json.dumps(chunk)}\r\n\r\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _stops(self, reply: Reply, sent: int, *, at_all: bool = False) -> bool:
        """Break off or hang here, if the reply says so."""
        if reply.hangs_after is not None and (at_all or sent >= reply.hangs_after):
            self.fake.on_hang()
            self.fake.released.wait()
            self.close_connection = True
            return True
        if reply.breaks_after is not None and (at_all or sent >= reply.breaks_after):
            if reply.read is not None and not at_all:
                reply.read.wait()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return True
        return False

    def _send(self, status: int, answer: JSON, location: str = "") -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        if location:
            self.send_header("location", location)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that is cancelled goes away in mid-answer
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@contextmanager
def running_gemini() -> Iterator[FakeGemini]:
    """Serve a fake until the block ends; its `url` is the `base_url` of a client."""
    fake = FakeGemini()

    server = _Server(fake)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
