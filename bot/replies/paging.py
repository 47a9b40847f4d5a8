"""Splits content into messages within the platform's limit, or a file, and finds text that is safe to stream.

A stream takes nothing back.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.text.escaping import format_code_block
from bot.markdown.formatting import break_pings
from bot.markdown.splitting import MIN, count_units, find_fence, split_markdown
from bot.messages import Attachment, Capabilities, MessageContent

FRAME = 16  # units that a platform may put around status and footer
_SIGN = re.compile(r"[ `\[\]<>]")
_FULL = "The whole answer is too long for a message; it is in the file."
_BEGINNING = " This is its beginning."
_CUT = "The rest is too long for a message."


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One message of a reply; `end` is its last position in the text."""

    content: MessageContent
    end: int


def split_into_pages(
    content: MessageContent,
    limit: int,
    *,
    utf16: bool,
    escaped: bool = False,
    fixed: str = "",
    most: int = 100,
    final: bool = True,
) -> Sequence[Page]:
    """Split content into messages, the last of which has status, footer and buttons.

    `fixed` is text already shown, which is not repeated. If there would be more than `most`, a
    growing reply ends early, and a final one is its beginning and a file.
    """
    start, opener = _find_rest(content.text, fixed)
    text = opener + content.text[start:]
    places = ", ".join(f"[`{place.name}`]({place.url})" for place in content.found)
    below = sum(
        count_units(line, utf16=utf16, escaped=escaped) + FRAME
        for line in (content.status, places, content.footer)
        if line
    )
    pieces = split_markdown(text, max(MIN, limit - below), utf16=utf16, escaped=escaped)
    if len(pieces) > most:
        if not final:
            return [Page(content=MessageContent(text=piece.text), end=piece.end) for piece in pieces[:most]]
        beginning = Page(content=MessageContent(text=pieces[0].text), end=pieces[0].end)
        file = content.file or Attachment(name="answer.md", text=content.text)
        said = _CUT if content.file is not None else _FULL
        return [beginning, Page(content=dataclasses.replace(content, text=said, file=file), end=len(content.text))]
    ends = [max(0, piece.end - len(opener)) + start for piece in pieces]
    pages = [Page(content=MessageContent(text=piece.text), end=end) for piece, end in zip(pieces, ends, strict=True)]
    last = pages.pop() if pages else Page(content=MessageContent(), end=start)
    return [*pages, Page(content=dataclasses.replace(content, text=last.content.text), end=last.end)]


def show_without_file(content: MessageContent, why: str, able: Capabilities) -> MessageContent:
    """Return a message with the beginning of its file as a code block, as room allows, and the reason."""
    file = content.file
    if file is None:
        return content
    said = f"{content.text}\n\nThe file could not be attached: {why}"
    lines = break_pings(file.text).split("\n") if file.language else []
    bare = dataclasses.replace(content, file=None)
    below = sum(FRAME + _measure(line, able) for line in (content.status, content.footer) if line)
    room = able.max_units - below
    shown = 0
    used = _measure(f"{said}{_BEGINNING}\n\n{format_code_block([], file.language)}", able) + 2 * FRAME
    while shown < len(lines) and (used := used + 1 + _measure(lines[shown], able)) <= room:
        shown += 1
    if not shown:
        return dataclasses.replace(bare, text=said)
    remark = _BEGINNING if shown < len(lines) else ""
    block = format_code_block(lines[:shown], file.language)
    return dataclasses.replace(bare, text=f"{said}{remark}\n\n{block}")


def _measure(text: str, able: Capabilities) -> int:
    return count_units(text, utf16=able.utf16, escaped=able.escapes)


def cut_to_stable(text: str) -> str:
    """Return the beginning of growing text that later text cannot change: no open code span, link or word."""
    line_start = text.rfind("\n") + 1
    if find_fence(text, line_start) is not None:
        return text[:line_start]
    end = line_start
    counts = Counter[str]()
    for found in _SIGN.finditer(text, line_start):
        counts[found[0]] += 1
        if found[0] == " " and counts["`"] % 2 == 0 and counts["["] == counts["]"] and counts["<"] == counts[">"]:
            end = found.end()
    return text[:end]


def _find_rest(text: str, fixed: str) -> tuple[int, str]:
    """Find where the text continues after the fixed part, and the opener of an unfinished code block."""
    if not fixed or not text.startswith(fixed):
        return 0, ""
    fence = find_fence(text, len(fixed))
    return len(fixed), f"{fence.opener}\n" if fence else ""
