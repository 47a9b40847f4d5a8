"""Questions by HTTP: answered as JSON, or as events while the answer is written; a repeated request joins the first."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated

from cachetools import TTLCache
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, wait_while_connected, write_event
from bot.surfaces.api.problems import API_HEADERS, GONE, BadField, RequestProblem, format_seconds, refuse
from bot.surfaces.ask_events import (
    Answered,
    AskEvent,
    EvidenceFound,
    NotAnswered,
    Reason,
    RunBegun,
    StageBegun,
    TextPart,
)
from bot.surfaces.principals import Principal
from bot.surfaces.questions import AskedRun

EVENT_STREAM = "text/event-stream"
EVENTS = (RunBegun, StageBegun, TextPart, EvidenceFound, Answered, NotAnswered)
_STATUSES: dict[Reason, int] = {
    "limit": 429,
    "not_allowed": 403,
    "unknown_repository": 404,
    "unclear_repository": 422,
    "unknown_ref": 404,
    "bad_question": 422,
    "stopped": 409,
    "late": 504,
    "failed": 500,
}
_WEIGHT = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")
KEY = "Idempotency-Key"
RETRIES = "X-Stainless-Retry-Count"  # OpenAI's clients send this instead of a key: 0 the first time
LONGEST_KEY = 200  # characters
KEY_PATTERN = rf"^[!-~]{{1,{LONGEST_KEY}}}$"
KEPT_SECONDS = 900.0
MAX_KEPT = 256
GRACE = 5.0  # seconds for which a run continues without anybody who follows it: a client comes back within two
_KEY = re.compile(KEY_PATTERN)
Begin = Callable[[], AskedRun]


class AskRequest(BaseModel):
    """A question about the code."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[str, Field(min_length=1, max_length=100_000, description="At most 4,000 characters count.")]
    repository: Annotated[
        str | None, Field(max_length=100, description="The repository; otherwise the question decides.")
    ] = None
    at: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description=(
                "A branch, a tag, a commit or a pull request (`#12`) to answer at; otherwise the question decides."
            ),
        ),
    ] = None
    conversation: Annotated[
        str | None,
        Field(pattern="^[A-Za-z0-9_-]{1,64}$", description="The `conversation` of an earlier answer, to continue it."),
    ] = None
    anew: Annotated[bool, Field(description="Answer even where an earlier answer to the same question is true.")] = (
        False
    )


async def answer_ask(events: AsyncGenerator[AskEvent, None], request: Request, principal: Principal) -> Response:
    """Answer `POST /api/ask` after asking its question."""
    keep_open(request, principal.key)
    if wants_events(request.headers):
        return await answer_with_events(events, write_events)
    answered = await wait_for_answer(request, events)
    return Response(answered.model_dump_json(), headers=API_HEADERS, media_type="application/json")


async def wait_for_answer(request: Request, events: AsyncGenerator[AskEvent, None]) -> Answered:
    """Follow a question to its answer; raises the problem if there is none, or nobody waits any more."""

    async def follow() -> AskEvent:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Answered | NotAnswered):
                    return event
        raise AssertionError("the events of a question end with its answer, or with why there is none")

    last = await wait_while_connected(request, follow())
    if isinstance(last, Answered):
        return last
    if isinstance(last, NotAnswered):
        raise explain_no_answer(last)
    raise RequestProblem(status=GONE, detail="The client has gone.", code="gone")


Write = Callable[[AsyncGenerator[AskEvent, None]], AsyncGenerator[bytes, None]]


async def answer_with_events(events: AsyncGenerator[AskEvent, None], write: Write) -> Response:
    """Stream a question's events as `write` formats them; a refusal has an HTTP status, and no stream."""
    first = await anext(events)
    if isinstance(first, NotAnswered):
        await events.aclose()
        raise explain_no_answer(first)

    async def replay() -> AsyncGenerator[AskEvent, None]:
        yield first
        async for event in events:
            yield event

    return EventStream(write(replay()), source=events)


async def write_events(events: AsyncGenerator[AskEvent, None]) -> AsyncGenerator[bytes, None]:
    """Write each event as JSON, named by its kind; the last one is `answer` or `failed`."""
    async with aclosing(events):
        async for event in events:
            yield write_event(event.model_dump_json(), name=event.kind)


def explain_no_answer(event: NotAnswered) -> RequestProblem:
    """Return the problem that explains a missing answer."""
    headers = {} if event.retry_after is None else {"Retry-After": format_seconds(event.retry_after)}
    return RequestProblem(status=_STATUSES[event.reason], detail=event.text, code=event.reason, headers=headers)


def wants_events(headers: Headers) -> bool:
    """Whether a request prefers events to JSON: it names them, and JSON not above them."""
    weights = {"application/json": 0.0, EVENT_STREAM: 0.0}
    for part in ",".join(headers.getlist("Accept")).split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        if name in weights:
            weight = next((float(found[1]) for each in parameters if (found := _WEIGHT.fullmatch(each))), 1.0)
            weights[name] = max(weights[name], weight)
    return weights[EVENT_STREAM] > 0 and weights[EVENT_STREAM] >= weights["application/json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """Recognises a repeated request; `body` is the checksum of its contents."""

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

    def __init__(self, *, seconds: float = KEPT_SECONDS, most: int = MAX_KEPT, grace: float = GRACE) -> None:
        self._known: TTLCache[tuple[str, str], tuple[str, AskedRun]] = TTLCache(most, seconds)
        self._grace = grace
        self._running: set[AskedRun] = set()

    async def follow(self, key: RequestKey | None, begin: Begin) -> AsyncGenerator[AskEvent, None]:
        """Yield what happens up to the answer, from the beginning; the question is asked if it is new.

        Raises a `RequestProblem` if the key belongs to another question.
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
