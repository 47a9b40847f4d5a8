"""Writes the extractive answer: what the question asked for decides its form, the evidence fills it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agent.answers.answer_parts import (
    LABEL,
    TYPE_KINDS,
    format_headline,
    format_line_numbers,
    format_see_also,
    quote_definition,
    quote_first_sentence,
    quote_window,
)
from agent.answers.excerpts import QuestionWeights
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.answers.listings import list_calls, list_files, list_tests
from agent.evidence.refs import is_test_or_docs, read_quote, sort_code_first
from agent.evidence.request_builders import read_literal
from agent.questions.terms import find_content_terms, split_words, stem_word
from agent.state import EvidenceRef, Lookup, RetrievalRequest, to_location
from agent.text.escaping import format_code_block, format_code_span
from agent.text.statement_starts import dedent

MAX_LEADING = 3
MAX_CITED = 6
MAX_LINES = 40
MAX_WORDS_WEIGHED = 6  # in a longer question no single word is missed
SAME_BEGINNING = 5  # letters that two forms of a word share
_ASKS_HOW = re.compile(r"\s*(?:how|why|what\s+happens|when)\b", re.IGNORECASE)
_LEAD_SHARE = 0.6  # a further place leads too when it scores at least this much of the best


async def write_extractive_answer(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the answer into the draft and return what it is about."""
    if not material.retrieved:
        return _write_nothing(draft, material)
    return await _FORMS[material.lookup](draft, material)


async def _write_definitions(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    definitions = material.of("definition")
    if not definitions:
        return await _write_passages(draft, material)
    asked = [one["query"] for one in material.decision["requests"] if one["lookup"] == "definition"]
    main = [ref for ref in definitions if not is_test_or_docs(ref["path"])] or definitions
    # A question about nothing but a name puts weight on no line of it: the body is shown from its first line on.
    emphasis = material.emphasis if len(material.decision["requests"]) > 1 else QuestionWeights(terms=frozenset())
    leading = _choose_one_for_each(asked, main)[:MAX_LEADING] if len(asked) > 1 else main[:MAX_LEADING]
    if len(leading) > 1:
        draft.say(f"{LABEL} {_describe_several(material, asked, len(main))}")
    for ref in leading:
        draft.say(format_headline(draft, ref) if len(leading) > 1 else f"{LABEL} {_format_definition(draft, ref)}")
        await quote_definition(draft, material.deps, ref, emphasis)
    _write_see_also(
        draft, _list_further(material, shown=leading, more=[ref for ref in definitions if ref not in leading])
    )
    return AnswerSubject(symbol=leading[0]["symbol"], kind=leading[0]["kind"])


def _describe_several(material: AnswerContext, asked: Sequence[str], main: int) -> str:
    if len(asked) > 1:
        return "the names in the question are defined here."
    totals = material.metadata["totals"]
    asides = totals.get("aside", 0)
    places = max(totals.get("definition", main) - asides, main)
    beside = f", and in {asides} more of the tests and examples" if asides else ""
    return f"{format_code_span(asked[0])} is defined in {places} places{beside}."


def _choose_one_for_each(asked: Sequence[str], definitions: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return a definition for each name of the question before a second one for any."""
    last = [name.rpartition(".")[2].lower() for name in asked]
    first = [
        next((ref for ref in definitions if ref["symbol"].rpartition(".")[2].lower() == name), None) for name in last
    ]
    return list({(ref["path"], ref["symbol"]): ref for ref in first if ref is not None}.values())


def _format_definition(draft: AnswerBuilder, ref: EvidenceRef) -> str:
    lines, about = to_location(ref), quote_first_sentence(ref)
    place = f"{format_code_span(ref['path'])} {draft.cite(lines)}, {format_line_numbers(lines)}"
    sentence = f"{format_code_span(ref['symbol'])} is defined in {place}."
    return f"{sentence} {about}" if about else sentence


async def _write_lines(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    around = material.of("parent")
    asked = [one for one in material.decision["requests"] if one["lookup"] == "lines"]
    label = f"{LABEL} "
    for ref in material.of("lines"):
        request = next((one for one in asked if _has_line(ref, one["path"], one["start_line"])), None)
        inner = next(
            (outer for outer in around if request and _has_line(outer, ref["path"], request["start_line"])), None
        )
        draft.say(f"{label}{_format_place(draft, ref, request, inner)}")
        source = await read_quote(material.deps, to_location(ref))
        draft.say(format_code_block(dedent(source.lines[:MAX_LINES]), source.language))
        if len(source.lines) > MAX_LINES:
            draft.say(f"{len(source.lines) - MAX_LINES} more lines follow.")
        label = ""
    raising_count = material.metadata["totals"].get("said", 0)
    raising = [material.definition_of(ref) or ref for ref in material.of("hit")[:raising_count]]
    _write_see_also(
        draft, [*material.of("definition"), *(ref for ref in sort_code_first(raising) if ref not in around)]
    )
    first = around[0] if around else None
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"]) if first else AnswerSubject()


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
    note = f" ({request['reasoning']})" if request is not None and "trace says" in request["reasoning"] else ""
    return f"{format_code_span(ref['path'])} {draft.cite(to_location(ref))}{wanted}{within}{note}:"


async def _write_passages(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    hits, named = material.of("hit"), material.of("definition")
    if named and not material.decision["unknown"] and not material.metadata["totals"].get("said"):
        return await _write_definitions(draft, material)
    near = named if material.decision["unknown"] else []
    if not near:
        hits = hits or list(material.retrieved)  # tools find lines without a ranking
    if not hits and not near:
        return _write_nothing(draft, material)
    missing_words = await _find_missing_words(material, hits) if not near and not _is_unfound(material) else []
    # Nobody is to take the rest for an answer to the words that were not found.
    remark = f" Nothing that was found says {', '.join(map(format_code_span, missing_words))}." if missing_words else ""
    draft.say(_write_opening(material, hits, near) + remark)
    if near:
        return await _write_similar(draft, material, near)
    if material.metadata["weak"] or _is_unfound(material):
        _write_see_also(
            draft, [material.definition_of(ref) or ref for ref in sort_code_first(hits)][:MAX_LEADING], title=""
        )
        return AnswerSubject()
    leading = _sort_for_question(_choose_leading(hits), material)[: 1 if missing_words else MAX_LEADING]
    shown: list[EvidenceRef] = []
    for ref in leading:
        definition = material.definition_of(ref)
        shown.append(definition or ref)
        if definition is not None:
            draft.say(format_headline(draft, definition))
            await quote_definition(draft, material.deps, definition, material.emphasis, hit=ref)
        else:
            quote_window(draft, ref["path"], await read_quote(material.deps, to_location(ref)), material.emphasis)
    _write_see_also(draft, _list_further(material, shown=shown, more=named))
    return AnswerSubject(symbol=shown[0]["symbol"], kind=shown[0]["kind"])


async def _write_similar(draft: AnswerBuilder, material: AnswerContext, near: Sequence[EvidenceRef]) -> AnswerSubject:
    """Show what the misspelt name most likely means, and name the rest."""
    first = near[0]
    draft.say(format_headline(draft, first))
    await quote_definition(draft, material.deps, first, material.emphasis)
    _write_see_also(draft, _list_further(material, shown=[first], more=near[1:]))
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"])


def _write_opening(material: AnswerContext, hits: Sequence[EvidenceRef], near: Sequence[EvidenceRef]) -> str:
    missing = _describe_unknown_names(material, [*near, *hits, *material.expanded])
    totals = material.metadata["totals"]
    if near:
        return f"{missing}{LABEL} this may be meant."
    if material.metadata["weak"]:
        return (
            f"{missing}Nothing in the code clearly answers this. Searched for {_format_searches(material)}; "
            "the closest places, without a language model:"
        )
    if _is_unfound(material):
        literal = _format_literal(material)
        return f"{missing}{literal} does not stand in the code; the closest places, without a language model:"
    if totals.get("said"):
        stands = "is put together here: some of its words are filled in" if totals.get("filled") else "stands here"
        return f"{LABEL} {_format_literal(material)} {stands}."
    if totals.get("quoted") and not missing:
        missing = "What the question quotes does not stand in the code like that. "
    return f"{missing}{LABEL} {'this place fits' if len(_choose_leading(hits)) == 1 else 'these places fit'} best."


async def _find_missing_words(material: AnswerContext, hits: Sequence[EvidenceRef]) -> list[str]:
    """Return the words of a short question that none of the places found contains in any form."""
    if not 2 <= len(material.terms) <= MAX_WORDS_WEIGHED or material.metadata["weak"]:
        return []
    words: set[str] = set()
    for ref in hits:
        passage = await material.deps.code.read(ref["path"], ref["start_line"], ref["end_line"])
        words |= set(split_words(f"{ref['path']} {ref['symbol']} {passage.text}"))
    begins, stems = {word[:SAME_BEGINNING] for word in words}, {stem_word(word) for word in words}
    asked = [
        word for word in dict.fromkeys(split_words(material.question)) if word.isascii() and find_content_terms(word)
    ]
    return [word for word in asked if word[:SAME_BEGINNING] not in begins and stem_word(word) not in stems]


def _format_literal(material: AnswerContext) -> str:
    literals = map(read_literal, material.decision["requests"])
    return format_code_span(next((literal.text for literal in literals if literal is not None), material.name))


def _is_unfound(material: AnswerContext) -> bool:
    """Whether the question is about one exact text, a number or an option, that was found nowhere."""
    totals, requests = material.metadata["totals"], material.decision["requests"]
    literal = read_literal(requests[0]) if requests else None
    return literal is not None and not literal.is_message and not totals.get("said") and bool(totals.get("quoted"))


def _sort_for_question(leading: list[EvidenceRef], material: AnswerContext) -> list[EvidenceRef]:
    """Put functions before types and constants, where the question asks how or why something happens."""
    if not _ASKS_HOW.match(material.question) or len(material.terms) > MAX_WORDS_WEIGHED:
        return leading
    return sorted(leading, key=lambda ref: ref["kind"] in TYPE_KINDS or ref["kind"] == "constant")


def _describe_unknown_names(material: AnswerContext, refs: Sequence[EvidenceRef]) -> str:
    """Name those names of the question that are not defined, and names that are spelt alike."""
    if material.metadata["totals"].get("said"):
        return ""  # it is no definition, and it was found
    parts = {part for ref in refs for part in ref["symbol"].lower().split(".")}
    unknown = [name for name in material.decision["unknown"] if name.lower().rpartition(".")[2] not in parts]
    if not unknown:
        return ""
    alike = _suggest_names(unknown, refs)
    similar = f" Similar names: {', '.join(map(format_code_span, alike))}." if alike else ""
    return f"No definition of {', '.join(map(format_code_span, unknown))} was found.{similar} "


def _format_searches(material: AnswerContext) -> str:
    return ", ".join(format_code_span(query, longest=80) for query in material.metadata["searched"])


def _write_nothing(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    if material.metadata["failures"]:
        draft.say(f"The index could not be read: {format_code_span(material.metadata['failures'][0], longest=300)}")
    elif not material.decision["requests"] and material.decision["reasoning"].startswith("There is no"):
        draft.say(f"{material.decision['reasoning']} {format_code_span(material.deps.code.repository)}.")
    else:
        commit = format_code_span(material.deps.code.commit.sha[:12])
        draft.say(
            f"Nothing in {format_code_span(material.deps.code.repository)} at commit {commit} fits this question."
        )
    if material.metadata["searched"]:
        draft.say(f"Searched for {_format_searches(material)}. Naming a function, a class or a file helps.")
    return AnswerSubject()


def _choose_leading(hits: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return the one to three hits worth showing: near the best score, each about something else, code before tests."""
    best = max(ref["score"] for ref in hits)
    leading: dict[tuple[str, str], EvidenceRef] = {}
    for ref in hits:
        if best <= 0 or ref["score"] >= _LEAD_SHARE * best:
            leading.setdefault((ref["path"], ref["symbol"] or str(ref["start_line"])), ref)
    ordered = sort_code_first(leading.values())
    # A test beside the code that it tests adds little; where there are only tests, they are the answer.
    if not is_test_or_docs(ordered[0]["path"]):
        ordered = [ref for ref in ordered if not is_test_or_docs(ref["path"])]
    return ordered[:MAX_LEADING]


def _list_further(
    material: AnswerContext, *, shown: Sequence[EvidenceRef], more: Sequence[EvidenceRef] = ()
) -> list[EvidenceRef]:
    """Return what else is worth a line: other hits under the name of their definition, then siblings."""
    seen = {(ref["path"], ref["symbol"]) for ref in shown}
    further: list[EvidenceRef] = []
    siblings = [ref for ref in material.expanded if ref["role"] == "sibling"]
    for ref in [*more, *sort_code_first(material.of("hit")), *siblings]:
        key = (ref["path"], ref["symbol"])
        if key not in seen:
            seen.add(key)
            further.append(ref if ref["role"] == "definition" else material.definition_of(ref) or ref)
    return further


def _write_see_also(draft: AnswerBuilder, refs: Sequence[EvidenceRef], *, title: str = "See also:") -> None:
    items = [format_see_also(draft, ref) for ref in refs[: max(0, MAX_CITED - draft.marks_used)]]
    if items:
        draft.say("\n".join([*([title, ""] if title else []), *items]))


def _has_line(ref: EvidenceRef, path: str, line: int) -> bool:
    return ref["path"] == path and ref["start_line"] <= line <= ref["end_line"]


def _suggest_names(unknown: Sequence[str], refs: Sequence[EvidenceRef]) -> list[str]:
    by_last = {ref["symbol"].rpartition(".")[2]: ref["symbol"] for ref in reversed(refs) if ref["symbol"]}
    near = [
        match
        for name in unknown
        for match in difflib.get_close_matches(name.rpartition(".")[2], by_last, n=3, cutoff=0.75)
    ]
    return list(dict.fromkeys(by_last[match] for match in near))


_FORMS: Mapping[Lookup, Callable[[AnswerBuilder, AnswerContext], Awaitable[AnswerSubject]]] = {
    "search": _write_passages,
    "message": _write_passages,
    "definition": _write_definitions,
    "usages": list_calls,
    "callers": list_calls,
    "callees": list_calls,
    "tests": list_tests,
    "file": list_files,
    "lines": _write_lines,
}
