"""Builds the prompts for a model that answers with tools: the task, then the question with its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from agent import chat
from agent.ports import Deps
from agent.prompts.answer_prompts import ANSWER_RULES, ORDERS_WARNING, READINGS, DataFence, format_question
from agent.prompts.numbered_evidence import format_cited
from agent.prompts.past_turns import format_past_turns
from agent.prompts.prompt_evidence import PromptEvidence, format_history_facts, format_prompt_evidence
from agent.prompts.research_prompts import DATA, format_findings
from agent.state import AgentState, make_empty_metadata

START = "start"  # the key of the first message's text in the evidence table

WRITE_NOW = (
    "Write the answer now, from what you have been shown: no tool is called any more. Say what you could not find out."
)

_TOOLS = """

You have tools that read the repository at the commit that is asked about. What was looked up before you were asked is \
a beginning, and may miss the point.

- Answer at once where the evidence answers. Else call tools first, several at once where they do not depend on each \
other; never repeat a call.
- For who is affected by a change, callers, overrides and subclasses, and for when, who or why, the history: use the \
tools made for it rather than a guess.
- What a tool returns carries evidence ids as well; cite those in the same way.
- Write nothing beside a call. Text without a call is the answer, and the person sees it as you write it.

"""


def format_task(*, hardened: bool, can_ask: bool = True) -> str:
    """Return the instructions: the same in every turn, so that a provider can keep them ready.

    `can_ask` says whether the person could reply to a question back.
    """
    return ANSWER_RULES + ("" if can_ask else READINGS) + _TOOLS + DATA + (ORDERS_WARNING if hardened else "")


def format_start(state: AgentState, deps: Deps, exhibits: Sequence[PromptEvidence]) -> str:
    """Write what the repository is, the question, what was said before it, and what was found for it."""
    fence = DataFence(state.get("nonce", ""), twice=deps.is_hardened)
    history = state.get("conversation_history", [])
    findings = format_findings(state.get("findings", {}), deps)
    cited = format_cited(findings, state.get("shown", []), besides={one.number for one in exhibits})
    searched = state.get("retrieval_metadata", make_empty_metadata())["searched"]
    overview = state.get("codebase_tree", "")
    facts = format_history_facts(state, deps)
    parts = [
        fence.data("The repository", overview) if overview else "",
        fence.data("The conversation so far", deps.redact(format_past_turns(history))) if history else "",
        fence.data("Notes of the research; cite the evidence ids in them", findings) if findings else "",
        fence.data("Other places that the notes cite", cited) if cited else "",
        fence.data("The evidence", format_prompt_evidence(exhibits) or "none was found"),
        fence.data("What is known of the history", facts) if facts else "",
        fence.data("What was searched for", "\n".join(searched)) if searched else "",
        fence.data("The question", format_question(state, deps)),
    ]
    return "\n\n".join(part for part in parts if part)


def make_first_messages(*, hardened: bool, can_ask: bool = True) -> list[chat.BaseMessage]:
    """Return the messages that a conversation with the model begins with; the second stands for the start's text."""
    return [
        chat.SystemMessage(format_task(hardened=hardened, can_ask=can_ask)),
        chat.HumanMessage("", additional_kwargs={"evidence": START}),
    ]
