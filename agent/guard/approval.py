"""Finds what a person has to approve, and reads a yes or no; anything else is not an approval."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent.ports import Deps
from agent.state import AgentState

_YES = frozenset("yes y ok okay approve approved go continue proceed sure ja oui si".split())
_NO = frozenset("no n abort aborted stop cancel cancelled don't dont nein non never".split())
_WORD = re.compile(r"[\w']+")
_ASKS = re.compile(r"[?？]|\b(?:who|whose|what|which|where|when|why|how|does|did|wer|wo|wie|warum|welche\w*)\b")


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
    """Whether a reply approves: `{"decision": "approve"}`, or words whose first is a yes."""
    return parse_decision(reply) == "approve"


def parse_decision(reply: object) -> str:
    """Return `approve`, `abort`, or an empty string where the reply is about something else, such as a question."""
    text = str(reply.get("decision", "") if isinstance(reply, dict) else reply).lower()[:200]
    words = _WORD.findall(text)
    if not words or len(words) > 6 or _ASKS.search(text):
        return ""
    if any(word in _NO for word in words):
        return "abort"
    return "approve" if words[0] in _YES else ""
