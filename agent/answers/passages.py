"""Answers from a ranking: the place that fits best, the core of it, and a few others, each with a reason."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from agent.answers.answer_parts import (
    TYPE_KINDS,
    format_headline,
    format_related,
    format_source_place,
    quote_definition,
    quote_explanation,
    quote_window,
)
from agent.answers.extractive_builder import AnswerBuilder, AnswerContext, AnswerSubject
from agent.evidence.coverage import deny, explain_missing_paths
from agent.evidence.path_lookup import FilePathLookup, find_folder
from agent.evidence.refs import IMPORTS, count_distance, is_overlapping, read_quote, sort_code_first
from agent.evidence.request_builders import read_literal
from agent.questions.mentions import find_mentions
from agent.questions.terms import match_terms
from agent.state import Continuation, EvidenceRef, to_location
from agent.text.escaping import format_code_span

MAX_RELATED = 3
_SURE_SHARE = 0.5  # of the question's words; where the best place has fewer, the answer says that it is not sure
_MAX_WORDS_WEIGHED = 6  # in a longer question no single word is missed
_CLEARLY_MORE = 0.3  # of the question's words
_MOST_WEIGHED = 8  # places; what ranks lower is not put first
_DESCRIBED = 0.7  # of a word in a comment, beside one in the name
_ASKS_HOW = re.compile(r"\s*(?:how|why|what\s+happens|when)\b", re.IGNORECASE)


async def write_passages(draft: AnswerBuilder, material: AnswerContext) -> AnswerSubject:
    """Write the best of what a search has found, as sure as it is; or that there is nothing."""
    near = material.of("definition") if material.decision["unknown"] else []
    hits = material.of("hit")
    if not near:
        hits = hits or list(material.retrieved)  # tools find lines without a ranking
    unknown = await describe_missing_files(material)
    unknown = unknown or await _describe_unknown_names(material, [*near, *hits, *material.expanded])
    if near:
        return await _write_similar(draft, material, near, unknown)
    if material.metadata["weak"] or _is_unfound(material):
        return await _write_doubts(draft, material, hits, unknown)
    return await _write_places(draft, material, hits, unknown)


async def _write_similar(
    draft: AnswerBuilder, material: AnswerContext, near: Sequence[EvidenceRef], unknown: str
) -> AnswerSubject:
    """Show what the misspelt name most likely means, and name the rest."""
    first = near[0]
    draft.say(f"{unknown}This may be meant: {format_headline(draft, first)}")
    await quote_definition(draft, material.deps, first, material.emphasis)
    write_related(draft, material, list_further(material, shown=[first], more=near[1:]))
    return AnswerSubject(symbol=first["symbol"], kind=first["kind"])


async def _write_doubts(
    draft: AnswerBuilder, material: AnswerContext, hits: Sequence[EvidenceRef], unknown: str
) -> AnswerSubject:
    """Say that nothing was found that answers the question, and name what comes nearest."""
    if _is_unfound(material):
        literal = _read_literal(material)
        absent = await deny(material.deps.code, f"{format_code_span(literal)} does not appear", literal)
        draft.say(f"{unknown}{absent.text} The nearest places:")
    else:
        searched = ", ".join(format_code_span(query, longest=80) for query in material.metadata["searched"])
        draft.say(f"{unknown}Nothing in the code clearly answers this. Searched for {searched}; the nearest places:")
    refs = [material.definition_of(ref) or ref for ref in sort_code_first(hits)]
    write_related(draft, material, refs, title="")
    return AnswerSubject()


async def _write_places(
    draft: AnswerBuilder,
    material: AnswerContext,
    hits: Sequence[EvidenceRef],
    unknown: str,
) -> AnswerSubject:
    """Lead with the documentation that explains it, or with the place that fits best; the code behind it follows."""
    ordered = _order_places(hits, material)[material.skip :]
    explained = material.of("explanation")[:1] if not material.skip else []
    shown: list[EvidenceRef] = []
    if explained and await _explains_more(material, explained[0], ordered):
        shown.append(await _write_explanation(draft, material, explained[0], unknown))
    elif ordered:
        shown.append(await _write_lead(draft, material, ordered[0], unknown))
        ordered = [*ordered[1:MAX_RELATED], *explained, *ordered[MAX_RELATED:]]
    further = list_further(material, shown=shown, ranked=ordered)
    count = write_related(draft, material, further)
    lead = next((ref for ref in shown if ref["symbol"]), further[0] if further and count else None)
    return AnswerSubject(
        symbol=lead["symbol"] if lead else "",
        kind=lead["kind"] if lead else "",
        more=_continue_after(material, len(shown) + count, len(further) - count),
    )


async def _explains_more(material: AnswerContext, page: EvidenceRef, hits: Sequence[EvidenceRef]) -> bool:
    """Whether documentation is the place to begin: it was found beside the code, or says more of the question than it.

    A large manual has a passage with all words of nearly any question, which need not be about it.
    """
    if any(is_overlapping(to_location(page), to_location(hit)) for hit in hits):
        return True
    code = [await _measure_share(material, hit) for hit in hits if not count_distance(hit["path"])]
    return await _measure_share(material, page) > max(code, default=0.0)


async def _write_explanation(
    draft: AnswerBuilder, material: AnswerContext, ref: EvidenceRef, opening: str
) -> EvidenceRef:
    source = await read_quote(material.deps, to_location(ref))
    draft.say(f"{opening}{format_source_place(draft, ref, source)}")
    quote_explanation(draft, source, material.emphasis)
    return ref


async def _write_lead(draft: AnswerBuilder, material: AnswerContext, ref: EvidenceRef, unknown: str) -> EvidenceRef:
    """Write the sentence and the block about one place, and return the definition or the lines that it shows."""
    definition = material.definition_of(ref)
    opening = unknown + await _describe_doubt(material, ref)
    if definition is None:
        source = await read_quote(material.deps, to_location(ref))
        draft.say(f"{opening}{_describe_literal(material)}{format_source_place(draft, ref, source)}")
        quote_window(draft, source, material.emphasis)
        return ref
    draft.say(f"{opening}{_describe_literal(material)}{format_headline(draft, definition)}")
    await quote_definition(draft, material.deps, definition, material.emphasis, hit=ref)
    return definition


def _continue_after(material: AnswerContext, shown: int, left: int) -> Continuation | None:
    return {"question": material.question, "skip": material.skip + shown} if left > 0 else None


def write_related(
    draft: AnswerBuilder, material: AnswerContext, refs: Sequence[EvidenceRef], *, title: str = "Related:"
) -> int:
    """List further places, each with a reason; return how many."""
    items = [format_related(draft, ref, material.terms) for ref in refs[:MAX_RELATED]]
    if items:
        draft.say("\n".join([*([title, ""] if title else []), *items]))
    return len(items)


def list_further(
    material: AnswerContext,
    *,
    shown: Sequence[EvidenceRef],
    more: Sequence[EvidenceRef] = (),
    ranked: Sequence[EvidenceRef] | None = None,
) -> list[EvidenceRef]:
    """Return what else is worth a line: other hits under the name of their definition, then siblings."""
    seen = {(ref["path"], ref["symbol"]) for ref in shown}
    further: list[EvidenceRef] = []
    siblings = [ref for ref in material.expanded if ref["role"] == "sibling"]
    hits = sort_code_first(material.of("hit")) if ranked is None else ranked
    for ref in [*more, *hits, *siblings]:
        key = (ref["path"], ref["symbol"])
        if key not in seen:
            seen.add(key)
            further.append(ref if ref["role"] == "definition" else material.definition_of(ref) or ref)
    return further


def _order_places(hits: Sequence[EvidenceRef], material: AnswerContext) -> list[EvidenceRef]:
    """Order hits for people: each place once, the code before what is beside it, what says something before imports."""
    places: dict[tuple[str, str], EvidenceRef] = {}
    for ref in hits:
        places.setdefault((ref["path"], ref["symbol"] or str(ref["start_line"])), ref)
    ordered = sorted(places.values(), key=lambda ref: (count_distance(ref["path"]), ref["kind"] == IMPORTS))
    ordered = _put_named_first(ordered, material)
    if _ASKS_HOW.match(material.question) and len(material.terms) <= _MAX_WORDS_WEIGHED:
        # Where it is asked how something happens, a function among the first few says more than a type or a constant.
        first = sorted(ordered[:3], key=lambda ref: ref["kind"] in TYPE_KINDS or ref["kind"] == "constant")
        ordered = [*first, *ordered[3:]]
    return ordered


def _put_named_first(ordered: Sequence[EvidenceRef], material: AnswerContext) -> list[EvidenceRef]:
    """Lead with the definition whose name and comment say clearly more of the question than those of the best place."""
    weights = [_weigh_naming(ref, material) for ref in ordered[:_MOST_WEIGHED]]
    best = max(weights, default=0.0)
    if best < _SURE_SHARE or best < weights[0] + _CLEARLY_MORE:
        return list(ordered)
    at = weights.index(best)
    return [ordered[at], *ordered[:at], *ordered[at + 1 :]]


def _weigh_naming(ref: EvidenceRef, material: AnswerContext) -> float:
    """Weigh the share of the question's words that name or describe a definition; a test or a page says nothing."""
    definition = material.definition_of(ref)
    if definition is None or not material.terms or count_distance(ref["path"]):
        return 0.0
    named = match_terms(definition["symbol"], material.terms)
    described = match_terms(definition["doc"], material.terms) - named
    return (len(named) + _DESCRIBED * len(described)) / len(material.terms)


async def _describe_doubt(material: AnswerContext, ref: EvidenceRef) -> str:
    """Say so where the best place holds less than half of what the question says."""
    if not material.terms or material.metadata["totals"].get("said"):
        return ""
    if any(one["lookup"] == "message" for one in material.decision["requests"]):
        return "No place clearly says this message; the nearest is "
    return "I am not sure; the nearest is " if await _measure_share(material, ref) < _SURE_SHARE else ""


async def _measure_share(material: AnswerContext, ref: EvidenceRef) -> float:
    """Measure how many of the question's words a place says, as a share of them."""
    passage = await material.deps.code.read(ref["path"], ref["start_line"], ref["end_line"])
    found = match_terms(f"{ref['path']} {ref['symbol']} {passage.text}", material.terms)
    return len(found) / max(1, len(material.terms))


def _describe_literal(material: AnswerContext) -> str:
    """Say what stands at the place, where the question quotes a text that was found."""
    return f"{format_code_span(_read_literal(material))} appears in " if material.metadata["totals"].get("said") else ""


async def describe_missing_files(material: AnswerContext) -> str:
    """Say which files and folders that the question names there are none of."""
    named = dict.fromkeys(mention.path for mention in find_mentions(material.question).paths)
    if not named:
        return ""
    files = FilePathLookup(await material.deps.code.files(), named)
    folders = [path for path in named if await find_folder(material.deps.code, path) is not None]
    missing = [path for path in named if path not in folders and not files.find_alike(path)]
    explained = await explain_missing_paths(material.deps.code, missing)
    return f"{explained} " if explained else ""


def _read_literal(material: AnswerContext) -> str:
    literals = map(read_literal, material.decision["requests"])
    return next((literal.text for literal in literals if literal is not None), material.name)


def _is_unfound(material: AnswerContext) -> bool:
    """Whether the question is about one exact text, a number or an option, that was found nowhere."""
    totals, requests = material.metadata["totals"], material.decision["requests"]
    literal = read_literal(requests[0]) if requests else None
    return literal is not None and not literal.is_message and not totals.get("said") and bool(totals.get("quoted"))


async def _describe_unknown_names(material: AnswerContext, refs: Sequence[EvidenceRef]) -> str:
    """Name those names of the question that are not defined, and names that are spelt alike."""
    if material.metadata["totals"].get("said"):
        return ""  # it is no definition, and it was found
    parts = {part for ref in refs for part in ref["symbol"].lower().split(".")}
    unknown = [name for name in material.decision["unknown"] if name.lower().rpartition(".")[2] not in parts]
    if not unknown:
        return ""
    alike = _suggest_names(unknown, refs)
    similar = f" Similar names: {', '.join(map(format_code_span, alike))}." if alike else ""
    claim = f"No definition of {', '.join(map(format_code_span, unknown))} was found"
    return f"{(await deny(material.deps.code, claim, *unknown)).text}{similar} "


def _suggest_names(unknown: Sequence[str], refs: Sequence[EvidenceRef]) -> list[str]:
    by_last = {ref["symbol"].rpartition(".")[2]: ref["symbol"] for ref in reversed(refs) if ref["symbol"]}
    near = [
        match
        for name in unknown
        for match in difflib.get_close_matches(name.rpartition(".")[2], by_last, n=3, cutoff=0.75)
    ]
    return list(dict.fromkeys(by_last[match] for match in near))
