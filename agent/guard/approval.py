"""Finds what needs a person's approval, and reads a yes or no by a table of whole messages."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from agent.ports import Deps
from agent.questions.mentions import find_mentions
from agent.questions.remarks import find_remark
from agent.state import AgentState

Decision = Literal["approve", "abort", ""]
UNDECIDED = "That was neither a yes nor a no, so I started nothing."
LONGEST_DECISION = 80  # characters of a message that may decide
_MAX_WORDS = 8  # of a message that speaks of the request and decides nothing
_FILE = Path(__file__).with_name("approval.toml")
_PARTS = re.compile(r"[,.!;\n。、！，]+|(?<=\w) - ")
_EDGES = " \t\r`'\"*_()¡"
_TAKEN_BACK = re.compile(r"(?<!\w)!+(?=\w)|[~¬]|\[\s*\]")  # a "not" of programs, struck out, an empty box
_ASKS = re.compile(r"[?？]|\b(?:who|whose|what|which|where|when|why|how|does|did|wer|wo|wie|warum|welche\w*)\b")
_APPROVES_RUN = re.compile("approve(?: ([0-9a-f]{8}))?")
_WORD = re.compile(r"[^\s,.!;:]+")


class DecisionTable(NamedTuple):
    """The table of decisions, ready for lookups."""

    phrases: Mapping[str, Decision]
    fills: frozenset[str]


def list_unapproved_tools(names: Iterable[str], state: AgentState, deps: Deps) -> str:
    """List the tools among these that still need a person's approval, as the reason of a pause."""
    wanted = dict.fromkeys(names)
    if not wanted:  # as in most questions: to describe all tools takes a while, the first time
        return ""
    offered = {str(tool["name"]) for tool in deps.tools.menu(deps, asking=True)}
    approved = state.get("approved", [])
    return " ".join(
        name for name in wanted if name in offered and name not in approved and deps.tools.is_approval_required(name)
    )


def is_approval(reply: object) -> bool:
    """Whether a reply approves: `{"decision": "approve"}`, or a message that only says yes."""
    return parse_decision(reply) == "approve"


def parse_decision(reply: object) -> Decision:
    """Return `approve`, `abort`, or an empty string if the reply says more than yes or no."""
    text = str(reply.get("decision", "") if isinstance(reply, dict) else reply)
    if len(text) > LONGEST_DECISION or _TAKEN_BACK.search(text):
        return ""
    table, parts = load_decisions(), [part.strip(_EDGES) for part in _PARTS.split(_make_plain(text))]
    whole = " ".join(filter(None, parts))
    found: set[Decision] = set()
    for part in (whole,) if whole in table.phrases else parts:
        phrase = _strip_fills(part, table)
        if phrase and phrase not in table.phrases:
            return ""
        found |= {table.phrases[phrase]} if phrase else set()
    return "abort" if "abort" in found else "approve" if found else ""


def parse_run_decision(text: str) -> tuple[Decision, str]:
    """Read a decision about running code, and the run that it names: code runs only for the word `approve` itself."""
    plain = _make_plain(text[: LONGEST_DECISION + 1]).strip(f"{_EDGES}.!")
    if (approved := _APPROVES_RUN.fullmatch(plain)) is not None and not _TAKEN_BACK.search(text):
        return "approve", approved[1] or ""
    return ("abort" if parse_decision(text) == "abort" else ""), ""


def is_undecided(text: str) -> bool:
    """Whether a message mentions a request for approval without deciding it: "ok hold on", "sure, later"."""
    plain = _make_plain(text[: LONGEST_DECISION + 1])
    words = _WORD.findall(_TAKEN_BACK.sub(" ", plain))
    if not words or len(words) > _MAX_WORDS or _ASKS.search(plain) or find_mentions(text).anything:
        return False
    return words[0].strip(_EDGES) in load_decisions().phrases or find_remark(text) is not None


@cache
def load_decisions() -> DecisionTable:
    """Read the table."""
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    phrases: dict[str, Decision] = {
        " ".join(_PARTS.sub(" ", _make_plain(phrase)).split()): entry["decision"]
        for entry in content["decisions"]
        for phrase in entry["says"]
    }
    return DecisionTable(phrases, frozenset(map(_make_plain, content["fills"])))


def _make_plain(text: str) -> str:
    """Return a text in one spelling: compatibility form, no case, straight apostrophes, single spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("\ufe0f", "")
    return " ".join(line for line in folded.split(" ") if line).strip()


def _strip_fills(part: str, table: DecisionTable) -> str:
    """Return a part of a message without polite filler."""
    while part not in table.phrases and (fill := next((one for one in table.fills if _has_fill(part, one)), "")):
        part = part.removeprefix(fill) if part.startswith(fill) else part.removesuffix(fill)
        part = part.strip(_EDGES)
    return part


def _has_fill(part: str, fill: str) -> bool:
    return part == fill or part.startswith(f"{fill} ") or part.endswith(f" {fill}")
