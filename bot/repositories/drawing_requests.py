"""What people want drawn of the code in a chat, read from their words, and the drawing as a message."""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import dataclass

from agent import CodeSearch, normalize_name
from bot.messages import Attachment, MessageContent
from bot.pictures.flow import Flow
from bot.pictures.flow_rendering import render_flow
from bot.repositories.call_map import Direction, map_calls

USAGE = "Write `draw who calls NAME` or `draw what NAME calls`; `as mermaid` after that gives its source."
_LONGEST_NAME = 200
_LONGEST_LIST = 1_500  # characters of the list that stands beside a picture
_LONGEST_ALT = 1_000  # that Slack takes; Discord takes a few more
_FORMS: tuple[tuple[re.Pattern[str], Direction], ...] = (
    (re.compile(r"(?:me )?who calls (\S+)", re.IGNORECASE), "callers"),
    (re.compile(r"(?:me )?(?:the )?callers of (\S+)", re.IGNORECASE), "callers"),
    (re.compile(r"(?:me )?what (\S+) calls", re.IGNORECASE), "callees"),
    (re.compile(r"(?:me )?(?:the )?callees of (\S+)", re.IGNORECASE), "callees"),
)
_AS_MERMAID = re.compile(r" as mermaid$", re.IGNORECASE)
_IN_REPOSITORY = re.compile(r" in (\S+)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawingRequest:
    """What is to be drawn; `repository` is empty where none was named."""

    name: str
    direction: Direction
    repository: str = ""
    as_mermaid: bool = False


def parse_drawing(text: str) -> DrawingRequest | None:
    """Read what comes after `draw`; None for what is no such wish."""
    words = " ".join(text[: 2 * _LONGEST_NAME].split()).rstrip("?!. ")
    plain = _AS_MERMAID.sub("", words)
    named = _IN_REPOSITORY.search(plain)
    wish = plain[: named.start()] if named else plain
    for pattern, direction in _FORMS:
        if found := pattern.fullmatch(wish):
            return DrawingRequest(
                name=normalize_name(found[1])[:_LONGEST_NAME],
                direction=direction,
                repository=named[1].strip("`") if named else "",
                as_mermaid=plain != words,
            )
    return None


async def draw(code: CodeSearch, request: DrawingRequest) -> MessageContent:
    """Return the drawing with what it shows as a list, or the list with the source of it."""
    flow = await map_calls(code, request.name, request.direction) if request.name else None
    if flow is None:
        return MessageContent(text=f"`{request.name.replace('`', '')}` is not defined in `{code.repository}`.")
    if not flow.lines:
        return MessageContent(text=f"Nothing to draw: {flow.title} finds no calls.".replace("`", ""))
    if request.as_mermaid:
        return MessageContent(text=f"```mermaid\n{flow.to_mermaid()}```")
    picture = await asyncio.to_thread(render_flow, flow, "png")
    return MessageContent(text=_list_lines(flow), file=_attach(flow, picture.content))


def _list_lines(flow: Flow) -> str:
    """Write the list as code, in which nothing of a name is markup."""
    text = flow.to_text().replace("`", "'")
    if len(text) > _LONGEST_LIST:
        kept = text[:_LONGEST_LIST].rpartition("\n")[0]
        text = f"{kept}\n... and {text.count(chr(10)) - kept.count(chr(10))} lines more, in the picture"
    return f"```\n{text}\n```"


def _attach(flow: Flow, png: bytes) -> Attachment:
    return Attachment(
        name="calls.png",
        text="",
        base64=base64.b64encode(png).decode("ascii"),
        alt=flow.to_text()[:_LONGEST_ALT],
    )
