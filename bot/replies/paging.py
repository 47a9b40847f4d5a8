"""The messages that a content takes: within the platform's limit, the longest as a file; and what of text is safe to
add to a stream, which takes nothing back.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.markdown.lines import find_fence
from bot.markdown.splitting import LEAST, count_units, split_markdown
from bot.messages import Attachment, MessageContent

FRAME = 16  # units that a platform may put around status and footer
_SIGN = re.compile(r"[ `\[\]<>]")
_FULL = "The whole answer is too long for a message; it is in the file."


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One message of a reply; `end` is how far into the text it goes."""

    content: MessageContent
    end: int


def split_into_pages(
    content: MessageContent, limit: int, *, utf16: bool, fixed: str = "", most: int = 100, final: bool = True
) -> Sequence[Page]:
    """Lay content out as messages, of which the last one has status, footer and buttons.

    `fixed` is text that stands in messages already and is not said again. Where there would be more than `most`, a
    growing reply ends early and a final one is its beginning and a file.
    """
    start, opened = _rest(content.text, fixed)
    text = opened + content.text[start:]
    below = sum(count_units(line, utf16=utf16) + FRAME for line in (content.status, content.footer) if line)
    pieces = split_markdown(text, max(LEAST, limit - below), utf16=utf16)
    if len(pieces) > most:
        return (
            _as_file(content, pieces[0].text, pieces[0].end)
            if final
            else [Page(content=MessageContent(text=piece.text), end=piece.end) for piece in pieces[:most]]
        )
    ends = [max(0, piece.end - len(opened)) + start for piece in pieces]
    laid = [Page(content=MessageContent(text=piece.text), end=end) for piece, end in zip(pieces, ends, strict=True)]
    last = laid.pop() if laid else Page(content=MessageContent(), end=start)
    return [*laid, Page(content=dataclasses.replace(content, text=last.content.text), end=last.end)]


def cut_to_stable(text: str) -> str:
    """Return the beginning of growing text that what follows cannot change: no open code span, link or word."""
    line_start = text.rfind("\n") + 1
    if find_fence(text, line_start) is not None:
        return text[:line_start]
    end = line_start
    seen = Counter[str]()
    for found in _SIGN.finditer(text, line_start):
        seen[found[0]] += 1
        if found[0] == " " and seen["`"] % 2 == 0 and seen["["] == seen["]"] and seen["<"] == seen[">"]:
            end = found.end()
    return text[:end]


def _rest(text: str, fixed: str) -> tuple[int, str]:
    """Where the text goes on after what is fixed, and the opener of the code block that it is in there."""
    if not fixed or not text.startswith(fixed):
        return 0, ""
    fence = find_fence(text, len(fixed))
    return len(fixed), f"{fence.opener}\n" if fence else ""


def _as_file(content: MessageContent, beginning: str, end: int) -> Sequence[Page]:
    said = dataclasses.replace(content, text=_FULL, file=Attachment(name="answer.md", text=content.text))
    return [Page(content=MessageContent(text=beginning), end=end), Page(content=said, end=len(content.text))]
