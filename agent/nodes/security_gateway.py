"""First node: nothing goes further before the question has passed its deterministic layers."""

from __future__ import annotations

import logging

from langgraph.runtime import Runtime

from agent.guard.heuristics import judge
from agent.guard.normalise import normalise
from agent.ports import Deps
from agent.state import AgentState, fresh_turn

MAX_QUESTION = 4000

EMPTY = (
    "There is no question in that message. Ask about the code, for example where something is defined or who calls it."
)
TOO_LONG = (
    f"That message is too long. Ask in at most {MAX_QUESTION:,} characters; "
    "of a log or a file, paste the part that matters."
)
REFUSED = "I can't help with that request. Ask me about the code instead."

log = logging.getLogger(__name__)


async def security_gateway(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pass, watch or refuse the question.

    Reads user_query. Writes every field of the turn anew, gateway_passed, gateway_reason, gateway_verdict,
    is_blocked, and final_answer when it refuses.
    """
    runtime.context.emit("step_start", node="security_gateway", stage="Reading the question")
    question = state.get("user_query", "").strip()
    if not question:
        return _refuse("empty", EMPTY)
    if len(question) > MAX_QUESTION:
        return _refuse("too_long", TOO_LONG)
    normalised = normalise(question)
    if not normalised.text:
        return _refuse("empty", EMPTY)
    verdict = judge(normalised)
    reason = ",".join(verdict.rules)
    if verdict.name == "block":
        log.warning("a question was refused: %s (score %.1f)", reason, verdict.score)
        return _refuse(reason, REFUSED)
    return {**fresh_turn(), "gateway_passed": True, "gateway_reason": reason, "gateway_verdict": verdict.name}


def _refuse(reason: str, sentence: str) -> AgentState:
    return {**fresh_turn(), "gateway_reason": reason, "is_blocked": True, "final_answer": sentence}
