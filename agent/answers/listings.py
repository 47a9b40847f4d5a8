"""Answers that are lists: calls, uses and tests of a name, definitions of a file, registrations, commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from agent.answers.answer_parts import (
    TYPE_KINDS,
    AnswerBuilder,
    AnswerContext,
    AnswerSubject,
    format_name,
    format_outline_entry,
    format_site,
    quote_definition,
    quote_first_sentence,
    write_entries,
)
from agent.evidence.coverage import LOCK_FILE, deny, describe_unseen
from agent.evidence.packages import MANIFESTS
from agent.evidence.refs import count_calls, group_by_place, is_test_or_docs, read_quote
from agent.questions.scopes import asks_for_yes_or_no
from agent.state import Continuation, EvidenceRef, Role, to_location
from agent.text.escaping import dedent, format_code_block, format_code_span, format_count, format_quote, join_words

MAX_LISTED = 8
_CALLED = frozenset({"function", "method"})
MAX_MENTIONED = 5
MAX_MEANT = 4  # definitions that a call may mean, each with a mark
MAX_ASIDES = 3  # tests and examples that are listed beside calls from the code itself
_MAX_FILES = 3


async def list_calls(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write who calls or uses the name, or what it calls."""
    role: Role = "caller" if material.lookup in {"callers", "usages"} else "callee"
    definitions, sites, mentions = material.of("definition"), material.of(role), material.of("mention")
    target = _format_target(draft, material, definitions)
    is_function = bool(definitions) and definitions[0]["kind"] in _CALLED
    is_used = material.lookup == "usages" and bool(material.metadata["totals"].get("uses"))
    if sites:
        await _write_sites(draft, material, sites, role, target)
    elif is_used:
        total = material.metadata["totals"].get("mention", len(mentions))
        lines, scope = format_count(total, "line"), describe_scope(material)
        declared = () if definitions else await material.deps.code.registrations(MANIFESTS)
        if not definitions and {ref["path"] for ref in mentions} <= {site.path for site in declared}:
            draft.say(f"{target} is named only by manifests{scope}, on {lines}:")
        else:
            uncalled = ", none of them a call that the syntax shows" if is_function else ""
            draft.say(f"{_affirm(material)}{target} is used on {lines}{scope}{uncalled}:")
    else:
        await _deny_calls(draft, material, role, target)
    if mentions and len(sites) < MAX_LISTED:
        await _write_mentions(draft, material, mentions, sites, is_used=is_used)
    elif not sites:
        for ref in definitions[:1]:
            await quote_definition(draft, material.deps, ref)
    return _make_subject(material, definitions)


async def _write_mentions(
    draft: AnswerBuilder,
    material: AnswerContext,
    mentions: Sequence[EvidenceRef],
    sites: Sequence[EvidenceRef],
    *,
    is_used: bool,
) -> None:
    """Write the lines that mention a name without calling it, indirect calls first."""
    room = MAX_MENTIONED if not sites else max(1, MAX_MENTIONED - len(sites))
    named = [ref for ref in mentions if ref["kind"]][:MAX_MENTIONED]
    others = [ref for ref in mentions if ref not in named]
    total = material.metadata["totals"].get("mention", len(mentions))
    if named:
        if sites or not is_used:
            draft.say("It is also used by its name:" if sites else "It is used by its name:")
        await _list_places(draft, material, [[ref] for ref in named], len(named))
    if others:
        if named or sites or not is_used:
            draft.say("It is also mentioned in:" if named or sites else "These lines mention it:")
        shown = others[: max(1, room - len(named))]
        await _list_places(draft, material, [[ref] for ref in shown], total - len(named))


async def _deny_calls(draft: AnswerBuilder, material: AnswerContext, role: Role, target: str) -> None:
    """Say that there is no call, and how much code was read."""
    plain = material.name.rpartition(".")[2]
    if role == "callee":
        claim, words = f"{target} calls no function known by name", []
    elif material.lookup == "callers" or {ref["kind"] for ref in material.of("definition")} & _CALLED:
        claim, words = f"No call of {target} was found", [plain]
    else:
        claim, words = f"No use of {target} was found", [plain]
    is_sure = asks_for_yes_or_no(material.question) and not material.metadata["totals"].get("uses")
    no = "No: n" if is_sure and claim.startswith("N") else claim[:1]
    denial = await deny(material.deps.code, f"{no}{claim[1:]}{describe_scope(material)}", *words)
    unseen = describe_unseen(ref["path"] for ref in material.of("definition")) if role == "caller" else ""
    draft.say(f"{denial.text} {unseen}".rstrip())


def _affirm(material: AnswerContext) -> str:
    return "Yes: " if asks_for_yes_or_no(material.question) else ""


def describe_scope(material: AnswerContext) -> str:
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
    scope = describe_scope(material)
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
    """List each file's definitions, or its first lines."""
    more: Continuation | None = None
    for head in material.of("file"):
        source = await read_quote(material.deps, to_location(head))
        if not any(source.lines):
            draft.say(f"{format_code_span(head['path'])} {draft.cite(to_location(head))} holds nothing.")
            continue
        symbols = [ref for ref in material.of("definition") if ref["path"] == head["path"]]
        place = f"{_affirm(material)}{format_code_span(head['path'])} {draft.cite(to_location(head))}"
        if not symbols:
            draft.say(f"{place} defines no names; its first lines:")
            draft.say(format_code_block(source.lines[:20], source.language))
            continue
        where = "" if any("." in ref["symbol"] for ref in symbols) else " at the top level"
        draft.say(f"{place} defines {format_count(len(symbols), 'name')}{where}:")
        rest = write_entries(draft, material, symbols, format_entry=format_outline_entry, is_grouped=False)
        if rest and more is None:
            more = {**rest, "question": head["path"]}
    return AnswerSubject(more=more)


async def list_folder(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the contents of a folder."""
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
    """List places with their entries side by side; `total` counts all entries.

    If some are `left` out, the files with the most of them are named.
    """
    items = [await format_site(draft, material.deps, place) for place in places]
    files = [format_code_span(path) for path, _ in Counter(ref["path"] for ref in left).most_common(_MAX_FILES)]
    if (count := total - sum(map(count_calls, places))) > 0:
        items.append(f"- and {count} more" + (f", most of them in {', '.join(files)}" if files else ""))
    draft.say("\n".join(items))


def _format_target(draft: AnswerBuilder, material: AnswerContext, definitions: Sequence[EvidenceRef]) -> str:
    """Name the subject of the question, with the mark of its definition."""
    if not definitions:
        return format_code_span(material.name)
    return f"{format_name(definitions[0])} {draft.cite(to_location(definitions[0]))}"


def _make_subject(material: AnswerContext, definitions: Sequence[EvidenceRef]) -> AnswerSubject:
    if not definitions:
        return AnswerSubject(symbol=material.name)
    return AnswerSubject(symbol=definitions[0]["symbol"], kind=definitions[0]["kind"])


_NOUNS = {
    "route": "endpoint",
    "command": "command",
    "task": "background task",
    "event": "event",
    "model": "model",
    "flag": "command-line option",
    "environment": "environment variable",
    "setting": "setting",
    "table": "table",
    "index": "index",
    "service": "service",
    "rpc": "remote call",
    "type": "type",
    "resource": "resource",
    "job": "CI job",
    "topic": "topic",
    "feature": "feature flag",
}
_PLURALS = {"index": "indexes"}
_OPTIONS = frozenset({"flag", "environment", "setting"})
_OF_EVENTS = frozenset({"emitted", "handled"})
_MIN_IN_FILE = 3
_MAX_DETAIL = 60
_MAX_HELP = 120
_LONG = 8  # entries; each of a longer list has one row
_ROW, _MIN_HELP = 94, 24
_EMPTY = frozenset({'""', "''", "None", "nil", "null", "undefined", '"none"'})


async def list_registered(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the registrations, file by file; for an option named in the question, its default first."""
    entries = material.of("entry")
    is_one = "value" in material.parts and len(entries) == 1 and bool(entries[0]["signature"])
    is_named = is_one or ("name" in material.parts and bool(entries))
    return (_write_default if is_named else _write_list)(draft, material, entries)


async def list_subclasses(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the subclasses of a type."""
    entries, totals = material.of("entry"), material.metadata["totals"]
    count, direct = totals.get("entries", len(entries)), totals.get("direct", 0)
    base = material.facts.get("base", "")
    verb = "type inherits" if count == 1 else "types inherit"
    deeper = f", {direct} of them directly" if 0 < direct < count else ""
    sentence = f"{count} {verb} from {format_code_span(base)}{deeper}, as far as the syntax tells"
    return AnswerSubject(symbol=base, more=_write_counted(draft, material, sentence, entries))


def _write_default(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    first = entries[0]
    name, noun = format_code_span(first["symbol"]), _NOUNS.get(first["kind"], "setting")
    mark = draft.cite(to_location(first))
    value = f"is {format_code_span(first['signature'])} by default" if first["signature"] else "has no visible default"
    about = quote_first_sentence(first, longest=240)
    draft.say(f"{name}, {'an' if noun[0] in 'aeiou' else 'a'} {noun}, {value} {mark}." + (f" {about}" if about else ""))
    more = None
    if len(entries) > 1:
        draft.say("The name has several meanings:")
        more = write_entries(draft, material, entries[1:], format_entry=_format_entry)
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"], more=more)


def _write_list(draft: AnswerBuilder, material: AnswerContext, entries: list[EvidenceRef]) -> AnswerSubject:
    totals = material.metadata["totals"]
    whole, kept = totals.get("whole", 0), totals.get("entries", 0)
    listed = join_words(
        [format_count(totals[kind], noun, _PLURALS.get(noun, "")) for kind, noun in _NOUNS.items() if totals.get(kind)]
    )
    target = material.parts.get("target", "")
    is_narrowed = kept + totals.get("asides", 0) < whole
    is_named = is_narrowed and target and target.lower() != material.deps.code.repository.lower()
    narrowed = f" for {format_code_span(target, longest=80)} (of {whole} in all)" if is_named else ""
    is_option = not entries or entries[0]["kind"] in _OPTIONS
    registered = "" if is_option else " is registered" if kept == 1 else " are registered"
    sentence = f"{listed}{narrowed}{registered} in {format_count(totals.get('in files', 1), 'file')}"
    return AnswerSubject(more=_write_counted(draft, material, sentence, entries))


async def list_contract(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the places that create, read, change or call something, grouped by use."""
    entries, totals, facts = material.of("entry"), material.metadata["totals"], material.facts
    name = format_code_span(facts["name"])
    read = (LOCK_FILE,) if facts["contract"] in {"package", "requirement"} else ()
    for action in facts["missing"].split():
        claim = f"No package that {name} needs" if action == "required" else f"No place where {name} is {action}"
        denial = await deny(material.deps.code, f"{claim} was found", facts["name"].rpartition(".")[2], read=read)
        draft.say(denial.text)
    told = [
        f"{kind} in {format_count(totals[kind], 'place')}" for kind in dict.fromkeys(ref["kind"] for ref in entries)
    ]
    is_of_needs = totals.get("required", 0) > 0
    needs = f"depends on {format_count(totals.get('required', 0), 'package')}"
    draft.say(f"{name} {needs if is_of_needs else f'is {join_words(told)}'}:")
    by_package = is_of_needs and len({(ref["path"], ref["doc"]) for ref in entries}) > 1
    more = write_entries(
        draft,
        material,
        entries,
        format_entry=_format_end,
        is_grouped=by_package or len(told) > 1,
        heading=None if by_package else lambda ref: ref["kind"].capitalize(),
    )
    return AnswerSubject(symbol=facts["name"], more=more)


def _format_end(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    """Write one place with its surrounding code, and any remaining remarks."""
    detail = f", {format_code_span(ref['signature'], longest=_MAX_DETAIL)}" if ref["signature"] else ""
    return (
        f"- {format_code_span(ref['symbol'])} in {format_code_span(ref['path'])} {draft.cite(to_location(ref))}{detail}"
    )


def _write_counted(
    draft: AnswerBuilder, material: AnswerContext, sentence: str, entries: Sequence[EvidenceRef]
) -> Continuation | None:
    """Write the sentence, with the count in tests, and the list below it."""
    totals = material.metadata["totals"]
    asides = f", and {totals['asides']:,} more in tests and examples" if totals.get("asides") else ""
    draft.say(f"{sentence}{', all of them in tests' if totals.get('in tests') else asides}:")
    # Headings are worth their room where the files hold several entries each.
    is_grouped = len(entries) >= _MIN_IN_FILE * len({ref["path"] for ref in entries})
    write = partial(_format_entry, is_long=len(entries) > _LONG)
    is_mixed = len({ref["kind"] for ref in entries if ref["kind"] in _NOUNS.keys() - _OPTIONS}) > 1
    heading = _name_sort if is_mixed else None
    is_grouped = is_grouped or is_mixed
    return write_entries(draft, material, entries, format_entry=write, is_grouped=is_grouped, heading=heading)


def _name_sort(ref: EvidenceRef) -> str:
    noun = _NOUNS[ref["kind"]]
    plural = _PLURALS.get(noun, f"{noun}s")
    return plural[0].upper() + plural[1:]


def _format_entry(draft: AnswerBuilder, ref: EvidenceRef, *, is_long: bool = False) -> str:
    """Write an entry: its name and mark, its default or handler, its description.

    In a long list, each fits on one row.
    """
    detail, mark = _describe_detail(ref), draft.cite(to_location(ref))
    name = format_code_span(ref["symbol"])
    line = f"- {name}{detail} {mark}" if ref["kind"] in _OPTIONS else f"- {name} {mark}{detail}"
    about = quote_first_sentence(ref, longest=max(_MIN_HELP, _ROW - len(line)) if is_long else _MAX_HELP)
    return f"{line}: {about}" if about else line


def _describe_detail(ref: EvidenceRef) -> str:
    value = ref["signature"]
    if not value or value in _EMPTY or ref["kind"] == "command" or (ref["kind"], value) == ("event", "declared"):
        return ""
    if ref["kind"] == "event" and value in _OF_EVENTS:
        return f", {value}"
    span = format_code_span(value, longest=_MAX_DETAIL)
    if ref["kind"] in TYPE_KINDS:
        return f", through {span}"
    return f" = {span}" if ref["kind"] in _OPTIONS else f", {span}"


MAX_FURTHER = 4
_NEAR = 0.5  # of the best one's score, below which a command is for something else
_SAYS: dict[str, str] = {
    "target": "a target of",
    "script": "a script of",
    "document": "from",
    "sentence": "from",
    "session": "an environment of",
    "convention": "what one types where there is a",
}


async def write_commands(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the best command, and a few more."""
    entries = material.of("entry")
    if material.metadata["totals"].get("all"):
        draft.say(f"The repository names {len(entries)} commands:")
        return AnswerSubject(more=write_entries(draft, material, entries, format_entry=_format_command))
    lead = entries[0]
    draft.say(
        f"{format_code_span(lead['symbol'], longest=200)} {draft.cite(to_location(lead))}, {_describe_command(lead)}."
    )
    if lead["kind"] == "document":
        source = await read_quote(material.deps, to_location(lead))
        draft.say(format_code_block(dedent(source.lines), "sh"))
    further = [ref for ref in entries[1:] if ref["score"] >= _NEAR * lead["score"]][:MAX_FURTHER]
    if further:
        items = [
            f"- {format_code_span(ref['symbol'], longest=160)} {draft.cite(to_location(ref))}, {_describe_command(ref)}"
            for ref in further
        ]
        draft.say("\n".join(["There is also:", "", *items]))
    return AnswerSubject()


def _describe_command(ref: EvidenceRef) -> str:
    """Describe a command: its place, its purpose, and its documentation."""
    runs = f", which runs {format_code_span(ref['signature'], longest=160)}" if ref["signature"] else ""
    about = f": {format_quote(ref['doc'], longest=160)}" if ref["doc"] else ""
    return f"{_SAYS[ref['kind']]} {format_code_span(ref['path'])}{runs}{about}"


def _format_command(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    about = f": {format_quote(ref['doc'], longest=120)}" if ref["doc"] else ""
    runs = f" ({format_code_span(ref['signature'], longest=100)})" if ref["signature"] and not about else ""
    return f"- {format_code_span(ref['symbol'])} {draft.cite(to_location(ref))}{runs}{about}"
