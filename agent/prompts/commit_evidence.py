"""Commits and the people who made them as a model is shown them: numbered, and marked where they give orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.guard.evidence_check import find_orders, list_rules, mark_orders, mark_text
from agent.ports import Deps
from agent.prompts.prompt_evidence import PromptEvidence
from agent.state import AgentState, EvidenceRef, make_empty_metadata, to_location
from agent.text.escaping import replace_control_characters, to_one_line

MAX_COMMITS = 30
MAX_FACTS = 30
CHANGE_CHARS = 12_000  # of lines that differ
_LONGEST_BODY = 600
_SAID_OF_LINES = {"removed": "removed", "added": "added"}


def load_commit_evidence(deps: Deps, refs: Iterable[EvidenceRef]) -> list[PromptEvidence]:
    """Write down the commits among the evidence, the first of each; their numbers are given later."""
    found: dict[tuple[str, str], EvidenceRef] = {}
    for ref in refs:
        is_known = bool(ref["symbol"] or ref["signature"])  # and not only cited once
        if not ref["path"] and ref.get("commit") and is_known:
            found.setdefault((ref["commit"], ref["symbol"]), ref)
    return [_describe_commit(deps, ref) for ref in list(found.values())[:MAX_COMMITS]]


def load_change_evidence(deps: Deps, refs: Iterable[EvidenceRef]) -> list[PromptEvidence]:
    """Write down the lines that were added and removed among the evidence, as far as there is room."""
    found: list[PromptEvidence] = []
    room = CHANGE_CHARS
    for ref in refs:
        if ref["role"] == "change" and ref["kind"] in _SAID_OF_LINES:
            shown = _describe_change(deps, ref)
            room -= len(shown.text)
            if room < 0:
                break
            found.append(shown)
    return found


def _describe_change(deps: Deps, ref: EvidenceRef) -> PromptEvidence:
    """Write lines with the numbers that they have at their own commit."""
    lines = replace_control_characters(deps.redact(ref["doc"])).split("\n")
    flags = find_orders(lines)
    numbered = [f"{ref['start_line'] + at}: {line}" for at, line in enumerate(lines)]
    last = ref["start_line"] + len(lines) - 1
    within = f", in {to_one_line(ref['symbol'], longest=120)}" if ref["symbol"] else ""
    return PromptEvidence(
        number=0,
        location=replace(to_location(ref), end_line=min(last, ref["end_line"])),
        about=f"{_SAID_OF_LINES[ref['kind']]}{within}" + "; goes on" * (last < ref["end_line"]),
        text="\n".join(mark_orders(numbered, flags)),
        flags=tuple(list_rules(flags)),
    )


def format_history_facts(state: AgentState, deps: Deps) -> str:
    """Write what was found out and counted beside the commits and people that were found, if there are any."""
    metadata = state.get("retrieval_metadata", make_empty_metadata())
    if not any(ref.get("commit") for ref in state.get("retrieved", [])):
        return ""
    facts = {**metadata.get("facts", {}), **{name: str(count) for name, count in metadata["totals"].items()}}
    lines = [f"{to_one_line(name, longest=200)}: {to_one_line(said, longest=300)}" for name, said in facts.items()]
    return mark_text(deps.redact("\n".join(lines[:MAX_FACTS])))


def _describe_commit(deps: Deps, ref: EvidenceRef) -> PromptEvidence:
    body = replace_control_characters(ref["doc"][:_LONGEST_BODY])
    lines = deps.redact("\n".join([to_one_line(ref["symbol"], longest=200), *body.split("\n")]).strip()).split("\n")
    flags = find_orders(lines)
    return PromptEvidence(
        number=0,
        location=to_location({**ref, "start_line": 0, "end_line": 0}),
        about=to_one_line(deps.redact(ref["signature"]), longest=120),
        text="\n".join(mark_orders(lines, flags)),
        flags=tuple(list_rules(flags)),
    )
