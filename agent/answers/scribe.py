"""Sends a model's text out while it is written, cleaned, and never half of a citation, a link or a code span."""

from __future__ import annotations

import re

from agent.answers.marks import Fences
from agent.answers.model_text import MarkMaker
from agent.ports import Deps

LONGEST_ANSWER = 16_000
_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)*(?:(?P<fence>`{3,}[^`\n]*)|~{3,}.*)")
_LONGEST_WAIT = 400  # characters held back for the end of a construct that may never come


class Scribe:
    """Takes pieces of raw text; `text` is the answer so far as it was sent out."""

    def __init__(self, deps: Deps, marks: MarkMaker) -> None:
        self._deps = deps
        self._marks = marks
        self._fences = Fences()
        self._lines: list[str] = []
        self._line = ""
        self._sent = ""
        self._length = 0

    @property
    def is_full(self) -> bool:
        """Whether the answer is as long as one may be."""
        return self._length >= LONGEST_ANSWER

    @property
    def has_said(self) -> bool:
        """Whether anything has gone out."""
        return bool(self._sent)

    def write(self, piece: str) -> None:
        """Take a piece, and send out what is complete."""
        piece = piece[: max(0, LONGEST_ANSWER - self._length)]
        self._length += len(piece)
        *whole, rest = (self._line + piece.replace("\r\n", "\n")).split("\n")
        for line in whole:
            self._lines.append(self._clean(line))
        self._line = rest
        self._send("\n".join([*self._lines, self._opening()]))

    def close(self, remark: str) -> None:
        """End a text that was cut: what is open is closed, and a remark of ours follows."""
        self._lines.append(self._clean(self._line))
        self._line = ""
        if self._fences.open:
            self._lines.append(self._fences.open)
            self._fences = Fences()
        self._lines += ["", remark]

    def finish(self) -> str:
        """Send out the rest, close what is open, and return the answer."""
        self._lines.append(self._clean(self._line))
        self._line = ""
        if self._fences.open:
            self._lines.append(self._fences.open)
        whole = "\n".join(self._lines).strip()
        text = self._deps.redact(whole)  # a secret may go over several lines
        self._send(text)
        if text != self._sent:
            self._sent = text
            self._deps.emit("reset", text=text)
        return text

    def _clean(self, line: str) -> str:
        line = _plain_fence(line, is_open=bool(self._fences.open))
        return self._marks.code(line) if self._fences.take(line) else self._marks.prose(line)

    def _opening(self) -> str:
        """Return what can be shown of the line that is being written."""
        if self._fences.open or self._line.lstrip()[:1] in {"`", "~"}:
            return ""
        cut = self._line.rfind(" ") + 1
        while cut and not _is_complete(self._line[:cut]) and len(self._line) - cut < _LONGEST_WAIT:
            cut = self._line.rfind(" ", 0, cut - 1) + 1
        return self._marks.prose(self._line[:cut]) if _is_complete(self._line[:cut]) else ""

    def _send(self, text: str) -> None:
        """Send what is new; where the beginning has changed, `finish` puts it right."""
        text = text.strip()
        if text.startswith(self._sent) and len(text) > len(self._sent):
            self._deps.emit("token", text=text[len(self._sent) :])
            self._sent = text


def _plain_fence(line: str, *, is_open: bool) -> str:
    """Put the fence of a code block where every reader of Markdown sees one: of backticks, in the first column.

    In an item of a list it would end with the item, and not everybody knows tildes.
    """
    if is_open:
        return line.lstrip() if line.lstrip().startswith("```") else line
    found = _FENCE.fullmatch(line)
    return line if found is None else found["fence"] or ""


def _is_complete(text: str) -> bool:
    """Whether no code span, bracket, link or tag is open at the end."""
    if text.count("`") % 2 or text.count("[") != text.count("]") or text.count("<") > text.count(">"):
        return False
    return text.rfind("](") <= text.rfind(")")
