"""Renders every error of the HTTP API as problem details (RFC 9457)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.errors import BotError, LimitReached, NotAllowed, NotProposed, UnknownGoalRun, UnknownRepository
from indexer import BadPattern, IndexerError, UnknownPath, UnknownRevision

PROBLEM_TYPE = "application/problem+json"
GONE = 499
# Nobody between may store an answer, or take it for something else than it says it is.
API_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
RETRY_SECONDS = 10.0  # where nothing tells better
UNEXPECTED = "Something went wrong that should not have. Try again; if it persists, the log of citebot says what it is."

Render = Callable[["RequestProblem"], Response]

log = logging.getLogger(__name__)

_SENTENCES: Mapping[int, str] = {
    400: "The request cannot be read.",
    401: "Send a token that citebot.toml lists, in the header `Authorization: Bearer TOKEN`.",
    404: "There is nothing at this path. /api/openapi.json lists what there is.",
    405: "This path does not take that method; the header Allow names those that it takes.",
    408: "The body of the request came too slowly. Send it again.",
    413: "The body of the request is too large.",
    415: "The body has to be JSON, sent as `Content-Type: application/json` and not compressed.",
    503: "citebot is overloaded. Try again in a little while.",
}
_CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    429: "limit",
    503: "unavailable",
}


class BadField(BaseModel):
    """The error of one query parameter, or one field of a body."""

    model_config = ConfigDict(frozen=True)

    field: Annotated[str, Field(description="Its name; in a body, the names that lead to it, with dots between.")]
    detail: str


class Problem(BaseModel):
    """Why a request was refused, or could not be answered."""

    model_config = ConfigDict(frozen=True)

    type: str = "about:blank"
    title: Annotated[str, Field(description="What the status means.")]
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, Field(description="A sentence for people: what is wrong, and what to do.")]
    code: Annotated[str, Field(description="What is wrong, in a word for programs.")]
    errors: tuple[BadField, ...] = ()


@dataclass(kw_only=True)
class RequestProblem(Exception):
    """A request is not answered: with which status, and why."""

    status: int
    detail: str
    code: str
    errors: tuple[BadField, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def describe(self) -> Problem:
        """Return the problem details."""
        return Problem(
            title=name_status(self.status),
            status=self.status,
            detail=self.detail,
            code=self.code,
            errors=self.errors,
        )


def name_status(status: int) -> str:
    """Say what a status means; that of a client that has gone is nginx's, and seen in metrics alone."""
    return "Client Closed Request" if status == GONE else HTTPStatus(status).phrase


def make_error_handlers(render: Render) -> dict[Any, Any]:
    """Return what renders whatever goes wrong; of what nobody foresaw, the server writes into the log as well."""

    async def answer(_: Request, error: Exception) -> Response:
        return render(explain_error(error))

    return dict.fromkeys((HTTPException, RequestProblem, BotError, IndexerError, Exception), answer)


def render_problem(problem: RequestProblem) -> Response:
    """Answer with problem details."""
    headers = {**API_HEADERS, **problem.headers}
    return Response(problem.describe().model_dump_json(), problem.status, headers, PROBLEM_TYPE)


# What a person may not do, and what is not there; the first class that fits counts.
_KINDS: tuple[tuple[type[Exception], int, str], ...] = (
    (LimitReached, 429, "limit"),
    (UnknownRepository, 404, "unknown_repository"),
    (UnknownGoalRun, 404, "unknown_run"),
    (NotProposed, 409, "not_proposed"),
    (NotAllowed, 403, "not_allowed"),
    (UnknownRevision, 404, "unknown_ref"),
    (UnknownPath, 404, "unknown_path"),
    (BadPattern, 422, "bad_pattern"),
    (IndexerError, 503, "unavailable"),
    (BotError, 503, "unavailable"),
)


def explain_error(error: Exception) -> RequestProblem:
    """Say what an error means for whoever sent the request; what nobody foresaw is logged, and not told."""
    if isinstance(error, RequestProblem):
        return error
    if isinstance(error, HTTPException):
        return _explain_refusal(error)
    status, code = next(((status, code) for kind, status, code in _KINDS if isinstance(error, kind)), (500, "failed"))
    if status == 500:
        return RequestProblem(status=500, detail=UNEXPECTED, code=code)
    seconds = error.retry_after if isinstance(error, LimitReached) else RETRY_SECONDS
    headers = {"Retry-After": format_seconds(seconds)} if status in {429, 503} else {}
    if status == 503:
        log.warning("a request failed: %s", error)
    return RequestProblem(status=status, detail=str(error), code=code, headers=headers)


def format_seconds(seconds: float) -> str:
    """Write seconds as the header Retry-After has them."""
    return str(max(1, math.ceil(seconds)))


def _explain_refusal(refusal: HTTPException) -> RequestProblem:
    """Say what a refusal means: in its own words where these are a sentence, which those of libraries are not."""
    status, headers = refusal.status_code, dict(refusal.headers or {})
    usual = _SENTENCES.get(status, HTTPStatus(status).phrase)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in {408, 503}:
        headers.setdefault("Retry-After", format_seconds(RETRY_SECONDS))
    detail = refusal.detail if refusal.detail.endswith(".") else usual
    return RequestProblem(status=status, detail=detail, code=_CODES.get(status, "failed"), headers=headers)


def refuse(status: int, detail: str = "", *, errors: tuple[BadField, ...] = ()) -> RequestProblem:
    """Return the problem of a status, in its usual words unless others are given."""
    return replace(_explain_refusal(HTTPException(status, detail)), errors=errors)
