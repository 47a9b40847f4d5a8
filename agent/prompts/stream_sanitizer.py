"""Sends a model's text while it is written: cleaned, and never half of a citation, a link or a code span."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from agent.ports import Deps
from agent.prompts.model_text import CitationParser
from agent.text.code_fences import CodeBlockScanner, move_fence_to_margin

LONGEST_ANSWER = 16_000
_KEY_BEGINS = re.compile(r"-BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_ENDS = re.compile(r"-END [A-Z0-9 ]{0,40}PRIVATE KEY|^\s*(?:`{3}|~{3})")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_FOREIGN_LINES = 4  # without any of a key, after which none is awaited
_CONTEXT_LINES = 2  # before a line, in which the name of its secret may stand
_CITING = (("(", ")"), ("\uff08", "\uff09"), ("\u3010", "\u3011"), ("\uff3b", "\uff3d"))  # brackets beside []
_CITES = re.compile(r"[(\uff08\u3010\uff3b](?:[^\W\d]{2,5}\.?\s|\s)?(?:E\d[^()\uff09\u3011\uff3d]{0,120})?\Z")
_LONGEST_WAIT = 400  # characters held back for the end of a construct that may never come
_LONGEST_OPENING = 2_000  # characters of a line that is shown while it is written: all of it is read at each piece


class StreamSanitizer:
    """Takes pieces of raw text. Where it `holds` them, nothing is sent before `finish` has checked the whole.

    `check` raises a `ModelError` for an answer that must not be given.
    """

    def __init__(
        self, deps: Deps, marks: CitationParser, *, holds: bool = False, check: Callable[[str], None] = lambda _: None
    ) -> None:
        self._deps = deps
        self._marks = marks
        self._holds = holds
        self._check = check
        self._fences = CodeBlockScanner()
        self._lines: list[str] = []
        self._line = ""
        self._recent: deque[str] = deque(maxlen=_CONTEXT_LINES)
        self._key: list[str] = []  # lines held back since a block of a private key began
        self._sent = ""
        self._length = 0

    @property
    def is_full(self) -> bool:
        """Whether the answer is as long as one may be."""
        return self._length >= LONGEST_ANSWER

    @property
    def has_sent(self) -> bool:
        """Whether any text was sent."""
        return bool(self._sent)

    def write(self, piece: str) -> None:
        """Take a piece, and send what is complete."""
        piece = piece[: max(0, LONGEST_ANSWER - self._length)]
        self._length += len(piece)
        *whole, rest = (self._line + piece.replace("\r\n", "\n")).split("\n")
        for line in whole:
            self._add_line(line)
        self._line = rest
        if not self._holds:
            self._send("\n".join([*self._lines, self._clean_opening()]))

    def close(self, remark: str) -> None:
        """End a text that was cut: what is open is closed, and a remark of ours follows."""
        self._take_rest()
        if self._fences.fence:
            self._lines.append(self._fences.fence.run)
            self._fences = CodeBlockScanner()
        self._lines += ["", remark]

    def finish(self) -> str:
        """Close what is open, check the whole, send the rest, and return the answer."""
        self._take_rest()
        if self._fences.fence:
            self._lines.append(self._fences.fence.run)
        whole = "\n".join(self._lines).strip()
        text = self._deps.masked.hide(self._deps.redact(whole))  # a secret may go over several lines
        self._check(text)
        self._send(text)
        if text != self._sent:
            self._sent = text
            self._deps.emit("reset", text=text)
        return text

    def _add_line(self, line: str) -> None:
        """Take a whole line; those of a private key wait for its end, as no line shows by itself what it is."""
        if not self._key and not _KEY_BEGINS.search(line):
            self._lines.append(self._clean(line))
            return
        self._key.append(line)
        foreign = not any(map(_KEY_LINE.search, self._key[-_FOREIGN_LINES:])) and len(self._key) > _FOREIGN_LINES
        if foreign or _KEY_ENDS.search(line):
            self._flush_key()

    def _take_rest(self) -> None:
        self._add_line(self._line)
        self._line = ""
        self._flush_key()

    def _flush_key(self) -> None:
        held, self._key = self._deps.redact("\n".join(self._key)), []
        self._lines += [self._clean(line) for line in held.split("\n")] if held else []

    def _mask(self, line: str) -> str:
        """Mask a line as what it is below the lines before it."""
        return self._deps.redact("\n".join([*self._recent, line])).rpartition("\n")[2]

    def _clean(self, line: str) -> str:
        masked = self._mask(line)
        self._recent.append(line)
        line = move_fence_to_margin(masked, is_open=self._fences.fence is not None)
        return self._marks.code(line) if self._fences.take(line) else self._marks.prose(line)

    def _clean_opening(self) -> str:
        """Return what can be shown of the line that is being written."""
        is_hidden = bool(self._fences.fence or self._key) or len(self._line) > _LONGEST_OPENING
        if is_hidden or self._line.lstrip()[:1] in {"`", "~"}:
            return ""
        cut = self._line.rfind(" ") + 1
        while cut and not _is_complete(self._line[:cut]) and len(self._line) - cut < _LONGEST_WAIT:
            cut = self._line.rfind(" ", 0, cut - 1) + 1
        return self._marks.prose(self._mask(self._line[:cut])) if _is_complete(self._line[:cut]) else ""

    def _send(self, text: str) -> None:
        """Send what is new; where the beginning has changed, `finish` corrects it."""
        text = text.strip()
        if text.startswith(self._sent) and len(text) > len(self._sent):
            self._deps.emit("token", text=text[len(self._sent) :])
            self._sent = text


def _is_complete(text: str) -> bool:
    """Whether no code span, bracket, link or tag is open at the end."""
    if text.count("`") % 2 or text.count("[") != text.count("]") or text.count("<") > text.count(">"):
        return False
    if any(text.rfind(opening) > text.rfind(closing) for opening, closing in _CITING) and _CITES.search(text[-160:]):
        return False
    return text.rfind("](") <= text.rfind(")")
