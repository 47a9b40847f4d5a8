"""Writes the extractive answer: what the question asked for decides its form, the evidence fills it."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.answers.blocks import (
    LABEL,
    headline,
    line_numbers,
    named,
    see_also_line,
    show_definition,
    show_window,
    site_line,
)
from agent.answers.draft import Draft, quote
from agent.answers.markdown import code_span, fenced, quoted_prose
from agent.ports import Deps
from agent.state import EvidenceRef, Lookup, RetrievalMetadata, Role, RouterDecision, where

MAX_LED = 3
MAX_CITED = 6
MAX_LISTED = 10
_LEAD_SHARE = 0.6  # a further place leads too when it scores at least this much of the best


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """Everything that an answer is made of."""

    deps: Deps
    question: str
    terms: frozenset[str]
    decision: RouterDecision
    retrieved: Sequence[EvidenceRef]
    expanded: Sequence[EvidenceRef]
    metadata: RetrievalMetadata

    def of(self, *roles: Role) -> list[EvidenceRef]:
        """Return what was retrieved in these roles, in order."""
        return [ref for ref in self.retrieved if ref["role"] in roles]

    @property
    def lookup(self) -> Lookup:
        """What the first request was for."""
        requests = self.decision["requests"]
        return requests[0]["lookup"] if requests else "search"

    @property
    def name(self) -> str:
        """The name or text that the first request was about."""
        requests = self.decision["requests"]
        return requests[0]["query"] if requests else self.question


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What an answer led with, for the next question's "it"."""

    symbol: str = ""
    kind: str = ""


async def write(draft: Draft, material: Material) -> Subject:
    """Write the answer into the draft and return what it is about."""
    if not material.retrieved:
        return _nothing(draft, material)
    return await _FORMS[material.lookup](draft, material)


async def _definitions(draft: Draft, material: Material) -> Subject:
    definitions = material.of("definition")
    if not definitions:
        return await _passages(draft, material)
    asked = [request["query"] for request in material.decision["requests"] if request["lookup"] == "definition"]
    first = definitions[0]
    if len(definitions) > 1 and len(asked) == 1:
        total = material.metadata["totals"].get("definition", len(definitions))
        draft.say(f"{LABEL} {code_span(asked[0])} is defined in {total} places.")
    elif len(definitions) > 1:
        draft.say(f"{LABEL} the names in the question are defined here.")
    for ref in definitions[:MAX_LED]:
        draft.say(headline(draft, ref) if len(definitions) > 1 else f"{LABEL} {_defined(draft, ref)}")
        await show_definition(draft, material.deps, ref, material.terms)
    _see_also(draft, [*definitions[MAX_LED:], *_further(material, shown=definitions)])
    return Subject(symbol=first["symbol"], kind=first["kind"])


def _defined(draft: Draft, ref: EvidenceRef) -> str:
    lines, about = where(ref), quoted_prose(ref["doc"])
    sentence = (
        f"{code_span(ref['symbol'])} is defined in {code_span(ref['path'])} {draft.cite(lines)}, {line_numbers(lines)}."
    )
    return f"{sentence} {about}" if about else sentence


async def _calls(draft: Draft, material: Material) -> Subject:
    role: Role = "caller" if material.lookup in {"callers", "usages"} else "callee"
    definitions, sites = material.of("definition"), material.of(role)
    mentions = material.of("mention")
    subject = _subject(material, definitions)
    target = _target(draft, material, definitions)
    if not sites and not mentions:
        verb = "calls" if role == "caller" else "is called by"
        draft.say(f"{LABEL} as far as the syntax tells, nothing in the repository {verb} {target}.")
        for ref in definitions[:1]:
            await show_definition(draft, material.deps, ref, material.terms)
        return subject
    if sites:
        total = material.metadata["totals"].get(role, len(sites))
        draft.say(f"{LABEL} {_count(total, role)} {target}:")
        await _list(draft, material, sites, total)
    if mentions:
        draft.say(f"{LABEL} these lines mention {target}:" if not sites else "It is also mentioned in:")
        await _list(draft, material, mentions, len(mentions))
    return subject


async def _tests(draft: Draft, material: Material) -> Subject:
    definitions, tests = material.of("definition"), material.of("test")
    target = _target(draft, material, definitions)
    if tests:
        draft.say(f"{LABEL} these tests use {target}:")
        await _list(draft, material, tests, material.metadata["totals"].get("test", len(tests)))
    else:
        draft.say(f"{LABEL} no test in the repository names {target}.")
    return _subject(material, definitions)


async def _files(draft: Draft, material: Material) -> Subject:
    for head in material.of("file"):
        symbols = [ref for ref in material.of("definition") if ref["path"] == head["path"]]
        outline = [ref for ref in symbols if "." not in ref["symbol"]] or symbols
        draft.say(
            f"{LABEL} {code_span(head['path'])} {draft.cite(where(head))}"
            + (
                f" defines {len(symbols)} names, {len(outline)} of them at the top level:"
                if symbols
                else " begins like this:"
            )
        )
        if outline:
            items = [see_also_line(draft, ref) for ref in outline[:MAX_LISTED]]
            draft.say("\n".join([*items, *_and_more(len(outline) - len(items))]))
        else:
            source = await quote(material.deps, where(head))
            draft.say(fenced(source.lines[:20], source.language))
    return Subject()


async def _lines(draft: Draft, material: Material) -> Subject:
    around = material.of("parent")
    asked = [request for request in material.decision["requests"] if request["lookup"] == "lines"]
    label = LABEL
    for ref in material.of("lines"):
        request = next((one for one in asked if one["path"] == ref["path"] and _covers(ref, one["start_line"])), None)
        inner = next(
            (outer for outer in around if request and _encloses(outer, ref["path"], request["start_line"])), None
        )
        wanted = f", around line {request['start_line']}" if request else ""
        within = f", in {inner['kind']} {code_span(inner['symbol'])} {draft.cite(where(inner))}" if inner else ""
        draft.say(f"{label} {code_span(ref['path'])} {draft.cite(where(ref))}{wanted}{within}:".strip())
        source = await quote(material.deps, where(ref))
        draft.say(fenced(source.lines, source.language))
        label = ""
    _see_also(draft, material.of("definition"))
    first = around[0] if around else None
    return Subject(symbol=first["symbol"], kind=first["kind"]) if first else Subject()


async def _passages(draft: Draft, material: Material) -> Subject:
    hits = material.of("hit") or list(material.retrieved)  # tools find lines without a ranking
    if not hits:
        return _nothing(draft, material)
    draft.say(_opening(material, hits))
    led = _leading(hits)
    shown: list[EvidenceRef] = []
    for ref in led:
        definition = _definition_of(ref, material.expanded)
        shown.append(definition or ref)
        if definition is not None:
            draft.say(headline(draft, definition))
            await show_definition(draft, material.deps, definition, material.terms)
        else:
            show_window(draft, ref["path"], await quote(material.deps, where(ref)), material.terms)
    _see_also(draft, _further(material, shown=shown))
    return Subject(symbol=shown[0]["symbol"], kind=shown[0]["kind"])


def _opening(material: Material, hits: Sequence[EvidenceRef]) -> str:
    unknown = [name for name in material.decision["unknown"] if not _is_said(name, hits)]
    missing = ""
    if unknown:
        near = _near_names(unknown, [*hits, *material.expanded])
        similar = f" Similar names: {', '.join(map(code_span, near))}." if near else ""
        missing = f"No definition of {', '.join(map(code_span, unknown))} was found.{similar} "
    if material.metadata["weak"]:
        return (
            f"{missing}Nothing in the code clearly answers this. Searched for {_searched(material)}; "
            "the closest places, without a language model:"
        )
    return f"{missing}{LABEL} {'this place fits' if len(_leading(hits)) == 1 else 'these places fit'} best."


def _searched(material: Material) -> str:
    return ", ".join(code_span(query, longest=80) for query in material.metadata["searched"])


def _nothing(draft: Draft, material: Material) -> Subject:
    if material.metadata["failures"]:
        draft.say(f"The index could not be read: {code_span(material.metadata['failures'][0], longest=300)}")
    else:
        commit = code_span(material.deps.code.commit.sha[:12])
        draft.say(f"Nothing in {code_span(material.deps.code.repository)} at commit {commit} fits this question.")
    if material.metadata["searched"]:
        draft.say(f"Searched for {_searched(material)}. Naming a function, a class or a file helps.")
    return Subject()


def _leading(hits: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return the one to three hits worth showing: near the best score, and each about something else."""
    best = max(ref["score"] for ref in hits)
    led: dict[tuple[str, str], EvidenceRef] = {}
    for ref in hits:
        if best <= 0 or ref["score"] >= _LEAD_SHARE * best:
            led.setdefault((ref["path"], ref["symbol"]), ref)
    return list(led.values())[:MAX_LED]


def _further(material: Material, *, shown: Sequence[EvidenceRef]) -> list[EvidenceRef]:
    """Return what else is worth a line: other hits under the name of their definition, then siblings."""
    seen = {(ref["path"], ref["symbol"]) for ref in shown}
    further: list[EvidenceRef] = []
    candidates = [*material.of("hit"), *(ref for ref in material.expanded if ref["role"] == "sibling")]
    for ref in candidates:
        key = (ref["path"], ref["symbol"])
        if key not in seen:
            seen.add(key)
            further.append(_definition_of(ref, material.expanded) or ref)
    return further


def _see_also(draft: Draft, refs: Sequence[EvidenceRef]) -> None:
    items = [see_also_line(draft, ref) for ref in refs[: max(0, MAX_CITED - draft.marks_used)]]
    if items:
        draft.say("\n".join(["See also:", "", *items]))


async def _list(draft: Draft, material: Material, refs: Sequence[EvidenceRef], total: int) -> None:
    items = [await site_line(draft, material.deps, ref) for ref in refs[:MAX_LISTED]]
    draft.say("\n".join([*items, *_and_more(total - len(items))]))


def _and_more(count: int) -> list[str]:
    return [f"- and {count} more"] if count > 0 else []


def _definition_of(ref: EvidenceRef, expanded: Sequence[EvidenceRef]) -> EvidenceRef | None:
    same = (other for other in expanded if other["path"] == ref["path"] and other["symbol"] == ref["symbol"])
    return next(same, None) if ref["symbol"] else None


def _target(draft: Draft, material: Material, definitions: Sequence[EvidenceRef]) -> str:
    """Name what the question is about, with the mark of its definition."""
    if not definitions:
        return code_span(material.name)
    return f"{named(definitions[0])} {draft.cite(where(definitions[0]))}"


def _subject(material: Material, definitions: Sequence[EvidenceRef]) -> Subject:
    if not definitions:
        return Subject(symbol=material.name)
    return Subject(symbol=definitions[0]["symbol"], kind=definitions[0]["kind"])


def _count(total: int, role: Role) -> str:
    if role == "caller":
        return f"{total} call{'s' if total != 1 else ''} of"
    return f"{total} call{'s' if total != 1 else ''} made by"


def _covers(ref: EvidenceRef, line: int) -> bool:
    return ref["start_line"] <= line <= ref["end_line"]


def _encloses(ref: EvidenceRef, path: str, line: int) -> bool:
    return ref["path"] == path and _covers(ref, line)


def _is_said(name: str, refs: Sequence[EvidenceRef]) -> bool:
    wanted = name.lower().rpartition(".")[2]
    return any(wanted in ref["symbol"].lower().split(".") for ref in refs)


def _near_names(unknown: Sequence[str], refs: Sequence[EvidenceRef]) -> list[str]:
    by_last = {ref["symbol"].rpartition(".")[2]: ref["symbol"] for ref in refs if ref["symbol"]}
    near = [match for name in unknown for match in difflib.get_close_matches(name.rpartition(".")[2], by_last, n=3)]
    return list(dict.fromkeys(by_last[match] for match in near))


_FORMS: Mapping[Lookup, Callable[[Draft, Material], Awaitable[Subject]]] = {
    "search": _passages,
    "definition": _definitions,
    "usages": _calls,
    "callers": _calls,
    "callees": _calls,
    "tests": _tests,
    "file": _files,
    "lines": _lines,
}
