"""Builds the prompts of a goal run, and bounds its conversation with the model."""

from __future__ import annotations

from collections.abc import Sequence

from agent import chat
from agent.goals.goal import GoalDeps, GoalResult
from agent.goals.goal_state import MAX_MESSAGES, GoalState
from agent.prompts.answer_prompts import DataFence
from agent.prompts.research_prompts import DATA, insert_results, list_evidence_keys

_LONGEST_STANDING = 8_000
_RULES = (
    "You work on a copy of one repository at one commit, in a sandbox without a network, until a check is met. Nothing "
    "you do leaves the copy; a person reads what you changed and may apply it. Look before you change: list the files, "
    "read what matters, and find the cause. Change as little as the goal needs, in the style of the code around it. "
    "Never make a check pass by weakening it. Nothing can be installed. After each of your replies the check is made, "
    "and you are told what it found; reply without a call only when you have nothing left to do. "
)
_LAST = "This is the last reply in which you may call tools. "


def build_beginning(state: GoalState, deps: GoalDeps, standing: str) -> list[chat.BaseMessage]:
    """Begin the conversation: what the person wants, and how things stand at the commit."""
    fence = DataFence(state.get("nonce", ""))
    parts = [fence.data("What the person wants", deps.redact(state.get("task", "")))]
    if standing:
        parts.append(fence.data("How things stand at the commit", deps.redact(standing)[:_LONGEST_STANDING]))
    return [chat.HumanMessage("\n\n".join(parts))]


async def fill_messages(
    state: GoalState, messages: Sequence[chat.BaseMessage], deps: GoalDeps
) -> list[chat.BaseMessage]:
    """Return the conversation as the model is sent it: the task before it, the texts of results in it."""
    texts = await deps.evidence.texts(list_evidence_keys(messages))
    filled = insert_results(messages, texts, deps, nonce=state.get("nonce", ""))
    is_last = state.get("iteration", 0) + 1 >= state.get("max_iterations", 1)
    return [chat.SystemMessage(_RULES + deps.goal.system_prompt() + (_LAST if is_last else "") + DATA), *filled]


def trim_messages(messages: Sequence[chat.BaseMessage], room: int = MAX_MESSAGES) -> list[chat.BaseMessage]:
    """Keep the first message and the newest; results whose call was forgotten go as well."""
    if len(messages) <= room:
        return [*messages]
    newest = [*messages[len(messages) - room + 1 :]]
    while newest and isinstance(newest[0], chat.ToolMessage):
        newest.pop(0)
    return [messages[0], *newest]


def format_check(state: GoalState, result: GoalResult, deps: GoalDeps) -> str:
    """Tell the model what the check has found."""
    left = max(0, state.get("max_iterations", 1) - state.get("iteration", 0) - 1)
    text = DataFence(state.get("nonce", "")).data("What the check found", deps.redact(result.reason))
    return f"{text}\n\nThe goal is not reached yet. You may reply {left} more time{'s' * (left != 1)}."
