"""Answers what is not about code with one friendly line on what can be asked."""

from __future__ import annotations

from agent.ports import Deps, Runtime
from agent.questions.intent import SmallTalk, find_small_talk
from agent.state import AgentState
from agent.text.escaping import format_code_span

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
    "chatter": "That is beyond me: I only know the code in {repository}. Ask me where something is or how it works.",
    "wordless": "I see no words in that. Ask me about the code in {repository}: where something is, who calls it.",
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
