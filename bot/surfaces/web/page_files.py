"""The files of the page: templates, which escape everything, and static files, named by their contents."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from importlib import resources

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from bot.markdown import format_dollars, to_one_line
from bot.questions.descriptions import format_age
from bot.surfaces.web.answer_markup import is_web_address

HOME = "bot.surfaces.web"
STATIC = "/static"
# Only these are served. The licence of htmx is next to it, and its checksum is in the tests.
STATIC_FILES: Mapping[str, str] = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "htmx-2.0.11.min.js": "text/javascript",
    "citebot.svg": "image/svg+xml",
}
_MAX_NAME = 300
_FOR_GOOD = "public, max-age=31536000, immutable"


class PageFiles:
    """Reads the files once and serves them from memory, so that no request path is ever opened.

    A package with its own page adds templates and named static files, with their types.
    """

    def __init__(self, package: str = HOME, more: Mapping[str, str] | None = None) -> None:
        self._types = {**STATIC_FILES, **(more or {})}
        folders = {name: resources.files(package if name in (more or {}) else HOME) for name in self._types}
        self._static = {name: folder.joinpath("static", name).read_bytes() for name, folder in folders.items()}
        self._addresses = {
            name: f"{STATIC}/{hashlib.sha256(content).hexdigest()[:12]}/{name}"
            for name, content in self._static.items()
        }
        self._templates = Environment(
            loader=ChoiceLoader([PackageLoader(each) for each in dict.fromkeys((package, HOME))]), autoescape=True,
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= _FILTERS
        self._templates.globals |= {
            "static": self._addresses.__getitem__, "is_web_address": is_web_address, "write_lines": format_lines,
        }  # fmt: skip

    def define(self, name: str, value: object) -> None:
        """Define a name for templates."""
        self._templates.globals[name] = value

    def render(self, template: str, /, **values: object) -> Markup:
        """Return a page, or a part of one."""
        return Markup(self._templates.get_template(template).render(**values))  # noqa: S704 - the template escapes

    def call(self, template: str, macro: str, /, *values: object) -> Markup:
        """Return the output of a template's macro."""
        module = self._templates.get_template(template).module
        return Markup(getattr(module, macro)(*values))  # noqa: S704 - as above

    def join(self, router: Router) -> None:
        """Serve the static files."""
        router.routes += [Route(address, self._send) for address in self._addresses.values()]

    async def _send(self, request: Request) -> Response:
        name = request.scope["path"].rpartition("/")[2]
        headers = {"Cache-Control": _FOR_GOOD, "X-Content-Type-Options": "nosniff"}
        return Response(self._static[name], 200, headers, self._types[name])


def format_seconds(seconds: float) -> str:
    """Write a duration: `12 ms`, `3.4 s`, `2 min 5 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def format_time(seconds: float) -> str:
    """Write a time of the epoch as local time: `14:05`."""
    return time.strftime("%H:%M", time.localtime(seconds))


def format_count(count: int) -> str:
    """Write a number with thousands separators."""
    return f"{count:,}"


def format_percentage(share: float | None) -> str:
    """Write a share as a percentage; a dash without a total."""
    return "–" if share is None else f"{share * 100:.0f} %" if share >= 0.1 or share == 0 else f"{share * 100:.1f} %"


def format_lines(first: int, last: int) -> str:
    """Name lines: `12` or `12-20`."""
    return str(first) if first == last else f"{first}-{last}"


def format_name(text: str) -> str:
    """Write an outside name, such as a path, safely in one line."""
    line = to_one_line(text)
    return line if len(line) <= _MAX_NAME else f"…{line[1 - _MAX_NAME :]}"


def format_stage(text: str) -> Markup:
    """Describe a stage, with its names as code."""
    parts = to_one_line(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 and number < len(parts) - 1 else escape(part)
        for number, part in enumerate(parts)
    )


def count_things(count: int, thing: str) -> str:
    """Write a number of things: `1 call`, `2 calls`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


_FILTERS: Mapping[str, Callable[..., object]] = {
    "age": format_age,
    "count": format_count,
    "dollars": format_dollars,
    "name": format_name,
    "percentage": format_percentage,
    "seconds": format_seconds,
    "stage": format_stage,
    "things": count_things,
    "time": format_time,
}
