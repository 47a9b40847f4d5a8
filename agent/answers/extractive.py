"""Writes the extractive answer: the question decides its form, and the evidence its content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from agent.answers.answer_parts import (
    AnswerBuilder,
    AnswerContext,
    AnswerSubject,
    format_headline,
    format_line_numbers,
    quote_definition,
    strip_doc_markup,
)
from agent.answers.history_answers import write_changes, write_comparison, write_people
from agent.answers.listings import (
    describe_scope,
    list_calls,
    list_contract,
    list_files,
    list_folder,
    list_registered,
    list_subclasses,
    list_tests,
    write_attributes,
    write_commands,
)
from agent.answers.places import describe_missing_files, list_further, write_places, write_related
from agent.evidence.coverage import LOCK_FILE, deny, explain_missing_paths
from agent.evidence.intent_router import STARTING
from agent.evidence.lookups import NOT_AT_COMMIT
from agent.evidence.refs import is_test_or_docs, make_quote, read_quote, sort_code_first
from agent.evidence.requests import NO_PLACE, NONE_OF, NOT_INDEXED
from agent.questions.mentions import find_mentions
from agent.questions.scopes import asks_for_yes_or_no
from agent.questions.terms import is_common_noun
from agent.state import Continuation, EvidenceRef, Lookup, RetrievalRequest, to_location
from agent.text.escaping import dedent, format_code_block, format_code_span, format_count, format_quote
from indexer.types import Location, RepositoryOverview

_PLAIN = "text"  # files without a parsed language
_MAX_QUOTE = 320
_MAX_LANGUAGES = 3
_MAX_FILES = 4
_MAX_FOLDERS = 8
_MAX_INNER = 5


async def write_overview(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write an overview of the repository; point at places if the question names a part of it."""
    if material.skip or find_mentions(material.question).anything:
        return await write_places(draft, material)
    code = material.deps.code
    facts = await code.overview()
    starts = _list_files(draft, "It starts in", [(path, "") for path in facts.starts[:_MAX_FILES]])
    if material.terms & STARTING and starts:
        draft.say(starts.pop().removeprefix("- "))
    for passage in facts.introduction[:1]:
        text = format_quote(strip_doc_markup(" ".join(passage.text.split())), longest=_MAX_QUOTE)
        draft.say(f"{text} ({format_code_span(passage.location.path)} {draft.cite_read(passage.location)})")
    languages = [f"{count:,} of {language}" for language, count in facts.languages if language != _PLAIN]
    size = f"{format_count(facts.files, 'file')} with {format_count(facts.lines, 'line')}"
    draft.say(f"{': '.join(filter(None, [size, ', '.join(languages[:_MAX_LANGUAGES])]))}.")
    files = [one for one in await code.files() if "/" not in one.path and one.path not in facts.starts]
    own = [one for one in files if one.language != _PLAIN and one.source_type == "code"]
    top = sorted(own, key=lambda one: -one.lines)[:_MAX_FILES]
    items = [
        *starts,
        *_list_files(draft, "At the top", [(one.path, f" ({format_count(one.lines, 'line')})") for one in top]),
        *_list_folders(facts),
    ]
    if items:
        draft.say("\n".join(items))
    return AnswerSubject()


def _list_files(draft: AnswerBuilder, title: str, files: Sequence[tuple[str, str]]) -> list[str]:
    named = ", ".join(
        f"{format_code_span(path)} {draft.cite_read(Location(path=path, start_line=1, end_line=1))}{more}"
        for path, more in files
    )
    return [f"- {title}: {named}"] if named else []


def _list_folders(facts: RepositoryOverview) -> list[str]:
    """List the folders at the top, those with the most files first, each with the largest in it."""
    by_size = sorted(facts.folders, key=lambda one: -one[1])
    top = [(path, count) for path, count in by_size if "/" not in path]
    items = []
    for path, count in top[:_MAX_FOLDERS]:
        inner = [format_code_span(each.partition("/")[2] + "/") for each, _ in by_size if each.startswith(f"{path}/")]
        more = f" and {len(inner) - _MAX_INNER} more" if len(inner) > _MAX_INNER else ""
        inside = f", with {', '.join(inner[:_MAX_INNER])}{more}" if inner else ""
        items.append(f"- {format_code_span(path + '/')}: {format_count(count, 'file')}{inside}")
    rest = len(top) - _MAX_FOLDERS
    return [*items, f"- and {format_count(rest, 'more folder')}"] if rest > 0 else items


MAX_QUOTED = 2
MAX_LINES = 40


async def write_extractive_answer(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the answer into the draft and return its subject."""
    if not material.retrieved:
        return await _write_nothing(draft, material)
    subject = await _choose_form(material)(draft, material)
    if meanings := material.decision.get("meanings"):
        draft.say(describe_meanings(meanings))
    return subject


def describe_meanings(meanings: Sequence[str]) -> str:
    """Offer the other possible meanings of a question."""
    return f"If you meant something else, ask: {' · '.join(meanings)}"


def _choose_form(material: AnswerContext) -> _Form:
    """Choose the form by the lookup and its result."""
    if material.metadata["totals"].get("attributes"):
        return write_attributes
    if material.facts.get("compared"):
        return write_comparison
    is_named = bool(material.of("definition")) and not material.decision["unknown"]
    if is_named and _is_noun(material):
        return write_places
    is_said = bool(material.metadata["totals"].get("said"))
    if material.lookup in {"search", "message"}:
        return _write_definitions if is_named and not is_said else write_places
    is_searched = material.is_of_kind and bool(material.of("hit")) and material.lookup != "overview"
    if is_searched or (material.lookup == "definition" and not material.of("definition")):
        return write_places  # there was nothing of the kind
    return _FORMS.get(material.lookup, write_places)


def _is_noun(material: AnswerContext) -> bool:
    """Whether the one name of the question is a common noun there."""
    asked = [one["query"] for one in material.decision["requests"] if one["lookup"] == "definition"]
    return len(asked) == 1 and is_common_noun(asked[0], material.question)


async def _write_definitions(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    definitions = material.of("definition")
    asked = [one["query"] for one in material.decision["requests"] if one["lookup"] == "definition"]
    main = [ref for ref in definitions if not is_test_or_docs(ref["path"])] or definitions
    leading = main[:1]
    if len(asked) > 1:  # a definition for each name of the question before a second one for any
        by_name = {ref["symbol"].rpartition(".")[2].lower(): ref for ref in reversed(main)}
        named = (by_name.get(name.rpartition(".")[2].lower()) for name in asked)
        leading = list({(ref["path"], ref["symbol"]): ref for ref in named if ref is not None}.values())[:MAX_QUOTED]
    if len(main) > 1 and len(asked) == 1:
        asides = material.metadata["totals"].get("aside", 0)
        places = max(material.metadata["totals"].get("definition", len(main)) - asides, len(main))
        beside = f", plus {asides} in tests and examples" if asides else ""
        draft.say(f"{format_code_span(asked[0])} is defined in {places} places{beside}.")
    for ref in leading:
        draft.say(format_headline(draft, ref, is_only=len(main) == 1))
        await quote_definition(draft, material.deps, ref)
    write_related(draft, list_further(definitions, leading), title="Also:")
    return AnswerSubject(symbol=leading[0]["symbol"], kind=leading[0]["kind"])


async def _write_lines(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    around = material.of("parent")
    asked = [one for one in material.decision["requests"] if one["lookup"] == "lines"]
    more: Continuation | None = None
    if note := material.facts.get(NOT_AT_COMMIT):
        draft.say(note)
    for ref in material.of("change"):
        lines, commit = to_location(ref), format_code_span(ref.get("commit", "")[:12])
        place = f"{format_code_span(ref['path'])} {draft.cite(lines)}, {format_line_numbers(lines)}"
        draft.say(f"{place} at commit {commit}:")
        past = make_quote(material.deps, ref["doc"], first_line=ref["start_line"], language=ref["language"])
        draft.say(format_code_block(dedent(past.lines), past.language))
    for ref in material.of("lines"):
        request = next((one for one in asked if _has_line(ref, one["path"], one["start_line"])), None)
        inner = next(
            (outer for outer in around if request and _has_line(outer, ref["path"], request["start_line"])), None
        )
        draft.say(_format_place(draft, ref, request, inner))
        source = await read_quote(material.deps, to_location(ref))
        draft.say(format_code_block(dedent(source.lines[:MAX_LINES]), source.language))
        if (left := len(source.lines) - MAX_LINES) > 0:
            draft.say(f'{left} more lines follow; say "more" to see them.')
            rest = f"{ref['path']}:{ref['start_line'] + MAX_LINES}-{ref['end_line']}"
            more = {"question": rest, "skip": 0}
    raising_count = material.metadata["totals"].get("said", 0)
    raising = [material.definition_of(ref) or ref for ref in material.of("hit")[:raising_count]]
    further = [*material.of("definition"), *(ref for ref in sort_code_first(raising) if ref not in around)]
    write_related(draft, further, title="Also:")
    first = around[0] if around else None
    return AnswerSubject(symbol=first["symbol"] if first else "", kind=first["kind"] if first else "", more=more)


def _format_place(
    draft: AnswerBuilder, ref: EvidenceRef, request: RetrievalRequest | None, inner: EvidenceRef | None
) -> str:
    wanted = ""
    if request is not None:
        is_one = request["start_line"] == request["end_line"]
        wanted = f", around line {request['start_line']}" if is_one else f", {format_line_numbers(to_location(ref))}"
    within = (
        f", in {inner['kind']} {format_code_span(inner['symbol'])} {draft.cite(to_location(inner))}" if inner else ""
    )
    reason = request["reasoning"] if request is not None else ""
    note = f" ({reason})" if "trace says" in reason or reason.startswith("the file ends") else ""
    return f"{format_code_span(ref['path'])} {draft.cite(to_location(ref))}{wanted}{within}{note}:"


def _has_line(ref: EvidenceRef, path: str, line: int) -> bool:
    return ref["path"] == path and ref["start_line"] <= line <= ref["end_line"]


async def _write_nothing(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    if material.metadata["failures"]:
        draft.say(f"The index could not be read: {format_code_span(material.metadata['failures'][0], longest=300)}")
    elif note := material.facts.get(NOT_AT_COMMIT):
        draft.say(note)
        return AnswerSubject()
    elif material.decision["reasoning"] == NOT_INDEXED:
        draft.say(await explain_missing_paths(material.deps.code, material.decision["unknown"]))
    elif not material.decision["requests"] and material.decision["reasoning"].startswith((NONE_OF, NO_PLACE)):
        reason = material.decision["reasoning"]
        read = (LOCK_FILE,) if reason.startswith(f"{NO_PLACE} package") else ()
        draft.say((await deny(material.deps.code, reason, *material.decision["unknown"], read=read)).text)
    elif missing := await describe_missing_files(material):
        draft.say(missing.strip())
        return AnswerSubject()
    else:
        absent = material.decision["unknown"]
        no = "No: " if asks_for_yes_or_no(material.question) else ""
        claim = f"{no}{' and '.join(map(format_code_span, absent))} {'do' if len(absent) > 1 else 'does'} not appear"
        claim += describe_scope(material)
        names = absent or find_mentions(material.question).names
        draft.say((await deny(material.deps.code, claim if absent else "No match", *names)).text)
    if material.metadata["searched"] and not material.decision["unknown"]:
        searches = ", ".join(format_code_span(query, longest=80) for query in material.metadata["searched"])
        draft.say(f"Searched for {searches}. Naming a function, a class or a file helps.")
    return AnswerSubject()


_Form = Callable[[AnswerBuilder, AnswerContext], Awaitable[AnswerSubject]]
_FORMS: Mapping[Lookup, _Form] = {
    "definition": _write_definitions,
    "usages": list_calls,
    "callers": list_calls,
    "callees": list_calls,
    "tests": list_tests,
    "file": list_files,
    "lines": _write_lines,
    "outline": list_folder,
    "overview": write_overview,
    "commands": write_commands,
    "changes": write_changes,
    "people": write_people,
    "options": list_registered,
    "entry_points": list_registered,
    "contracts": list_contract,
    "lists": list_subclasses,
}
