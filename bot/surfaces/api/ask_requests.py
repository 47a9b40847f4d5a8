"""A question, answered as JSON at the end, or as server-sent events while the answer is written."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, wait_while_connected, write_event
from bot.surfaces.api.problems import API_HEADERS, GONE, RequestProblem, format_seconds
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
    """Answer `POST /api/ask`, once its question was asked."""
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
    """Stream a question's events as `write` puts them; what was refused has a status of its own, and no stream."""
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
    """Return the problem that says why a question has no answer."""
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
