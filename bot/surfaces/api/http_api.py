"""The HTTP API: an application of FastAPI at `/api`, whose errors are problem details."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Path, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Router

from agent import LOOKUPS, Arguments, CodeLookup, LookupResult
from bot.conversations.goal_turns import OFF
from bot.errors import BotError, NotAllowed
from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, wait_while_connected, write_event
from bot.http.requests import BodyReader
from bot.surfaces.api.ask_requests import (
    EVENTS,
    KEY,
    KEY_PATTERN,
    AskRequest,
    RepeatedQuestions,
    answer_ask,
    read_key,
    wants_events,
)
from bot.surfaces.api.problems import (
    API_HEADERS,
    GONE,
    PROBLEM_TYPE,
    Problem,
    RequestProblem,
    authenticate,
    describe_invalid,
    explain_error,
    make_error_handlers,
    read_json,
    render_problem,
)
from bot.surfaces.ask_events import Answered, AnswerState
from bot.surfaces.code_lookups import ListArguments, RepositoryListing, add_place
from bot.surfaces.goal_runs import MAX_TASK_CHARACTERS, MAX_WORDS, Decision, GoalRun, TeamGoalRuns
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import Late, SurfaceCore

Words = Annotated[str, Field(max_length=MAX_TASK_CHARACTERS)]


class RunRequest(BaseModel):
    """A requested goal run, with the arguments of `citebot goal`. Nothing runs before it is approved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    goal: Annotated[str, Field(max_length=40, description="`pytest`, `command`, `claim`, `types` or `lint`.")]
    task: Annotated[
        str, Field(min_length=1, max_length=MAX_TASK_CHARACTERS, description="What is wanted; of a `claim`, the claim.")
    ]
    arguments: Annotated[
        dict[Annotated[str, Field(max_length=40)], Words | Annotated[list[Words], Field(max_length=MAX_WORDS)]],
        Field(
            max_length=10,
            description="Lists of words: `select` (tests) of `pytest`, `argv` of `command`, `paths` of `types` and "
            "`lint`. `tool` of `types` is `mypy` or `pyright`.",
        ),
    ] = {}
    repository: Annotated[
        str | None, Field(max_length=100, description="Required if you may ask about several repositories.")
    ] = None


class DecisionRequest(BaseModel):
    """A decision about a goal run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    decision: Annotated[Decision, Field(description="`abort` ends a run in progress as well.")]
    proposal: Annotated[str, Field(min_length=1, max_length=64, description="The `proposal` to approve.")]


async def answer_proposal(runs: TeamGoalRuns, asked: RunRequest, request: Request, principal: Principal) -> Response:
    """Answer `POST /api/runs` with the proposal, or the reason why there is none."""
    known = read_key(request, principal, asked) if KEY in request.headers else None
    name = hashlib.sha256(repr(known).encode()).hexdigest()[:32] if known is not None else ""
    keep_open(request, principal.key)
    name = await runs.begin(principal, asked.goal, asked.task, asked.arguments, repository=asked.repository, name=name)

    async def wait() -> GoalRun:
        async with aclosing(runs.follow(principal, name)) as states:
            return await anext(run async for run in states if run.state != "preparing")

    run = await wait_while_connected(request, wait())
    if run is None:
        raise RequestProblem(status=GONE, detail="The client has gone.", code="gone")
    if run.state == "ended" and not run.commit:
        raise RequestProblem(status=422, detail=run.text, code="refused")
    return answer_with(run)


async def answer_run(runs: TeamGoalRuns, name: str, request: Request, principal: Principal) -> Response:
    """Answer `GET /api/runs/{id}` with the present state, or with every change from now on."""
    run = await runs.find(principal, name)
    if not wants_events(request.headers):
        return answer_with(run)
    keep_open(request, principal.key)
    return EventStream(_write_states(runs.follow(principal, name)))


async def _write_states(states: AsyncGenerator[GoalRun, None]) -> AsyncGenerator[bytes, None]:
    """Write each state whole, so that a reader who reconnects has missed nothing; an error is the last event."""
    try:
        async with aclosing(states):
            async for run in states:
                yield write_event(run.model_dump_json(), name="run")
    except BotError as error:
        yield write_event(explain_error(error).describe().model_dump_json(), name="failed")


def answer_with(found: BaseModel) -> Response:
    """Answer with a value as JSON."""
    return Response(found.model_dump_json(), headers=API_HEADERS, media_type="application/json")


PREFIX = "/api"
LARGEST = 2_000_000  # bytes of a body
TOTAL = 8_000_000
SECONDS = 10.0
USUAL = (400, 401, 403, 404, 422, 429, 500, 503)  # refusals that every operation may answer with
DESCRIPTION = (
    "Questions about the code of a team's repositories, and lookups in it. A token stands for a person: it "
    "sees only the repositories that the person may ask about. Every result names its commit."
)
NOT_FOLLOWED = "No answer of this name is followed, or you may not ask about its repositories."
_REFERENCE = "#/components/schemas/{model}"


Handle = Callable[..., Awaitable[Response]]


class HttpApi:
    """Serves questions and lookups, and describes them."""

    def __init__(self, core: Late[SurfaceCore], repeated: RepeatedQuestions) -> None:
        self._core = core
        self._repeated = repeated
        self.application = _Api(
            title="citebot", version=_find_version(), description=DESCRIPTION, docs_url=None, redoc_url=None,
            root_path_in_servers=False, redirect_slashes=False,
            exception_handlers=make_error_handlers(render_problem) | {RequestValidationError: _refuse_invalid},
            responses={status: _describe_problem(status) for status in USUAL},
        )  # fmt: skip
        self.application.router.route_class = _make_route_class(core)
        self._add_operations()

    def join(self, router: Router) -> None:
        """Add the paths to the server's."""
        mount = Mount(PREFIX, self.application)
        # Starlette's own does not take a path with a line break in it, which is refused as this API refuses.
        mount.path_regex = re.compile(f"^{PREFIX}/(?P<path>.*)$", re.DOTALL)
        router.routes.append(mount)

    def _add_operations(self) -> None:
        add = self.application.add_api_route
        add(
            "/ask", self._ask, methods=["POST"], operation_id="ask", response_model=Answered,
            summary="Ask about the code; with `Accept: text/event-stream`, follow the answer as it grows.",
            response_description=Answered.__doc__ or "",
            responses={200: _EVENT_STREAM, **{code: _describe_problem(code) for code in (408, 409, 413, 415, 504)}},
        )  # fmt: skip
        for lookup in LOOKUPS:
            add(
                f"/{lookup.known_as.get('api', lookup.name.replace('_', '-'))}", self._make_lookup(lookup),
                operation_id=lookup.known_as.get("operation", lookup.name), response_model=lookup.result,
                summary=lookup.description, response_description=lookup.result.__doc__ or "",
            )  # fmt: skip
        add(
            "/answers/{run}", self._show_answer, operation_id="show_answer", response_model=AnswerState,
            summary="Show whether an answer is outdated: what of the code that it cites has changed since.",
            response_description=AnswerState.__doc__ or "",
        )  # fmt: skip
        busy: dict[int | str, Any] = {code: _describe_problem(code) for code in (408, 409, 413, 415)}
        add(
            "/runs", self._propose_run, methods=["POST"], operation_id="propose_run", response_model=GoalRun,
            summary="Propose a goal run; it starts after an authorized person approves it.",
            response_description="The proposal.", responses=busy,
        )  # fmt: skip
        add(
            "/runs/{run}", self._show_run, operation_id="show_run", response_model=GoalRun,
            summary="Show a goal run; with `Accept: text/event-stream`, follow it until it has ended.",
            response_description=GoalRun.__doc__ or "", responses={200: _RUN_STREAM},
        )  # fmt: skip
        add(
            "/runs/{run}/resume", self._decide_run, methods=["POST"], operation_id="resume_run",
            response_model=GoalRun, summary="Approve a goal run, or abort it.",
            response_description="The run after that.", responses=busy,
        )  # fmt: skip
        add(
            "/status", self._make_listing(), operation_id="status", response_model=RepositoryListing,
            summary="List the repositories that you may ask about, and the freshness of each index.",
            response_description=RepositoryListing.__doc__ or "",
        )  # fmt: skip

    async def _ask(
        self,
        request: Request,
        asked: AskRequest,
        principal: Caller,
        key: Annotated[str | None, Header(alias=KEY, pattern=KEY_PATTERN, description=_KEY)] = None,  # noqa: ARG002
    ) -> Response:
        begin = partial(
            self._core.get().questions.begin, principal, asked.question, surface="api", repository=asked.repository,
            at=asked.at, conversation=asked.conversation, anew=asked.anew,
        )  # fmt: skip
        events = self._repeated.follow(read_key(request, principal, asked), begin)
        return await answer_ask(events, request, principal)

    async def _show_answer(self, run: AnswerName, principal: Caller) -> Response:
        state = await self._core.get().questions.find_state(principal, run)
        if state is None:
            raise RequestProblem(status=404, detail=NOT_FOLLOWED, code="unknown_answer")
        return answer_with(state)

    @property
    def _runs(self) -> TeamGoalRuns:
        runs = self._core.get().runs
        if runs is None:
            raise NotAllowed(OFF)
        return runs

    async def _propose_run(
        self,
        request: Request,
        asked: RunRequest,
        principal: Caller,
        key: Annotated[str | None, Header(alias=KEY, pattern=KEY_PATTERN, description=_KEY)] = None,  # noqa: ARG002
    ) -> Response:
        return await answer_proposal(self._runs, asked, request, principal)

    async def _show_run(self, request: Request, run: RunName, principal: Caller) -> Response:
        return await answer_run(self._runs, run, request, principal)

    async def _decide_run(self, run: RunName, asked: DecisionRequest, principal: Caller) -> Response:
        return answer_with(await self._runs.decide(principal, run, asked.decision, asked.proposal))

    def _make_listing(self) -> Handle:
        async def show(asked: ListArguments, principal: Principal) -> Response:
            return answer_with(await self._core.get().lookups.list_repositories(principal, asked))

        return _declare(show, ListArguments)

    def _make_lookup(self, lookup: CodeLookup[Any, LookupResult]) -> Handle:
        async def look_up(asked: Any, principal: Principal) -> Response:
            return answer_with((await self._core.get().lookups.look_up(principal, lookup, asked)).result)

        return _declare(look_up, add_place(lookup.arguments))


class _Api(FastAPI):
    """Also describes the problems and events, which no operation returns, and gives whole paths."""

    def openapi(self) -> dict[str, Any]:
        """Return the document."""
        if self.openapi_schema is None:
            document = super().openapi()
            described = [(model, "serialization") for model in (Problem, *EVENTS)]
            _, schemas = models_json_schema(described, ref_template=_REFERENCE)  # type: ignore[arg-type]
            document["components"]["schemas"].update(schemas["$defs"])
            document["paths"] = {f"{PREFIX}{path}": each for path, each in document["paths"].items()}
        return self.openapi_schema or {}


def _make_route_class(core: Late[SurfaceCore]) -> type[APIRoute]:
    """Return a route class that checks a request's token first, and limits its body."""
    bodies = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)

    class Bounded(Request):
        async def body(self) -> bytes:
            if not hasattr(self, "_body"):
                self._body = await read_json(self, bodies)
            return self._body

    class Authenticated(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def authenticate_first(request: Request) -> Response:
                request.state.principal = authenticate(request, core.get().tokens)
                return await handle(Bounded(request.scope, request.receive))

            return authenticate_first

    return Authenticated


async def _find_caller(
    request: Request, _: Annotated[object, Depends(HTTPBearer(scheme_name="token", auto_error=False))]
) -> Principal:
    found: Principal = request.state.principal
    return found


Caller = Annotated[Principal, Depends(_find_caller)]
AnswerName = Annotated[str, Path(max_length=64, description="The `run_id` of an answer.")]
RunName = Annotated[str, Path(max_length=64, description="The `id` of a goal run.")]


def _declare(handle: Handle, arguments: type[Arguments]) -> Handle:
    """Make FastAPI read a handler's arguments from the query, where a number is text."""
    query = create_model(
        arguments.__name__, __base__=arguments, __doc__=arguments.__doc__, __cls_kwargs__={"strict": False}
    )
    handle.__annotations__ = {"asked": Annotated[query, Query()], "principal": Caller}
    return handle


async def _refuse_invalid(_: Request, error: RequestValidationError) -> Response:
    """Describe the problem of a parameter or a body field; each place begins with its location."""
    errors = [{**each, "loc": () if each["type"] == "json_invalid" else each["loc"][1:]} for each in error.errors()]
    return render_problem(describe_invalid(errors))


_KEY = "A repeated request with the same key and body gets the first answer."
_EVENT_STREAM, _RUN_STREAM = (
    {
        "content": {
            "text/event-stream": {"schema": {"type": "string", "description": f"Events, whose data are JSON: {events}"}}
        }
    }
    for events in (
        ", ".join(f"`{event.model_fields['kind'].default}` ({event.__name__})" for event in EVENTS)
        + ". The last one is `answer` or `failed`.",
        "`run` (GoalRun), whenever it has changed. The last one has the state `ended`, or is `failed` (Problem).",
    )
)


def _describe_problem(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {PROBLEM_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
    if status == 400:  # requests that are not HTTP never reach the operations
        content["text/plain"] = {"schema": {"type": "string"}}
    seconds = {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}}
    headers = {401: {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}, 429: seconds, 503: seconds}
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    return described | ({"headers": headers[status]} if status in headers else {})


def _find_version() -> str:
    try:
        return version("citebot")
    except PackageNotFoundError:
        return "0"
