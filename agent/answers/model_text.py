"""Makes a model's text fit to be shown: citations become marks, and nothing in it links, pings or hides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from agent.answers.exhibits import Exhibit
from agent.answers.markdown import code_span, printable
from agent.answers.marks import marks, replace
from agent.ports import Redactor
from agent.state import CitationRef
from indexer.models import Location

MAX_MARKS = 60

_PROSE = re.compile(
    r"(?P<ticks>(?<!`)`+(?!`))(?P<code>[^\n]*?[^`])(?P=ticks)(?!`)"
    r"|!?\[(?P<label>[^\[\]\n]{0,300})\](?:\([^()\n]{0,2000}(?:\([^()\n]{0,200}\)[^()\n]{0,2000})?\)|\[[^\[\]\n]{0,200}\])"
    r"|\[(?P<cited>[^\[\]\n]{1,300})\]:?(?!\()"
    r"|(?P<joint>\](?=[(:]))"  # what is left of a link within a link, or of one over several lines
    r"|(?P<address><?(?:[a-z][a-z0-9+.-]{0,20}\\?:\\?/\\?/|\b(?:www\\?\.|(?:mailto|data|javascript)\\?:))"
    r"[^\s<>\"'`]{1,2000}>?"
    r"|(?<![\w.-])(?<![\w.-]/)(?:[a-z0-9-]{1,63}\\?\.){1,6}(?:[a-z]{2,24}/[^\s<>\"'`]{0,2000}|(?:"
    r"ai|app|biz|cc|click|cn|co|com|dev|gg|info|io|link|ly|me|net|online|org|ru|site|to|top|xyz)\b(?![.-]?\w)))"
    r"|(?P<ping><[@!#&/]?[^<>\n]{1,200}>|@(?:everyone|here|channel)\w*)"
    r"|(?P<opening><(?=[a-z!/?@#&]))"
    r"|(?P<entity>&\#?\w{1,31};)",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(
    r"E?(\d{1,4})(?:\s*[:,#]?\s*(?:lines?\s*)?L?(\d{1,7})(?:\s*[-\u2013]\s*L?(\d{1,7}))?)?", re.IGNORECASE
)
_PLACE = re.compile(
    r"(?P<path>[\w.@+/-]{1,300}?)(?::|#|\s+lines?\s+)\s*L?(?P<start>\d{1,7})(?:\s*[-\u2013]\s*L?(?P<end>\d{1,7}))?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s*[,;]\s*(?=[E`\w./])|\s+and\s+", re.IGNORECASE)


class MarkMaker:
    """Turns what a model cites into numbered marks; what it makes up gets one too, for the check to take out."""

    def __init__(self, exhibits: Sequence[Exhibit], redact: Redactor) -> None:
        self._shown: Mapping[int, Location] = {one.number: one.location for one in exhibits}
        self._redact = redact
        self._marks: dict[Location, int] = {}

    @property
    def citations(self) -> list[CitationRef]:
        """What the marks stand for."""
        return [
            {"mark": mark, "path": at.path, "start_line": at.start_line, "end_line": at.end_line}
            for at, mark in self._marks.items()
        ]

    def prose(self, text: str) -> str:
        """Clean text that stands outside of code blocks; the same beginning always gives the same marks."""
        return self._cleaned(self._redact(printable(text)))

    def code(self, text: str) -> str:
        """Clean a line of a code block."""
        return self._redact(printable(text))

    def _cleaned(self, text: str) -> str:
        """Put each construct in its harmless form; backticks are left only where they open and close a code span."""
        pieces: list[str] = []
        end = 0
        for found in _PROSE.finditer(text):
            pieces += [text[end : found.start()].replace("`", "'"), self._put(found)]
            end = found.end()
        return _joined([*pieces, text[end:].replace("`", "'")])

    def _put(self, found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found[0]
        if found["label"] is not None:
            return self._cited(found["label"]) or self._cleaned(found["label"])
        if found["cited"] is not None:
            return self._bracket(found)
        if found["joint"] is not None:
            return "] "
        return code_span(found[0], longest=200)

    def _bracket(self, found: re.Match[str]) -> str:
        """Return marks for a citation; a bare number is one only where it stands by itself and was shown."""
        inner = found["cited"].strip()
        if inner.isdigit():
            is_index = bool(found.start()) and (found.string[found.start() - 1].isalnum())
            if is_index or int(inner[:6]) not in self._shown:
                return code_span(found[0])  # it must not be taken for a mark
        colon = ":" if found[0].endswith(":") else ""
        if cited := self._cited(inner):
            # At the beginning of a line `[1]: words` would make a link of every mark.
            begins_line = not found.string[: found.start()].strip(" \t>-*+0123456789.)")
            return f"{cited} {colon}" if colon and begins_line else cited + colon
        if colon:  # `[name]: address` would make links
            return code_span(f"[{inner}]") + colon
        return f"[{self._cleaned(found['cited'])}]"

    def _cited(self, inner: str) -> str:
        """Return the marks for what stands in brackets; nothing if any of it is no citation."""
        places = [self._place(item.strip().strip("`").strip()) for item in _BETWEEN.split(inner)]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            return ""
        return "".join(f"[{self._number(place)}]" for place in dict.fromkeys(known))

    def _place(self, item: str) -> Location | None:
        if (evidence := _EVIDENCE.fullmatch(item)) is not None:
            return self._of_evidence(int(evidence[1]), int(evidence[2] or 0), int(evidence[3] or 0))
        written = _PLACE.fullmatch(item)
        if written is None or not ("." in written["path"] or "/" in written["path"]):
            return None
        start = int(written["start"])
        return Location(path=written["path"], start_line=start, end_line=int(written["end"] or start))

    def _of_evidence(self, number: int, start: int, end: int) -> Location:
        shown = self._shown.get(number)
        if shown is None:
            return Location(path=f"E{number}", start_line=0, end_line=0)
        if not start:
            return shown
        return Location(path=shown.path, start_line=start, end_line=end or start)

    def _number(self, place: Location) -> int:
        if place not in self._marks and len(self._marks) >= MAX_MARKS:
            place = Location(path="", start_line=0, end_line=0)
        return self._marks.setdefault(place, len(self._marks) + 1)


def inert(sentence: str, redact: Redactor) -> str:
    """Clean a model's sentence that has nothing to cite."""
    cleaned = MarkMaker((), redact).prose(sentence)
    return replace(cleaned, [""] * len(marks(cleaned))).strip()


def _joined(pieces: Iterable[str]) -> str:
    """Put pieces together so that they stay what they are: no mark becomes a link, no code span loses its delimiter."""
    text = ""
    for piece in filter(None, pieces):
        # A mark may be taken out later, so that a code span must not lean on one either.
        merges = (piece[0] == "`" and text[-1:] in {"`", "\\", "]"}) or (piece[0] == "(" and text[-1:] == "]")
        text += f" {piece}" if merges else piece
    return text
