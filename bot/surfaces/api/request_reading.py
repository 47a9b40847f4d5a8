"""Reads what a request asks for: its token, its query or its JSON, each checked against a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ValidationError

from bot.surfaces.api.problems import BadField, refuse
from bot.surfaces.principals import Principal, Tokens, find_bearer
from bot.webhooks.body_limits import BodyReader

JSON_TYPE = "application/json"
MOST_ERRORS = 10

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Asked = TypeVar("Asked", bound=BaseModel)


def _read_whole_number(value: object) -> object:
    """Take a number of a query as JSON would write it: Python takes `1_0` and ` 1 ` as well."""
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError("write a whole number")
        return int(value)
    return value


ReadWholeNumber = BeforeValidator(_read_whole_number)


def authenticate(request: web.Request, tokens: Tokens) -> Principal:
    """Return whose token came with the request; raises the problem of a request without one that is known."""
    principal = find_bearer(request.headers.getall("Authorization", []), tokens)
    if principal is None:
        raise refuse(401)
    return principal


def read_query(request: web.Request, model: type[Asked]) -> Asked:
    """Return the parameters of a request; each may be there once, and none that is not known."""
    query = request.query
    several = [name for name in query if len(query.getall(name)) > 1]
    if several:
        raise refuse(400, errors=(BadField(field=several[0][:80], detail="Give it once."),))
    try:
        return model.model_validate(dict(query))
    except ValidationError as error:
        raise _describe_invalid(error) from None


async def read_json(request: web.Request, model: type[Asked], bodies: BodyReader) -> Asked:
    """Return the JSON of a request."""
    if request.content_type != JSON_TYPE:
        raise refuse(415)
    body = await bodies.read(request)
    if isinstance(body, web.Response):
        raise refuse(body.status)
    return parse_json(body, model)


def parse_json(body: bytes, model: type[Asked]) -> Asked:
    """Return what a body says; a number is no text, and a text no number."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise _describe_invalid(error) from None


def _describe_invalid(error: ValidationError) -> Exception:
    """Say what is wrong with each field, without repeating what was sent."""
    details: list[Any] = error.errors(include_url=False, include_context=False, include_input=False)[:MOST_ERRORS]
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
