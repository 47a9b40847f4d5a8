"""Prompts of an investigation, and the conversations about parallel steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from agent import chat
from agent.ports import Deps
from agent.prompts.answer_prompts import DataFence, format_findings, format_past_turns, format_question, make_messages
from agent.prompts.prompt_evidence import format_cited
from agent.state import AgentState

MAX_CONTEXT = 60_000  # characters of tool results in one request
NOTHING_LEFT = "No step is left: summarise what was found."
GONE = "(left out to save room; call the tool again if it is needed)"

_PLANNER = (
    "You plan research in the code of one repository. Break the question into the fewest steps that answer it, each "
    "one thing that searching, reading files, following calls or file history can find out. On a second plan, list "
    "only what is still missing. Steps say what to find out, not which tool to use. "
)
_EXECUTOR = (
    "You research one step in the code of one repository, with read-only tools. Call several tools at once where they "
    "do not depend on each other. When you know enough, answer with a short summary of what you found, each statement "
    "with the evidence ids of its places as [E3], exactly as the tools gave them. Claim nothing that you did not read. "
)
_REFINERY = (
    "You judge whether the findings are enough to answer the question about a repository's code. FINISH when they are, "
    "or when more steps would not help. CONTINUE when something is missing, and say whether the remaining steps would "
    "find it. "
)


def build_planner_prompt(state: AgentState, deps: Deps) -> list[chat.BaseMessage]:
    """Ask for a plan, or for its missing part."""
    tools = deps.tools.menu(deps, asking=True)
    asked = [one for one in tools if deps.tools.is_approval_required(str(one["name"]))]
    lines = [f"- {one['name']}: {one['description']}" for one in asked]
    listed = "\nTools that a person has to approve before they are used:\n" if asked else ""
    material = {
        **_introduce_question(state, deps),
        "The question": format_question(state, deps),
        "What was found so far": format_findings(state.get("findings", {}), deps),
    }
    return make_messages(_PLANNER + listed + "\n".join(lines), material, deps)


def build_executor_prompt(step: str, state: AgentState, deps: Deps) -> list[chat.BaseMessage]:
    """Begin the conversation about one step."""
    done = format_findings(state.get("findings", {}), deps)
    material = {
        **_introduce_question(state, deps),
        "The question behind it all": format_question(state, deps),
        "The step": deps.redact(step),
        "What earlier steps found": done,
        "The places that their evidence ids stand for": format_cited(f"{step}\n{done}", state.get("shown", [])),
    }
    return make_messages(_EXECUTOR, material, deps)


def build_refinery_prompt(state: AgentState, deps: Deps) -> list[chat.BaseMessage]:
    """Ask whether the findings suffice."""
    left = state.get("plan", [])[state.get("current_step", 0) :]
    material = {
        **_introduce_question(state, deps),
        "The question": format_question(state, deps),
        "The findings": format_findings(state.get("findings", {}), deps) or "none",
        "The remaining steps": deps.redact("\n".join(left)) or "none",
    }
    return make_messages(_REFINERY, material, deps)


def _introduce_question(state: AgentState, deps: Deps) -> dict[str, str]:
    """Put the overview of the repository first, with the earlier turns that a follow-up refers to."""
    is_leaning = state.get("mode") == "tools" and state.get("is_follow_up")
    talk = format_past_turns(state, deps) if is_leaning else ""
    return {"The repository": state.get("codebase_tree", ""), "The conversation so far": talk}


def read_step(state: AgentState, at: int) -> str:
    """Return a step of the plan, or a sentence if there is none."""
    plan = state.get("plan", [])
    return plan[at] if 0 <= at < len(plan) else NOTHING_LEFT


def make_result_message(tool: str, call: str, key: str, *, ok: bool, found: int = 0) -> chat.ToolMessage:
    """Make a placeholder for a tool result; its text is inserted at the next call of the model."""
    return chat.ToolMessage(
        "",
        name=tool,
        tool_call_id=call,
        status="success" if ok else "error",
        additional_kwargs={"evidence": key, "found": found},
    )


def read_evidence_key(message: chat.BaseMessage) -> str:
    """Return the key of the tool result behind a placeholder, or an empty string."""
    return str(message.additional_kwargs.get("evidence", "")) if isinstance(message, chat.ToolMessage) else ""


def list_evidence_keys(messages: Sequence[chat.BaseMessage]) -> list[str]:
    """Return the keys of all placeholders."""
    return [key for message in messages if (key := str(message.additional_kwargs.get("evidence", "")))]


def insert_results(
    messages: Sequence[chat.BaseMessage], texts: Mapping[str, str], deps: Deps, *, nonce: str = ""
) -> list[chat.BaseMessage]:
    """Insert the texts of tool results for their keys, the newest first while there is room.

    The text of a first message is inserted verbatim: its parts are fenced already.
    """
    fence = DataFence(nonce or deps.nonce, twice=deps.is_hardened)
    fitting = find_fitting_results(messages, texts)
    filled: list[chat.BaseMessage] = []
    for at, message in enumerate(messages):
        if isinstance(message, chat.ToolMessage):
            text = texts[read_evidence_key(message)] if at in fitting else GONE
            filled.append(message.model_copy(update={"content": fence.data("The result", text)}))
        elif isinstance(message, chat.HumanMessage) and (key := str(message.additional_kwargs.get("evidence", ""))):
            filled.append(message.model_copy(update={"content": texts.get(key, GONE)}))
        else:
            filled.append(message)
    return filled


def find_fitting_results(messages: Sequence[chat.BaseMessage], texts: Mapping[str, str]) -> set[int]:
    """Choose the tool results that fit, the newest first."""
    room = MAX_CONTEXT
    fitting: set[int] = set()
    for at in reversed(range(len(messages))):
        text = texts.get(read_evidence_key(messages[at]))
        if text is not None and len(text) <= room:
            fitting.add(at)
            room -= len(text)
    return fitting


Message = TypeVar("Message", bound="chat.BaseMessage")

MAX_SIDE_BY_SIDE = 4
_STEP = "step"


def list_due_steps(state: AgentState) -> list[int]:
    """List the due steps of the plan: the current one, and later ones independent of them."""
    plan, first = state.get("plan", []), state.get("current_step", 0)
    due = [first]
    for at in range(first + 1, min(len(plan), first + MAX_SIDE_BY_SIDE)):
        if at in state.get("dependent", []):
            break
        due.append(at)
    return due


def list_taken_steps(state: AgentState) -> list[int]:
    """List the steps of the plan that were taken last, in parallel."""
    taken: list[int] = []
    while (following := taken[-1] + 1 if taken else 0) < state.get("current_step", 0):
        taken = list_due_steps({**state, "current_step": following})
    return taken


def mark_step(message: Message, step: int) -> Message:
    """Mark a message with its step, keeping additions of the provider."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, _STEP: step}})


def read_step_mark(message: chat.BaseMessage) -> int | None:
    """Return the step of a marked message."""
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
    """Return the conversation of each due step; unmarked messages belong to the current one."""
    conversations: dict[int, list[chat.BaseMessage]] = {step: [] for step in list_due_steps(state)}
    first = state.get("current_step", 0)
    for message in messages:
        step = read_step_mark(message)
        conversations.setdefault(first if step is None else step, []).append(message)
    return conversations
