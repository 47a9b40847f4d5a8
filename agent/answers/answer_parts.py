"""The parts of extractive answers: a definition, an excerpt, a line of a list, the first sentence of a doc comment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.answers.excerpts import (
    EXCERPT_LINES,
    NEAR_SIGNATURE,
    WHOLE_LINES,
    QuestionWeights,
    find_best_window,
    find_body_start,
    find_signature,
)
from agent.answers.extractive_builder import AnswerBuilder
from agent.evidence.call_sites import count_calls
from agent.evidence.definitions import list_members
from agent.evidence.refs import Quote, read_quote
from agent.ports import Deps
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef, to_location
from agent.text.escaping import format_code_block, format_code_span, format_quote
from agent.text.statement_starts import dedent
from indexer.types import Definition, Location

TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "module", "type"})
MAX_MEMBERS = 8
MAX_PROSE_LINES = 18
_FEWEST_PROSE_LINES = 6
_LONGEST_SIGNATURE = 12
_LEAST_WEIGHT = 0.5  # of a window within a class; below this its methods say more

_HEADING_LINES = 40
_HEADING = re.compile(r"(?:#{1,6}|={1,6})\s+(?P<text>\S.{0,200})")
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


def format_name(ref: EvidenceRef) -> str:
    """Name what a reference is about: its symbol, or its file where there is none."""
    return format_code_span(ref["symbol"] or ref["path"])


def format_line_numbers(location: Location) -> str:
    """Write the lines of a location in words."""
    if location.start_line == location.end_line:
        return f"line {location.start_line}"
    return f"lines {location.start_line}–{location.end_line}"


def quote_first_sentence(ref: EvidenceRef, *, longest: int = 240) -> str:
    """Quote the first sentence of the documentation, without its markup; empty where there is none."""
    return format_quote(strip_doc_markup(ref["doc"]), longest=longest)


def format_headline(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Introduce a definition: name, kind, file, mark, first sentence of its documentation."""
    lines = to_location(ref)
    kind = f"{ref['kind']} in " if ref["kind"] else "in "
    about = quote_first_sentence(ref)
    return (
        f"{format_code_span(ref['symbol'])}, {kind}{format_code_span(ref['path'])} {draft.cite(lines)}, "
        f"{format_line_numbers(lines)}." + (f" {about}" if about else "")
    )


async def quote_definition(
    draft: AnswerBuilder, deps: Deps, ref: EvidenceRef, emphasis: QuestionWeights, *, hit: EvidenceRef | None = None
) -> None:
    """Quote a short definition whole; of a long one its signature, and the lines that match best.

    Of a class the public methods are listed. `hit` is the part of the definition that a search has found.
    """
    whole = await read_quote(deps, to_location(ref))
    if len(whole.lines) <= WHOLE_LINES:
        draft.say(format_code_block(dedent(whole.lines), whole.language))
        return
    is_type = ref["kind"] in TYPE_KINDS
    inner = await _list_public_members(deps, ref) if is_type else []
    # The name itself stands everywhere in its definition and tells no line from another.
    beyond = QuestionWeights(terms=emphasis.terms - find_content_terms(ref["symbol"]), literals=emphasis.literals)
    start, end, weight = _choose_window(whole, ref, beyond if is_type else emphasis, hit)
    top, head = find_signature(whole.lines, ref["signature"])
    head = min(head, top + _LONGEST_SIGNATURE)
    if is_type and inner and (weight < _LEAST_WEIGHT or start == 0):
        draft.say(format_code_block(dedent(whole.lines[top:head]), whole.language))
    elif start - head <= NEAR_SIGNATURE:
        draft.say(format_code_block(dedent(whole.lines[top : max(end, head)]), whole.language))
    else:
        quote_lines(draft, ref["path"], whole, start, end)
    if inner:
        draft.say(_format_members(inner))


def _choose_window(
    whole: Quote, ref: EvidenceRef, emphasis: QuestionWeights, hit: EvidenceRef | None
) -> tuple[int, int, float]:
    """Choose the lines of a definition to show, within the part that the search found when that holds any."""
    first = find_body_start(whole.lines, ref["signature"])
    if ref["kind"] == "constant":
        return 0, EXCERPT_LINES, 0.0
    if hit is not None and hit["path"] == ref["path"]:
        low = max(first, hit["start_line"] - whole.first_line)
        high = min(len(whole.lines), hit["end_line"] - whole.first_line + 1)
        if low < high:
            found = find_best_window(whole.lines, emphasis, language=whole.language, first=low, last=high - 1)
            if found[2] > 0:
                return found
    return find_best_window(whole.lines, emphasis, language=whole.language, first=first)


async def _list_public_members(deps: Deps, ref: EvidenceRef) -> list[Definition]:
    inner = await list_members(deps.code, ref["path"], ref["symbol"])
    within = [one for one in inner if ref["start_line"] <= one.symbol.start_line <= ref["end_line"]] or inner
    methods = [one for one in within if one.symbol.kind in {"method", "function"}]
    public = [one for one in methods if not one.symbol.name.startswith(("_", "#"))] or methods
    return list({one.symbol.name: one for one in reversed(public)}.values())[::-1]


def _format_members(inner: list[Definition]) -> str:
    """List methods with the lines they begin on."""
    shown = [f"{format_code_span(one.symbol.name)} ({one.symbol.start_line})" for one in inner[:MAX_MEMBERS]]
    more = f" and {len(inner) - MAX_MEMBERS} more" if len(inner) > MAX_MEMBERS else ""
    return f"Methods, with their lines: {', '.join(shown)}{more}."


def quote_window(draft: AnswerBuilder, source: Quote, emphasis: QuestionWeights) -> None:
    """Quote the lines of a passage that match the question best; the passage has been cited."""
    start, end, _ = find_best_window(source.lines, emphasis, language=source.language)
    draft.say(format_code_block(dedent(source.lines[start:end]), source.language))


def quote_explanation(draft: AnswerBuilder, source: Quote, emphasis: QuestionWeights) -> None:
    """Quote documentation: from its heading where it begins with one, else the lines that match the question best."""
    if not _read_heading(source.lines[0]) and not _is_underlined(source.lines):
        quote_window(draft, source, emphasis)
        return
    end = min(len(source.lines), MAX_PROSE_LINES)
    if end < len(source.lines):
        # Where a fence would be left open, the block ends before it; else at the end of a paragraph.
        blank = [at for at in range(_FEWEST_PROSE_LINES, end) if not source.lines[at].strip()]
        closed = [at for at in blank if sum(line.strip().startswith("```") for line in source.lines[:at]) % 2 == 0]
        end = next(reversed(closed), end)
    draft.say(format_code_block(source.lines[:end], source.language))


def _is_underlined(lines: Sequence[str]) -> bool:
    return len(lines) > 1 and len(lines[1]) > 2 and len(set(lines[1])) == 1 and lines[1][0] in "=-~^"


def quote_lines(draft: AnswerBuilder, path: str, source: Quote, start: int, end: int) -> None:
    """Quote some lines of a passage under a heading with their numbers and their own mark."""
    lines = Location(path=path, start_line=source.first_line + start, end_line=source.first_line + end - 1)
    place = format_line_numbers(lines).capitalize()
    draft.say(f"{place} {draft.cite(lines)}:\n\n{format_code_block(dedent(source.lines[start:end]), source.language)}")


async def format_site(draft: AnswerBuilder, deps: Deps, refs: Sequence[EvidenceRef]) -> str:
    """Write one call, use or test as a list item, or those of one function: who, where, and the first line itself."""
    first = refs[0]
    lines = {ref["start_line"]: to_location(ref) for ref in refs}
    text = (await read_quote(deps, lines[first["start_line"]])).lines[0].strip()
    who = format_code_span(first["symbol"]) if first["symbol"] else "module level"
    maybe = "possibly " if first["ambiguous"] else ""
    place = format_code_span(f"{first['path']}:{', '.join(map(str, lines))}")
    calls = count_calls(refs)
    count = f" ({calls} calls)" if calls > len(lines) else ""
    marks = " ".join(map(draft.cite, lines.values()))
    return f"- {maybe}{who} in {place} {marks}{count}: {format_code_span(text)}"


def format_source_place(draft: AnswerBuilder, ref: EvidenceRef, source: Quote) -> str:
    """Introduce lines that are about no definition: their file, the heading above them, their mark."""
    heading = next((line for line in map(_read_heading, source.lines[:_HEADING_LINES]) if line), "")
    about = f", {format_quote(strip_doc_markup(heading), longest=100)}" if heading else ""
    lines = to_location(ref)
    return f"{format_code_span(ref['path'])} {draft.cite(lines)}{about}, {format_line_numbers(lines)}:"


def _read_heading(line: str) -> str:
    found = _HEADING.match(line)
    return found["text"] if found else ""


def format_related(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one further place as a list item, with what it is for."""
    lines = to_location(ref)
    place = format_code_span(f"{ref['path']}:{lines.start_line}")
    name = f"{format_code_span(ref['symbol'])} in " if ref["symbol"] else ""
    about = quote_first_sentence(ref, longest=120)
    return f"- {name}{place} {draft.cite(lines)}" + (f": {about}" if about else "")


def format_outline_entry(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one definition of a file as a list item: its kind, its name, its lines, what it is for."""
    lines = to_location(ref)
    about = quote_first_sentence(ref, longest=120)
    kind = f"{ref['kind']} " if ref["kind"] else ""
    return f"- {kind}{format_code_span(ref['symbol'])} {draft.cite(lines)}, {format_line_numbers(lines)}" + (
        f": {about}" if about else ""
    )


def strip_doc_markup(text: str) -> str:
    """Take the markup out of a sentence: roles, links, tags and quoting marks; the words stay."""
    text = text[:_LONGEST]
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())
