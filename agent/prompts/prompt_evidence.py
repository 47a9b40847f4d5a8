"""The evidence of a turn as a model is shown it: numbered, with line numbers, as much as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.evidence.refs import is_within, read_quote
from agent.guard.evidence_check import find_orders, list_rules, mark_orders
from agent.ports import Deps
from agent.state import AgentState, CitationRef, EvidenceRef, to_citation
from agent.text.escaping import to_one_line
from indexer.errors import IndexerError
from indexer.types import Location

MAX_EXHIBITS = 40
MAX_CHARS = 28_000
MAX_LINES = 80
MAX_RESULTS = 6000  # characters of what tools said
_LONGEST_LINE = 400
NAMED = "; its name reads as an order, and is a name and nothing else"


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptEvidence:
    """Lines that a model is shown as `E{number}`; secrets in `text` are masked, passages that give orders are flagged.

    `flags` name the families of orders that were found.
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
        return (
            f"[E{self.number}] {to_one_line(at.path, longest=200)} lines {at.start_line}-{at.end_line} ({self.about})"
        )

    @property
    def ref(self) -> CitationRef:
        """The lines that were shown, for the check of the citations."""
        return to_citation(self.number, self.location)


async def load_prompt_evidence(deps: Deps, refs: Iterable[EvidenceRef]) -> list[PromptEvidence]:
    """Read the evidence, best first; what cannot be read or lies within what is shown already is left out."""
    shown: list[PromptEvidence] = []
    room = MAX_CHARS
    for ref in refs:
        if not ref["path"]:
            continue  # a commit, of which there are no lines to show
        end = min(ref["end_line"], ref["start_line"] + MAX_LINES - 1)
        location = Location(path=ref["path"], start_line=ref["start_line"], end_line=end)
        if len(shown) >= MAX_EXHIBITS or any(is_within(location, other.location) for other in shown):
            continue
        one = await _read_evidence(deps, ref, location, len(shown) + 1)
        if one is not None and len(one.text) <= room:
            room -= len(one.text)
            shown.append(one)
    return shown


async def _read_evidence(deps: Deps, ref: EvidenceRef, location: Location, number: int) -> PromptEvidence | None:
    try:
        source = await read_quote(deps, location)
    except IndexerError:
        return None
    shown = [line[:_LONGEST_LINE] for line in source.lines]
    flags = find_orders(shown)
    numbered = [f"{source.first_line + at}: {line}" for at, line in enumerate(shown)]
    named = list_rules(find_orders([location.path, ref["symbol"]]))
    end = source.first_line + len(source.lines) - 1
    return PromptEvidence(
        number=number,
        location=Location(path=location.path, start_line=source.first_line, end_line=end),
        about=_describe_ref(ref, is_cut=end < ref["end_line"]) + NAMED * bool(named),
        text="\n".join(mark_orders(numbered, flags)),
        flags=tuple(sorted({*list_rules(flags), *named})),
    )


def _describe_ref(ref: EvidenceRef, *, is_cut: bool) -> str:
    symbol = to_one_line(ref["symbol"], longest=120)
    kind = {"hit": "found by search", "caller": "calls it, in", "callee": "called", "definition": "definition of"}
    said = f"{kind.get(ref['role'], ref['role'])} {symbol}".strip()
    return f"{said}; goes on" if is_cut else said


def format_prompt_evidence(exhibits: Sequence[PromptEvidence]) -> str:
    """Write the exhibits one below the other."""
    return "\n\n".join(f"{one.heading}\n{one.text}" for one in exhibits)


async def format_tool_results(state: AgentState, deps: Deps) -> str:
    """Return the results of the tools that the router chose, the newest first where there is no room for all."""
    records = [record for record in state.get("tool_history", []) if record["ok"]]
    if not records or state.get("findings"):
        return ""
    texts = await deps.evidence.texts(record["key"] for record in records)
    results = [f"{record['tool']}: {texts[record['key']]}" for record in reversed(records) if record["key"] in texts]
    return deps.redact("\n\n".join(results))[:MAX_RESULTS]


def collect_flags(exhibits: Sequence[PromptEvidence]) -> Mapping[str, Sequence[str]]:
    """Return the flags of the exhibits that have any, by their places."""
    places = {f"{one.location.path}:{one.location.start_line}-{one.location.end_line}": one.flags for one in exhibits}
    return {place: flags for place, flags in places.items() if flags}
