"""One round of the answering model with tools: it calls some, or writes the answer."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent import chat
from agent.answering.beginning import list_image_keys, show_images
from agent.answering.model_answer import ModelAnswer, find_subject, stream_answer
from agent.errors import AnswerEmpty, AnswerMalformed, ModelError, RequestRefused, ToolsUnsupported
from agent.evidence.requests import decide_retrieval
from agent.guard.approval import list_unapproved_tools
from agent.guard.leak_check import check_leaks
from agent.limits import MAX_ROUNDS
from agent.ports import ChatModel, Deps, EvidenceTexts
from agent.prompts.answer_prompts import WITH_TOOLS, format_answer_rules, format_task, remove_tag_words
from agent.prompts.output_schemas import ClarifyOutput, PlanOutput, is_turn_tool, list_turn_tools, read_turn_call
from agent.prompts.prompt_evidence import list_exhibits
from agent.prompts.research_prompts import insert_results, list_evidence_keys
from agent.state import AgentState, RouterDecision, ToolRequest, clear_messages
from agent.text.storable import is_storable, make_storable

LONGEST_ANSWER = 20_000
LONGEST_CALLS = 20_000

log = logging.getLogger(__name__)


def limit_reply(reply: chat.AIMessage, *, longest_calls: int = LONGEST_CALLS) -> chat.AIMessage:
    """Return a reply unchanged unless it is absurdly long or unstorable; then return only its text."""
    calls = [*reply.tool_calls, *reply.invalid_tool_calls]
    text = str(reply.text)
    if (
        len(text) <= LONGEST_ANSWER
        and is_storable(text)
        and all(is_storable(call) for call in calls)
        and len(json.dumps(calls, default=str)) <= longest_calls
    ):
        return reply
    log.warning("a reply of the model could not be kept and has been cut to its text")
    return chat.AIMessage(make_storable(text[:LONGEST_ANSWER]))


class KeptReply:
    """The reply to some messages, stored next to the checkpoints as soon as it arrives.

    A node that asks several models at once is saved only after the last reply: a crash before that would lose all of
    them.
    """

    def __init__(self, texts: EvidenceTexts, messages: Sequence[chat.BaseMessage]) -> None:
        told = json.dumps([message.model_dump(exclude={"id"}) for message in messages], sort_keys=True, default=str)
        self._key = f"reply {hashlib.blake2b(remove_tag_words(told).encode(), digest_size=12).hexdigest()}"
        self._texts = texts

    async def find(self) -> chat.AIMessage | None:
        """Return the reply; None before there is one."""
        text = (await self._texts.texts([self._key])).get(self._key)
        return cast("chat.AIMessage", chat.messages_from_dict([json.loads(text)])[0]) if text is not None else None

    async def keep(self, reply: chat.AIMessage) -> None:
        """Store the reply, unless its provider has added something that is not JSON."""
        try:
            text = json.dumps(chat.message_to_dict(reply))
        except (TypeError, ValueError) as error:
            log.info("a reply is not kept before its step is saved: %s", error)
        else:
            await self._texts.keep(self._key, text)


NO_MODEL = "there is none any more"
_MAX_QUESTION = 300
# After these the same model may still write an answer when it is asked for nothing else.
_WORTH_ASKING_PLAINLY = (AnswerEmpty, AnswerMalformed, RequestRefused)

WRITE_NOW = (
    "Write the answer now, from what you have been shown: no tool is called any more. Say what you could not find out."
)


async def answer_with_tools(state: AgentState, deps: Deps) -> AgentState:
    """Ask the model and follow its calls; if it fails, answer from the evidence so far, or without tools."""
    count = state.get("rounds", 0)
    is_last = count + 1 >= MAX_ROUNDS or deps.budget.is_low
    # The last of several rounds has the same tools, as its prompt would begin otherwise than those before it.
    tools = [] if is_last and not count else _list_tools(state, deps)
    messages = await _fill_messages(state, deps, is_last=is_last)
    answer = ModelAnswer(deps, messages, list_exhibits(state.get("shown", [])), may_call=not is_last)
    deps.emit("step_start", node="executor_llm", stage="Writing the answer")
    try:
        changes = await _take_round(state, deps, tools, answer, is_last=is_last)
    except ToolsUnsupported as error:
        log.warning("the model is asked by forms from now on: %s", error)
        return {"mode": "forms", "messages": [clear_messages()], "shown": []}
    except ModelError as error:
        answer.retract()
        if isinstance(error, _WORTH_ASKING_PLAINLY):
            log.warning("the model is asked once more, without tools: %s", error)
            return _give_up(state, "")
        log.warning("the answer is quoted from the code: %s", error)
        return _give_up(state, error.reason)
    return {**changes, "rounds": count + 1}


def _list_tools(state: AgentState, deps: Deps) -> list[Mapping[str, Any]]:
    """List the tools that read, redirect the turn, or need a person's approval."""
    return [
        *deps.tools.menu(deps, approved=state.get("approved", []), asking=True),
        *list_turn_tools(can_ask=deps.can_ask),
    ]


async def _fill_messages(state: AgentState, deps: Deps, *, is_last: bool) -> list[chat.BaseMessage]:
    messages: Sequence[chat.BaseMessage] = state.get("messages", [])
    names = state.get("images", [])
    texts = await deps.evidence.texts([*list_evidence_keys(messages), *list_image_keys(names)])
    _, start, *rest = insert_results(messages, texts, deps, nonce=state.get("nonce", ""))
    # A tool's result may have made the turn a watched one since it began.
    task = format_task(format_answer_rules(deps) + WITH_TOOLS, deps)
    last = [chat.HumanMessage(WRITE_NOW)] if is_last else []
    return [chat.SystemMessage(task), show_images(start, names, texts), *rest, *last]


async def _take_round(
    state: AgentState, deps: Deps, tools: Sequence[Mapping[str, Any]], answer: ModelAnswer, *, is_last: bool
) -> AgentState:
    model: ChatModel | None = deps.models.main
    if model is None:
        return _give_up(state, NO_MODEL)
    reply = await stream_answer(model, tools, answer, task="executor_llm")
    if not is_last and reply is not None and (reply.tool_calls or reply.invalid_tool_calls):
        answer.retract()  # words before a call are no answer
        return _follow_calls(state, deps, answer.messages, reply)
    text = answer.finish(reply)
    subject = find_subject(state.get("retrieved", []))
    return {
        "final_answer": text,
        "answer_model": model.name,
        "citations": answer.citations,
        "main_symbol": subject.symbol,
        "main_kind": subject.kind,
        "router_output": _decide(state, "generate"),
    }


def _follow_calls(
    state: AgentState, deps: Deps, messages: Sequence[chat.BaseMessage], reply: chat.AIMessage
) -> AgentState:
    """Turn the model's calls into the next node, as the router does with a form."""
    kept = limit_reply(reply)
    if not (kept.tool_calls or kept.invalid_tool_calls):
        raise AnswerMalformed("The language model called tools with arguments that are too long.")
    chosen = read_turn_call(cast("Sequence[Mapping[str, Any]]", kept.tool_calls), state, can_ask=deps.can_ask)
    match chosen:
        case (_, PlanOutput() as plan):
            check_leaks(plan.steps, messages, deps.masked)
            return {
                "proposal": {"steps": plan.steps[:50], "dependent": plan.dependent[:50], "tools": plan.tools[:20]},
                "router_output": _decide(state, "investigate"),
            }
        case (_, ClarifyOutput() as asked):
            question = make_storable(" ".join(asked.question[:2000].split())[:_MAX_QUESTION])
            check_leaks([question], messages, deps.masked)
            return {"router_output": {**_decide(state, "clarify"), "clarification": question}}
        case (_, _):
            return {"intent": "out_of_scope", "router_output": _decide(state, "generate")}
    names = [call["name"] for call in kept.tool_calls if not is_turn_tool(call["name"])]
    pause_reason = list_unapproved_tools(names, state, deps)
    wanted = pause_reason.split()
    calls: list[ToolRequest] = [
        {"tool": call["name"], "args": call["args"]} for call in kept.tool_calls if call["name"] in wanted
    ]
    return {
        "messages": [kept],
        "pause_reason": pause_reason,
        "router_output": {**_decide(state, "use_tool"), "calls": calls},
    }


def _decide(state: AgentState, route: str) -> RouterDecision:
    """Return the decision of the turn with another route, keeping its lookups."""
    before = state.get("router_output") or decide_retrieval([], fast_path=False, reasoning="the model has tools")
    return cast("RouterDecision", {**before, "route": route, "calls": [], "clarification": ""})


def _give_up(state: AgentState, reason: str) -> AgentState:
    """Leave the answer to synthesis; if a reason is given, the model is not asked again."""
    return {"router_output": _decide(state, "generate"), "error": reason}
