"""Replies that grow: the newest content, one call in flight, by the best way that works: stream, edits, one message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from bot.errors import (
    ChatError,
    EditRefused,
    MessageTooLong,
    PlatformUnreachable,
    RateLimited,
    StreamGone,
    StreamRefused,
    StreamStopped,
)
from bot.markdown.splitting import MIN
from bot.messages import MessageContent, MessageHandle, Place, SendMethod
from bot.ports import LiveStream
from bot.replies.paging import Page, cut_to_stable, split_into_pages
from bot.replies.send_budget import ReplyTransport

T = TypeVar("T")
TRIES = 4  # of the placeholder and of the final content, where calls get no answer
_TINY = 1e-3
LONG = 4_000  # characters, from which on a text is laid out in a thread
BACKOFF = 1.5  # seconds before the second try, twice that before the third

log = logging.getLogger(__name__)


@dataclass
class _Part:
    """One message of the reply, and its content (None if unknown); `end` is its last position in the text."""

    handle: MessageHandle
    shown: MessageContent | None
    end: int = 0


class Reply:
    """The reply to one message. `note` is awaited with its messages whenever they change; `nonce` is its lasting name.

    With the messages of an earlier try, it continues in them; `recovered` means that there may be
    more, sent but not noted. `on_stop` is called when a person presses a platform's own stop
    button, `on_shown` whenever the reply shows something. `is_taken` tells whether a message is
    part of another reply, `may_grow` whether this one may still show progress: a paused process
    must not overwrite the progress of another.
    """

    def __init__(
        self,
        transport: ReplyTransport,
        place: Place,
        *,
        nonce: str,
        note: Callable[[Sequence[MessageHandle]], Awaitable[None]],
        handles: Sequence[MessageHandle] = (),
        recovered: bool = False,
        on_stop: Callable[[], object] = lambda: None,
        on_shown: Callable[[MessageContent], None] = lambda _: None,
        is_taken: Callable[[MessageHandle], Awaitable[bool]] | None = None,
        may_grow: Callable[[], bool] = lambda: True,
    ) -> None:
        self._transport = transport
        self._platform = transport.platform
        self._place = place
        self._nonce = nonce
        self._note = note
        self._on_stop = on_stop
        self._on_shown = on_shown
        self._is_taken = is_taken
        self._may_grow = may_grow
        self._unsure = recovered
        self._parts = [_Part(handle, None) for handle in handles]
        self._sent = len(handles)
        self._fixed: list[MessageHandle] = []  # can be neither changed nor deleted
        self._fixed_text = ""
        self._source = ""  # the text that the parts were cut from
        self._stream: LiveStream | None = None
        self._streamed = ""
        self._limit = transport.platform.capabilities.max_units
        self._newest: MessageContent | Callable[[], MessageContent] = MessageContent()
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()
        self._closing = False
        self._prepaid: SendMethod | None = None
        self._late: set[asyncio.Future[MessageHandle]] = set()  # posts that were interrupted
        self._posted_late: list[MessageHandle] = []

    @property
    def platform_messages(self) -> Sequence[MessageHandle] | None:
        """All messages sent here; None if unknown."""
        return (*self.handles, *self._posted_late) if not self._late else None

    @property
    def handles(self) -> tuple[MessageHandle, ...]:
        """The present messages of the reply."""
        return (*self._fixed, *(part.handle for part in self._parts))

    async def begin(self, content: MessageContent, *, may_stream: bool = True) -> None:
        """Post the placeholder; a platform that cannot change messages shows progress in its own way.

        A stream is only for the process that continues it.
        """
        async with self._sending:
            if self._platform.capabilities.edits:
                await self._retry(self._show_placeholder, content, may_stream=may_stream)
            else:
                await self._platform.hint(self._place, content.status)
            self._on_shown(content)

    async def _show_placeholder(self, content: MessageContent, *, may_stream: bool) -> None:
        if self._parts or await self._recover_message() or not (may_stream and await self._begin_stream(content)):
            await self._deliver(content, final=False, patient=True)

    def show(self, content: MessageContent | Callable[[], MessageContent]) -> None:
        """Set the newest content; never waits. It is sent while `keep_growing` is open, unless newer content comes.

        A function is called when its content is sent: an answer changes far more often than it is
        shown.
        """
        self._newest = content
        self._changed.set()

    @asynccontextmanager
    async def keep_growing(self) -> AsyncIterator[None]:
        """Send the newest content for as long as the context is open; only an error interrupts a call in flight."""
        task = asyncio.create_task(self._grow())
        try:
            yield
            self._closing = True
            async with self._sending:
                task.cancel()
        finally:
            self._closing = True
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def settle(self, content: MessageContent) -> None:
        """Show the final content; raises `ChatError` only after all ways and tries."""
        async with self._sending:
            await self._retry(self._deliver, content, final=True, patient=True)
            self._on_shown(content)

    async def _retry(self, send: Callable[..., Awaitable[None]], content: MessageContent, **how: bool) -> None:
        """Send, and retry if the platform does not answer, up to the last try."""
        retrying = AsyncRetrying(
            sleep=self._transport.clock.sleep,
            retry=retry_if_exception_type(PlatformUnreachable),
            wait=wait_exponential(BACKOFF),
            stop=stop_after_attempt(TRIES),
            reraise=True,
        )
        await retrying(send, content, **how)

    async def withdraw(self) -> None:
        """Delete the whole reply."""
        async with self._sending:
            await self._leave_stream()
            while await self._recover_message():
                pass
            await self._drop_parts(0)

    async def _grow(self) -> None:
        """Send the newest content whenever it changes, no faster than the share of one answer."""
        if not self._platform.capabilities.edits:
            return
        method, budget, clock = self._get_method(), self._transport.budget, self._transport.clock
        last, least = clock.now(), self._platform.capabilities.edit_every
        with budget.count_growing(method, self._place):
            while not self._closing:
                await self._changed.wait()
                # The time to leave between two calls becomes shorter when other answers end meanwhile.
                while (left := last + max(least, budget.pace(method, self._place)) - clock.now()) > _TINY:
                    await clock.sleep(max(left / 2, min(left, 1.0)))
                method = self._get_method()
                await budget.take(method, self._place)
                await self._send_newest(method)
                last = clock.now()

    async def _send_newest(self, paid: SendMethod) -> None:
        async with self._sending:
            if self._closing:
                return
            self._changed.clear()
            if not self._may_grow():
                return
            self._prepaid = paid
            content = self._newest() if callable(self._newest) else self._newest
            try:
                await self._deliver(content, final=False, patient=False)
            except RateLimited:
                self._changed.set()
            except ChatError as error:
                # The final content is sent with patience; a step on the way to it may be missed.
                log.info("a growing reply was not changed: %s", error)
            else:
                self._on_shown(content)
            finally:
                self._prepaid = None

    def _get_method(self) -> SendMethod:
        return "stream_append" if self._stream is not None else "edit"

    async def _deliver(self, content: MessageContent, *, final: bool, patient: bool) -> None:
        """Show the content by the stream or by messages; if one way is closed, try the next."""
        while True:
            try:
                if self._stream is not None and await self._send_by_stream(self._stream, content, final=final):
                    return
                await self._leave_stream()
                await self._send_by_messages(content, final=final)
            except RateLimited:
                if not patient:
                    raise
            except StreamGone as gone:
                self._stream = None
                if isinstance(gone, StreamStopped):
                    self._on_stop()
            except MessageTooLong:
                if self._limit < MIN * 4:
                    raise
                self._limit //= 2
            else:
                return

    async def _begin_stream(self, content: MessageContent) -> bool:
        """Begin with a stream; False if the platform has none here."""
        if not self._transport.may_stream(self._place):
            return False
        try:
            self._stream = await self._platform.open_stream(self._place, content, nonce=self._make_nonce(0))
        except StreamRefused:
            self._transport.without_streams.add(self._place.workspace)
            return False
        except RateLimited as limit:
            self._transport.budget.hold("stream_start", self._place, limit.retry_after)
            return False
        except PlatformUnreachable:
            self._unsure = True
            return await self._recover_message()
        await self._add(_Part(self._stream.handle, None))
        return True

    async def _send_by_stream(self, stream: LiveStream, content: MessageContent, *, final: bool) -> bool:
        """Add new text to the stream; False if that does not result in the content."""
        text = content.text if final else cut_to_stable(content.text)
        pages = await self._lay_out(content)
        if len(pages) > 1 or not text.startswith(self._streamed):
            return False
        new = text[len(self._streamed) :]
        try:
            if final:
                await self._call("stream_stop", lambda: stream.finish(new, content))
                self._stream = None
                self._parts[0] = _Part(stream.handle, content, len(text))
            else:
                await self._call("stream_append", lambda: stream.append(new, content))
        except PlatformUnreachable as error:
            # Whether the text has arrived is not known; a change of the whole message makes it right either way.
            raise StreamGone(str(error)) from error
        self._streamed = text
        return True

    async def _leave_stream(self) -> None:
        """End the stream unfinished; changing its message corrects its text."""
        if self._stream is None:
            return
        stream, self._stream = self._stream, None
        try:
            await stream.finish("", MessageContent())
        except ChatError as error:
            log.info("a stream was left without its end: %s", error)

    async def _send_by_messages(self, content: MessageContent, *, final: bool) -> None:
        """Make the messages show the content: change differing ones, send missing ones."""
        able = self._platform.capabilities
        if not able.edits and not final:
            return
        pages = await self._lay_out(content, fixed=self._fixed_text, most=able.max_parts, final=final)
        for number, page in enumerate(pages):
            if number >= len(self._parts) and not await self._recover_message():
                await self._post(page)
            elif self._parts[number].shown != page.content and not await self._edit_message(number, page):
                await self._send_by_messages(content, final=final)
                return
        self._source = content.text
        await self._drop_parts(len(pages))

    async def _lay_out(self, content: MessageContent, **how: Any) -> Sequence[Page]:
        """Split content into messages; long content in a thread, so that other replies need not wait."""
        able = self._platform.capabilities
        lay_out = partial(split_into_pages, content, self._limit, utf16=able.utf16, escaped=able.escapes, **how)
        return lay_out() if len(content.text) < LONG else await asyncio.to_thread(lay_out)

    async def _edit_message(self, number: int, page: Page) -> bool:
        """Edit a message; False if that failed, and it has been deleted or given up."""
        part = self._parts[number]
        try:
            await self._call("edit", lambda: self._platform.edit(part.handle, page.content))
        except EditRefused:
            await self._give_up(number)
            return False
        self._parts[number] = _Part(part.handle, page.content, page.end)
        return True

    async def _give_up(self, number: int) -> None:
        """Abandon a message that cannot be changed; if it must stay, do not repeat its text."""
        part = self._parts[number]
        try:
            await self._call("withdraw", lambda: self._platform.withdraw(part.handle))
        except EditRefused:
            self._fixed += [earlier.handle for earlier in self._parts[: number + 1]]
            self._fixed_text = self._source[: part.end] or self._streamed
            del self._parts[:number]
        self._parts.remove(part)
        await self._note(self.handles)

    async def _post(self, page: Page) -> None:
        nonce = self._make_nonce(self._sent)
        try:
            handle = await self._call("post", lambda: self._post_to_end(page, nonce))
        except PlatformUnreachable:
            found = await self._platform.find_reply(self._place, nonce)
            if found is None:
                raise
            handle = found
        if handle in self.handles:  # an earlier message bears this number, and the platform has sent no other
            self._sent += 1
            await self._post(page)
        else:
            await self._add(_Part(handle, page.content, page.end))

    async def _post_to_end(self, page: Page, nonce: str) -> MessageHandle:
        """Post a message. An interruption does not stop the post, so note here what people see."""
        posting = asyncio.ensure_future(self._platform.post(self._place, page.content, nonce=nonce))
        try:
            return await asyncio.shield(posting)
        except asyncio.CancelledError:
            self._unsure = True
            self._late.add(posting)
            posting.add_done_callback(self._note_late)
            raise

    def _note_late(self, posting: asyncio.Future[MessageHandle]) -> None:
        self._late.discard(posting)
        if not posting.cancelled() and posting.exception() is None:
            self._posted_late.append(posting.result())

    async def _recover_message(self) -> bool:
        """Look for the next message, which may have been sent but not noted."""
        if not self._unsure:
            return False
        handle, known = await self._platform.find_reply(self._place, self._make_nonce(self._sent)), None
        while handle in self.handles and handle != known:  # numbers move on when a message is replaced
            self._sent += 1
            handle, known = await self._platform.find_reply(self._place, self._make_nonce(self._sent)), handle
        if handle in self.handles or (handle and self._is_taken and await self._is_taken(handle)):
            handle = None  # a platform may take any message that was begun for the one that is looked for
        self._unsure = handle is not None
        if handle is not None:
            await self._add(_Part(handle, None))
        return handle is not None

    async def _add(self, part: _Part) -> None:
        self._parts.append(part)
        self._sent += 1
        await self._note(self.handles)

    async def _drop_parts(self, first: int) -> None:
        for part in self._parts[first:]:
            try:
                await self._call("withdraw", partial(self._platform.withdraw, part.handle))
            except EditRefused as error:
                log.warning("a message of a reply could not be deleted: %s", error)
            self._parts.remove(part)
            await self._note(self.handles)

    async def _call(self, method: SendMethod, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call within the budget; `_grow` has already waited for a prepaid one."""
        if self._prepaid == method:
            self._prepaid = None
        else:
            await self._transport.budget.take(method, self._place, urgent=True)
        try:
            return await call()
        except RateLimited as limit:
            self._transport.budget.hold(method, self._place, limit.retry_after)
            raise

    def _make_nonce(self, number: int) -> str:
        return f"{self._nonce[:20]}.{number}"
