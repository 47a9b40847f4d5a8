"""Reads the token and the body of a request, and renders every error as problem details (RFC 9457)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.errors import BotError, LimitReached, NotAllowed, NotProposed, UnknownGoalRun, UnknownRepository
from bot.http.requests import BodyReader, read_media_type
from bot.surfaces.principals import Principal, Tokens, find_bearer
from indexer import BadPattern, IndexerError, UnknownPath, UnknownRevision

PROBLEM_TYPE = "application/problem+json"
GONE = 499
# No cache may store an answer, and no browser may guess its type.
API_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
RETRY_SECONDS = 10.0  # where nothing tells better
UNEXPECTED = "An internal error occurred. Try again; if it persists, see citebot's log."
log = logging.getLogger(__name__)
_SENTENCES: Mapping[int, str] = {
    400: "The request cannot be read.",
    401: "Send a token that citebot.toml lists, in the header `Authorization: Bearer TOKEN`.",
    404: "There is nothing at this path. /api/openapi.json lists all paths.",
    405: "This path does not support that method; the header Allow lists the supported ones.",
    408: "The request body arrived too slowly. Send it again.",
    413: "The request body is too large.",
    415: "The body has to be JSON, sent as `Content-Type: application/json` and not compressed.",
    503: "citebot is overloaded. Try again in a moment.",
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
JSON_TYPE = "application/json"
MAX_ERRORS = 10
Asked = TypeVar("Asked", bound=BaseModel)


class BadField(BaseModel):
    """The error of one query parameter, or one field of a body."""

    model_config = ConfigDict(frozen=True)

    field: Annotated[str, Field(description="Its name; in a body, the names that lead to it, with dots between.")]
    detail: str


class Problem(BaseModel):
    """The reason why a request was refused, or could not be answered."""

    model_config = ConfigDict(frozen=True)

    type: str = "about:blank"
    title: Annotated[str, Field(description="What the status means.")]
    status: Annotated[int, Field(ge=400, le=599)]
    detail: Annotated[str, Field(description="The problem and its solution, as a sentence for people.")]
    code: Annotated[str, Field(description="The problem as a word for programs.")]
    errors: tuple[BadField, ...] = ()


@dataclass(kw_only=True)
class RequestProblem(Exception):
    """A request is refused, with a status and a reason."""

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
    """Describe a status; 499, for a client that left, is nginx's and appears only in metrics."""
    return "Client Closed Request" if status == GONE else HTTPStatus(status).phrase


def make_error_handlers(render: Callable[[RequestProblem], Response]) -> dict[Any, Any]:
    """Return handlers that render all errors; the server also logs unexpected ones."""

    async def answer(_: Request, error: Exception) -> Response:
        return render(explain_error(error))

    return dict.fromkeys((HTTPException, RequestProblem, BotError, IndexerError, Exception), answer)


def render_problem(problem: RequestProblem) -> Response:
    """Answer with problem details."""
    headers = {**API_HEADERS, **problem.headers}
    return Response(problem.describe().model_dump_json(), problem.status, headers, PROBLEM_TYPE)


# Refused and missing things; the first matching class counts.
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
    """Explain an error to the client; unexpected ones are logged, and not shown."""
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
    """Write seconds in the form of the header Retry-After."""
    return str(max(1, math.ceil(seconds)))


def _explain_refusal(refusal: HTTPException) -> RequestProblem:
    """Explain a refusal, verbatim if its text is a sentence, unlike those of libraries."""
    status, headers = refusal.status_code, dict(refusal.headers or {})
    usual = _SENTENCES.get(status, HTTPStatus(status).phrase)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in {408, 503}:
        headers.setdefault("Retry-After", format_seconds(RETRY_SECONDS))
    detail = refusal.detail if refusal.detail.endswith(".") else usual
    return RequestProblem(status=status, detail=detail, code=_CODES.get(status, "failed"), headers=headers)


def refuse(status: int, detail: str = "", *, errors: tuple[BadField, ...] = ()) -> RequestProblem:
    """Return the problem for a status, in its usual words by default."""
    return replace(_explain_refusal(HTTPException(status, detail)), errors=errors)


def authenticate(request: Request, tokens: Tokens) -> Principal:
    """Return whose token came with the request; raises the problem of a request without one that is known."""
    principal = find_bearer(request.headers.getlist("Authorization"), tokens)
    if principal is None:
        raise refuse(401)
    return principal


async def read_json(request: Request, bodies: BodyReader) -> bytes:
    """Return a body that is said to be JSON."""
    if read_media_type(request.headers) != JSON_TYPE:
        raise HTTPException(415)
    return await bodies.read(request)


def parse_json(body: bytes, model: type[Asked]) -> Asked:
    """Return what a body says; a number is no text, and a text no number."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise describe_invalid(error.errors(include_url=False, include_context=False, include_input=False)) from None


def describe_invalid(errors: Sequence[Any]) -> RequestProblem:
    """Describe the problem of each field, without repeating its content."""
    details = errors[:MAX_ERRORS]
    places = [each["loc"] for each in details]
    fields = tuple(
        BadField(field=".".join(str(part) for part in each["loc"])[:80], detail=_put(each["msg"])[:300])
        for each in details  # a list is too short where one of its items is wrong, and only for that
        if not any(_is_within(place, each["loc"]) for place in places)
    )
    return refuse(400, "The request is not as /api/openapi.json describes it; `errors` says where.", errors=fields)


def _is_within(place: Sequence[object], of: Sequence[object]) -> bool:
    return len(place) > len(of) and place[: len(of)] == of


def _put(message: str) -> str:
    """Say in the words of JSON what Pydantic says in Python's."""
    return message.removeprefix("Value error, ").replace("Tuple should", "List should").replace(" after validation", "")
