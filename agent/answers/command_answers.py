"""Answers that tell what to do: the command to type, and where it is said."""

from __future__ import annotations

from agent.answers.answer_parts import write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.refs import read_quote
from agent.state import EvidenceRef, to_location
from agent.text.code_lines import dedent
from agent.text.escaping import format_code_block, format_code_span, format_quote

MAX_FURTHER = 4
_NEAR = 0.5  # of the best one's score, below which a command is for something else
_SAYS: dict[str, str] = {
    "target": "a target of",
    "script": "a script of",
    "document": "from",
    "sentence": "from",
    "session": "an environment of",
    "step": "what CI runs, in",
    "convention": "what one types where there is a",
}


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
        items = [
            f"- {format_code_span(ref['symbol'], longest=160)} {draft.cite(to_location(ref))}, {_describe(ref)}"
            for ref in further
        ]
        draft.say("\n".join(["There is also:", "", *items]))
    return AnswerSubject()


def _describe(ref: EvidenceRef) -> str:
    """Say where the command stands, what it does, and what is said about it."""
    runs = f", which runs {format_code_span(ref['signature'], longest=160)}" if ref["signature"] else ""
    about = f": {format_quote(ref['doc'], longest=160)}" if ref["doc"] else ""
    return f"{_SAYS[ref['kind']]} {format_code_span(ref['path'])}{runs}{about}"


def _format_listed(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    about = f": {format_quote(ref['doc'], longest=120)}" if ref["doc"] else ""
    runs = f" ({format_code_span(ref['signature'], longest=100)})" if ref["signature"] and not about else ""
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{runs}{about}"
