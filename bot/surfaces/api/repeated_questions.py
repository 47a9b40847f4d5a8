"""Questions that come again because a client repeats its request on its own: each is asked once, and followed twice."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from cachetools import TTLCache
from pydantic import BaseModel
from starlette.requests import Request

from bot.surfaces.api.problems import BadField, RequestProblem, refuse
from bot.surfaces.ask_events import AskEvent, NotAnswered
from bot.surfaces.principals import Principal
from bot.surfaces.questions import AskedRun

KEY = "Idempotency-Key"
RETRIES = "X-Stainless-Retry-Count"  # OpenAI's clients send this instead of a key: 0 the first time
LONGEST_KEY = 200  # characters
KEY_PATTERN = rf"^[!-~]{{1,{LONGEST_KEY}}}$"
KEPT_SECONDS = 900.0
MOST_KEPT = 256
GRACE = 5.0  # seconds for which a run continues without anybody who follows it: a client comes back within two

_KEY = re.compile(KEY_PATTERN)

Begin = Callable[[], AskedRun]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """Recognises a repeated request; `body` is the checksum of what it asks."""

    person: str
    name: str
    body: str
    is_new: bool = False


def read_key(request: Request, principal: Principal, asked: BaseModel) -> RequestKey | None:
    """Return the key of a repeatable request; None for one that no client repeats."""
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
    """The questions in progress, and those answered within some minutes, by the keys of their requests.

    A question without a client is stopped, a little later if its request may be repeated. A refused one is not kept: it
    may be asked again.
    """

    def __init__(self, *, seconds: float = KEPT_SECONDS, most: int = MOST_KEPT, grace: float = GRACE) -> None:
        self._known: TTLCache[tuple[str, str], tuple[str, AskedRun]] = TTLCache(most, seconds)
        self._grace = grace
        self._running: set[AskedRun] = set()

    async def follow(self, key: RequestKey | None, begin: Begin) -> AsyncGenerator[AskEvent, None]:
        """Yield what happens up to the answer, from the beginning; the question is asked if it is new.

        Raises a `RequestProblem` where the key belongs to another question.
        """
        run = self._find(key) or self._begin(key, begin)
        try:
            async with aclosing(run.replay()) as events:
                async for event in events:
                    yield event
        finally:
            if not run.followers and not run.task.done():
                is_known = any(run is known for _, known in self._known.values())
                asyncio.get_running_loop().call_later(self._grace * is_known, self._give_up, run)

    async def close(self, seconds: float = 0.0) -> None:
        """Let running questions finish for that long, then stop them and inform their followers."""
        tasks = [run.task for run in self._running]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _find(self, key: RequestKey | None) -> AskedRun | None:
        known = None if key is None or key.is_new else self._known.get((key.person, key.name))
        if key is None or known is None:
            return None
        body, run = known
        if body != key.body:
            detail = f"This {KEY} came with another question before. Send a new one with each question."
            raise RequestProblem(status=422, detail=detail, code="key_reused")
        return run

    def _begin(self, key: RequestKey | None, begin: Begin) -> AskedRun:
        run = begin()
        if key is not None:
            self._known[key.person, key.name] = key.body, run
        self._running.add(run)
        run.task.add_done_callback(lambda _: self._end(run))
        return run

    def _end(self, run: AskedRun) -> None:
        self._running.discard(run)
        if run.task.cancelled() or isinstance(run.events[0], NotAnswered):  # nothing was begun
            self._forget(run)

    def _give_up(self, run: AskedRun) -> None:
        if not run.followers:
            self._forget(run)  # a question about to end gets no new followers
            run.give_up()

    def _forget(self, run: AskedRun) -> None:
        for place in [place for place, (_, known) in self._known.items() if known is run]:
            del self._known[place]
