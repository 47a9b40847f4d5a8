"""The OpenAPI document of the API, made from the operations that are served."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.surfaces.api.operations import Operation
from bot.surfaces.api.problems import PROBLEM_TYPE, Problem
from bot.surfaces.api.repeated_questions import KEY, KEY_PATTERN
from bot.surfaces.api.request_reading import LONGEST_VALUE

USUAL = (400, 401, 403, 404, 429, 500, 503)  # refusals that every operation may answer with
_REFERENCE = "#/components/schemas/{model}"


def describe_api(operations: Sequence[Operation[Any]], *, prefix: str) -> dict[str, Any]:
    """Return the document; paths begin with the prefix."""
    models: list[type[BaseModel]] = [Problem]
    for each in operations:
        models += [each.answer, *each.events, *([each.asked] if each.method == "POST" else [])]
    _, schemas = models_json_schema([(model, "validation") for model in dict.fromkeys(models)], ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(f"{prefix}{each.path}", {})[each.method.lower()] = _describe_operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "citebot", "version": _find_version(), "description": DESCRIPTION},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


DESCRIPTION = (
    "Questions about the code of a team's repositories, and lookups in it. A token stands for a person: it sees the "
    "repositories that the person may ask about, and no other. Every result names the commit that it was read at."
)


def _describe_operation(operation: Operation[Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {"200": _describe_answer(operation)}
        | {str(status): _describe_problem(status) for status in sorted({*USUAL, *operation.refusals})},
    }
    if operation.method == "GET":
        asked = operation.asked.model_json_schema()
        required = asked.get("required", ())
        described["parameters"] = [
            {"name": name, "in": "query", "required": name in required, "schema": _limit_text(schema)}
            for name, schema in asked["properties"].items()
        ]
    else:
        described["parameters"] = [_KEY_HEADER]
        reference = {"$ref": _REFERENCE.format(model=operation.asked.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
    return described


def _limit_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter with the limit of what a query may hold."""
    if "items" in schema:
        return schema | {"items": _limit_text(schema["items"])}
    longest = min(schema.get("maxLength", LONGEST_VALUE), LONGEST_VALUE)
    return schema | ({"maxLength": longest} if schema.get("type") == "string" else {})


_KEY_HEADER = {
    "name": KEY,
    "in": "header",
    "required": False,
    "description": "A request that comes again with the same key and body gets the answer of the first one.",
    "schema": {"type": "string", "pattern": KEY_PATTERN},
}


def _describe_answer(operation: Operation[Any]) -> dict[str, Any]:
    reference = {"$ref": _REFERENCE.format(model=operation.answer.__name__)}
    content: dict[str, Any] = {"application/json": {"schema": reference}}
    if operation.events:
        named = ", ".join(f"`{event.model_fields['kind'].default}` ({event.__name__})" for event in operation.events)
        content["text/event-stream"] = {
            "schema": {
                "type": "string",
                "description": f"Events, whose data are JSON: {named}. The last one is `answer` or `failed`.",
            }
        }
    return {"description": operation.answer.__doc__ or "", "content": content}


def _describe_problem(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {PROBLEM_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}}
    if status == 400:  # what is no HTTP that this server takes never gets as far as the operations
        content["text/plain"] = {"schema": {"type": "string"}}
    headers = {
        401: {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}},
        429: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}},
        503: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}},
    }
    described: dict[str, Any] = {"description": HTTPStatus(status).phrase, "content": content}
    return described | ({"headers": headers[status]} if status in headers else {})


def _find_version() -> str:
    try:
        return version("citebot")
    except PackageNotFoundError:
        return "0"
