"""Answers that are lists of places: calls, uses and tests of a name, and what a file defines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.answers.answer_parts import format_name, format_outline_entry, format_site, quote_definition, write_entries
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.coverage import deny
from agent.evidence.refs import count_calls, group_by_place, is_test_or_docs, read_quote
from agent.evidence.requests import FILE_IS_THERE
from agent.questions.scopes import asks_for_yes_or_no
from agent.state import Continuation, EvidenceRef, Role, to_location
from agent.text.code_lines import dedent
from agent.text.escaping import format_code_block, format_code_span, format_count, join_words

MAX_LISTED = 8
_CALLED = frozenset({"function", "method"})
MAX_MENTIONED = 5
MAX_MEANT = 4  # definitions that a call may mean, each with a mark
MAX_ASIDES = 3  # tests and examples that are listed beside calls from the code itself
_MOST_FILES = 3


async def list_calls(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write who calls or uses the name, or what it calls."""
    role: Role = "caller" if material.lookup in {"callers", "usages"} else "callee"
    definitions, sites, mentions = material.of("definition"), material.of(role), material.of("mention")
    target = _format_target(draft, material, definitions)
    is_function = bool(definitions) and definitions[0]["kind"] in _CALLED
    is_used = material.lookup == "usages" and not is_function and bool(material.metadata["totals"].get("uses"))
    if sites:
        await _write_sites(draft, material, sites, role, target)
    elif is_used:
        total = material.metadata["totals"].get("mention", len(mentions))
        draft.say(f"{_affirm(material)}{target} is used on {format_count(total, 'line')}{_describe_scope(material)}:")
    else:
        await _deny_calls(draft, material, role, target)
    if mentions and len(sites) < MAX_LISTED:
        if sites or not is_used:
            draft.say("It is also mentioned in:" if sites else "These lines mention it:")
        room = MAX_MENTIONED if not sites else max(1, MAX_MENTIONED - len(sites))
        total = material.metadata["totals"].get("mention", len(mentions))
        await _list_places(draft, material, [[ref] for ref in mentions[:room]], total)
    elif not sites:
        for ref in definitions[:1]:
            await quote_definition(draft, material.deps, ref)
    return _make_subject(material, definitions)


async def _deny_calls(draft: AnswerBuilder, material: AnswerContext, role: Role, target: str) -> None:
    """Say that there is no call, with how much of the code that rests on."""
    plain = material.name.rpartition(".")[2]
    if role == "callee":
        claim, words = f"{target} calls nothing that is known by name", []
    elif material.lookup == "callers" or {ref["kind"] for ref in material.of("definition")} & _CALLED:
        claim, words = f"No call of {target} was found", [plain]
    else:
        claim, words = f"No use of {target} was found", [plain]
    no = "No: n" if asks_for_yes_or_no(material.question) and claim.startswith("N") else claim[:1]
    draft.say((await deny(material.deps.code, f"{no}{claim[1:]}{_describe_scope(material)}", *words)).text)


def _affirm(material: AnswerContext) -> str:
    return "Yes: " if asks_for_yes_or_no(material.question) else ""


def _describe_scope(material: AnswerContext) -> str:
    """Say which files the answer is limited to."""
    requests = material.decision["requests"]
    folders, sorts = (requests[0]["folders"], requests[0]["source_types"]) if requests else ([], [])
    within = f" in {' and '.join(map(format_code_span, folders))}" if folders else ""
    return within + ((" in tests" if sorts == ["test"] else " outside the tests") if sorts else "")


async def _write_sites(
    draft: AnswerBuilder, material: AnswerContext, sites: Sequence[EvidenceRef], role: Role, target: str
) -> None:
    totals = material.metadata["totals"]
    calls = totals.get(f"{role} sites", len(sites))
    total = totals.get(role, len(sites))
    if role == "callee":
        await _write_callees(draft, material, sites, target)
        return
    called = [ref for ref in material.of("definition") if ref.get("calls")]
    meant = material.of("definition")
    if len(called) <= 1 < len(meant) and all(ref["ambiguous"] for ref in sites):
        marks = " ".join(draft.cite(to_location(ref)) for ref in meant[:MAX_MEANT])
        target = f"{format_code_span(material.name)}, which may mean any of {len(meant)} definitions {marks}"
    uncertain = max(0, calls - sum(ref["calls"] for ref in called))
    if len(called) > 1 or (called and uncertain and len(meant) > 1):
        names = Counter(ref["symbol"] for ref in called)
        shares = [
            f"{ref['calls']} of {format_name(ref)}"
            + (f" in {format_code_span(ref['path'])}" if names[ref["symbol"]] > 1 else "")
            + f" {draft.cite(to_location(ref))}"
            for ref in called
        ]
        shares += [f"{uncertain} that may be of another definition of that name"] if uncertain else []
        target = f"{format_code_span(material.name)}, {join_words(shares)}"
    where_from = f", from {format_count(total, 'place')}" if total < calls else ""
    scope = _describe_scope(material)
    draft.say(f"{_affirm(material)}{format_count(calls, 'call')} of {target}{scope}{where_from}:")
    places = group_by_place(sites)
    main = [place for place in places if not is_test_or_docs(place[0]["path"])]
    asides = [place for place in places if is_test_or_docs(place[0]["path"])]
    shown = [*main[:MAX_LISTED], *asides[: MAX_ASIDES if main else MAX_LISTED - MAX_ASIDES]][:MAX_LISTED]
    left = [ref for place in places if place not in shown for ref in place]
    await _list_places(draft, material, shown, calls, left=left)


async def _write_callees(
    draft: AnswerBuilder, material: AnswerContext, sites: Sequence[EvidenceRef], target: str
) -> None:
    totals = material.metadata["totals"]
    inside = [ref for ref in sites if ref["kind"]]
    outside = list(dict.fromkeys(ref["symbol"] for ref in sites if not ref["kind"]))
    calls = totals.get("callee sites", len(sites))
    known = totals.get("callee inside", len(inside))
    of_names = f", {known} of them of names defined here" if inside and known < calls else ""
    draft.say(f"{format_count(calls, 'call')} made by {target}{of_names}" + (":" if inside else "."))
    if inside:
        await _list_places(draft, material, group_by_place(inside)[:MAX_LISTED], known)
    if outside:
        names = ", ".join(map(format_code_span, outside[:MAX_LISTED]))
        others = " and others" if len(outside) > MAX_LISTED else ""
        draft.say(f"Names from outside the repository: {names}{others}.")


async def list_tests(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write which tests use the name."""
    definitions, tests = material.of("definition"), material.of("test")
    target = _format_target(draft, material, definitions)
    if tests:
        draft.say(f"These tests use {target}:")
        total = material.metadata["totals"].get("test", len(tests))
        await _list_places(draft, material, [[ref] for ref in tests[:MAX_MENTIONED]], total, left=tests[MAX_MENTIONED:])
    else:
        draft.say((await deny(material.deps.code, f"No test names {target}", material.name.rpartition(".")[2])).text)
    return _make_subject(material, definitions)


async def write_attributes(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write which classes set an attribute, and how."""
    sites, totals = material.of("entry"), material.metadata["totals"]
    first, total = sites[0], totals.get("attributes", len(sites))
    owner = material.name.rpartition(".")[0]
    place = format_code_span(first["path"] + ":" + str(first["start_line"]))
    within = f"{first['kind']} {format_code_span(first['symbol'])}, {place} {draft.cite(to_location(first))}"
    is_elsewhere = bool(owner) and not totals.get("of owner")
    opening = f"{format_code_span(owner)} itself does not set it, as far as the syntax tells. " if is_elsewhere else ""
    draft.say(f"{opening}{format_code_span(first['doc'])} is set in {within}:")
    source = await read_quote(material.deps, to_location(first))
    draft.say(format_code_block(dedent(source.lines), source.language))
    if sites[1:]:
        draft.say("It is also set in:")
        others = [[ref] for ref in sites[1 : 1 + MAX_MENTIONED]]
        await _list_places(draft, material, others, total - 1, left=sites[1 + MAX_MENTIONED :])
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"])


async def list_files(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what the files define, or how they begin."""
    more: Continuation | None = None
    for head in material.of("file"):
        source = await read_quote(material.deps, to_location(head))
        if not any(source.lines):
            draft.say(f"{format_code_span(head['path'])} {draft.cite(to_location(head))} holds nothing.")
            continue
        symbols = [ref for ref in material.of("definition") if ref["path"] == head["path"]]
        is_there = material.decision["requests"][0]["reasoning"] == FILE_IS_THERE
        place = f"{'Yes: ' if is_there else ''}{format_code_span(head['path'])} {draft.cite(to_location(head))}"
        if is_there:
            draft.say(f"{place} is there, with {format_count(head['end_line'], 'line')}.")
            continue
        if not symbols:
            draft.say(f"{place} defines no names; it begins like this:")
            draft.say(format_code_block(source.lines[:20], source.language))
            continue
        where = "" if any("." in ref["symbol"] for ref in symbols) else " at the top level"
        draft.say(f"{place} defines {format_count(len(symbols), 'name')}{where}:")
        rest = write_entries(draft, material, symbols, format_entry=format_outline_entry, is_grouped=False)
        if rest and more is None:
            more = {**rest, "question": head["path"]}
    return AnswerSubject(more=more)


async def list_folder(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write what lies in a folder."""
    totals, folder = material.metadata["totals"], material.decision["requests"][0]["path"]
    folders, files = totals.get("folders", 0), totals.get("files", 0)
    below = f" and {format_count(folders, 'folder')}" if folders else ""
    draft.say(f"{format_code_span(folder + '/')} holds {format_count(files, 'file')}{below}:")
    more = write_entries(draft, material, material.of("entry"), format_entry=_format_file, is_grouped=False)
    return AnswerSubject(more=more)


def _format_file(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    is_folder = ref["kind"] == "folder"
    place = ":" if is_folder else f" {draft.cite(to_location(ref))},"
    inside = (
        f"{',' if is_folder else ':'} {format_code_span(ref['signature'], longest=120)}" if ref["signature"] else ""
    )
    return f"- {format_code_span(ref['symbol'])}{place} {ref['doc']}{inside}"


async def _list_places(
    draft: AnswerBuilder,
    material: AnswerContext,
    places: Sequence[Sequence[EvidenceRef]],
    total: int,
    *,
    left: Sequence[EvidenceRef] = (),
) -> None:
    """List places, each with what it holds side by side; `total` counts what all of them hold.

    Of what is `left` out it says which files hold most.
    """
    items = [await format_site(draft, material.deps, place) for place in places]
    files = [format_code_span(path) for path, _ in Counter(ref["path"] for ref in left).most_common(_MOST_FILES)]
    if (count := total - sum(map(count_calls, places))) > 0:
        items.append(f"- and {count} more" + (f", most of them in {', '.join(files)}" if files else ""))
    draft.say("\n".join(items))


def _format_target(draft: AnswerBuilder, material: AnswerContext, definitions: Sequence[EvidenceRef]) -> str:
    """Name what the question is about, with the mark of its definition."""
    if not definitions:
        return format_code_span(material.name)
    return f"{format_name(definitions[0])} {draft.cite(to_location(definitions[0]))}"


def _make_subject(material: AnswerContext, definitions: Sequence[EvidenceRef]) -> AnswerSubject:
    if not definitions:
        return AnswerSubject(symbol=material.name)
    return AnswerSubject(symbol=definitions[0]["symbol"], kind=definitions[0]["kind"])
