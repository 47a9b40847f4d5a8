"""Reads what a request asks for: its token, its query or its JSON, each checked against a model."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from bot.surfaces.api.problems import BadField, refuse
from bot.surfaces.principals import Principal, Tokens, find_bearer
from bot.webhooks.body_limits import BodyReader

JSON_TYPE = "application/json"
MOST_ERRORS = 10
LONGEST_VALUE = 200  # characters of a parameter; a request has one line of 4 KB

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Asked = TypeVar("Asked", bound=BaseModel)


def authenticate(request: web.Request, tokens: Tokens) -> Principal:
    """Return whose token came with the request; raises the problem of a request without one that is known."""
    principal = find_bearer(request.headers.getall("Authorization", []), tokens)
    if principal is None:
        raise refuse(401)
    return principal


def read_query(request: web.Request, model: type[Asked]) -> Asked:
    """Return the parameters of a request; each may be there once, but for lists, and none that is not known."""
    properties = model.model_json_schema()["properties"]
    given: dict[str, Any] = {}
    for name in dict.fromkeys(request.query):
        values = request.query.getall(name)
        about = properties.get(name, {})
        if any(len(value) > LONGEST_VALUE for value in values):
            raise refuse(400, errors=(BadField(field=name[:80], detail=f"At most {LONGEST_VALUE} characters."),))
        if about.get("type") == "array":
            given[name] = values
        elif len(values) > 1:
            raise refuse(400, errors=(BadField(field=name[:80], detail="Give it once."),))
        else:
            given[name] = _read_value(values[0], {about.get("type"), *(one["type"] for one in about.get("anyOf", ()))})
    return parse_json(json.dumps(given).encode(), model)


def _read_value(text: str, types: Collection[object]) -> object:
    """Read a value of a query as JSON would write it."""
    if "integer" in types and _WHOLE.fullmatch(text):
        return int(text)
    return text == "true" if "boolean" in types and text in {"true", "false"} else text


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
