"""Writes lists of what is registered: options with their defaults, endpoints, commands, subclasses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from agent.answers.answer_parts import TYPE_KINDS, quote_first_sentence, write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.state import Continuation, EvidenceRef, to_location
from agent.text.escaping import format_code_span, format_count, join_words

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
_OF_EVENTS = frozenset({"emitted", "handled"})
_LEAST_IN_FILE = 3
_LONGEST_DETAIL = 60
_LONGEST_HELP = 120
_LONG = 8  # entries; each of a longer list has one row
_ROW, _SHORTEST_HELP = 94, 24
_EMPTY = frozenset({'""', "''", "None", "nil", "null", "undefined", '"none"'})


async def list_registered(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what is registered, file by file; of an option that the question names, its default first."""
    entries = material.of("entry")
    is_one = "value" in material.parts and len(entries) == 1 and bool(entries[0]["signature"])
    is_named = is_one or ("name" in material.parts and bool(entries))
    return (_write_default if is_named else _write_list)(draft, material, entries)


async def list_subclasses(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what inherits from a type."""
    entries, totals = material.of("entry"), material.metadata["totals"]
    count, direct = totals.get("entries", len(entries)), totals.get("direct", 0)
    base = material.facts.get("base", "")
    verb = "type inherits" if count == 1 else "types inherit"
    deeper = f", {direct} of them directly" if 0 < direct < count else ""
    sentence = f"{count} {verb} from {format_code_span(base)}{deeper}, as far as the syntax tells"
    return AnswerSubject(symbol=base, more=_write_entries(draft, material, sentence, entries))


def _write_default(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    first = entries[0]
    name, noun = format_code_span(first["symbol"]), _NOUNS.get(first["kind"], "setting")
    mark = draft.cite(to_location(first))
    is_value = first["kind"] == "value"
    place = name if is_value else f"{name}, {'an' if noun[0] in 'aeiou' else 'a'} {noun},"
    default = " by default" * (not is_value)
    value = f"is {format_code_span(first['signature'])}{default}" if first["signature"] else "has no visible default"
    about = quote_first_sentence(first, longest=240)
    draft.say(f"{place} {value} {mark}." + (f" {about}" if about else ""))
    more = None
    if len(entries) > 1:
        draft.say("The name stands for more than one thing:")
        more = write_entries(draft, material, entries[1:], format_entry=_format_entry)
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"], more=more)


def _write_list(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    totals = material.metadata["totals"]
    whole, kept = totals.get("whole", 0), totals.get("entries", 0)
    listed = join_words([format_count(totals[kind], noun) for kind, noun in _NOUNS.items() if totals.get(kind)])
    target = material.parts.get("target", "")
    is_narrowed = "value" in totals or kept + totals.get("asides", 0) < whole
    of_all = "" if "value" in totals else f" (of {whole} in all)"
    is_named = is_narrowed and target and target.lower() != material.deps.code.repository.lower()
    narrowed = f" for {format_code_span(target, longest=80)}{of_all}" if is_named else ""
    is_option = not entries or entries[0]["kind"] in _OPTIONS
    registered = "" if is_option else " is registered" if kept == 1 else " are registered"
    sentence = f"{listed}{narrowed}{registered} in {format_count(totals.get('in files', 1), 'file')}"
    return AnswerSubject(more=_write_entries(draft, material, sentence, entries))


def _write_entries(
    draft: AnswerBuilder, material: AnswerContext, sentence: str, entries: Sequence[EvidenceRef]
) -> Continuation | None:
    """Write the sentence, with how many more there are in tests, and the list below it."""
    totals = material.metadata["totals"]
    asides = f", and {totals['asides']:,} more in tests and examples" if totals.get("asides") else ""
    draft.say(f"{sentence}{', all of them in tests' if totals.get('in tests') else asides}:")
    # Headings are worth their room where the files hold several entries each.
    is_grouped = len(entries) >= _LEAST_IN_FILE * len({ref["path"] for ref in entries})
    write = partial(_format_entry, is_long=len(entries) > _LONG)
    return write_entries(draft, material, entries, format_entry=write, is_grouped=is_grouped)


def _format_entry(draft: AnswerBuilder, ref: EvidenceRef, *, is_long: bool = False) -> str:
    """Write an entry: its name and mark, its default or what is called for it, what is said of it.

    In a long list no more is said of it than fits on its row.
    """
    detail, mark = _describe_detail(ref), draft.cite(to_location(ref))
    name = format_code_span(ref["symbol"])
    line = f"- {name}{detail} {mark}" if ref["kind"] in _OPTIONS else f"- {name} {mark}{detail}"
    about = quote_first_sentence(ref, longest=max(_SHORTEST_HELP, _ROW - len(line)) if is_long else _LONGEST_HELP)
    return f"{line}: {about}" if about else line


def _describe_detail(ref: EvidenceRef) -> str:
    value = ref["signature"]
    if not value or value in _EMPTY or ref["kind"] == "command" or (ref["kind"], value) == ("event", "declared"):
        return ""
    if ref["kind"] == "event" and value in _OF_EVENTS:
        return f", {value}"
    span = format_code_span(value, longest=_LONGEST_DETAIL)
    if ref["kind"] in TYPE_KINDS:
        return f", through {span}"
    return f" = {span}" if ref["kind"] in _OPTIONS else f", {span}"
