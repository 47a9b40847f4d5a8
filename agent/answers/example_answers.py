"""Answers to how one more of something is added: what explains it, the newest one, and where it is registered."""

from __future__ import annotations

from agent.answers.answer_parts import format_source_place, quote_explanation
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.answers.passages import write_passages
from agent.evidence.refs import read_quote
from agent.state import to_location
from agent.text.escaping import format_code_block, format_code_span
from agent.text.statement_starts import dedent

HEAD_LINES = 12


async def write_example(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write them in that order; where there is no family of such things, what a search finds."""
    examples = [ref for ref in material.of("entry") if ref["kind"] == "example"]
    if not examples:
        return await write_passages(draft, material)
    explained = material.of("explanation")
    for ref in explained:
        source = await read_quote(material.deps, to_location(ref))
        draft.say(format_source_place(draft, ref, source))
        quote_explanation(draft, source, material.emphasis)
    example = examples[0]
    folder = example["symbol"].rpartition("/")[0]
    count = material.metadata["totals"].get("examples", 0)
    newest = f"{format_code_span(example['path'])} {draft.cite(to_location(example))}"
    draft.say(f"There are {count} in {format_code_span(folder + '/')}; the newest is {newest}.")
    if not explained:
        source = await read_quote(material.deps, to_location(example))
        draft.say(format_code_block(dedent(source.lines[:HEAD_LINES]), source.language))
    items = [
        f"- {format_code_span(ref['path'])} {draft.cite(to_location(ref))}: {format_code_span(ref['signature'])}"
        for ref in material.of("entry")
        if ref["kind"] == "registration"
    ]
    if items:
        draft.say("\n".join(["It is named, and perhaps registered, in:", "", *items]))
    return AnswerSubject()
