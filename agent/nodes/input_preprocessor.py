"""Cleans the question, tells what it wants, and writes out what it points back to."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from agent.answers.markdown import code_span
from agent.guard.normalise import visible
from agent.ports import Deps
from agent.questions.choices import chosen
from agent.questions.follow_ups import antecedent, points_back, resolve
from agent.questions.intent import asks_for_history, asks_to_repeat, clean, small_talk
from agent.questions.mentions import find_mentions
from agent.questions.traceback import read_frames
from agent.state import AgentState, Intent, Turn

MAX_LISTED = 20
NOTHING_ASKED = "You have not asked anything in this conversation yet."


async def input_preprocessor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Classify the question and make it stand alone.

    Reads user_query, conversation_history. Writes cleaned_query, intent, is_follow_up, needs_retrieval, and
    final_answer when the history is the answer.
    """
    runtime.context.emit("step_start", node="input_preprocessor", stage="Understanding the question")
    history = state.get("conversation_history", [])
    question = clean(visible(state.get("user_query", "")))
    picked = chosen(question, history)
    intent = _intent(question, history) if picked is None else "follow_up_with_retrieval"
    target = antecedent(history)
    if picked is not None:
        question = picked
    elif intent == "follow_up_with_retrieval" and target is not None:
        question = resolve(question, target)
    changes: AgentState = {
        "cleaned_query": question,
        "intent": intent,
        "is_follow_up": intent in {"follow_up", "follow_up_with_retrieval"},
        "needs_retrieval": intent in {"new_question", "follow_up_with_retrieval"},
    }
    if intent == "history_request":
        changes["final_answer"] = _listed(history)
        runtime.context.emit("token", text=changes["final_answer"])
    return changes


def _intent(question: str, history: Sequence[Turn]) -> Intent:
    if asks_for_history(question):
        return "history_request"
    if history and asks_to_repeat(question):
        return "follow_up"
    if small_talk(question) is not None:
        return "out_of_scope"
    if find_mentions(question).anything or read_frames(question) or not points_back(question):
        return "new_question"
    # A question that points at something is no question when nothing has been said.
    return "follow_up_with_retrieval" if antecedent(history) is not None else "out_of_scope"


def _listed(history: Sequence[Turn]) -> str:
    if not history:
        return NOTHING_ASKED
    shown = history[-MAX_LISTED:]
    first = len(history) - len(shown) + 1
    items = [f"{number}. {code_span(turn['question'], longest=200)}" for number, turn in enumerate(shown, first)]
    return "\n".join(["You asked:", "", *items])
