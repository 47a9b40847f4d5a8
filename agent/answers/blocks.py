"""The parts that extractive answers are made of: a definition, an excerpt, a line of a list."""

from __future__ import annotations

from agent.answers.draft import Draft, Quote, quote
from agent.answers.excerpts import WHOLE_LINES, best_window, body_start
from agent.answers.markdown import code_span, fenced, printable, quoted_prose
from agent.ports import Deps
from agent.state import EvidenceRef, where
from indexer.models import Location

LABEL = "From the code, without a language model:"


def named(ref: EvidenceRef) -> str:
    """Name what a reference is about: its symbol, or its file where there is none."""
    return code_span(ref["symbol"] or ref["path"])


def line_numbers(location: Location) -> str:
    """Write the lines of a location as people say them."""
    if location.start_line == location.end_line:
        return f"line {location.start_line}"
    return f"lines {location.start_line}–{location.end_line}"


def headline(draft: Draft, ref: EvidenceRef) -> str:
    """Introduce a definition: name, kind, file, mark, first sentence of its documentation."""
    lines = where(ref)
    kind = f"{ref['kind']} in " if ref["kind"] else "in "
    about = quoted_prose(ref["doc"])
    return f"{code_span(ref['symbol'])}, {kind}{code_span(ref['path'])} {draft.cite(lines)}, {line_numbers(lines)}." + (
        f" {about}" if about else ""
    )


async def show_definition(draft: Draft, deps: Deps, ref: EvidenceRef, terms: frozenset[str]) -> None:
    """Quote a short definition whole; of a long one the signature, and the lines that say most."""
    whole = await quote(deps, where(ref))
    if len(whole.lines) <= WHOLE_LINES:
        draft.say(fenced(whole.lines, whole.language))
        return
    if ref["signature"].strip():
        draft.say(fenced(printable(ref["signature"]).split("\n")[:WHOLE_LINES], whole.language))
    show_window(draft, ref["path"], whole, terms, first=body_start(whole.lines, ref["signature"]))


def show_window(draft: Draft, path: str, source: Quote, terms: frozenset[str], *, first: int = 0) -> None:
    """Quote the lines of a passage that say most about the question, with their own citation."""
    start, end = best_window(source.lines, terms, first=first)
    lines = Location(path=path, start_line=source.first_line + start, end_line=source.first_line + end - 1)
    heading = f"{code_span(path)}, {line_numbers(lines)} {draft.cite(lines)}:"
    draft.say(f"{heading}\n\n{fenced(source.lines[start:end], source.language)}")


async def site_line(draft: Draft, deps: Deps, ref: EvidenceRef) -> str:
    """Write one call, use or test as a list item: who, where, and the line itself."""
    lines = where(ref)
    text = (await quote(deps, lines)).lines[0].strip()
    who = code_span(ref["symbol"]) if ref["symbol"] else "module level"
    maybe = "possibly " if ref["ambiguous"] else ""
    place = code_span(f"{ref['path']}:{ref['start_line']}")
    return f"- {maybe}{who} in {place} {draft.cite(lines)}: {code_span(text)}"


def see_also_line(draft: Draft, ref: EvidenceRef) -> str:
    """Write one further place as a list item."""
    lines = where(ref)
    about = quoted_prose(ref["doc"], longest=120)
    place = code_span(f"{ref['path']}:{lines.start_line}")
    name = f"{code_span(ref['symbol'])} in " if ref["symbol"] else ""
    return f"- {name}{place} {draft.cite(lines)}" + (f": {about}" if about else "")
