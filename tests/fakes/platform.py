"""An in-memory chat platform: it obeys its limits, counts its calls, and fails where it is told to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.clock import Clock
from bot.errors import (
    ChatError,
    EditRefused,
    FileUnreadable,
    MessageTooLong,
    PlatformUnreachable,
    PostRefused,
    RateLimited,
    StreamGone,
    StreamRefused,
)
from bot.markdown.splitting import count_units
from bot.messages import (
    AttachedFile,
    Capabilities,
    MessageContent,
    MessageHandle,
    Place,
    RateLimit,
    SendMethod,
    ThreadMessage,
)
from bot.replies.paging import FRAME

ABLE = Capabilities(max_units=1_000, utf16=True, rates={})
SLACK_LIKE = Capabilities(
    max_units=11_000,
    utf16=False,
    streams=True,
    rates={
        "post": RateLimit(calls=1, seconds=1, per="channel"),
        "edit": RateLimit(calls=50),
        "stream_start": RateLimit(calls=20),
        "stream_append": RateLimit(calls=100),
        "stream_stop": RateLimit(calls=20),
    },
)


@dataclass
class Shown:
    """One message as people see it; `history` holds the time of each change and the text after it."""

    handle: MessageHandle
    place: Place
    nonce: str
    content: MessageContent
    streaming: bool = False
    history: list[tuple[float, MessageContent]] = field(default_factory=list)


@dataclass
class Failure:
    """An error for calls of a method, so many times; `after` says that the call was carried out all the same.

    With a `message`, only calls about that one fail.
    """

    method: str
    error: ChatError
    times: int = 1
    after: bool = False
    message: str = ""


class FakePlatform:
    """Keeps messages in order. `calls` lists every call as `(method, time)`; `refusals` counts those over a rate."""

    def __init__(
        self, clock: Clock, capabilities: Capabilities = ABLE, *, threads: Sequence[ThreadMessage] = ()
    ) -> None:
        self.capabilities = capabilities
        self.messages: dict[str, Shown] = {}
        self.withdrawn: list[str] = []
        self.calls: list[tuple[str, float]] = []
        self.hints: list[str] = []
        self.files: dict[str, bytes] = {}
        self.refusals = 0
        self.gate: asyncio.Event | None = None  # holds every change until it is set
        self.posting: asyncio.Event | None = None  # holds every post until it is set
        self.posts = asyncio.Semaphore(0)  # released by each post that has begun
        self._freeze_at, self._freeze_after = 0, False
        self._frozen = asyncio.Event()
        self._failures: list[Failure] = []
        self._clock = clock
        self._threads = threads
        self._spent: dict[tuple[SendMethod, str], deque[float]] = {}

    def fail(self, method: str, error: ChatError, *, times: int = 1, after: bool = False, message: str = "") -> None:
        """Let the next calls of a method fail."""
        self._failures.append(Failure(method, error, times, after, message))

    def freeze(self, at: int, *, after: bool) -> asyncio.Event:
        """Let a coming call hang for ever, before or after it was carried out; the event is set once it does."""
        self._frozen = asyncio.Event()
        self._freeze_at, self._freeze_after = at, after
        return self._frozen

    async def _reached(self, *, after: bool) -> None:
        if after == self._freeze_after and self._freeze_at > 0:
            self._freeze_at -= 1
            if self._freeze_at == 0:
                self._frozen.set()
                await asyncio.Event().wait()

    def texts(self) -> list[str]:
        return [shown.content.text for shown in self.messages.values()]

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        await self._reached(after=False)
        self._count("post", place)
        self._check(content)
        self.posts.release()
        if self.posting is not None:
            await self.posting.wait()
        if len(nonce) > 25:
            raise PostRefused("The nonce is too long.")
        failure = self._failing("post")
        handle = self._keep(place, content, nonce).handle
        await self._reached(after=True)
        if failure:
            raise failure
        return handle

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        await self._reached(after=False)
        self._count("edit", Place(platform="fake", workspace=handle.workspace, channel=handle.channel))
        if self.gate is not None:
            await self.gate.wait()
        if handle.id not in self.messages:
            raise EditRefused("The message is gone.")
        self._check(content)
        failure = self._failing("edit", handle.id)
        self._change(self.messages[handle.id], content)
        await self._reached(after=True)
        if failure:
            raise failure

    async def withdraw(self, handle: MessageHandle) -> None:
        self._count("withdraw", Place(platform="fake", workspace=handle.workspace, channel=handle.channel))
        self._failing("withdraw")
        if self.messages.pop(handle.id, None):
            self.withdrawn.append(handle.id)

    async def find_reply(self, place: Place, nonce: str) -> MessageHandle | None:
        self.calls.append(("find", self._clock.now()))
        return next((shown.handle for shown in self.messages.values() if shown.nonce == nonce), None)

    async def open_stream(self, place: Place, content: MessageContent, *, nonce: str) -> FakeStream:
        await self._reached(after=False)
        self._count("stream_start", place)
        failure = self._failing("stream_start")
        if not self.capabilities.streams:
            raise StreamRefused("There is no streaming here.")
        shown = self._keep(place, replace(content, text="", buttons=()), nonce)
        shown.streaming = True
        await self._reached(after=True)
        if failure:
            raise failure
        return FakeStream(self, shown)

    async def read_file(self, file: AttachedFile, *, most: int) -> bytes:
        """Return what lies at the address of a file."""
        if len(self.files.get(file.url, b"")) > most or file.url not in self.files:
            raise FileUnreadable("It cannot be fetched.")
        return self.files[file.url]

    async def read_thread(self, place: Place, *, before: str, limit: int) -> Sequence[ThreadMessage]:
        self._failing("read_thread")
        older = [one for one in self._threads if one.id < before]
        return older[-limit:]

    async def hint(self, place: Place, status: str) -> None:
        self.hints.append(status)

    def _keep(self, place: Place, content: MessageContent, nonce: str) -> Shown:
        number = f"r{len(self.messages) + len(self.withdrawn) + 1}"
        handle = MessageHandle(
            platform=place.platform, workspace=place.workspace, channel=place.channel, id=number, thread=place.thread
        )
        shown = Shown(handle, place, nonce, content)
        self.messages[number] = shown
        self._change(shown, content)
        return shown

    def _change(self, shown: Shown, content: MessageContent) -> None:
        shown.content, shown.streaming = content, False
        shown.history.append((self._clock.now(), content))

    def _check(self, content: MessageContent) -> None:
        below = [line for line in (content.status, content.footer) if line]
        length = sum(count_units(line, utf16=self.capabilities.utf16) for line in (content.text, *below)) + FRAME * len(
            below
        )
        if length > self.capabilities.max_units:
            raise MessageTooLong(f"The message has {length} units.")
        if not any((content.text.strip(), content.status, content.file)):
            raise PostRefused("The message is empty.")

    def _count(self, method: SendMethod, place: Place) -> None:
        now, rate = self._clock.now(), self.capabilities.rates.get(method)
        self.calls.append((method, now))
        if rate is None:
            return
        key = method, place.workspace + (place.channel if rate.per == "channel" else "")
        spent = self._spent.setdefault(key, deque())
        while spent and spent[0] + rate.seconds <= now + 1e-6:
            spent.popleft()
        if len(spent) >= rate.calls:
            self.refusals += 1
            raise RateLimited(spent[0] + rate.seconds - now)
        spent.append(now)

    def _failing(self, method: str, message: str = "") -> ChatError | None:
        """Raise the error that is due, or return it where the call is carried out before."""
        for failure in self._failures:
            if failure.method == method and failure.message in {"", message} and failure.times > 0:
                failure.times -= 1
                if not failure.after:
                    raise failure.error
                return failure.error
        return None


class FakeStream:
    """A message that takes text piece by piece."""

    def __init__(self, platform: FakePlatform, shown: Shown) -> None:
        self._platform = platform
        self._shown = shown

    @property
    def handle(self) -> MessageHandle:
        return self._shown.handle

    async def append(self, text: str, content: MessageContent) -> None:
        self._platform._count("stream_append", self._shown.place)
        await self._take(
            text, MessageContent(status=content.status, found=content.found), "stream_append", streaming=True
        )

    async def finish(self, text: str, content: MessageContent) -> None:
        self._platform._count("stream_stop", self._shown.place)
        await self._take(text, content, "stream_stop", streaming=False)

    async def _take(self, text: str, content: MessageContent, method: str, *, streaming: bool) -> None:
        await self._platform._reached(after=False)
        if not self._shown.streaming:
            raise StreamGone("The stream has ended.")
        failure = None
        try:
            failure = self._platform._failing(method)
        except StreamGone:
            self._shown.streaming = False
            raise
        whole = self._shown.content.text + text
        self._platform._change(self._shown, replace(content, text=whole))
        self._shown.streaming = streaming
        await self._platform._reached(after=True)
        if failure:
            raise failure


def unreachable() -> PlatformUnreachable:
    return PlatformUnreachable("The platform does not answer.")
