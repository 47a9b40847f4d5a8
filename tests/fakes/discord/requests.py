"""Parses a call: its path, query, JSON body and uploaded files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BodyPartReader, web

from tests.fakes.discord.errors import DiscordError
from tests.fakes.loopback.wire import JSON

Answer = JSON | list[JSON] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A file that came with a call; `key` is the number by which the body refers to it."""

    key: str
    filename: str
    content: bytes
    content_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A call as an endpoint gets it."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    files: tuple[Upload, ...] = ()

    @property
    def fields(self) -> JSON:
        """The body where it is an object."""
        return self.body if isinstance(self.body, dict) else {}

    def flag(self, name: str) -> bool:
        """A flag of the query."""
        return self.query.get(name, "").lower() in {"1", "true"}

    def number(self, name: str, default: int) -> int:
        """A number of the query."""
        return int(self.query.get(name, default))


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """One kind of call: its name after Discord's documentation, and who answers it.

    `major` names the parts of the path that have a limit of their own; `open` calls carry no bot token.
    """

    name: str
    method: str
    path: str
    answer: Callable[[Ask], Answer]
    major: tuple[str, ...] = ()
    open: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A request as it was read; `refusal` says what was wrong with it."""

    body: Any = field(default_factory=dict)
    files: tuple[Upload, ...] = ()
    refusal: DiscordError | None = None


async def receive(request: web.Request, most_file: int) -> Received:
    """Read a request."""
    try:
        if request.content_type == "multipart/form-data":
            return await _multipart(request, most_file)
        text = await request.text()
        return Received(body=json.loads(text) if text else {})
    except json.JSONDecodeError:
        return Received(refusal=DiscordError(50109))
    except DiscordError as error:
        return Received(refusal=error)


async def _multipart(request: web.Request, most_file: int) -> Received:
    body: Any = {}
    files: list[Upload] = []
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        content = bytes(await part.read())
        if part.name == "payload_json":
            body = json.loads(content)
            continue
        if len(content) > most_file:
            raise DiscordError(40005)
        key = (part.name or "").removeprefix("files[").removesuffix("]")
        kind = part.headers.get("Content-Type", "application/octet-stream")
        files.append(Upload(key=key, filename=part.filename or "file", content=content, content_type=kind))
    return Received(body=body, files=tuple(files))
