"""Writes lists of what is registered: options with their defaults, endpoints, commands, subclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from agent.answers.answer_parts import quote_first_sentence, write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.state import EvidenceRef, to_location
from agent.text.escaping import format_code_span

_NOUNS = {
    "route": "endpoint",
    "command": "command",
    "task": "background task",
    "event": "event",
    "model": "model",
    "flag": "command-line option",
    "environment": "environment variable",
    "setting": "setting",
    "value": "assigned value",
}
_OPTIONS = frozenset({"flag", "environment", "setting", "value"})
_OF_EVENTS = frozenset({"declared", "emitted", "handled"})
_LEAST_IN_FILE = 3
_LONGEST_DETAIL = 60
_LONGEST_HELP = 120
_LONG = 8  # entries; each of a longer list has one row
_ROW, _SHORTEST_HELP = 94, 24
_EMPTY = frozenset({'""', "''", "None", "nil", "null", "undefined", '"none"'})


async def list_options(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write options with their defaults; of one that the question names, its default first."""
    entries = material.of("entry")
    is_one = "value" in material.parts and len(entries) == 1 and bool(entries[0]["signature"])
    if ("name" in material.parts and entries) or is_one:
        return _write_default(draft, material, entries)
    return _write_list(draft, material, entries)


async def list_entry_points(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what is registered, file by file."""
    return _write_list(draft, material, material.of("entry"))


async def list_subclasses(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what inherits from a type."""
    entries, totals = material.of("entry"), material.metadata["totals"]
    count, direct = totals.get("entries", len(entries)), totals.get("direct", 0)
    base = material.metadata.get("facts", {}).get("base", "")
    verb = "type inherits" if count == 1 else "types inherit"
    deeper = f", {direct} of them directly" if 0 < direct < count else ""
    sentence = f"{count} {verb} from {format_code_span(base)}{deeper}, as far as the syntax tells"
    draft.say(f"{sentence}{_describe_asides(totals)}:")
    write = partial(_format_member, is_long=len(entries) > _LONG)
    more = write_entries(draft, material, entries, format_entry=write, is_grouped=_is_worth_grouping(entries))
    return AnswerSubject(symbol=base, more=more)


def _write_default(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    first = entries[0]
    name, mark = format_code_span(first["symbol"]), draft.cite(to_location(first))
    is_value = first["kind"] == "value"
    place = name if is_value else f"{name}, {_article(_NOUNS.get(first['kind'], 'setting'))},"
    about = quote_first_sentence(first, longest=240)
    if first["signature"]:
        draft.say(
            f"{place} is {format_code_span(first['signature'])}{' by default' * (not is_value)} {mark}."
            + (f" {about}" if about else "")
        )
    else:
        draft.say(f"{place} has no default that can be seen {mark}." + (f" {about}" if about else ""))
    more = None
    if len(entries) > 1:
        draft.say("The name stands for more than one thing:")
        more = write_entries(draft, material, entries[1:], format_entry=_format_option)
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"], more=more)


def _write_list(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    totals = material.metadata["totals"]
    whole, kept = totals.get("whole", 0), totals.get("entries", 0)
    kinds = [_count(totals[kind], noun) for kind, noun in _NOUNS.items() if totals.get(kind)]
    listed = ", ".join(kinds[:-1]) + (f" and {kinds[-1]}" if kinds[:-1] else kinds[-1])
    is_narrowed = kept + totals.get("asides", 0) < whole
    target = material.parts.get("target", "")
    about = target if target.lower() != material.deps.code.repository.lower() else ""
    narrowed = f" for {format_code_span(about, longest=80)} (of {whole} in all)" if is_narrowed and about else ""
    if "value" in totals:
        narrowed = f" for {format_code_span(about, longest=80)}" if about else ""
    where = _count(totals.get("in files", 1), "file")
    registered = ""
    if entries and entries[0]["kind"] not in _OPTIONS:
        registered = " is registered" if kept == 1 else " are registered"
    draft.say(f"{listed}{narrowed}{registered} in {where}{_describe_asides(totals)}:")
    write = partial(_format_option, is_long=len(entries) > _LONG)
    more = write_entries(draft, material, entries, format_entry=write, is_grouped=_is_worth_grouping(entries))
    return AnswerSubject(more=more)


def _is_worth_grouping(entries: Sequence[EvidenceRef]) -> bool:
    """Whether the files hold several entries each; else headings would take more room than the list."""
    return len(entries) >= _LEAST_IN_FILE * len({ref["path"] for ref in entries})


def _describe_asides(totals: Mapping[str, int]) -> str:
    if totals.get("in tests"):
        return ", all of them in tests"
    asides = totals.get("asides", 0)
    return f", and {asides:,} more in tests and examples" if asides else ""


def _format_option(draft: AnswerBuilder, ref: EvidenceRef, *, is_long: bool = False) -> str:
    """Write an entry: its name and mark, its default or what is called for it, what is said of it."""
    detail, mark = _describe_detail(ref), draft.cite(to_location(ref))
    name = format_code_span(ref["symbol"])
    line = f"- {name}{detail} {mark}" if ref["kind"] in _OPTIONS else f"- {name} {mark}{detail}"
    return _add_help(line, ref, is_long=is_long)


def _add_help(line: str, ref: EvidenceRef, *, is_long: bool) -> str:
    """Add what is said of an entry; in a long list no more than fits on its row."""
    about = quote_first_sentence(ref, longest=max(_SHORTEST_HELP, _ROW - len(line)) if is_long else _LONGEST_HELP)
    return f"{line}: {about}" if about else line


def _describe_detail(ref: EvidenceRef) -> str:
    if not ref["signature"] or ref["signature"] in _EMPTY or ref["kind"] == "command":
        return ""
    if ref["kind"] == "event" and ref["signature"] in _OF_EVENTS:
        return f", {ref['signature']}" if ref["signature"] != "declared" else ""
    span = format_code_span(ref["signature"], longest=_LONGEST_DETAIL)
    return f" = {span}" if ref["kind"] in _OPTIONS else f", {span}"


def _format_member(draft: AnswerBuilder, ref: EvidenceRef, *, is_long: bool = False) -> str:
    through = f", through {format_code_span(ref['signature'], longest=_LONGEST_DETAIL)}" if ref["signature"] else ""
    line = f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{through}"
    return _add_help(line, ref, is_long=is_long)


def _count(total: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{total:,} {noun if total == 1 else plural}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
