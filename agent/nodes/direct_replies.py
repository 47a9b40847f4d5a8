"""Replies without evidence: a question to the person, and a line for those who do not ask about code."""

from __future__ import annotations

import logging

from agent.guard.injection.normalization import normalize_question
from agent.guard.injection.verdict import judge_injection
from agent.guard.thread_quotes import split_background
from agent.ports import Deps, Runtime
from agent.prompts.model_text import clean_model_sentence
from agent.questions.intent import SmallTalk, find_small_talk
from agent.state import AgentState, VerdictName
from agent.text.escaping import format_code_span

LONGEST_REPLY = 1000
WHICH = "I'm not sure what you mean. Which function, class, file or behaviour is it about?"

log = logging.getLogger(__name__)


async def clarify(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Pause with the question, and add the reply to the original question.

    Reads router_output, cleaned_query, lookup_query, gateway_verdict. Writes cleaned_query,
    lookup_query, clarified, rounds, pause_reason, and gateway_verdict if the reply is watched.
    """
    from langgraph.types import interrupt  # takes a second, and without a model nothing comes here

    decision = state.get("router_output")
    question = decision["clarification"] if decision is not None else ""
    redact = runtime.context.redact
    question = clean_model_sentence(question[:500], redact) or WHICH
    answer = str(interrupt({"kind": "clarify", "question": question}))
    reply, verdict = _screen_reply(split_background(answer)[0].strip()[:LONGEST_REPLY])
    asked = state.get("cleaned_query", "")
    changes: AgentState = {
        "cleaned_query": f"{asked}\n(You asked back: {question})\n{redact(reply)}" if reply else asked,
        "lookup_query": f"{state.get('lookup_query') or asked}\n{redact(reply)}",
        "clarified": True,
        "rounds": 0,
        "pause_reason": "",
    }
    return changes if verdict == "allow" else {**changes, "gateway_verdict": "watch"}


def _screen_reply(reply: str) -> tuple[str, VerdictName]:
    """Judge a reply as the gateway would a question; a refused one reaches no model."""
    normalised = normalize_question(reply)
    verdict = judge_injection(normalised)
    if verdict.name == "allow":
        return normalised.text, verdict.name
    is_refused = verdict.name == "block"
    log.warning("a reply is %s: %s", "left out" if is_refused else "watched", ",".join(verdict.rules))
    return "" if is_refused else normalised.text, verdict.name


_LINES: dict[SmallTalk, str] = {
    "greeting": "Hello! Ask me about the code in {repository}: where something is, how it works, who calls it.",
    "thanks": "You're welcome! Ask me whenever you want to know more about {repository}.",
    "farewell": "Goodbye! I'll be here for the next question about {repository}.",
    "remark": "All right. Ask me whenever you want to know more about {repository}.",
    "abilities": (
        "I answer questions about the code in {repository} and cite the lines. Try: where is `name` defined? "
        "who calls `name`? what does `name` call? tests for `name`, what is in `path/file.py`, `path/file.py:42`, "
        "a pasted stack trace, or a question in plain words."
    ),
    "chatter": "I can't answer that: I only know the code in {repository}. Ask me where something is or how it works.",
    "wordless": "There are no words in that. Ask me about the code in {repository}: where something is, who calls it.",
}
UNCLEAR = (
    "I don't know yet what that points to. "
    "Name a function, a class or a file in {repository}, for example: who calls `name`?"
)


async def out_of_scope(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Write the line. Reads cleaned_query, mode. Writes final_answer."""
    runtime.context.emit("step_start", node="out_of_scope", stage="Replying")
    kind = find_small_talk(state.get("cleaned_query", ""))
    if kind is None and state.get("mode") == "tools":
        kind = "chatter"  # the model has read it as that
    line = UNCLEAR if kind is None else _LINES[kind]
    text = line.format(repository=format_code_span(runtime.context.code.repository))
    runtime.context.emit("token", text=text)
    return {"final_answer": text}
