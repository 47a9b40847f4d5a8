"""Answers about pasted errors: the place with the message, the origin of the exception, and its handlers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.answers.answer_parts import (
    AnswerBuilder,
    AnswerContext,
    AnswerSubject,
    format_headline,
    format_line_numbers,
    quote_definition,
)
from agent.answers.places import write_places, write_related
from agent.evidence.refs import is_test_or_docs, read_quote, sort_code_first
from agent.state import EvidenceRef, to_location
from agent.text.escaping import dedent, format_code_block, format_code_span
from agent.text.message_match import MessageMatch, match_message
from indexer.types import Location

MAX_HANDLERS = 4
_BEFORE, _AFTER = 2, 3  # lines that are shown around a message


async def write_error(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Show the place with the message and the facts about the exception; else the nearest places."""
    message = next((one["query"] for one in material.decision["requests"] if one["lookup"] == "message"), "")
    is_said = bool(material.metadata["totals"].get("said"))
    subject = await _write_message(draft, material, message) if is_said else AnswerSubject()
    is_known = await _write_origin(draft, material, is_said=is_said)
    if is_said:
        return subject
    if not is_known:
        return await write_places(draft, material)
    return AnswerSubject(symbol=_read_error_name(material))


async def _write_message(draft: AnswerBuilder, material: AnswerContext, message: str) -> AnswerSubject:
    """Quote the lines with the message, and list its other places."""
    said = sort_code_first(material.of("hit")[: material.metadata["totals"]["said"]])
    first = said[0]
    match = match_message(message, (await material.deps.code.read(*_span(first))).text)
    lines = _locate(first, match)
    around = await material.deps.code.find_enclosing(replace(lines, end_line=lines.start_line))
    inner = around[-1] if around else None
    within = f"{format_code_span(inner.symbol.qualified_name)}, {inner.symbol.kind} in " if inner else ""
    verb, where = "appears", f"in {within}"
    if match.share < 1 and is_test_or_docs(lines.path):
        verb = "does not appear word for word; something like it does"
    elif match.share < 1:
        verb, where = "is built here, with some of its words filled in:", within
    start = max(first["start_line"], lines.start_line - _BEFORE)
    around_it = replace(lines, start_line=start, end_line=min(first["end_line"], lines.end_line + _AFTER))
    place = f"{format_code_span(lines.path)} {draft.cite(around_it)}, {format_line_numbers(lines)}"
    draft.say(f"{format_code_span(message)} {verb} {where}{place}:")
    shown = await read_quote(material.deps, around_it)
    draft.say(format_code_block(dedent(shown.lines), shown.language))
    others = [await _narrow(material, ref, message) for ref in said[1:]]
    write_related(draft, others, title="The same message:" if match.share >= 1 else "Also alike:")
    symbol = inner.symbol if inner else None
    return AnswerSubject(symbol=symbol.qualified_name if symbol else "", kind=symbol.kind if symbol else "")


def _span(ref: EvidenceRef) -> tuple[str, int, int]:
    return ref["path"], ref["start_line"], ref["end_line"]


def _locate(ref: EvidenceRef, match: MessageMatch) -> Location:
    first = ref["start_line"]
    return Location(path=ref["path"], start_line=first + match.start, end_line=first + match.end)


async def _narrow(material: AnswerContext, ref: EvidenceRef, message: str) -> EvidenceRef:
    """Refer only to the lines with the message."""
    match = match_message(message, (await material.deps.code.read(*_span(ref))).text)
    lines = _locate(ref, match)
    around = await material.deps.code.find_enclosing(replace(lines, end_line=lines.start_line))
    symbol = around[-1].symbol if around else None
    narrowed: EvidenceRef = {**ref, "start_line": lines.start_line, "end_line": lines.end_line}
    narrowed["symbol"] = symbol.qualified_name if symbol else ""
    narrowed["kind"] = symbol.kind if symbol else ""
    return narrowed


async def _write_origin(draft: AnswerBuilder, material: AnswerContext, *, is_said: bool) -> bool:
    """Name the origin and the handlers of the exception; return whether they are known."""
    name, facts = _read_error_name(material), material.facts
    defined, places = material.of("definition"), material.of("mention")
    if not name:
        return False
    if defined:
        draft.say(format_headline(draft, defined[0]))
        if not is_said:
            await quote_definition(draft, material.deps, defined[0])
    elif "library" in facts:
        draft.say(await _describe_library(draft, material, name, facts["library"]))
    elif "platform" in facts:
        if not is_said:
            repository = format_code_span(material.deps.code.repository)
            draft.say(
                f"{format_code_span(name)} is an exception of the language or its standard library, and this message "
                f"does not clearly appear in {repository}."
            )
        return not is_said
    await _list_handlers(draft, material, places)
    return bool(defined or places or "library" in facts)


async def _describe_library(draft: AnswerBuilder, material: AnswerContext, name: str, library: str) -> str:
    """Name the library of an exception, and the line that requires it."""
    opening = f"{format_code_span(name)} comes from the library {format_code_span(library)}"
    required = material.of("entry")
    if not required:
        return f"{opening}, which no manifest of {format_code_span(material.deps.code.repository)} names."
    line = to_location(required[0])
    text = (await read_quote(material.deps, line)).lines[0].strip()
    place = format_code_span(f"{line.path}:{line.start_line}")
    return f"{opening}, which {place} {draft.cite(line)} names: {format_code_span(text)}"


async def _list_handlers(draft: AnswerBuilder, material: AnswerContext, places: Sequence[EvidenceRef]) -> None:
    """List the lines that raise, catch or import the exception, the code before the tests."""
    shown = [ref for ref in places if not is_test_or_docs(ref["path"])][:MAX_HANDLERS] or places[: MAX_HANDLERS // 2]
    items: list[str] = []
    for ref in shown:
        line = to_location(ref)
        text = (await read_quote(material.deps, line)).lines[0].strip()
        who = f" by {format_code_span(ref['symbol'])}" if ref["symbol"] else ""
        place = format_code_span(f"{line.path}:{line.start_line}")
        items.append(f"- {ref['kind']}{who} in {place} {draft.cite(line)}: {format_code_span(text)}")
    if items:
        draft.say("\n".join(["Here it is:", "", *items]))


def _read_error_name(material: AnswerContext) -> str:
    return next((one["query"] for one in material.decision["requests"] if one["lookup"] == "error"), "")
