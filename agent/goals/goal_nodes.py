"""The nodes of a goal run: plan, act, evaluate and human_check, with the prompts of its model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from agent import chat
from agent.answering.rounds import limit_reply
from agent.errors import (
    AnswerEmpty,
    AnswerMalformed,
    BudgetExceeded,
    GoalUnreachable,
    ModelError,
    ToolsUnsupported,
    WorkspaceTooLarge,
)
from agent.goals.goal import (
    MAX_MESSAGES,
    GoalDeps,
    GoalResult,
    GoalState,
    GoalToolResult,
    GoalUsage,
    PendingCall,
    StoredChange,
    add_commands,
    hash_changes,
    store_changes,
)
from agent.guard.approval import is_approval
from agent.ports import Runtime
from agent.prompts.answer_prompts import DATA, format_data
from agent.prompts.research_prompts import insert_results, list_evidence_keys, make_result_message
from agent.state import clear_messages
from agent.tools.registry import MAX_CALLS, make_call_key

LONGEST_CALLS = 60_000  # characters of the calls of one reply
NO_MODEL = "A goal run needs a language model that can call tools. Set GOOGLE_API_KEY, or CITEBOT_MODEL to another one."
BUDGET = "the budget of the run is used up"
UNREADABLE = (
    f"Your reply could not be used: its calls were no JSON, or longer than {LONGEST_CALLS:,} characters together. "
    "Write a large file in several calls, and change a part of one with `replaces`."
)

log = logging.getLogger(__name__)


async def plan(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Let the model choose the next calls, or none if it is done.

    Reads messages, task, nonce, iteration, max_iterations, idle, approved, commands. Writes
    messages, pending_tool_calls, model_name, usage, idle, commands, first of all the result of
    checking the commit, and ended_by if the model fails or the budget is used up.
    """
    deps = runtime.context
    if deps.models.main is None:
        raise GoalUnreachable(NO_MODEL)
    number, most = state.get("iteration", 0) + 1, state.get("max_iterations", 1)
    deps.emit("step_start", node="plan", stage=f"Iteration {number} of {most}: choosing the next step")
    known: Sequence[chat.BaseMessage] = state.get("messages", [])
    first: GoalState = {}
    if not known:
        began = await deps.goal.begin(state, deps.workspace)
        if began is not None:  # the findings at the commit are the check of an unchanged copy
            met = f"Already met at {deps.commit[:7]}: nothing to do. " if began.achieved else ""
            first = {
                "goal_achieved": began.achieved,
                "goal_reason": met + deps.redact(began.reason),
                "goal_details": dict(began.details),
                "checked": hash_changes([]),
            }
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


def _follow_reply(known: Sequence[chat.BaseMessage], reply: chat.AIMessage, deps: GoalDeps) -> GoalState:
    """Carry out the calls of a reply; unreadable or overlong ones are dropped."""
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


TOO_MANY = f"Too many calls in one reply; at most {MAX_CALLS} are made. Call it again if it is still needed."


async def act(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Make the pending calls in order; each sees the changes of the previous ones.

    Reads pending_tool_calls, approved, iteration, changes, commands. Writes messages,
    pending_tool_calls, tool_results, changes and commands. After a crash, it starts again from the
    working copy before the first call.
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
    """Return the working copy now, or the previous one and the reason if it is too large to keep."""
    try:
        return store_changes(await asyncio.to_thread(deps.workspace.copy.read_changes)), []
    except WorkspaceTooLarge as error:
        return state.get("changes", []), [chat.HumanMessage(deps.redact(str(error)))]


MAX_IDLE = 2  # replies in a row that call nothing


async def evaluate(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:
    """Make the check, unless nothing has changed since the last one, and end the iteration.

    Reads changes, checked, idle, iteration, max_iterations, ended_by and the last result of the
    check. Writes goal_achieved, goal_reason, goal_details, checked, iteration, ended_by, commands
    and messages.
    """
    deps = runtime.context
    deps.emit("step_start", node="evaluate", stage="Checking whether the goal is reached")
    digest = hash_changes(state.get("changes", []))
    known = GoalResult(
        achieved=state.get("goal_achieved", False),
        reason=state.get("goal_reason", ""),
        details=state.get("goal_details", {}),
    )
    result = known if state.get("checked") == digest else await deps.goal.check(state, deps)
    iteration = state.get("iteration", 0) + 1
    reason = deps.redact(result.reason)
    label = deps.goal.reached if result.achieved else f"not {deps.goal.reached}"
    deps.emit("goal_check", iteration=iteration, achieved=result.achieved, label=label.capitalize(), reason=reason)
    ended_by = "" if result.achieved else state.get("ended_by", "") or _find_limit(state, iteration, deps)
    deps.emit(
        "iteration_complete",
        iteration=iteration,
        decision="achieved" if result.achieved else "give up" if ended_by else "go on",
        reason=reason,
    )
    return {
        "goal_achieved": result.achieved,
        "goal_reason": reason,
        "goal_details": dict(result.details),
        "checked": digest,
        "iteration": iteration,
        "ended_by": ended_by,
        "commands": add_commands(state, deps),
        "messages": [] if result.achieved or ended_by else [chat.HumanMessage(format_check(state, result, deps))],
    }


def _find_limit(state: GoalState, iteration: int, deps: GoalDeps) -> str:
    if state.get("idle", 0) >= MAX_IDLE:
        return "the model called nothing and changed nothing, twice in a row"
    if iteration >= state.get("max_iterations", 1):
        return f"its {iteration} iteration{'s are' if iteration != 1 else ' is'} used up"
    return BUDGET if deps.budget.seconds_left <= 0 else ""


_MAX_LISTED = 20


async def human_check(state: GoalState, runtime: Runtime[GoalDeps]) -> GoalState:  # noqa: ARG001 - a node takes both
    """Pause, and continue or end as the person decides.

    Reads iteration, max_iterations, goal_reason and changes. Writes is_aborted and ended_by.
    """
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    changed = [one["path"].decode(errors="replace") for one in state.get("changes", [])]
    request = {name: state.get(name, 0) for name in ("iteration", "max_iterations")}
    reply = interrupt(
        {**request, "kind": "goal", "reason": state.get("goal_reason", ""), "changed": changed[:_MAX_LISTED]}
    )
    return {} if is_approval(reply) else {"is_aborted": True, "ended_by": "a person ended it"}


_MAX_STANDING = 8_000
_RULES = (
    "You work on a copy of one repository at one commit, in a sandbox without a network, until a check is met. Nothing "
    "you do leaves the copy; a person reads what you changed and may apply it. Look before you change: list the files, "
    "read what matters, and find the cause. Change as little as the goal needs, in the style of the code around it. "
    "Never make a check pass by weakening it. Nothing can be installed. After each of your replies the check is made, "
    "and you are told what it found; reply without a call only when you have nothing left to do. "
)
_LAST = "This is the last reply in which you may call tools. "


def build_beginning(state: GoalState, deps: GoalDeps, standing: str) -> list[chat.BaseMessage]:
    """Begin the conversation: the person's request, and the state of the commit."""
    material = {
        "What the person wants": deps.redact(state.get("task", "")),
        "How things stand at the commit": deps.redact(standing)[:_MAX_STANDING],
    }
    return [chat.HumanMessage(format_data(material, deps))]


async def fill_messages(
    state: GoalState, messages: Sequence[chat.BaseMessage], deps: GoalDeps
) -> list[chat.BaseMessage]:
    """Return the conversation for the model: the task first, and the texts of results."""
    texts = await deps.evidence.texts(list_evidence_keys(messages))
    filled = insert_results(messages, texts, deps, nonce=state.get("nonce", ""))
    is_last = state.get("iteration", 0) + 1 >= state.get("max_iterations", 1)
    return [chat.SystemMessage(_RULES + deps.goal.system_prompt() + (_LAST if is_last else "") + DATA), *filled]


def trim_messages(messages: Sequence[chat.BaseMessage], room: int = MAX_MESSAGES) -> list[chat.BaseMessage]:
    """Keep the first message and the newest; drop results without their calls."""
    if len(messages) <= room:
        return [*messages]
    newest = [*messages[len(messages) - room + 1 :]]
    while newest and isinstance(newest[0], chat.ToolMessage):
        newest.pop(0)
    return [messages[0], *newest]


def format_check(state: GoalState, result: GoalResult, deps: GoalDeps) -> str:
    """Tell the model the result of the check."""
    left = max(0, state.get("max_iterations", 1) - state.get("iteration", 0) - 1)
    text = format_data({"What the check found": deps.redact(result.reason)}, deps)
    return f"{text}\n\nThe goal is not reached yet. You may reply {left} more time{'s' * (left != 1)}."
