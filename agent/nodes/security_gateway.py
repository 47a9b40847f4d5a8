"""First node: the question has to pass deterministic checks before anything else happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from agent.guard.classifier.background_classifier import consult_classifier
from agent.guard.injection.normalization import strip_invisible
from agent.guard.injection.verdict import EARLIER_MESSAGES, InjectionVerdict, judge_conversation
from agent.guard.size import QUESTION_TOO_LONG, fit_text
from agent.guard.thread_quotes import FLAG, list_order_families, split_background
from agent.ports import Deps, Runtime
from agent.questions.attachments import format_excerpts
from agent.state import AgentState, reset_turn

THREAD = "orders_in_thread"  # the rule that others, in the thread around the question, have made count
ATTACHED = "orders_attached"  # the same of a file that came with it

EMPTY = (
    "There is no question in that message. Ask about the code, for example where something is defined or who calls it."
)

log = logging.getLogger(__name__)


async def security_gateway(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pass, watch or refuse the question.

    Reads user_query, attached, conversation_history. Writes every field of the turn again, gateway_passed,
    gateway_reason, gateway_verdict, is_blocked, and final_answer when it refuses.
    """
    runtime.context.emit("step_start", node="security_gateway", stage="Reading the question")
    fitting = fit_text(state.get("user_query", ""))
    if fitting is None:
        return _refuse(state, "too_long", QUESTION_TOO_LONG)
    question = fitting.strip()
    if not strip_invisible(question):
        return _refuse(state, "empty", EMPTY)
    earlier = [turn["question"] for turn in state.get("conversation_history", [])[-EARLIER_MESSAGES:]]
    # Beside the loop: a text that must be compiled for may take 50 ms.
    judged = await asyncio.to_thread(judge_question, question, earlier, format_excerpts(state.get("attached", [])))
    verdict = await consult_classifier(judged, strip_invisible(question), runtime.context)
    reason = ",".join(verdict.rules)
    if verdict.name == "block":
        log.warning("a question was refused: %s", reason)
        return _refuse(state, reason, format_refusal(verdict))
    if verdict.name == "watch":
        log.warning("a question is watched: %s", reason)
    return {**reset_turn(state), "gateway_passed": True, "gateway_reason": reason, "gateway_verdict": verdict.name}


def judge_question(question: str, earlier: Sequence[str] = (), attached: str = "") -> InjectionVerdict:
    """Judge the person's messages; other people's messages, and attachments, can make a turn watched but
    never refused.
    """
    own, lines = split_background(question)
    verdict = judge_conversation(own, [split_background(text)[0] for text in earlier])
    below = "\n".join(lines)  # its beginning may have been forged, and with it all that follows
    if below and verdict.name == "allow" and (FLAG in below or list_order_families("", below)):
        return replace(verdict, name="watch", rules=(*verdict.rules, THREAD))
    if attached and verdict.name == "allow" and list_order_families("", attached):
        return replace(verdict, name="watch", rules=(*verdict.rules, ATTACHED))
    return verdict


def format_refusal(verdict: InjectionVerdict) -> str:
    """Say why a message was refused, and how to continue."""
    return (
        f"That reads as {verdict.said}, so I did not act on it. Ask me about the code instead; "
        "if you ask about a text like this one, put it in quotation marks beside the question."
    )


def _refuse(left: AgentState, reason: str, sentence: str) -> AgentState:
    return {**reset_turn(left), "gateway_reason": reason, "is_blocked": True, "final_answer": sentence}
