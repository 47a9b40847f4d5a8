"""Asks the person what is meant, and waits for the reply."""

from __future__ import annotations

import logging

from agent.guard.injection.normalization import normalize_question
from agent.guard.injection.verdict import judge_injection
from agent.guard.thread_quotes import split_background
from agent.ports import Deps, Runtime
from agent.prompts.model_text import clean_model_sentence
from agent.state import AgentState, VerdictName

LONGEST_REPLY = 1000
WHICH = "I am not sure what you mean. Which function, class, file or behaviour is it about?"

log = logging.getLogger(__name__)


async def clarify(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause with the question, and add the reply to what was asked.

    Reads router_output, cleaned_query, lookup_query, gateway_verdict. Writes cleaned_query, lookup_query, clarified,
    rounds, pause_reason, and gateway_verdict where the reply is watched.
    """
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    decision = state.get("router_output")
    question = decision["clarification"] if decision is not None else ""
    redact = runtime.context.redact
    question = clean_model_sentence(question[:500], redact) or WHICH
    answer = str(interrupt({"kind": "clarify", "question": question}))
    reply, verdict = _screen_reply(split_background(answer)[0].strip()[:LONGEST_REPLY])
    asked = state.get("cleaned_query", "")
    changes: AgentState = {
        "cleaned_query": f"{asked}\n(You asked back: {question})\n{redact(reply)}" if reply else asked,
        "lookup_query": f"{state.get('lookup_query') or asked}\n{redact(reply)}",
        "clarified": True,
        "rounds": 0,
        "pause_reason": "",
    }
    return changes if verdict == "allow" else {**changes, "gateway_verdict": "watch"}


def _screen_reply(reply: str) -> tuple[str, VerdictName]:
    """Judge a reply as the gateway would a question; what would have been refused reaches no model."""
    normalised = normalize_question(reply)
    verdict = judge_injection(normalised)
    if verdict.name == "allow":
        return normalised.text, verdict.name
    is_refused = verdict.name == "block"
    log.warning("a reply is %s: %s", "left out" if is_refused else "watched", ",".join(verdict.rules))
    return "" if is_refused else normalised.text, verdict.name
