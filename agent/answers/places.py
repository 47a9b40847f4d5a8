"""Answers a question of which the answer is not known: four places that its words lead to, each with its lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from agent.answers.answer_parts import (
    AnswerBuilder,
    AnswerContext,
    AnswerSubject,
    format_related,
    strip_doc_markup,
)
from agent.evidence.best_places import (
    MAX_PLACES,
    BestPlace,
    find_places,
    is_page,
    locate_text,
)
from agent.evidence.coverage import deny, explain_missing_paths
from agent.evidence.path_lookup import FilePathLookup, find_folder
from agent.evidence.requests import read_literal, request_search
from agent.questions.languages import is_english
from agent.questions.literals import Literal
from agent.questions.mentions import find_mentions
from agent.state import Continuation, EvidenceRef, Lookup, RetrievalRequest
from agent.text.escaping import format_code_span, format_count, format_quote
from indexer.types import Location

FRAME = "Without a model I can only point to what matches your question best:"
MAX_RELATED = 3
CLEAR_MARGIN = 0.5  # between the scores of the first two places
_LONGEST_LINE = 100
_MAX_LABELS = 2
_PAGES_LEAD: frozenset[Lookup] = frozenset({"prose", "overview"})


async def write_places(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Say what is surely not there, then point at the places that the question's words lead to."""
    near = material.of("definition") if material.decision["unknown"] else []
    texts, count = _read_texts(material), material.metadata["totals"].get("said", 0)
    absent = "" if count else await _describe_absence(material, near, texts)
    if absent:
        draft.say(absent)
    if near:
        write_related(draft, near)
        return AnswerSubject(symbol=near[0]["symbol"], kind=near[0]["kind"])
    if said := material.of("hit")[:count] if texts else []:
        part = "Most of " if material.metadata["totals"].get("filled") else ""
        frame = f"{part}{format_code_span(texts[0].text)} appears in {format_count(count, 'place')}:"
        places = [await locate_text(material.deps.code, ref, texts) for ref in said[:MAX_PLACES]]
    else:
        frame, places = FRAME, await _find_by_words(material)
    if places:
        draft.say(f"{frame}\n\n" + "\n".join(_format_place(draft, *each) for each in enumerate(places, 1)))
    elif not absent:
        draft.say((await deny(material.deps.code, "No match")).text)
        if not is_english(material.question):
            draft.say("Without a model I find words only as the code spells them: ask in English, or name something.")
    more: Continuation = {"question": material.question, "skip": material.skip + MAX_PLACES}
    mentions = find_mentions(material.question)
    names_code = bool(set(mentions.names) - set(material.decision["unknown"]) or (mentions.paths and not absent))
    stands_out = len(places) > 1 and places[0].score - places[1].score >= CLEAR_MARGIN
    return AnswerSubject(
        symbol=next((place.labels[0] for place in places if place.labels and not is_page(place.path)), ""),
        more=more if len(places) == MAX_PLACES else None,
        is_pointing=frame == FRAME and not names_code and not stands_out,
    )


async def _find_by_words(material: AnswerContext) -> list[BestPlace]:
    """Find the places of the question's words; a definition that a noun of the question may name comes first."""
    code, lookups = material.deps.code, {one["lookup"] for one in material.decision["requests"]}
    places = await find_places(
        code, _choose_search(material), pages_lead=bool(_PAGES_LEAD & lookups), skip=material.skip
    )
    if material.skip or not (named := material.of("definition")[:1]):
        return places
    name = Literal(text=named[0]["symbol"].rpartition(".")[2], is_message=False)
    first = await locate_text(code, named[0], [name])
    return [first, *(place for place in places if place.path != first.path)][:MAX_PLACES]


def _choose_search(material: AnswerContext) -> RetrievalRequest:
    """Search for the question where the router has searched; for a message, where that is all there is."""
    requests = material.decision["requests"]
    message = next((one["query"] for one in requests if one["lookup"] == "message"), "")
    search = request_search(message or material.question, reasoning="the places of the question")
    routed = next((one for one in requests if one["lookup"] in {"search", "prose", "message"}), search)
    return {**search, **{name: routed[name] for name in ("folders", "patterns", "source_types")}}  # type: ignore[typeddict-item]


def _format_place(draft: AnswerBuilder, number: int, place: BestPlace) -> str:
    """Write a place as a list item: what its lines are in, the file, and below it each line with its own mark."""
    labels = [
        format_quote(strip_doc_markup(label), longest=_LONGEST_LINE) if is_page(place.path) else format_code_span(label)
        for label in place.labels[:_MAX_LABELS]
    ]
    within = f"{' and '.join(filter(None, labels))} in " if any(labels) else ""
    return "\n".join([f"{number}. {within}{format_code_span(place.path)}", *_format_lines(draft, place, "   - ")])


def _format_lines(draft: AnswerBuilder, place: BestPlace, bullet: str) -> list[str]:
    return [
        f"{bullet}{one.number} {draft.cite_read(at)} {format_code_span(one.text.strip(), longest=_LONGEST_LINE)}"
        for one in place.lines
        for at in [Location(path=place.path, start_line=one.number, end_line=one.number)]
    ]


def write_related(draft: AnswerBuilder, refs: Sequence[EvidenceRef], *, title: str = "") -> int:
    """List further places; return how many."""
    items = [format_related(draft, ref) for ref in refs[:MAX_RELATED]]
    if items:
        draft.say("\n".join([*([title, ""] if title else []), *items]))
    return len(items)


def list_further(refs: Sequence[EvidenceRef], shown: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return those definitions that are not shown yet, once each."""
    seen = {(ref["path"], ref["symbol"]) for ref in shown}
    further = {(ref["path"], ref["symbol"]): ref for ref in refs}
    return [ref for key, ref in further.items() if key not in seen]


async def describe_missing_files(material: AnswerContext) -> str:
    """Say which files and folders that the question names there are none of."""
    named = dict.fromkeys(mention.path for mention in find_mentions(material.question).paths)
    if not named:
        return ""
    files = FilePathLookup(await material.deps.code.files(), named)
    folders = [path for path in named if await find_folder(material.deps.code, path) is not None]
    missing = [path for path in named if path not in folders and not files.find_alike(path)]
    return await explain_missing_paths(material.deps.code, missing)


def _read_texts(material: AnswerContext) -> list[Literal]:
    """Return the texts that the requests look for verbatim."""
    return [one for one in map(read_literal, material.decision["requests"]) if one is not None]


async def _describe_absence(material: AnswerContext, near: Sequence[EvidenceRef], texts: Sequence[Literal]) -> str:
    """Say of what the question names or quotes that it is not there."""
    return (
        await describe_missing_files(material)
        or await _describe_unfound_text(material, near, texts)
        or await _describe_unknown_names(material, near)
    )


async def _describe_unfound_text(material: AnswerContext, near: Sequence[EvidenceRef], texts: Sequence[Literal]) -> str:
    """Say of a text that the question quotes that it does not appear."""
    literal = next(iter(texts), None)
    if literal is None or near or not material.metadata["totals"].get("quoted"):
        return ""
    if literal.text.replace(".", "_").isidentifier():
        return ""  # a name, of which a definition was looked for
    words = () if literal.is_message else (literal.text,)
    claim = f"{format_code_span(literal.text)} does not appear{' word for word' if literal.is_message else ''}"
    return (await deny(material.deps.code, claim, *words)).text


async def _describe_unknown_names(material: AnswerContext, near: Sequence[EvidenceRef]) -> str:
    """Name those names of the question that are not defined, and names that are spelt alike."""
    refs = [*near, *material.of("hit"), *material.expanded]
    parts = {part for ref in refs for part in ref["symbol"].lower().split(".")}
    unknown = [name for name in material.decision["unknown"] if name.lower().rpartition(".")[2] not in parts]
    if not unknown:
        return ""
    by_last = {ref["symbol"].rpartition(".")[2]: ref["symbol"] for ref in reversed(refs) if ref["symbol"]}
    close = (difflib.get_close_matches(name.rpartition(".")[2], by_last, n=3, cutoff=0.75) for name in unknown)
    alike = dict.fromkeys(format_code_span(by_last[match]) for matches in close for match in matches)
    similar = f" Similar names: {', '.join(alike)}." if alike else ""
    claim = f"No definition of {', '.join(map(format_code_span, unknown))} was found"
    return f"{(await deny(material.deps.code, claim, *unknown)).text}{similar}"
