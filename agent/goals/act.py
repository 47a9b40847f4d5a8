"""Makes the calls that the model has chosen, one after the other, on the working copy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent import chat
from agent.errors import WorkspaceTooLarge
from agent.goals.goal import GoalDeps, add_commands
from agent.goals.goal_state import GoalState, GoalToolResult, PendingCall, StoredChange, store_changes
from agent.ports import Runtime
from agent.prompts.research_prompts import make_result_message
from agent.tools.tool_calls import MAX_CALLS, make_call_key

TOO_MANY = f"Too many calls in one reply; at most {MAX_CALLS} are made. Call it again if it is still needed."


async def act(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Make the pending calls; each sees what the ones before it have changed.

    Reads pending_tool_calls, approved, iteration, changes, commands. Writes messages, pending_tool_calls, tool_results,
    changes and commands. Run again after a crash, it begins with the working copy as it was before the first
    call.
    """
    deps = runtime.context
    pending = state.get("pending_tool_calls", [])
    results = [await _make_call(state, call, number, deps) for number, call in enumerate(pending)]
    messages: list[chat.BaseMessage] = [
        make_result_message(one["tool"], call["id"], one["key"], ok=one["ok"])
        for one, call in zip(results, pending, strict=True)
    ]
    changes, complaint = await _read_changes(state, deps)
    return {
        "messages": [*messages, *complaint],
        "pending_tool_calls": [],
        "tool_results": results,
        "changes": changes,
        "commands": add_commands(state, deps),
    }


async def _make_call(state: GoalState, call: PendingCall, number: int, deps: GoalDeps) -> GoalToolResult:
    key = make_call_key(call["name"], call["args"], str(state.get("iteration", 0)), str(number))
    if number >= MAX_CALLS:
        await deps.evidence.keep(key, TOO_MANY)
        return {"tool": call["name"][:80], "ok": False, "key": key}
    outcome = await deps.tools.call(call["name"], call["args"], deps, approved=state.get("approved", []))
    await deps.evidence.keep(key, outcome.text)
    return {"tool": call["name"][:80], "ok": outcome.ok, "key": key}


async def _read_changes(state: GoalState, deps: GoalDeps) -> tuple[list[StoredChange], Sequence[chat.BaseMessage]]:
    """Return the working copy as it is now, or as it was, and why, where it has become too large to be kept."""
    try:
        return store_changes(await asyncio.to_thread(deps.workspace.copy.read_changes)), []
    except WorkspaceTooLarge as error:
        return state.get("changes", []), [chat.HumanMessage(deps.redact(str(error)))]
