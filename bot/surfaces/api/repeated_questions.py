"""Questions that come again because a client repeats its request by itself: each is asked once, and followed twice."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass

from cachetools import TTLCache
from pydantic import BaseModel
from starlette.requests import Request

from bot.surfaces.api.problems import UNEXPECTED, BadField, RequestProblem, refuse
from bot.surfaces.ask_events import AskEvent, NotAnswered
from bot.surfaces.principals import Principal

KEY = "Idempotency-Key"
RETRIES = "X-Stainless-Retry-Count"  # what the clients of OpenAI send, which have no key: 0 the first time
LONGEST_KEY = 200  # characters
KEY_PATTERN = rf"^[!-~]{{1,{LONGEST_KEY}}}$"
KEPT_SECONDS = 900.0
MOST_KEPT = 256
ENDING = "citebot is shutting down. Ask again in a minute."
GRACE = 5.0  # seconds for which a run continues without anybody who follows it: a client comes back within two

_KEY = re.compile(KEY_PATTERN)

log = logging.getLogger(__name__)

Ask = Callable[[], AsyncGenerator[AskEvent, None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """What tells that a request is one that came before; `body` is the checksum of what it asks."""

    person: str
    name: str
    body: str
    is_new: bool = False


def read_key(request: Request, principal: Principal, asked: BaseModel) -> RequestKey | None:
    """Return by what a request is known again; None for one that nobody sends again by itself."""
    checksum = hashlib.sha256(f"{request.scope['path']}\n{asked.model_dump_json()}".encode()).hexdigest()
    name = request.headers.get(KEY)
    if name is not None:
        if not _KEY.fullmatch(name):
            detail = f"Write 1 to {LONGEST_KEY} characters of ASCII without blanks."
            raise refuse(400, errors=(BadField(field=KEY, detail=detail),))
        return RequestKey(person=principal.key, name=f"key {name}", body=checksum)
    count = request.headers.get(RETRIES)
    if count is None:
        return None
    return RequestKey(person=principal.key, name=f"body {checksum}", body=checksum, is_new=count == "0")


class RepeatedQuestions:
    """The questions in progress, and those answered within some minutes, by what their requests are known by.

    A question that nobody follows any more is stopped, a little later if its request may be repeated. One that was
    refused is not kept: it may be asked again.
    """

    def __init__(self, *, seconds: float = KEPT_SECONDS, most: int = MOST_KEPT, grace: float = GRACE) -> None:
        self._known: TTLCache[tuple[str, str], _SharedRun] = TTLCache(most, seconds)
        self._grace = grace
        self._running: set[_SharedRun] = set()

    async def follow(self, key: RequestKey | None, ask: Ask) -> AsyncGenerator[AskEvent, None]:
        """Yield what happens up to the answer, from the beginning; the question is asked if it is new.

        Raises a `RequestProblem` where the key belongs to another question.
        """
        run = self._find(key) or self._begin(key, ask)
        run.followers += 1
        try:
            async for event in run.replay():
                yield event
        finally:
            run.followers -= 1
            if not run.followers and not run.task.done():
                grace = self._grace if run.place in self._known else 0
                asyncio.get_running_loop().call_later(grace, self._give_up, run)

    async def close(self, seconds: float = 0.0) -> None:
        """Let running questions finish for that long, then stop them, of which their followers are told."""
        tasks = [run.task for run in self._running]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _find(self, key: RequestKey | None) -> _SharedRun | None:
        run = None if key is None or key.is_new else self._known.get((key.person, key.name))
        if key is not None and run is not None and run.body != key.body:
            detail = f"This {KEY} came with another question before. Send a new one with each question."
            raise RequestProblem(status=422, detail=detail, code="key_reused")
        return run

    def _begin(self, key: RequestKey | None, ask: Ask) -> _SharedRun:
        run = _SharedRun(key, ask())
        if run.place is not None:
            self._known[run.place] = run
        self._running.add(run)
        run.task.add_done_callback(lambda _: self._end(run))
        return run

    def _end(self, run: _SharedRun) -> None:
        self._running.discard(run)
        if run.task.cancelled() or _is_refused(run.events):
            self._forget(run)

    def _give_up(self, run: _SharedRun) -> None:
        if not run.followers:
            self._forget(run)  # nobody may begin to follow what is about to end
            run.task.cancel()

    def _forget(self, run: _SharedRun) -> None:
        if run.place is not None and self._known.get(run.place) is run:
            del self._known[run.place]


class _SharedRun:
    """One question, with all that has happened so far for those who come later."""

    def __init__(self, key: RequestKey | None, events: AsyncGenerator[AskEvent, None]) -> None:
        self.place = (key.person, key.name) if key is not None else None
        self.body = key.body if key is not None else ""
        self.followers = 0
        self.events: list[AskEvent] = []
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._take(events))

    async def replay(self) -> AsyncGenerator[AskEvent, None]:
        """Yield everything from the beginning, and what comes."""
        taken = 0
        while True:
            while taken < len(self.events):
                yield self.events[taken]
                taken += 1
            if self.task.done():
                break
            self._news.clear()
            waiting = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
        if self.task.cancelled():
            yield NotAnswered(reason="failed", text=ENDING)

    async def _take(self, events: AsyncGenerator[AskEvent, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    self._add(event)
        except Exception:  # those who follow are to know that there will be no answer
            log.exception("a question failed")
            self._add(NotAnswered(reason="failed", text=UNEXPECTED))

    def _add(self, event: AskEvent) -> None:
        self.events.append(event)
        self._news.set()


def _is_refused(events: Collection[AskEvent]) -> bool:
    """Whether nothing was begun: the first event says already why there is no answer."""
    return isinstance(next(iter(events), None), NotAnswered)
