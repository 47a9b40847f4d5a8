"""Makes a model's text safe while it streams: citations become markers; nothing links, pings or hides."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agent.citations.written_citations import WrittenCitation, parse_citations
from agent.ports import Deps
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import CitationRef, to_citation
from agent.text.citation_markers import find_markers, format_marker, replace_markers
from agent.text.code_marks import CodeBlockScanner, Spans, move_fence_to_margin
from agent.text.escaping import format_code_span, replace_control_characters
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Location

MAX_MARKS = 60

_PROSE = re.compile(
    r"!?\[(?P<label>[^\[\]\n]{0,300})\](?:\([^()\n]{0,2000}(?:\([^()\n]{0,200}\)[^()\n]{0,2000})?\)|\[(?P<ref>[^\[\]\n]{0,200})\])"
    r"|\[\[(?P<double>\s?E\d[^\[\]\n]{0,300})\]\]"
    r"|\[(?P<cited>[^\[\]\n]{1,300})\]:?"
    r"|[\u3010\uff3b\uff08](?P<wide>[^\u3010\u3011\uff3b\uff3d\uff08\uff09\n]{1,300})[\u3011\uff3d\uff09]"
    r"|(?<![A-Za-z0-9_])\((?P<round>(?:(?:see|cf\.?|siehe|vgl\.?|voir|ver|vedi)\s)?\s?E\d[^()\n]{0,120})\)"
    r"|(?P<joint>\](?=[(:]))"  # leftovers of a nested link, or of one over several lines
    r"|(?P<address><?(?:[a-z][a-z0-9+.-]{0,20}\\?:\\?/\\?/|\b(?:www\\?\.|(?:mailto|data|javascript)\\?:))"
    r"[^\s<>\"'`]{1,2000}>?"
    r"|(?<![\w.-])(?<![\w.-]/)(?:[a-z0-9-]{1,63}\\?\.){1,6}(?:[a-z]{2,24}/[^\s<>\"'`]{0,2000}|(?:"
    r"ai|app|biz|cc|click|cn|co|com|dev|gg|info|io|link|ly|me|net|online|org|ru|site|to|top|xyz)\b(?![.-]?\w)))"
    r"|(?P<ping><[@!#&/]?[^<>\n]{1,200}>|@(?:everyone|here|channel)\w*)"
    r"|(?P<opening><(?=[a-z!/?@#&]))"
    r"|(?P<entity>&\#?\w{1,31};)",
    re.IGNORECASE,
)
_PLACE = compile_pattern(
    r"(?i)(?P<path>[\w.@+/-]+?)(?::|#|\s+lines?\s+)\s*L?(?P<start>\d{1,7})(?:\s*[-\x{2013}]\s*L?(?P<end>\d{1,7}))?"
)
_COMMIT = re.compile(r"(?:commit\s{1,3})?`?(?P<sha>[0-9a-f]{7,40})`?", re.IGNORECASE)
_ID = re.compile(
    r"E\d{1,4}[\s:,]{1,3}(?=[\w.@+/-]{0,200}[./]|commit\s)", re.IGNORECASE
)  # before a place that it stands for
_BETWEEN = re.compile(r"[,;]\s*(?=[E`\w./])|\sand\s", re.IGNORECASE)
_WRITTEN_ID = re.compile(r"\bE\d", re.IGNORECASE)
_OPENING, _CLOSING = frozenset("[(\u3010\uff3b"), frozenset("])\u3011\uff3d")
_BEFORE_WORDS = " \t>-*+0123456789.)"  # the prefix of a line in a list or a quotation


class CitationParser:
    """Turns a model's citations into numbered markers; invented ones get one too, which the check removes."""

    def __init__(self, exhibits: Sequence[PromptEvidence], redact: Callable[[str], str]) -> None:
        self._shown: Mapping[int, Location] = {one.number: one.location for one in exhibits}
        self._redact = redact
        self._marks: dict[Location, int] = {}

    @property
    def citations(self) -> list[CitationRef]:
        """The citations behind the markers."""
        return [to_citation(mark, at) for at, mark in self._marks.items()]

    def prose(self, text: str) -> str:
        """Clean text outside code blocks; the same beginning always gives the same markers."""
        return self._clean_text(self._redact(replace_control_characters(text)))

    def code(self, text: str) -> str:
        """Clean a line of a code block."""
        return self._redact(replace_control_characters(text))

    def _clean_text(self, text: str) -> str:
        """Make each construct harmless; keep backticks only around code spans."""
        pieces: list[str] = []
        end = 0
        for start, stop, replacement in self._find_constructs(text):
            pieces += [text[end:start].replace("`", "'"), replacement]
            end = stop
        return _join_pieces([*pieces, text[end:].replace("`", "'")])

    def _find_constructs(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Find code spans and other constructs in order, each with its replacement."""
        spans = Spans(text)
        beginning = len(text) - len(text.lstrip(_BEFORE_WORDS))
        end = 0
        found = _PROSE.search(text)
        span = spans.next_from(0)
        while found or span:
            if span and (found is None or span[0] < found.start()):
                yield *span, self._format_quoted(text[slice(*span)])
                end = span[1]
            elif found:
                yield *found.span(), self._replace_construct(found, begins_line=found.start() <= beginning)
                end = found.end()
            if found and found.start() < end:
                found = _PROSE.search(text, end)
            span = spans.next_from(end)

    def _replace_construct(self, found: re.Match[str], *, begins_line: bool) -> str:
        if found["label"] is not None:
            marks = self._format_citations(found["label"]) + self._format_citations(found["ref"] or "")
            return marks or self._clean_text(found["label"])
        if found["cited"] is not None:
            return self._replace_bracket(found, begins_line=begins_line)
        for group in ("double", "wide", "round"):
            if found[group] is not None:
                return self._format_shown(found[group]) or self._clean_brackets(found, group)
        if found["joint"] is not None:
            return "] "
        return format_code_span(found[0], longest=200)

    def _replace_bracket(self, found: re.Match[str], *, begins_line: bool) -> str:
        """Return markers for a citation; a bare number is none: it may be a mark from an earlier answer."""
        inner = found["cited"].strip().removeprefix("^")
        if inner.isdigit():
            return format_code_span(found[0])  # it must not be taken for a marker
        colon = ":" if found[0].endswith(":") else ""
        if cited := self._format_citations(inner):
            # At the beginning of a line `[1]: words` would make a link of every marker.
            return f"{cited} {colon}" if colon and begins_line else cited + colon
        if colon:  # `[name]: address` would make links
            return format_code_span(f"[{inner}]") + colon
        return f"[{self._clean_text(found['cited'])}]"

    def _clean_brackets(self, found: re.Match[str], group: str) -> str:
        """Clean the contents of brackets that stay."""
        before, after = found.start(group) - found.start(), found.end() - found.end(group)
        return f"{found[0][:before]}{self._clean_text(found[group])}{found[0][-after:]}"

    def _format_quoted(self, span: str) -> str:
        """Return the markers for a code span that is only a citation; any other span is code."""
        quoted = span.strip("`").strip()
        is_bracketed = quoted[:1] in _OPENING and quoted[-1:] in _CLOSING
        return self._format_shown(quoted[1:-1]) or span if is_bracketed else span

    def _format_shown(self, inner: str) -> str:
        """Return the markers for a citation in unusual brackets if all of it was shown; otherwise it is text."""
        if any(written.number not in self._shown for written in parse_citations(inner)):
            return ""
        return self._format_citations(inner) if _WRITTEN_ID.search(inner) else ""

    def _format_citations(self, inner: str) -> str:
        """Return the markers for bracketed citations; nothing if any of it is no citation."""
        places: list[Location | None] = [self._locate(written) for written in parse_citations(inner)]
        if not places:
            items = _BETWEEN.split(inner)
            places = [place for item in items for place in self._parse_item(item.strip().strip("`").strip())]
        known = [place for place in places if place is not None]
        if not known or len(known) < len(places):
            return ""
        return "".join(format_marker(self._assign_number(place)) for place in dict.fromkeys(known))

    def _parse_item(self, item: str) -> list[Location | None]:
        """Parse evidence by number, or lines of a file by path, with an optional number before it."""
        if written := parse_citations(item):
            return [self._locate(one) for one in written]
        if named := _COMMIT.fullmatch(_ID.sub("", item, count=1)):
            return [self._find_commit(named["sha"].lower())]
        place = _PLACE.fullmatch(_ID.sub("", item, count=1))
        if place is None or not ("." in place["path"] or "/" in place["path"]):
            return [None]
        start = int(place["start"])
        return [Location(path=place["path"], start_line=start, end_line=int(place["end"] or start))]

    def _find_commit(self, sha: str) -> Location | None:
        """Return the one shown commit with this prefix."""
        found = {at for at in self._shown.values() if not at.path and at.commit.startswith(sha)}
        return next(iter(found)) if len(found) == 1 else None

    def _locate(self, written: WrittenCitation) -> Location:
        shown = self._shown.get(written.number, Location(path=f"E{written.number}", start_line=0, end_line=0))
        if written.number not in self._shown or not written.start or not shown.path:
            return shown
        return replace(shown, start_line=written.start, end_line=written.end)

    def _assign_number(self, place: Location) -> int:
        if place not in self._marks and len(self._marks) >= MAX_MARKS:
            place = Location(path="", start_line=0, end_line=0)
        return self._marks.setdefault(place, len(self._marks) + 1)


def clean_model_sentence(sentence: str, redact: Callable[[str], str]) -> str:
    """Clean a model's sentence that has nothing to cite."""
    cleaned = CitationParser((), redact).prose(sentence)
    return replace_markers(cleaned, [""] * len(find_markers(cleaned))).strip()


def _join_pieces(pieces: Iterable[str]) -> str:
    """Join pieces without changing them: no marker becomes a link, no code span loses its delimiter."""
    joined: list[str] = []
    last = ""
    for piece in filter(None, pieces):
        # A marker may be taken out later, so that a code span must not lean on one either.
        if (piece[0] == "`" and last in {"`", "\\", "]"}) or (piece[0] == "(" and last == "]"):
            joined.append(" ")
        joined.append(piece)
        last = piece[-1]
    return "".join(joined)


LONGEST_ANSWER = 16_000
_KEY_BEGINS = re.compile(r"-BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_ENDS = re.compile(r"-END [A-Z0-9 ]{0,40}PRIVATE KEY|^\s*(?:`{3}|~{3})")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_FOREIGN_LINES = 4  # without any of a key, after which none is awaited
_CONTEXT_LINES = 2  # before a line that may contain the name of its secret
_CITING = (("(", ")"), ("\uff08", "\uff09"), ("\u3010", "\u3011"), ("\uff3b", "\uff3d"))  # brackets beside []
_CITES = re.compile(r"[(\uff08\u3010\uff3b](?:[^\W\d]{2,5}\.?\s|\s)?(?:E\d[^()\uff09\u3011\uff3d]{0,120})?\Z")
_MAX_WAIT = 400  # characters held back for the end of a construct that may never come
_MAX_OPENING = 2_000  # characters of a line that is shown while it is written: all of it is read at each piece


class StreamSanitizer:
    """Takes pieces of raw text. If it `holds` them, nothing is sent before `finish` has checked the whole.

    `check` raises a `ModelError` for a forbidden answer.
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
    def output_text(self) -> str:
        """The text sent so far."""
        return self._sent

    def write(self, piece: str) -> None:
        """Take a piece, and send the complete part."""
        piece = piece[: max(0, LONGEST_ANSWER - self._length)]
        self._length += len(piece)
        *whole, rest = (self._line + piece.replace("\r\n", "\n")).split("\n")
        for line in whole:
            self._add_line(line)
        self._line = rest
        if not self._holds:
            self._send("\n".join([*self._lines, self._clean_opening()]))

    def drop_word(self) -> int:
        """Drop the unfinished word at the end, which was not sent; return its length."""
        kept = self._line[: self._line.rfind(" ") + 1]
        dropped = len(self._line) - len(kept)
        self._line = kept
        return dropped

    def close(self, remark: str) -> None:
        """End a cut text: close open constructs, and add a remark."""
        self._take_rest()
        if self._fences.fence:
            self._lines.append(self._fences.fence.run)
            self._fences = CodeBlockScanner()
        self._lines += ["", remark]

    def finish(self) -> str:
        """Close open constructs, check the whole, send the rest, and return the answer."""
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
        """Take a whole line; hold the lines of a private key until its end, because no single line reveals it."""
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
        """Mask a line in the context of the lines before it."""
        return self._deps.redact("\n".join([*self._recent, line])).rpartition("\n")[2]

    def _clean(self, line: str) -> str:
        masked = self._mask(line)
        self._recent.append(line)
        line = move_fence_to_margin(masked, is_open=self._fences.fence is not None)
        return self._marks.code(line) if self._fences.take(line) else self._marks.prose(line)

    def _clean_opening(self) -> str:
        """Return the showable part of the unfinished line."""
        is_hidden = bool(self._fences.fence or self._key) or len(self._line) > _MAX_OPENING
        if is_hidden or self._line.lstrip()[:1] in {"`", "~"}:
            return ""
        cut = self._line.rfind(" ") + 1
        while cut and not _is_complete(self._line[:cut]) and len(self._line) - cut < _MAX_WAIT:
            cut = self._line.rfind(" ", 0, cut - 1) + 1
        return self._marks.prose(self._mask(self._line[:cut])) if _is_complete(self._line[:cut]) else ""

    def _send(self, text: str) -> None:
        """Send new text; `finish` corrects a changed beginning."""
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
