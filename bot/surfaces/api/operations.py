"""The operations of the API: what each is asked with and answers with, so that it is served as it is described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from bot.surfaces.api.ask_requests import EVENTS, Asking, AskRequest, answer_ask
from bot.surfaces.api.request_reading import Asked, ReadWholeNumber
from bot.surfaces.ask_events import Answered
from bot.surfaces.long_requests import LateCore
from bot.surfaces.lookup_results import CallResult, CodeResult, RepositoryListing, SymbolResult
from bot.surfaces.principals import Principal

MOST = 50  # results of one request
LONGEST = 200  # characters of what is looked up; a request has one line of 4 KB

Text = Annotated[str, Field(min_length=1, max_length=LONGEST)]
Limit = Annotated[int, Field(ge=1, le=MOST, description="How many results at most."), ReadWholeNumber]
Offset = Annotated[int, Field(ge=0, le=100_000, description="The `next` of the results before."), ReadWholeNumber]
Repository = Annotated[
    str | None,
    Field(min_length=1, max_length=100, description="Which one; may be left out where you may ask about one alone."),
]

At = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=LONGEST,
        description="A branch, a tag, a commit or a pull request (`#12`) to read the code at; else its newest commit.",
    ),
]


class _Query(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AskedSearch(_Query):
    """What to search for."""

    q: Annotated[Text, Field(description="Words, names, or a question.")]
    repository: Repository = None
    at: At = None
    limit: Limit = 10
    offset: Offset = 0


class AskedName(_Query):
    """Which name to look up."""

    name: Annotated[Text, Field(description="A plain name such as `send`, or a qualified one: `Session.send`.")]
    repository: Repository = None
    at: At = None
    limit: Limit = 20
    offset: Offset = 0


class AskedStatus(_Query):
    """Which part of the repositories."""

    limit: Limit = 50
    offset: Offset = 0


Handle = Callable[[web.Request, Principal, Asked], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, kw_only=True)
class Operation(Generic[Asked]):
    """One operation. `refusals` are the statuses that it may answer with beside those that all have."""

    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    asked: type[Asked]
    answer: type[BaseModel]
    handle: Handle[Asked]
    events: tuple[type[BaseModel], ...] = ()
    refusals: tuple[int, ...] = ()


def list_operations(core: LateCore, asking: Asking) -> Sequence[Operation[Any]]:
    """Return all operations, each with what answers it."""

    async def ask(request: web.Request, principal: Principal, asked: AskRequest) -> web.StreamResponse:
        return await answer_ask(asking, request, principal, asked)

    async def search(_: web.Request, principal: Principal, query: AskedSearch) -> web.StreamResponse:
        found = await core.get().lookups.search_code(
            principal, query.q, repository=query.repository, at=query.at, limit=query.limit, offset=query.offset
        )
        return answer_with(found)

    async def find_symbols(_: web.Request, principal: Principal, query: AskedName) -> web.StreamResponse:
        found = await core.get().lookups.find_symbol(
            principal, query.name, repository=query.repository, at=query.at, limit=query.limit, offset=query.offset
        )
        return answer_with(found)

    async def find_callers(_: web.Request, principal: Principal, query: AskedName) -> web.StreamResponse:
        found = await core.get().lookups.find_callers(
            principal, query.name, repository=query.repository, at=query.at, limit=query.limit, offset=query.offset
        )
        return answer_with(found)

    async def show_status(_: web.Request, principal: Principal, query: AskedStatus) -> web.StreamResponse:
        found = await core.get().lookups.list_repositories(principal, limit=query.limit, offset=query.offset)
        return answer_with(found)

    return (
        Operation(
            method="POST", path="/ask", name="ask", asked=AskRequest, answer=Answered, handle=ask, events=EVENTS,
            summary="Ask about the code; with `Accept: text/event-stream`, follow the answer as it is written.",
            refusals=(408, 409, 413, 415, 422, 504),
        ),
        Operation(
            method="GET", path="/search", name="search", asked=AskedSearch, answer=CodeResult, handle=search,
            summary="Search the code for what a text is about.",
        ),
        Operation(
            method="GET", path="/symbols", name="find_symbols", asked=AskedName, answer=SymbolResult,
            handle=find_symbols, summary="Find the definitions of a name.",
        ),
        Operation(
            method="GET", path="/callers", name="find_callers", asked=AskedName, answer=CallResult,
            handle=find_callers, summary="Find what calls a function or class.",
        ),
        Operation(
            method="GET", path="/status", name="status", asked=AskedStatus, answer=RepositoryListing,
            handle=show_status, summary="List the repositories that you may ask about, and how fresh each index is.",
        ),
    )  # fmt: skip


def answer_with(found: BaseModel) -> web.Response:
    """Answer with JSON."""
    return web.Response(text=found.model_dump_json(), content_type="application/json")
