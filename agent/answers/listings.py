"""Answers that are lists of places: calls, uses and tests of a name, and what a file defines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.answers.answer_parts import LABEL, format_name, format_outline_entry, format_site, quote_definition
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.refs import is_test_or_docs, read_quote
from agent.state import EvidenceRef, Role, to_location
from agent.text.escaping import format_code_block, format_code_span

MAX_LISTED = 8
MAX_MENTIONED = 5
MAX_ASIDES = 3  # tests and examples that are listed beside calls from the code itself
_MOST_FILES = 3


async def list_calls(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write who calls or uses the name, or what it calls."""
    role: Role = "caller" if material.lookup in {"callers", "usages"} else "callee"
    definitions, sites = material.of("definition"), material.of(role)
    mentions = material.of("mention")
    subject = _make_subject(material, definitions)
    target = _format_target(draft, material, definitions)
    if not sites and not mentions:
        verb = "calls" if role == "caller" else "is called by"
        draft.say(f"{LABEL} as far as the syntax tells, nothing in the repository {verb} {target}.")
        for ref in definitions[:1]:
            await quote_definition(draft, material.deps, ref, material.emphasis)
        return subject
    if sites:
        await _write_sites(draft, material, sites, role, target)
    if mentions and len(sites) < MAX_LISTED:
        draft.say(f"{LABEL} these lines mention {target}:" if not sites else "It is also mentioned in:")
        room = MAX_MENTIONED if not sites else max(1, MAX_MENTIONED - len(sites))
        await _list_sites(draft, material, mentions[:room], material.metadata["totals"].get("mention", len(mentions)))
    return subject


async def _write_sites(
    draft: AnswerBuilder, material: AnswerContext, sites: Sequence[EvidenceRef], role: Role, target: str
) -> None:
    totals = material.metadata["totals"]
    calls = totals.get(f"{role} sites", len(sites))
    total = totals.get(role, len(sites))
    if role == "callee":
        inside = [ref for ref in sites if ref["kind"]]
        outside = list(dict.fromkeys(ref["symbol"] for ref in sites if not ref["kind"]))
        draft.say(f"{LABEL} {_format_count(calls, 'call')} made by {target}" + (":" if inside else "."))
        if inside:
            await _list_sites(draft, material, inside[:MAX_LISTED], len(inside))
        if outside:
            draft.say(f"Names from outside the repository: {', '.join(map(format_code_span, outside[:MAX_LISTED]))}.")
        return
    where_from = f", from {total} places" if total < calls else ""
    draft.say(f"{LABEL} {_format_count(calls, 'call')} of {target}{where_from}:")
    main = [ref for ref in sites if not is_test_or_docs(ref["path"])]
    asides = [ref for ref in sites if is_test_or_docs(ref["path"])]
    shown = [*main[:MAX_LISTED], *asides[: MAX_ASIDES if main else MAX_LISTED - MAX_ASIDES]][:MAX_LISTED]
    await _list_sites(draft, material, shown, total, left=[ref for ref in sites if ref not in shown])


async def list_tests(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write which tests use the name."""
    definitions, tests = material.of("definition"), material.of("test")
    target = _format_target(draft, material, definitions)
    if tests:
        draft.say(f"{LABEL} these tests use {target}:")
        total = material.metadata["totals"].get("test", len(tests))
        await _list_sites(draft, material, tests[:MAX_MENTIONED], total, left=tests[MAX_MENTIONED:])
    else:
        draft.say(f"{LABEL} no test in the repository names {target}.")
    return _make_subject(material, definitions)


async def list_files(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what the files define, or how they begin."""
    for head in material.of("file"):
        source = await read_quote(material.deps, to_location(head))
        if not any(source.lines):
            draft.say(f"{LABEL} {format_code_span(head['path'])} holds nothing.")
            continue
        symbols = [ref for ref in material.of("definition") if ref["path"] == head["path"]]
        outline = _choose_worth_listing(symbols)
        about = f" defines {_format_count(len(symbols), 'name')} at the top level:" if outline else " begins like this:"
        draft.say(f"{LABEL} {format_code_span(head['path'])} {draft.cite(to_location(head))}{about}")
        if outline:
            items = [format_outline_entry(draft, ref) for ref in outline[:MAX_LISTED]]
            draft.say("\n".join([*items, *_count_rest(len(outline) - len(items))]))
        else:
            draft.say(format_code_block(source.lines[:20], source.language))
    return AnswerSubject()


def _choose_worth_listing(symbols: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Leave out constants where there are functions and types, and private names where there are public ones."""
    if len(symbols) <= MAX_LISTED:
        return list(symbols)
    telling = [ref for ref in symbols if ref["kind"] != "constant"] or list(symbols)
    public = [ref for ref in telling if not ref["symbol"].startswith("_")]
    return public if len(public) >= MAX_MENTIONED else telling


async def _list_sites(
    draft: AnswerBuilder,
    material: AnswerContext,
    refs: Sequence[EvidenceRef],
    total: int,
    *,
    left: Sequence[EvidenceRef] = (),
) -> None:
    items = [await format_site(draft, material.deps, ref) for ref in refs]
    draft.say("\n".join([*items, *_count_rest(total - len(items), left)]))


def _count_rest(count: int, left: Sequence[EvidenceRef] = ()) -> list[str]:
    """Say how many were left out, and which files hold most of them."""
    if count <= 0:
        return []
    files = [path for path, _ in Counter(ref["path"] for ref in left).most_common(_MOST_FILES)]
    within = f", most of them in {', '.join(map(format_code_span, files))}" if files else ""
    return [f"- and {count} more{within}"]


def _format_target(draft: AnswerBuilder, material: AnswerContext, definitions: Sequence[EvidenceRef]) -> str:
    """Name what the question is about, with the mark of its definition."""
    if not definitions:
        return format_code_span(material.name)
    return f"{format_name(definitions[0])} {draft.cite(to_location(definitions[0]))}"


def _make_subject(material: AnswerContext, definitions: Sequence[EvidenceRef]) -> AnswerSubject:
    if not definitions:
        return AnswerSubject(symbol=material.name)
    return AnswerSubject(symbol=definitions[0]["symbol"], kind=definitions[0]["kind"])


def _format_count(total: int, noun: str) -> str:
    return f"{total} {noun}{'s' if total != 1 else ''}"
