"""Conversations about steps that are taken side by side: all of them in one list, each message with its step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from agent import chat
from agent.state import AgentState

Message = TypeVar("Message", bound="chat.BaseMessage")

MAX_SIDE_BY_SIDE = 4
_STEP = "step"


def list_due_steps(state: AgentState) -> list[int]:
    """Return the steps of the plan that are taken now: the current one, and those after it that need none of them."""
    plan, first = state.get("plan", []), state.get("current_step", 0)
    due = [first]
    for at in range(first + 1, min(len(plan), first + MAX_SIDE_BY_SIDE)):
        if at in state.get("dependent", []):
            break
        due.append(at)
    return due


def list_taken_steps(state: AgentState) -> list[int]:
    """Return the steps of the plan that were taken last, side by side."""
    taken: list[int] = []
    while (following := taken[-1] + 1 if taken else 0) < state.get("current_step", 0):
        taken = list_due_steps({**state, "current_step": following})
    return taken


def mark_step(message: Message, step: int) -> Message:
    """Say which step a message is about; what else a provider has put into it stays."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, _STEP: step}})


def read_step_mark(message: chat.BaseMessage) -> int | None:
    """Return the step that a message is marked with."""
    mark = message.additional_kwargs.get(_STEP)
    return mark if isinstance(mark, int) else None


def is_open(conversation: Sequence[chat.BaseMessage]) -> bool:
    """Whether a conversation waits for tools, or for the model to continue."""
    last = next(reversed(conversation), None)
    return not isinstance(last, chat.AIMessage) or has_calls(last)


def has_calls(message: chat.BaseMessage | None) -> bool:
    """Whether a message asks for tools."""
    return isinstance(message, chat.AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def split_by_step(messages: Sequence[chat.BaseMessage], state: AgentState) -> Mapping[int, list[chat.BaseMessage]]:
    """Return the conversation about each step that is due; what is not marked is about the current one."""
    conversations: dict[int, list[chat.BaseMessage]] = {step: [] for step in list_due_steps(state)}
    first = state.get("current_step", 0)
    for message in messages:
        step = read_step_mark(message)
        conversations.setdefault(first if step is None else step, []).append(message)
    return conversations
