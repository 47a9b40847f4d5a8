"""The operations of the API: what each is asked with and answers with, so that it is served as it is described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal

from aiohttp import web
from pydantic import BaseModel

from agent import LOOKUPS, CodeLookup, LookupResult
from bot.surfaces.api.ask_requests import EVENTS, Asking, AskRequest, answer_ask
from bot.surfaces.api.request_reading import Asked
from bot.surfaces.ask_events import Answered
from bot.surfaces.code_lookups import ListArguments, RepositoryListing, add_place
from bot.surfaces.long_requests import LateCore
from bot.surfaces.principals import Principal

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

    async def show_status(_: web.Request, principal: Principal, query: ListArguments) -> web.StreamResponse:
        return answer_with(await core.get().lookups.list_repositories(principal, query))

    return (
        Operation(
            method="POST", path="/ask", name="ask", asked=AskRequest, answer=Answered, handle=ask, events=EVENTS,
            summary="Ask about the code; with `Accept: text/event-stream`, follow the answer as it is written.",
            refusals=(408, 409, 413, 415, 422, 504),
        ),
        *(_make_operation(each, core) for each in LOOKUPS),
        Operation(
            method="GET", path="/status", name="status", asked=ListArguments, answer=RepositoryListing,
            handle=show_status, summary="List the repositories that you may ask about, and how fresh each index is.",
        ),
    )  # fmt: skip


def _make_operation(lookup: CodeLookup[Any, LookupResult], core: LateCore) -> Operation[Any]:
    """Return the operation of a lookup, at the path that was published for it."""

    async def look_up(_: web.Request, principal: Principal, query: Any) -> web.StreamResponse:
        return answer_with((await core.get().lookups.look_up(principal, lookup, query)).result)

    return Operation(
        method="GET",
        path=f"/{lookup.known_as.get('api', lookup.name.replace('_', '-'))}",
        name=lookup.known_as.get("operation", lookup.name),
        asked=add_place(lookup.arguments),
        answer=lookup.result,
        handle=look_up,
        summary=lookup.description,
        refusals=(422,),
    )


def answer_with(found: BaseModel) -> web.Response:
    """Answer with JSON."""
    return web.Response(text=found.model_dump_json(), content_type="application/json")
