"""Asks the model what to do next towards the goal."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from agent import chat
from agent.answering.replies import limit_reply
from agent.errors import (
    AnswerEmpty,
    AnswerMalformed,
    BudgetExceeded,
    GoalUnreachable,
    ModelError,
    ToolsUnsupported,
)
from agent.goals.goal import GoalDeps, GoalResult, add_commands
from agent.goals.goal_prompts import build_beginning, fill_messages, trim_messages
from agent.goals.goal_state import MAX_MESSAGES, GoalState, GoalUsage, PendingCall, hash_changes
from agent.ports import Runtime
from agent.state import clear_messages

LONGEST_CALLS = 60_000  # characters of the calls of one reply
NO_MODEL = "A goal run needs a language model that can call tools. Set GOOGLE_API_KEY, or CITEBOT_MODEL to another one."
BUDGET = "the budget of the run is used up"
UNREADABLE = (
    f"Your reply could not be used: its calls were no JSON, or longer than {LONGEST_CALLS:,} characters together. "
    "Write a large file in several calls, and change a part of one with `replaces`."
)

log = logging.getLogger(__name__)


async def plan(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Let the model choose the next calls, or none where it has nothing left to do.

    Reads messages, task, nonce, iteration, max_iterations, idle, approved, commands. Writes messages,
    pending_tool_calls, model_name, usage, idle, commands, at the beginning what a check of the commit has found, and
    ended_by where the model fails or the budget is used up.
    """
    deps = runtime.context
    if deps.models.main is None:
        raise GoalUnreachable(NO_MODEL)
    number, most = state.get("iteration", 0) + 1, state.get("max_iterations", 1)
    deps.emit("step_start", node="plan", stage=f"Iteration {number} of {most}: choosing what to do")
    known: Sequence[chat.BaseMessage] = state.get("messages", [])
    first: GoalState = {}
    if not known:
        began = await deps.goal.begin(state, deps.workspace)
        first = _note_check(began, state, deps) if began is not None else first
        known = build_beginning(state, deps, began.reason if began is not None else "")
    known = trim_messages(known, MAX_MESSAGES - 1)
    commands = add_commands(state, deps)
    if first.get("goal_achieved"):
        return {**_make_changes(known, deps), **first, "commands": commands}
    return {**first, **await _ask_model(state, known, deps), "commands": commands}


async def _ask_model(state: GoalState, known: Sequence[chat.BaseMessage], deps: GoalDeps) -> GoalState:
    model = deps.models.main
    if model is None:
        raise GoalUnreachable(NO_MODEL)
    try:
        messages = await fill_messages(state, known, deps)
        tools = deps.tools.menu(deps, approved=state.get("approved", []))
        reply = await model.reply_with_tools(messages, tools, task="plan")
    except ToolsUnsupported as error:
        raise GoalUnreachable(f"{NO_MODEL} The one that is set cannot.") from error
    except (AnswerEmpty, AnswerMalformed) as error:
        log.warning("a reply in a goal run could not be read: %s", error)
        return _make_changes([*known, chat.HumanMessage(UNREADABLE)], deps)
    except ModelError as error:
        log.warning("a goal run ends before its goal is reached: %s", error)
        ended_by = BUDGET if isinstance(error, BudgetExceeded) else error.reason
        return {**_make_changes(known, deps), "ended_by": ended_by}
    followed = _follow_reply(known, reply, deps)
    idle = 0 if reply.tool_calls or reply.invalid_tool_calls else state.get("idle", 0) + 1
    return {**followed, "model_name": model.name, "idle": idle}


def _note_check(began: GoalResult, state: GoalState, deps: GoalDeps) -> GoalState:
    """Take what was found at the commit as the check of a copy in which nothing has changed."""
    met = f"Already met at {state.get('commit', '')[:7]}: nothing to do. " if began.achieved else ""
    return {
        "goal_achieved": began.achieved,
        "goal_reason": met + deps.redact(began.reason),
        "goal_details": dict(began.details),
        "checked": hash_changes([]),
    }


def _follow_reply(known: Sequence[chat.BaseMessage], reply: chat.AIMessage, deps: GoalDeps) -> GoalState:
    """Take up the calls of a reply; one that nobody can read, or that is far too long, is not made."""
    kept = limit_reply(reply, longest_calls=LONGEST_CALLS)
    calls: list[PendingCall] = [
        {"id": call.get("id") or f"call-{number}", "name": call["name"], "args": call["args"]}
        for number, call in enumerate(kept.tool_calls)
    ]
    is_lost = bool(reply.invalid_tool_calls) or len(kept.tool_calls) < len(reply.tool_calls)
    if not is_lost:
        return _make_changes([*known, kept], deps, calls)
    return _make_changes(
        [*known, chat.AIMessage(str(kept.text) or "(a reply that could not be read)"), chat.HumanMessage(UNREADABLE)],
        deps,
    )


def _make_changes(messages: Sequence[chat.BaseMessage], deps: GoalDeps, calls: Sequence[PendingCall] = ()) -> GoalState:
    spent = deps.budget.usage
    usage: GoalUsage = {
        "calls": deps.budget.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
    }
    return {"messages": [clear_messages(), *messages], "pending_tool_calls": [*calls], "usage": usage}
