"""The nodes of an investigation: planner, human_check, setup_executor, aggregate and refinery."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from agent import chat
from agent.answering.beginning import begin_answer
from agent.errors import BudgetExceeded, ModelError
from agent.guard.approval import is_approval, list_unapproved_tools
from agent.guard.leak_check import check_leaks
from agent.limits import MAX_PLAN
from agent.ports import Deps, Runtime
from agent.prompts.output_schemas import LONGEST_REASON, PlanOutput, RefineryOutput, clean_steps
from agent.prompts.research_prompts import (
    build_executor_prompt,
    build_planner_prompt,
    build_refinery_prompt,
    list_due_steps,
    list_taken_steps,
    mark_step,
    read_evidence_key,
    read_step,
    split_by_step,
)
from agent.state import AgentState, Finding, LoopDecision, ToolRequest, clear_messages, is_answering
from agent.text.escaping import format_code_span
from agent.text.storable import make_storable

log = logging.getLogger(__name__)


async def planner(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Plan the remaining investigation; one step of searching if no model gives a plan.

    Reads proposal, cleaned_query, findings, iteration_count, approved. Writes plan, dependent,
    current_step, plan_applies, proposal, loop_decision, iteration_count, pause_reason.
    """
    deps = runtime.context
    deps.emit("step_start", node="planner", stage="Planning the research")
    proposal = state.get("proposal")  # of the model which answers
    form = PlanOutput.model_validate(proposal) if proposal is not None else await _make_plan(state, deps)
    known = frozenset(name.partition(": ")[2].lower() for name in state.get("findings", {}))
    steps = clean_steps(form.steps, known=known, most=MAX_PLAN)
    waiting = _find_dependent(form, steps)
    steps = [deps.redact(step) for step in steps] or [f"Search for code about: {state.get('cleaned_query', '')[:200]}"]
    return {
        "plan": steps,
        "current_step": 0,
        "plan_applies": True,
        "dependent": waiting,
        "proposal": None,
        "loop_decision": "CONTINUE",
        "iteration_count": state.get("iteration_count", 0) + 1,
        "pause_reason": _find_pause_reason(state, deps, steps, form.tools),
    }


def _find_dependent(form: PlanOutput, steps: Sequence[str]) -> list[int]:
    """Return the remaining steps that depend on earlier results."""
    numbered = dict(enumerate(form.steps, 1))
    meant = [numbered[number] for number in form.dependent if number in numbered]
    waiting = set(clean_steps(meant, known=frozenset(), most=MAX_PLAN))
    return [at for at, step in enumerate(steps) if step in waiting]


async def _make_plan(state: AgentState, deps: Deps) -> PlanOutput:
    if deps.models.main is None:
        return PlanOutput(steps=[])
    messages = build_planner_prompt(state, deps)
    try:
        form = await deps.models.main.generate_structured(messages, PlanOutput, task="planner")
        check_leaks(form.steps, messages, deps.masked)
    except ModelError as error:
        log.warning("no plan was made: %s", error)
        return PlanOutput(steps=[])
    return form


def _find_pause_reason(state: AgentState, deps: Deps, steps: list[str], tools: list[str]) -> str:
    """Explain why a person must be asked before the plan is carried out; at most once per turn."""
    if unapproved := list_unapproved_tools(tools, state, deps):
        return unapproved
    is_dear = deps.budget.ceilings.count_plan_calls(steps) > deps.approval_calls
    return "plan" if is_dear and "plan" not in state.get("approved", []) else ""


ABORTED = "Stopped: that was not approved. Ask again, or ask for less."


async def human_check(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause, and continue with the reply.

    Reads pause_reason, plan, router_output, approved. Writes approved, pause_reason, and final_answer on an abort.
    """
    reason = state.get("pause_reason", "")
    approvals = _list_approvals(reason, state, runtime.context)
    if not approvals:
        return {"pause_reason": ""}  # there is nothing to approve; the call will say so
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    # Once resumed this node runs again from its first line, so what is asked comes from the state alone.
    reply = interrupt(_make_request(reason, state, runtime.context, [description for _, description in approvals]))
    if is_approval(reply):
        names = dict.fromkeys(name for name, _ in approvals)
        return {"approved": [*state.get("approved", []), *names], "pause_reason": ""}
    return {"final_answer": ABORTED, "is_aborted": True, "pause_reason": ""}


def _list_approvals(reason: str, state: AgentState, deps: Deps) -> list[tuple[str, str]]:
    """List the calls to be approved, with descriptions: nobody approves the unseen."""
    if reason == "plan":
        return [("plan", "")]
    tools = list_unapproved_tools(reason.split(), state, deps).split()
    calls = _get_pending_calls(state)
    if calls is None:
        return [(tool, f"Use the tool {tool}") for tool in tools]
    wanted = [call for call in calls if call["tool"] in tools]
    described = [(call["tool"], deps.tools.describe_call(call["tool"], call["args"], deps)) for call in wanted]
    return [(tool, description) for tool, description in described if description]


def _get_pending_calls(state: AgentState) -> list[ToolRequest] | None:
    """Return the calls of the router or of the answering model; None for a waiting plan."""
    decision = state.get("router_output")
    return decision["calls"] if decision is not None and decision["route"] == "use_tool" else None


def _make_request(reason: str, state: AgentState, deps: Deps, descriptions: list[str]) -> dict[str, object]:
    """Describe in full what the person has to approve."""
    if _get_pending_calls(state) is not None:
        return {"kind": reason, "steps": descriptions, "model_calls": 0}
    steps = state.get("plan", [])
    calls = deps.budget.ceilings.count_plan_calls(steps)
    return {"kind": reason, "steps": [*filter(None, descriptions), *steps], "model_calls": calls}


async def setup_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Begin a fresh conversation about each due step or, without any, about the answer.

    Reads plan, dependent, current_step, loop_decision, findings, cleaned_query, background, mode,
    nonce, retrieved, expanded, retrieval_metadata, shown, is_follow_up, conversation_history,
    flagged, codebase_tree. Writes messages, executor_call_count; for the answer also nonce,
    codebase_tree, shown, told and flagged.
    """
    if is_answering(state):
        return await begin_answer(state, runtime.context)
    deps, steps, all_steps = runtime.context, list_due_steps(state), len(state.get("plan", []))
    for step in steps:
        shown = format_code_span(deps.redact(read_step(state, step)))
        deps.emit("step_start", node="setup_executor", stage=f"Step {step + 1} of {all_steps}: {shown}")
    messages = [
        mark_step(message, step)
        for step in steps
        for message in build_executor_prompt(read_step(state, step), state, deps)
    ]
    return {"messages": [clear_messages(), *messages], "executor_call_count": 0}


LONGEST_SUMMARY = 4000
NOTHING = "Nothing was found."
_SOURCE_LINE = re.compile(r" {0,4}\d{1,7}(?: |$)")


async def aggregate(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Store the result of each step under its name, clear the messages, and continue to the next step.

    Reads messages, plan, dependent, current_step, findings. Writes findings, current_step,
    messages.
    """
    steps = list_due_steps(state)
    conversations = split_by_step(state.get("messages", []), state)
    findings = dict(state.get("findings", {}))
    for step in steps:
        name = f"step_{len(findings) + 1}: {read_step(state, step)}"
        findings[name] = await _make_finding(conversations[step], runtime.context)
    return {
        "findings": findings,
        "current_step": state.get("current_step", 0) + len(steps),
        "messages": [clear_messages()],
        "executor_call_count": 0,
    }


async def _make_finding(messages: Sequence[chat.BaseMessage], deps: Deps) -> Finding:
    results = [message for message in messages if isinstance(message, chat.ToolMessage)]
    keys = list(dict.fromkeys(filter(None, map(read_evidence_key, results))))
    found = any(int(message.additional_kwargs.get("found", 0)) for message in results)
    replies = [str(message.text).strip() for message in messages if isinstance(message, chat.AIMessage)]
    summary = next((text for text in reversed(replies) if text), "")
    if not summary and keys:
        texts = await deps.evidence.texts(keys)
        summary = "\n---\n".join(
            "\n".join(line for line in texts[key].split("\n") if not _SOURCE_LINE.match(line))
            for key in keys
            if key in texts
        )
    return {
        "summary": make_storable(deps.redact(summary))[:LONGEST_SUMMARY] or NOTHING,
        "keys": keys,
        "found": found,
    }


async def refinery(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Continue or finish; ask the model only if the plan does not decide.

    Reads mode, cleaned_query, findings, plan, dependent, current_step, iteration_count,
    is_follow_up, conversation_history, codebase_tree. Writes loop_decision, plan_applies,
    iteration_count.
    """
    deps = runtime.context
    decision, applies, reason = await _decide_loop(state, deps)
    iteration = state.get("iteration_count", 0)
    deps.emit("iteration_complete", iteration=iteration, decision=decision, reason=deps.redact(reason)[:LONGEST_REASON])
    steps_on = decision == "CONTINUE" and applies
    return {
        "loop_decision": decision,
        "plan_applies": applies,
        "iteration_count": iteration + 1 if steps_on else iteration,
    }


async def _decide_loop(state: AgentState, deps: Deps) -> tuple[LoopDecision, bool, str]:
    remain = state.get("current_step", 0) < len(state.get("plan", []))
    most = deps.budget.ceilings.iterations
    if state.get("iteration_count", 0) >= most or deps.budget.is_low:
        return "FINISH", False, f"{most} rounds are the most, and what is left of the budget is the answer's"
    newest = list(state.get("findings", {}).values())[-len(list_taken_steps(state)) or None :]
    if remain and newest and all(finding["found"] for finding in newest):
        return "CONTINUE", True, "the last steps found what they sought, and steps remain"
    model = deps.models.small or deps.models.main
    if model is None or (state.get("mode") == "tools" and not remain):
        # A model that has tools finds what is still missing itself.
        return ("CONTINUE" if remain else "FINISH"), remain, "nobody needs to judge it"
    try:
        form = await model.generate_structured(build_refinery_prompt(state, deps), RefineryOutput, task="refinery")
    except BudgetExceeded as error:
        return "FINISH", False, str(error)
    except ModelError as error:
        log.warning("the findings were not judged: %s", error)
        return ("CONTINUE" if remain else "FINISH"), remain, error.reason
    return form.decision, remain and form.plan_still_applies, form.reason
