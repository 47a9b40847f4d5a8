"""Answers that tell what to do: the command to type, and where it is said; or how one more of something is added."""

from __future__ import annotations

from collections.abc import Sequence

from agent.answers.answer_parts import (
    MAX_PROSE_LINES,
    TYPE_KINDS,
    format_source_place,
    quote_definition,
    quote_explanation,
    quote_lines,
)
from agent.answers.entry_lists import write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.answers.places import write_places
from agent.evidence.definitions import list_members
from agent.evidence.refs import make_definition_ref, read_quote
from agent.state import EvidenceRef, to_location
from agent.text.escaping import format_code_block, format_code_span, format_quote
from agent.text.statement_starts import dedent

MAX_FURTHER = 4
_NEAR = 0.5  # of the best one's score, below which a command is for something else
_SAYS: dict[str, str] = {
    "target": "a target of",
    "script": "a script of",
    "document": "as it stands in",
    "sentence": "as it stands in",
    "session": "an environment of",
    "step": "what CI runs, in",
    "convention": "what one types where there is a",
}
HEAD_LINES = 12
_CLEARLY_MORE = 4  # backticks: two names


async def write_commands(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the command that fits best, and a few more."""
    entries = material.of("entry")
    if material.metadata["totals"].get("all"):
        draft.say(f"The repository names {len(entries)} commands:")
        return AnswerSubject(more=write_entries(draft, material, entries, format_entry=_format_listed))
    lead = entries[0]
    draft.say(f"{format_code_span(lead['symbol'], longest=200)} {draft.cite(to_location(lead))}, {_describe(lead)}.")
    if lead["kind"] == "document":
        source = await read_quote(material.deps, to_location(lead))
        draft.say(format_code_block(dedent(source.lines), "sh"))
    further = [ref for ref in entries[1:] if ref["score"] >= _NEAR * lead["score"]][:MAX_FURTHER]
    if further:
        items = [f"- {_format_item(draft, ref)}" for ref in further]
        draft.say("\n".join(["There is also:", "", *items]))
    return AnswerSubject()


def _describe(ref: EvidenceRef) -> str:
    """Say where the command stands, what it does, and what is said about it."""
    runs = f", which runs {format_code_span(ref['signature'], longest=160)}" if ref["signature"] else ""
    about = f": {format_quote(ref['doc'], longest=160)}" if ref["doc"] else ""
    return f"{_SAYS[ref['kind']]} {format_code_span(ref['path'])}{runs}{about}"


def _format_item(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    return f"{format_code_span(ref['symbol'], longest=160)} {draft.cite(to_location(ref))}, {_describe(ref)}"


def _format_listed(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    about = f": {format_quote(ref['doc'], longest=120)}" if ref["doc"] else ""
    runs = f" ({format_code_span(ref['signature'], longest=100)})" if ref["signature"] and not about else ""
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{runs}{about}"


async def write_example(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what explains how one more is added, the newest one, and where that is registered.

    Where there is no family of such things, what a search finds.
    """
    examples = [ref for ref in material.of("entry") if ref["kind"] == "example"]
    if not examples:
        return await write_places(draft, material)
    explained = material.of("explanation")
    for ref in explained:
        source = await read_quote(material.deps, to_location(ref))
        draft.say(format_source_place(draft, ref, source))
        start = find_steps(source.lines)
        if start:
            quote_lines(draft, ref["path"], source, start, min(len(source.lines), start + HEAD_LINES))
        else:
            quote_explanation(draft, source, material.emphasis)
    example = examples[0]
    folder = example["symbol"].rpartition("/")[0]
    count = material.metadata["totals"].get("examples", 0)
    newest = f"{format_code_span(example['path'])} {draft.cite(to_location(example))}"
    dated = material.metadata["totals"].get("dated", count)
    among = "the newest" if dated == count else f"the newest of the first {dated}"
    draft.say(f"There are {count} in {format_code_span(folder + '/')}; {among} is {newest}.")
    if not explained:
        await _quote_core(draft, material, example)
    items = [
        f"- {format_code_span(ref['path'])} {draft.cite(to_location(ref))}: {format_code_span(ref['signature'])}"
        for ref in material.of("entry")
        if ref["kind"] == "registration"
    ]
    if items:
        draft.say("\n".join(["It is named, and perhaps registered, in:", "", *items]))
    return AnswerSubject()


def find_steps(lines: Sequence[str]) -> int:
    """Return where a long section gets to the point: the paragraph from which on most files and names are named."""
    if len(lines) <= MAX_PROSE_LINES:
        return 0
    starts = [at for at in range(1, len(lines)) if lines[at].strip() and not lines[at - 1].strip()]
    named = [line.count("`") for line in lines]
    counts = {at: sum(named[at : at + HEAD_LINES]) for at in starts}
    best = max(counts, key=lambda at: counts[at], default=0)
    return best if best and counts[best] > sum(named[:HEAD_LINES]) + _CLEARLY_MORE else 0


async def _quote_core(draft: AnswerBuilder, material: AnswerContext, example: EvidenceRef) -> None:
    """Quote what the example is for: its first class, else its last function; what it imports says nothing."""
    inside = [make_definition_ref(one) for one in await list_members(material.deps.code, example["path"])]
    types = [ref for ref in inside if ref["kind"] in TYPE_KINDS]
    functions = [ref for ref in inside if ref["kind"] in {"function", "method"}]
    core = [*types[:1], *functions[-1:]]
    if core:
        await quote_definition(draft, material.deps, core[0], material.emphasis)
        return
    source = await read_quote(material.deps, to_location(example))
    draft.say(format_code_block(dedent(source.lines[:HEAD_LINES]), source.language))
