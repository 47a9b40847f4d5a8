"""The evidence of a turn for models, with ids and line numbers, as room allows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from agent.evidence.refs import Quote, format_place, read_quote
from agent.guard.evidence_check import find_orders, list_rules, mark_orders, mark_text
from agent.history.comparison import describe_history
from agent.ports import Deps
from agent.prompts.evidence_lines import HEADING_COST, LineSelection, ShownRange, Wanted, choose_lines, plan_evidence
from agent.questions.terms import find_content_terms
from agent.repositories.joined_code import JoinedCode
from agent.state import AgentState, CitationRef, EvidenceRef, make_empty_metadata, to_citation, to_location
from agent.text.escaping import replace_control_characters, to_one_line
from indexer.errors import IndexerError
from indexer.types import Location

MAX_EXHIBITS = 60
MAX_CHARS = 12_000  # of what a search found
EXACT_CHARS = 16_000  # of what was read or asked for by its place
MIN_ROOM = 400  # in which something else is worth showing
MAX_RESULTS = 6000  # characters of what tools said
_LONGEST_LINE = 400
NAMED = "; its name reads as an order, and is a name and nothing else"
MAX_COMMITS = 30
MAX_FACTS = 30
CHANGE_CHARS = 12_000  # of lines that differ
_MAX_BODY = 600
_EVIDENCE_ID = re.compile(r"\bE(\d{1,4})\b")
_SAID_OF_LINES = {"removed": "removed", "added": "added", "past": "read at that commit"}


NOTHING_KNOWN: Mapping[Location, Sequence[str]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptEvidence:
    """Lines shown to a model as `E{number}`; secrets in `text` are masked, passages that give orders are flagged.

    `flags` name the families of orders found.
    """

    number: int
    location: Location
    about: str
    text: str
    flags: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """The heading above the lines."""
        at = self.location
        if not at.path:
            return f"[E{self.number}] commit {at.commit[:12]} ({self.about})"
        where = f" at commit {at.commit[:12]}" if at.commit else ""
        lines = f"lines {at.start_line}-{at.end_line}"
        return f"[E{self.number}] {to_one_line(at.path, longest=200)} {lines}{where} ({self.about})"

    @property
    def ref(self) -> CitationRef:
        """The shown lines, for the check of the citations."""
        return to_citation(self.number, self.location)


async def load_prompt_evidence(
    deps: Deps,
    refs: Sequence[EvidenceRef],
    *,
    question: str = "",
    facts: Mapping[Location, Sequence[str]] = NOTHING_KNOWN,
    share: float = 1.0,
) -> list[PromptEvidence]:
    """Read the relevant lines of the evidence, best first, leaving out unreadable ones.

    The `facts` come with their commit. Search results and requested places have separate room; a
    `share` of the prompt for earlier turns shrinks both.
    """
    terms = find_content_terms(question)
    plan = plan_evidence(refs, terms)
    selection = LineSelection(room=int(EXACT_CHARS * share))
    await _add_pieces(deps, selection, plan.exact, terms)
    selection.room = int(MAX_CHARS * share)
    await _add_pieces(deps, selection, plan.ranked, terms)
    await _add_pieces(deps, selection, plan.headers, terms)
    lines = [_make_evidence(shown, number) for number, shown in enumerate(selection.list_ranges()[:MAX_EXHIBITS], 1)]
    return [*lines, *_load_changes(deps, refs), *_load_commits(deps, refs, facts)]


async def _add_pieces(deps: Deps, selection: LineSelection, pieces: Iterable[Wanted], terms: frozenset[str]) -> None:
    """Add missing pieces as far as they fit; the last one gets the remaining room."""
    for wanted in pieces:
        if selection.room < MIN_ROOM:
            return
        one = replace(wanted, most=min(wanted.most, selection.room - HEADING_COST))
        if not selection.is_needless(one) and (quote := await _read_piece(deps, one)) is not None:
            lines = {quote.first_line + at: quote.lines[at][:_LONGEST_LINE] for at in choose_lines(one, quote, terms)}
            selection.add(one, lines)


async def _read_piece(deps: Deps, wanted: Wanted) -> Quote | None:
    ref = wanted.ref
    try:
        return await read_quote(
            deps, Location(path=ref["path"], start_line=ref["start_line"], end_line=wanted.last_read)
        )
    except IndexerError:
        return None


def _make_evidence(shown: ShownRange, number: int) -> PromptEvidence:
    flags = find_orders(shown.lines)
    numbered = [f"{shown.first_line + at}: {line}" for at, line in enumerate(shown.lines)]
    named = list_rules(find_orders([shown.path, shown.ref["symbol"]]))
    location = Location(path=shown.path, start_line=shown.first_line, end_line=shown.last_line)
    return PromptEvidence(
        number=number,
        location=location,
        about=_describe_ref(shown.ref, is_cut=shown.last_line < shown.ref["end_line"]) + NAMED * bool(named),
        text="\n".join(mark_orders(numbered, flags)),
        flags=tuple(sorted({*list_rules(flags), *named})),
    )


def _describe_ref(ref: EvidenceRef, *, is_cut: bool) -> str:
    symbol = to_one_line(ref["symbol"], longest=120)
    kind = {"hit": "found by search", "caller": "calls it, in", "callee": "called", "definition": "definition of"}
    said = f"{kind.get(ref['role'], ref['role'])} {symbol}".strip()
    return f"{said}; continues" if is_cut else said


def format_prompt_evidence(exhibits: Sequence[PromptEvidence]) -> str:
    """Write the exhibits in sequence."""
    return "\n\n".join(f"{one.heading}\n{one.text}" for one in exhibits)


async def format_tool_results(state: AgentState, deps: Deps) -> str:
    """Return the results of the tools that the router chose, the newest first if there is no room for all."""
    records = [record for record in state.get("tool_history", []) if record["ok"]]
    if not records or state.get("findings"):
        return ""
    texts = await deps.evidence.texts(record["key"] for record in records)
    results = [f"{record['tool']}: {texts[record['key']]}" for record in reversed(records) if record["key"] in texts]
    return deps.redact("\n\n".join(results))[:MAX_RESULTS]


def collect_flags(exhibits: Sequence[PromptEvidence]) -> Mapping[str, Sequence[str]]:
    """Return the flags of exhibits by place."""
    places = {f"{one.location.path}:{one.location.start_line}-{one.location.end_line}": one.flags for one in exhibits}
    return {place: flags for place, flags in places.items() if flags}


def _load_commits(
    deps: Deps, refs: Iterable[EvidenceRef], facts: Mapping[Location, Sequence[str]]
) -> list[PromptEvidence]:
    """Write down the commits among the evidence, each once with all known facts; they are numbered later."""
    found: dict[Location, dict[str, EvidenceRef]] = {at: {} for at in facts}
    for ref in refs:
        is_known = bool(ref["symbol"] or ref["signature"])  # and not only cited once
        if not ref["path"] and ref.get("commit") and is_known:
            at = to_location({**ref, "start_line": 0, "end_line": 0})
            found.setdefault(at, {}).setdefault(ref["symbol"], ref)
    return [
        _describe_commit(deps, at, list(own.values()), facts.get(at, ()))
        for at, own in list(found.items())[:MAX_COMMITS]
    ]


def _load_changes(deps: Deps, refs: Iterable[EvidenceRef]) -> list[PromptEvidence]:
    """Write down the added and removed lines among the evidence, as room allows."""
    found: list[PromptEvidence] = []
    room = CHANGE_CHARS
    for ref in refs:
        if ref["role"] == "change" and ref["kind"] in _SAID_OF_LINES:
            lines = replace_control_characters(deps.redact(ref["doc"])).split("\n")
            flags = find_orders(lines)
            numbered = [f"{ref['start_line'] + at}: {line}" for at, line in enumerate(lines)]
            last = ref["start_line"] + len(lines) - 1
            within = f", in {to_one_line(ref['symbol'], longest=120)}" if ref["symbol"] else ""
            shown = PromptEvidence(
                number=0,
                location=replace(to_location(ref), end_line=min(last, ref["end_line"])),
                about=f"{_SAID_OF_LINES[ref['kind']]}{within}" + "; continues" * (last < ref["end_line"]),
                text="\n".join(mark_orders(numbered, flags)),
                flags=tuple(list_rules(flags)),
            )
            room -= len(shown.text)
            if room < 0:
                break
            found.append(shown)
    return found


def list_history_facts(state: AgentState, deps: Deps) -> Mapping[Location, Sequence[str]]:
    """List facts and counts about commits and people, each by the commit for which it is true."""
    metadata = state.get("retrieval_metadata", make_empty_metadata())
    if not any(ref.get("commit") for ref in state.get("retrieved", [])):
        return NOTHING_KNOWN
    noted = metadata.get("by_repository", {})
    if not isinstance(deps.code, JoinedCode):
        noted = {"": {"facts": metadata.get("facts", {}), "totals": metadata["totals"]}}
    found: dict[Location, Sequence[str]] = {}
    for name, notes in noted.items():
        commit = deps.code.members[name].commit if isinstance(deps.code, JoinedCode) else deps.code.commit
        at = Location(path="", start_line=0, end_line=0, commit=commit.sha, repository=name)
        if sentences := describe_history(notes["facts"], notes["totals"]):
            found[at] = [to_one_line(one, longest=300) for one in sentences[:MAX_FACTS]]
    return found


def _describe_commit(deps: Deps, at: Location, refs: Sequence[EvidenceRef], facts: Sequence[str]) -> PromptEvidence:
    """Describe a commit: its nature, its author or subject, and the known history up to it."""
    texts: list[str] = []
    for ref in refs:
        release = f" (first release: {ref['release']})" if ref.get("release") else ""
        texts += [to_one_line(ref["symbol"], longest=200) + release, *ref["doc"][:_MAX_BODY].split("\n")]
    texts += [f"Known of the history up to this commit: {' '.join(facts)}"] if facts else []
    lines = deps.redact(replace_control_characters("\n".join(texts)).strip()).split("\n")
    flags = find_orders(lines)
    about = next((ref["signature"] for ref in refs if ref["signature"]), "" if refs else "the history up to it")
    return PromptEvidence(
        number=0,
        location=at,
        about=to_one_line(deps.redact(about), longest=120),
        text="\n".join(mark_orders(lines, flags)),
        flags=tuple(list_rules(flags)),
    )


def list_cited(text: str, shown: Sequence[CitationRef]) -> list[CitationRef]:
    """Return the places of the evidence ids in a text."""
    cited = set(map(int, _EVIDENCE_ID.findall(text)))
    return [ref for ref in shown if ref["mark"] in cited]


def format_cited(text: str, shown: Sequence[CitationRef], *, besides: Collection[int] = ()) -> str:
    """List the places of the evidence ids in a text, without those that a prompt shows `besides`."""
    return mark_text(
        "\n".join(
            f"[E{ref['mark']}] {describe_place(ref)}" for ref in list_cited(text, shown) if ref["mark"] not in besides
        )
    )


def describe_place(ref: CitationRef) -> str:
    """Name the lines or the commit that a citation leads to."""
    if not ref["path"]:
        return f"commit {ref.get('commit', '')[:12]}"
    where = f" at commit {ref['commit'][:12]}" if ref.get("commit") else ""
    return f"{to_one_line(ref['path'], longest=200)} lines {ref['start_line']}-{ref['end_line']}{where}"


MAX_NUMBERED = 300  # places of one turn; what comes later is shown without an id, and can be cited by its path

_MIN_LEFT_OUT = 80  # characters: fewer are no longer than saying where they stand


class EvidenceNumbers:
    """Numbers places, and remembers those numbered before in the turn."""

    def __init__(self, shown: Sequence[CitationRef]) -> None:
        self._numbers = {to_location(ref): ref["mark"] for ref in shown}

    @property
    def places(self) -> list[CitationRef]:
        """All numbered places, for the check of the citations."""
        return [to_citation(number, at) for at, number in self._numbers.items()]

    def assign(self, location: Location) -> int | None:
        """Return the number of a place; None for a new one beyond the limit."""
        if location not in self._numbers and len(self._numbers) >= MAX_NUMBERED:
            return None
        return self._numbers.setdefault(location, max(self._numbers.values(), default=0) + 1)

    def number_evidence(self, exhibits: Iterable[PromptEvidence]) -> list[PromptEvidence]:
        """Number the pieces of a prompt; drop those without a free number."""
        numbered = [(one, self.assign(one.location)) for one in exhibits]
        return [replace(one, number=number) for one, number in numbered if number is not None]

    def number_result(self, text: str, refs: Sequence[EvidenceRef], *, told: Sequence[CitationRef] = ()) -> str:
        """Put the evidence ids beside the places and the commits in a tool's result.

        Lines already `told` are replaced by their evidence id.
        """
        places = {format_place(ref): ref for ref in refs}
        numbers = {place: self.assign(to_location(ref)) for place, ref in places.items()}
        lines = text.split("\n")
        written: list[str] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            place = line.partition("]")[0].removeprefix("[") if line.startswith("[") else ""
            if place not in places:
                written.append(line)
                continue
            number, text = numbers[place], line[len(place) + 2 :]
            others = [one for one in told if one["mark"] != number]  # "in E13" says nothing under E13 itself
            said = _shorten_mention(text, places[place], others)
            written.append(f"[E{number}] {place}{said}" if number is not None else f"[{place}]{said}")
            end = _find_end(lines, at, places[place])
            written += _leave_out(lines[at:end], places[place], told)
            at = end
        return "\n".join(written)


def _find_end(lines: Sequence[str], start: int, ref: EvidenceRef) -> int:
    """Return where the numbered lines below a heading end."""
    numbered = zip(range(start, len(lines)), range(ref["start_line"], ref["end_line"] + 1), strict=False)
    return start + sum(1 for _ in takewhile(lambda pair: lines[pair[0]].startswith(f"{pair[1]:5} "), numbered))


def _shorten_mention(text: str, ref: EvidenceRef, told: Sequence[CitationRef]) -> str:
    """Omit a line that mentions a word, if it was told before."""
    is_mention = ref["role"] == "mention"
    owner = _find_owner(ref["path"], ref["start_line"], told, ref.get("commit", "")) if is_mention else None
    note = f" (in E{owner})"
    return text if owner is None or len(text) <= len(note) else note


def _leave_out(lines: Sequence[str], ref: EvidenceRef, told: Sequence[CitationRef]) -> list[str]:
    """Replace runs of lines already shown by their evidence id."""
    first = ref["start_line"]
    owners = [_find_owner(ref["path"], first + at, told, ref.get("commit", "")) for at in range(len(lines))]
    kept: list[str] = []
    for owner, run in groupby(range(len(lines)), key=owners.__getitem__):
        places = list(run)
        block = [lines[at] for at in places]
        is_long = owner is not None and sum(map(len, block)) > _MIN_LEFT_OUT
        note = f"      (lines {first + places[0]}-{first + places[-1]} are shown above, in E{owner})"
        kept += [note] if is_long else block
    return kept


def _find_owner(path: str, line: int, told: Sequence[CitationRef], commit: str = "") -> int | None:
    """Return the number of the place that first showed a line."""
    told = [one for one in told if (one["path"], one.get("commit", "")) == (path, commit)]
    within = (one["mark"] for one in told if one["start_line"] <= line <= one["end_line"])
    return next(within, None) if path else None


def list_exhibits(shown: Sequence[CitationRef]) -> list[PromptEvidence]:
    """Return the numbered evidence that can be cited; its text is in the prompts that showed it."""
    return [PromptEvidence(number=ref["mark"], location=to_location(ref), about="", text="") for ref in shown]
