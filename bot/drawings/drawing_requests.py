"""Parses a chat message that asks to draw code, and makes the drawing."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent import CodeSearch, normalize_name
from bot.drawings.call_map import Direction, map_calls
from bot.drawings.module_map import map_modules
from bot.errors import NothingToDraw
from bot.markdown import to_one_line
from bot.messages import Attachment, MessageContent
from bot.pictures.flow import Flow
from bot.pictures.flow_rendering import render_flow

USAGE = (
    "Write `draw who calls NAME`, `draw what NAME calls` or `draw the architecture of FOLDER`;"
    " `as mermaid` after that gives its source."
)
_MAX_NAME = 200
_MAX_LIST = 1_500  # characters of the list below a picture
_MAX_ALT = 1_000  # that Slack takes; Discord takes a few more

Subject = Literal["callers", "callees", "modules"]

_CALLS: dict[Subject, Direction] = {"callers": "callers", "callees": "callees"}
_ARCHITECTURE = r"(?:me )?(?:the |an? )?(?:architecture|structure|modules?|module map|map|parts|imports)"
_WHOLE = r"(?:it|all|everything|(?:the |this )?(?:whole )?repo(?:sitory)?)"
_FORMS: tuple[tuple[re.Pattern[str], Subject], ...] = (
    (re.compile(r"(?:me )?who calls (\S+)", re.IGNORECASE), "callers"),
    (re.compile(r"(?:me )?(?:the )?callers of (\S+)", re.IGNORECASE), "callers"),
    (re.compile(r"(?:me )?what (\S+) calls", re.IGNORECASE), "callees"),
    (re.compile(r"(?:me )?(?:the )?callees of (\S+)", re.IGNORECASE), "callees"),
    (re.compile(rf"{_ARCHITECTURE}()", re.IGNORECASE), "modules"),
    (re.compile(rf"{_ARCHITECTURE} of {_WHOLE}()", re.IGNORECASE), "modules"),
    (re.compile(rf"{_ARCHITECTURE} (?:of|in|below) (?:the folder )?(\S+)(?: folder)?", re.IGNORECASE), "modules"),
)
_AS_MERMAID = re.compile(r",? (?:as|in) mermaid$", re.IGNORECASE)
_IN_REPOSITORY = re.compile(r" in (\S+)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawingRequest:
    """A request for a drawing: the calls around a name, or without a `name` the modules of a folder.

    `repository` is empty if none was named.
    """

    name: str
    subject: Subject
    repository: str = ""
    as_mermaid: bool = False


def parse_drawing(text: str) -> DrawingRequest | None:
    """Parse the words after `draw`; None for anything else."""
    words = " ".join(text[: 2 * _MAX_NAME].split()).rstrip("?!. ")
    plain = _AS_MERMAID.sub("", words)
    named = _IN_REPOSITORY.search(plain)
    wish = plain[: named.start()] if named else plain
    for pattern, subject in _FORMS:
        if found := pattern.fullmatch(wish):
            return DrawingRequest(
                name=_clean_name(found[1], subject),
                subject=subject,
                repository=named[1].strip("`") if named else "",
                as_mermaid=plain != words,
            )
    return None


def choose_whole(wanted: DrawingRequest, repositories: Sequence[str]) -> DrawingRequest:
    """Tell a repository from a folder: `of shop` may mean all of a repository, and `in bot` a folder."""
    if wanted.subject != "modules":
        return wanted
    if wanted.name in repositories and not wanted.repository:
        return replace(wanted, name="", repository=wanted.name)
    if wanted.repository and not wanted.name and wanted.repository not in repositories:
        return replace(wanted, name=wanted.repository, repository="")
    return wanted


def _clean_name(written: str, subject: Subject) -> str:
    if subject == "modules":
        return written.strip("`'\"")[:_MAX_NAME]
    return normalize_name(written)[:_MAX_NAME]


async def draw(code: CodeSearch, request: DrawingRequest) -> MessageContent:
    """Return the drawing with a list of its contents, or the list with its source."""
    try:
        flow = await _map(code, request)
    except NothingToDraw as error:
        return MessageContent(text=str(error))
    if request.as_mermaid:
        return MessageContent(text=f"```mermaid\n{flow.to_mermaid()}```")
    picture = await asyncio.to_thread(render_flow, flow, "png")
    text = flow.to_text().replace("`", "'")
    if len(text) > _MAX_LIST:
        kept = text[:_MAX_LIST].rpartition("\n")[0]
        text = f"{kept}\n... and {text.count(chr(10)) - kept.count(chr(10))} lines more, in the picture"
    return MessageContent(text=f"```\n{text}\n```", file=_attach(flow, picture, request.subject))


async def _map(code: CodeSearch, request: DrawingRequest) -> Flow:
    if request.subject == "modules":
        return await map_modules(code, request.name)
    flow = await map_calls(code, request.name, _CALLS[request.subject]) if request.name else None
    if flow is None:
        name = to_one_line(request.name.replace("`", ""))
        raise NothingToDraw(f"`{name or 'that'}` is not defined in `{code.repository}`.")
    if not flow.lines:
        raise NothingToDraw(f"Nothing to draw: {flow.title} finds no calls.".replace("`", ""))
    return flow


def _attach(flow: Flow, png: bytes, subject: Subject) -> Attachment:
    return Attachment(
        name="modules.png" if subject == "modules" else "calls.png",
        text="",
        base64=base64.b64encode(png).decode("ascii"),
        alt=flow.to_text()[:_MAX_ALT],
    )
