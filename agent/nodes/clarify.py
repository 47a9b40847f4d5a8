"""Asks the person what is meant and waits for the reply; nothing else happens before it."""

from __future__ import annotations

import logging

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent.answers.model_text import inert
from agent.guard.heuristics import judge
from agent.guard.normalise import normalise
from agent.ports import Deps
from agent.state import AgentState

LONGEST_REPLY = 1000
WHICH = "I am not sure what you mean. Which function, class, file or behaviour is it about?"

log = logging.getLogger(__name__)


async def clarify(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause with the question, and add the reply to what was asked.

    Reads router_output, cleaned_query. Writes cleaned_query, clarified, pause_reason.
    """
    decision = state.get("router_output")
    question = decision["clarification"] if decision is not None else ""
    redact = runtime.context.redact
    reply = redact(_admitted(interrupt({"kind": "clarify", "question": inert(question[:500], redact) or WHICH})))
    asked = state.get("cleaned_query", "")
    return {
        "cleaned_query": f"{asked}\n{reply}" if reply else asked,
        "clarified": True,
        "pause_reason": "",
    }


def _admitted(reply: object) -> str:
    """Let a reply through as the gateway would a question: it is about to reach a model too."""
    text = str(reply).strip()
    if len(text) > LONGEST_REPLY:
        text = text[:LONGEST_REPLY]
    normalised = normalise(text)
    if judge(normalised).name == "block":
        log.warning("a reply was left out: it would have been refused as a question")
        return ""
    return normalised.text
