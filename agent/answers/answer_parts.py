"""The parts of extractive answers: paragraphs with citations, a definition, an excerpt, a line of a list."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.evidence.definitions import list_members
from agent.evidence.refs import LONGEST_RANGE, count_calls, is_import_line, make_lines_ref, read_quote
from agent.ports import Deps
from agent.repositories.labels import add_label
from agent.state import (
    CitationRef,
    Continuation,
    EvidenceRef,
    Lookup,
    RetrievalMetadata,
    Role,
    RouterDecision,
    to_citation,
    to_location,
)
from agent.text.citation_markers import format_marker
from agent.text.escaping import dedent, format_code_block, format_code_span, format_quote
from indexer.types import Definition, Location

TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "module", "type"})
MAX_MEMBERS = 8
WHOLE_LINES = 18  # of a definition that is quoted whole
_SIGNATURE_LINES = 12
_LONGEST = 1_000  # characters; a sentence is a fraction of it
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`([^`<>]{1,120}?)\s*<[^`<>]{1,200}>`"), r"\1"),  # :ref:`text <target>`
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`~(?:[\w]+\.)*([\w]+(?:\(\))?)`"), r"\1"),  # :class:`~package.Name`
    (re.compile(r":(?:[\w-]+:)?[\w-]+:`[.!]?([^`]{1,160})`"), r"\1"),
    (re.compile(r"`([^`<>]{1,120}?)\s*<[^`<>]{1,200}>`__?"), r"\1"),  # `text <address>`_
    (re.compile(r"\{@(?:link|linkplain|code|literal)\s+(?:[^}|]{1,120}\|)?\s*([^}|]{1,120}?)\s*\}"), r"\1"),
    (re.compile(r"<see\s+cref=\"(?:\w:)?([^\"]{1,120})\"\s*/>"), r"\1"),
    (re.compile(r"(?<![\w\]])!?\[`?([^\]`]{1,120})`?\](?:\([^)\s]{1,300}\)|\[[^\]]{0,120}\])?"), r"\1"),
    (re.compile(r"</?(?:p|b|i|em|strong|code|tt|pre|br|a|ul|li|c|para|summary|remarks)(?:\s[^<>]{0,200})?/?>"), ""),
    (re.compile(r"`{1,2}([^`]{1,160})`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([^*\s](?:[^*]{0,160}[^*\s])?)\*{1,2}(?![\w*])"), r"\1"),
)
MAX_ENTRIES = 20
_FEW_MORE = 4  # entries that take no more room than saying that they are left out
_IN_ROW = 4  # entries that are only a name
_BARE_KINDS = frozenset(
    {
        "flag",
        "environment",
        "setting",
        "command",
        "event",
        "model",
        "member",
        "file",
        "name",
        "row",
        "table",
        "index",
        "type",
    }
)


class AnswerBuilder:
    """Collects paragraphs and citations; lines that are cited twice share a marker."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._paragraphs: list[str] = []
        self._marks: dict[Location, int] = {}
        self.read: list[EvidenceRef] = []
        self._repository = self._label = ""

    def begin_part(self, repository: str, label: str) -> None:
        """Cite code of one repository by its own label from now on; empty names end that."""
        self._repository, self._label = repository, label

    def cite(self, location: Location) -> str:
        """Return the marker of these lines; for a very long range, of its first lines."""
        end = min(location.end_line, location.start_line + LONGEST_RANGE - 1)
        lines = replace(location, end_line=end)
        if self._label:
            lines = add_label(self._label, lines) if lines.path else replace(lines, repository=self._repository)
        return format_marker(self._marks.setdefault(lines, len(self._marks) + 1))

    def cite_read(self, location: Location) -> str:
        """Return the marker of lines that were read while the answer was written."""
        mark = self.cite(location)
        self.read.append(make_lines_ref(list(self._marks)[int(mark[1:-1]) - 1], "hit"))
        return mark

    def say(self, paragraph: str) -> None:
        """Add a paragraph and send it; secrets in it are masked first."""
        text = self._deps.redact(paragraph)
        self._deps.emit("token", text=f"\n\n{text}" if self._paragraphs else text)
        self._paragraphs.append(text)

    @property
    def text(self) -> str:
        """The answer as Markdown."""
        return "\n\n".join(self._paragraphs)

    @property
    def citations(self) -> list[CitationRef]:
        """The citations of the markers, in order."""
        return [to_citation(mark, lines) for lines, mark in self._marks.items()]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerContext:
    """All inputs of an answer."""

    deps: Deps
    question: str
    terms: frozenset[str]
    decision: RouterDecision
    retrieved: Sequence[EvidenceRef]
    expanded: Sequence[EvidenceRef]
    metadata: RetrievalMetadata
    skip: int = 0  # entries of a list that an earlier answer has shown

    def of(self, *roles: Role) -> list[EvidenceRef]:
        """Return the evidence of these roles, in order."""
        return [ref for ref in self.retrieved if ref["role"] in roles]

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts that the evidence itself does not contain, by name."""
        return self.metadata.get("facts", {})

    @property
    def lookup(self) -> Lookup:
        """The target of the first request."""
        requests = self.decision["requests"]
        return requests[0]["lookup"] if requests else "search"

    @property
    def name(self) -> str:
        """The name or text that the first request was about."""
        requests = self.decision["requests"]
        return requests[0]["query"] if requests else self.question

    @property
    def is_of_kind(self) -> bool:
        """Whether the question is of a kind with special answers."""
        return any("parts" in request for request in self.decision["requests"])

    @property
    def parts(self) -> Mapping[str, str]:
        """The named parts of a question of some kind, such as its `target`."""
        requests = self.decision["requests"]
        return requests[0].get("parts", {}) if requests else {}

    def definition_of(self, ref: EvidenceRef) -> EvidenceRef | None:
        """Return the definition that a hit is about, if it was fetched."""
        same = (one for one in self.expanded if one["path"] == ref["path"] and one["symbol"] == ref["symbol"])
        return next(same, None) if ref["symbol"] else None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSubject:
    """The subject of an answer, for the next question's "it", and its remaining entries, for "more".

    It `is_pointing` if it only lists places, with no clear best one, for a question that names no
    code.
    """

    symbol: str = ""
    kind: str = ""
    more: Continuation | None = None
    is_pointing: bool = False


def format_name(ref: EvidenceRef) -> str:
    """Name a reference by its symbol, or by its file."""
    return format_code_span(ref["symbol"] or ref["path"])


def format_line_numbers(location: Location) -> str:
    """Write the lines of a location in words."""
    first, last = location.start_line, location.end_line
    return f"line {first}" if first == last else f"lines {first}–{last}"


def quote_first_sentence(ref: EvidenceRef, *, longest: int = 240) -> str:
    """Quote the first sentence of the documentation, without its markup; empty if there is none."""
    return format_quote(strip_doc_markup(ref["doc"]), longest=longest)


def format_headline(draft: AnswerBuilder, ref: EvidenceRef, *, is_only: bool = False) -> str:
    """Introduce a definition: name, kind, file, mark, first sentence of its documentation; a single one by a
    sentence.
    """
    lines, about = to_location(ref), quote_first_sentence(ref)
    verb = "imported" if is_import_line(ref["kind"], ref["signature"]) else "defined"
    kind = f" is {verb} " if is_only else f", {ref['kind']} " if ref["kind"] else ", "
    return (
        f"{format_code_span(ref['symbol'])}{kind}in {format_code_span(ref['path'])} {draft.cite(lines)}, "
        f"{format_line_numbers(lines)}." + (f" {about}" if about else "")
    )


async def quote_definition(draft: AnswerBuilder, deps: Deps, ref: EvidenceRef) -> None:
    """Quote a short definition whole, and the beginning of a long one; for a class, list its public methods."""
    whole = await read_quote(deps, to_location(ref))
    is_type = ref["kind"] in TYPE_KINDS
    is_long = len(whole.lines) > WHOLE_LINES
    inner = await _list_public_members(deps, ref) if is_type and is_long else []
    lines = whole.lines[: _SIGNATURE_LINES if inner else WHOLE_LINES]
    name = ref["symbol"].rpartition(".")[2]
    if inner:  # its attributes and decorators, and the line that names it
        lines = lines[: next((at for at, line in enumerate(lines, 1) if name in line), len(lines))]
    draft.say(format_code_block(dedent(lines), whole.language))
    if inner:
        shown = [f"{format_code_span(one.symbol.name)} ({one.symbol.start_line})" for one in inner[:MAX_MEMBERS]]
        more = f" and {len(inner) - MAX_MEMBERS} more" if len(inner) > MAX_MEMBERS else ""
        draft.say(f"Methods, with their lines: {', '.join(shown)}{more}.")


async def _list_public_members(deps: Deps, ref: EvidenceRef) -> list[Definition]:
    inner = await list_members(deps.code, ref["path"], ref["symbol"])
    within = [one for one in inner if ref["start_line"] <= one.symbol.start_line <= ref["end_line"]] or inner
    methods = [one for one in within if one.symbol.kind in {"method", "function"}]
    public = [one for one in methods if not one.symbol.name.startswith(("_", "#"))] or methods
    return list({one.symbol.name: one for one in reversed(public)}.values())[::-1]


async def format_site(draft: AnswerBuilder, deps: Deps, refs: Sequence[EvidenceRef]) -> str:
    """Write one call, use or test as a list item, or those of one function: the function, the place, and the
    first line.
    """
    first = refs[0]
    lines = {ref["start_line"]: to_location(ref) for ref in refs}
    text = (await read_quote(deps, lines[first["start_line"]])).lines[0].strip()
    who = format_code_span(first["symbol"]) if first["symbol"] else "module level"
    maybe = "possibly " if first["ambiguous"] else ""
    place = format_code_span(f"{first['path']}:{', '.join(map(str, lines))}")
    calls = count_calls(refs)
    count = f" ({calls} calls)" if calls > len(lines) else ""
    marks = " ".join(map(draft.cite, lines.values()))
    how = f", {first['kind']}" if first["role"] == "mention" and first["kind"] else ""
    return f"- {maybe}{who} in {place} {marks}{count}{how}: {format_code_span(text)}"


def format_related(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write another place as a list item, with its purpose."""
    lines = to_location(ref)
    place = format_code_span(f"{ref['path']}:{lines.start_line}")
    name = f"{format_code_span(ref['symbol'])} in " if ref["symbol"] else ""
    about = quote_first_sentence(ref, longest=120)
    return f"- {name}{place} {draft.cite(lines)}" + (f": {about}" if about else "")


def format_outline_entry(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one definition of a file as a list item: its kind, name, lines and purpose."""
    lines, about = to_location(ref), quote_first_sentence(ref, longest=120)
    kind = f"{ref['kind']} " if ref["kind"] else ""
    return f"- {kind}{format_code_span(ref['symbol'])} {draft.cite(lines)}, {format_line_numbers(lines)}" + (
        f": {about}" if about else ""
    )


def strip_doc_markup(text: str) -> str:
    """Remove the markup from a sentence: roles, links, tags and quoting marks; keep the words."""
    text = text[:_LONGEST]
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


FormatEntry = Callable[[AnswerBuilder, EvidenceRef], str]


def write_entries(
    draft: AnswerBuilder,
    material: AnswerContext,
    entries: Sequence[EvidenceRef],
    *,
    format_entry: FormatEntry | None = None,
    most: int = MAX_ENTRIES,
    is_grouped: bool = True,
    heading: Callable[[EvidenceRef], str] | None = None,
    total: int = 0,
) -> Continuation | None:
    """List entries, by default under the files that they are in or the folders that commits touched.

    With a `heading`, entries that share it are listed below it.

    A long list of bare names has several per row. The list resumes where the last answer ended;
    `total` includes entries that were not fetched. Return what "more" means afterwards; None when
    the last entry was listed.
    """
    write = format_entry or format_plain_entry
    if len(entries) - material.skip <= most + _FEW_MORE:
        most += _FEW_MORE
    rows = _make_rows(entries[material.skip :], most)[:most]
    shown = [ref for row in rows for ref in row]
    if is_grouped and len(rows) == len(shown):
        groups: dict[str, list[EvidenceRef]] = {}
        for ref in shown:
            title = heading(ref) if heading is not None else f"In {format_code_span(ref['path'] or ref['kind'])}"
            groups.setdefault(title, []).append(ref)
        for title, group in groups.items():
            draft.say("\n".join([f"{title}:", "", *(write(draft, ref) for ref in group)]))
    elif rows:
        draft.say("\n".join(f"- {', '.join(write(draft, ref).removeprefix('- ') for ref in row)}" for row in rows))
    done = material.skip + len(shown)
    left = max(total, len(entries)) - done
    if done >= len(entries):
        if left > 0:
            draft.say(f"And {left:,} more, which are not listed here.")
        return None
    draft.say(f'And {left:,} more; say "more" to see them.')
    return {"question": material.name, "skip": done}


def _make_rows(entries: Sequence[EvidenceRef], most: int) -> list[list[EvidenceRef]]:
    """Give each entry a row; if there are too many, let plain neighbours share one."""
    rows: list[list[EvidenceRef]] = []
    for ref in entries:
        is_bare = len(entries) > most and _says_nothing(ref)
        if rows and is_bare and len(rows[-1]) < _IN_ROW and _says_nothing(rows[-1][-1]):
            rows[-1].append(ref)
        else:
            rows.append([ref])
    return rows


def _says_nothing(ref: EvidenceRef) -> bool:
    is_bare = ref["kind"] in _BARE_KINDS and not ref["doc"]
    return ref["kind"] == "folder" or (is_bare and (not ref["signature"] or ref["kind"] == "event"))


def format_plain_entry(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one entry as a list item: its name, mark and purpose."""
    about = quote_first_sentence(ref, longest=120)
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}" + (f": {about}" if about else "")
