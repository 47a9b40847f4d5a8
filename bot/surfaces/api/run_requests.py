"""Goal runs over the API: asked for, followed as JSON or as events, and decided about."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from bot.errors import BotError
from bot.http.connections import keep_open
from bot.http.event_streams import EventStream, wait_while_connected, write_event
from bot.surfaces.api.ask_requests import wants_events
from bot.surfaces.api.problems import API_HEADERS, GONE, RequestProblem, explain_error
from bot.surfaces.api.repeated_questions import KEY, read_key
from bot.surfaces.goal_runs import MAX_TASK_CHARACTERS, MAX_WORDS, Decision, GoalRun, TeamGoalRuns
from bot.surfaces.principals import Principal

Words = Annotated[str, Field(max_length=MAX_TASK_CHARACTERS)]


class RunRequest(BaseModel):
    """A goal run that somebody wants, as `citebot goal` has it. Nothing runs before it is approved."""

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
    """Answer `POST /api/runs` with the proposal, or the problem that says why there is none."""
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
    """Answer `GET /api/runs/{id}`: how far the run has come, or from now on whenever that changes."""
    run = await runs.find(principal, name)
    if not wants_events(request.headers):
        return answer_with(run)
    keep_open(request, principal.key)
    return EventStream(_write_states(runs.follow(principal, name)))


async def _write_states(states: AsyncGenerator[GoalRun, None]) -> AsyncGenerator[bytes, None]:
    """Write each state whole, so that a reader who comes back has missed nothing; an error is the last event."""
    try:
        async with aclosing(states):
            async for run in states:
                yield write_event(run.model_dump_json(), name="run")
    except BotError as error:
        yield write_event(explain_error(error).describe().model_dump_json(), name="failed")


def answer_with(found: BaseModel) -> Response:
    """Answer with a value as JSON."""
    return Response(found.model_dump_json(), headers=API_HEADERS, media_type="application/json")
