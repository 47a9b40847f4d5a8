"""Reads what a request asks for: its token, and its body as far as its sender may send one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from bot.http.bodies import BodyReader, read_media_type
from bot.surfaces.api.problems import BadField, RequestProblem, refuse
from bot.surfaces.principals import Principal, Tokens, find_bearer

JSON_TYPE = "application/json"
MOST_ERRORS = 10

Asked = TypeVar("Asked", bound=BaseModel)


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
    details = errors[:MOST_ERRORS]
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
