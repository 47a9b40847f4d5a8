"""Turns the conversation about each step into a finding."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent import chat
from agent.ports import Deps, Runtime
from agent.prompts.research_prompts import read_evidence_key, read_step
from agent.prompts.step_messages import list_due_steps, split_by_step
from agent.state import AgentState, Finding, clear_messages
from agent.text.storable import make_storable

LONGEST_SUMMARY = 4000
NOTHING = "Nothing was found."
_SOURCE_LINE = re.compile(r" {0,4}\d{1,7}(?: |$)")


async def aggregate(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Store what each step brought under its name, clear the messages, and continue to the next step.

    Reads messages, plan, dependent, current_step, findings. Writes findings, current_step, messages.
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
