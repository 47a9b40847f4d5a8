"""Decides the next step of the turn by rules or by a model, and makes the model's tool calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from agent.errors import ModelError
from agent.evidence.refs import format_place
from agent.evidence.requests import decide_retrieval, request_search
from agent.guard.approval import list_unapproved_tools
from agent.guard.evidence_check import mark_text
from agent.guard.leak_check import check_leaks
from agent.ports import Deps, Runtime
from agent.prompts.answer_prompts import ROUTER, SEARCH_WORDS, format_question, load_overview, make_messages
from agent.prompts.output_schemas import CallOutput, RouterOutput, SearchOutput
from agent.prompts.prompt_evidence import format_tool_results
from agent.questions.languages import is_english
from agent.repositories.routing import request_past, route_question
from agent.state import (
    AgentState,
    RetrievalMetadata,
    RetrievalRequest,
    RouterDecision,
    ToolRequest,
    make_empty_metadata,
)
from agent.text.escaping import to_one_line
from agent.text.storable import is_storable, make_storable
from agent.tools.registry import ToolCallResult, ToolCalls, add_flags, append_tool_records, merge_refs

MAX_REQUESTS = 3
MAX_CALLS = 4
MAX_FILTERS = 5
_MAX_QUERY = 300
_MAX_SENTENCE = 300
_MAX_ARGUMENTS = 20_000
_MAX_SCHEMA = 400
MAX_PLACES = 30

log = logging.getLogger(__name__)


async def router(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Choose the way: without a model if the question names its target, if there is no model, or if it has tools.

    Reads cleaned_query, lookup_query, mode, iteration_count, retrieved, retrieval_metadata,
    tool_history, better_query, clarified, approved, codebase_tree. Writes router_output,
    iteration_count, codebase_tree, pause_reason.
    """
    deps = runtime.context
    deps.emit("step_start", node="router", stage="Choosing where to look")
    count, most = state.get("iteration_count", 0) + 1, deps.budget.ceilings.iterations
    tree = state.get("codebase_tree", "")
    asked_for = state.get("lookup_query") or state.get("cleaned_query", "")
    is_by_rules = state.get("mode") == "tools" or _is_fresh(state)
    chosen = await route_question(asked_for, deps.code) if is_by_rules else None
    is_settled = chosen is not None and (chosen["fast_path"] or bool(chosen["unknown"]))
    if not (is_settled or state.get("mode") == "tools"):
        tree = await load_overview(state, deps) if deps.models.small is not None else tree
        asked = await _ask_model(state, deps, tree)
        chosen = _add_messages(asked, chosen) if asked is not None else chosen
    chosen = chosen or _decide_without_model(state)
    if state.get("mode") == "tools":
        chosen = await _widen(chosen, asked_for, deps)
    if count >= most:  # it is written with what there is
        chosen = {**chosen, "route": "generate"}
    return {
        "router_output": chosen,
        "iteration_count": min(count, most),
        "codebase_tree": tree,
        "pause_reason": list_unapproved_tools((call["tool"] for call in chosen["calls"]), state, deps),
    }


async def _widen(chosen: RouterDecision, question: str, deps: Deps) -> RouterDecision:
    """Add git's knowledge and an English search, for a model that reads everything."""
    requests = chosen["requests"]
    if not requests:
        return chosen
    words = "" if chosen["fast_path"] or is_english(question) else await _translate(question, deps)
    english = [request_search(words, reasoning="the question in English words")] if words else []
    return {**chosen, "requests": [*english, *requests, *await request_past(question, requests, deps.code)]}


async def _translate(question: str, deps: Deps) -> str:
    """Let the small model translate a question into English search words; empty if it fails or is missing."""
    if deps.models.small is None:
        return ""
    messages = make_messages(SEARCH_WORDS, {"The question": deps.redact(question)}, deps)
    try:
        form = await deps.models.small.generate_structured(messages, SearchOutput, task="search_words")
    except ModelError as error:
        log.warning("the question is searched for in its own language: %s", error)
        return ""
    return _clean_line(form.query, _MAX_QUERY)


def _add_messages(asked: RouterDecision, chosen: RouterDecision | None) -> RouterDecision:
    """Look up the messages quoted in the question, which a model cannot find by searching for words."""
    if chosen is None or asked["route"] != "retrieve":
        return asked
    quoted = [request for request in chosen["requests"] if request["lookup"] == "message"]
    return {**asked, "requests": [*quoted, *asked["requests"]]}


def _list_searched(state: AgentState) -> list[str]:
    return state.get("retrieval_metadata", make_empty_metadata())["searched"]


def _is_fresh(state: AgentState) -> bool:
    """Whether nothing was searched for and no tool called yet."""
    return not (_list_searched(state) or state.get("tool_history"))


async def _ask_model(state: AgentState, deps: Deps, tree: str) -> RouterDecision | None:
    """Let the model decide; None if there is none, it fails, or its decision is invalid."""
    if deps.models.small is None:
        return None
    # Tools that need approval are listed first: choosing one asks the person.
    tools = deps.tools.menu(deps, asking=True)
    menu = [f"- {tool['name']}: {tool['description']} {str(tool['parameters'])[:_MAX_SCHEMA]}" for tool in tools]
    found = [f"{format_place(ref)} {ref['symbol'][:120]}" for ref in state.get("retrieved", [])[:MAX_PLACES]]
    material = {
        "The repository": tree,
        "The question": format_question(state, deps),
        "What was searched for so far": "\n".join(_list_searched(state)),
        "What was found so far": mark_text("\n".join(to_one_line(place, longest=330) for place in found)),
        "What tools said": await format_tool_results(state, deps),
        "A query that may find more": state.get("better_query", ""),
    }
    messages = make_messages(
        "\n".join([ROUTER, "", "The tools:" if menu else "There are no tools.", *menu]), material, deps
    )
    try:
        form = await deps.models.small.generate_structured(messages, RouterOutput, task="router")
        check_leaks([form.clarification, form.reasoning], messages, deps.masked)
    except ModelError as error:
        log.warning("the route was chosen without the model: %s", error)
        return None
    return _make_decision(form, state, {str(tool["name"]) for tool in tools}, can_ask=deps.can_ask)


def _make_decision(form: RouterOutput, state: AgentState, tools: set[str], *, can_ask: bool) -> RouterDecision | None:
    """Turn the model's form into a valid decision as far as possible."""
    requests = _make_requests(form.requests, state)
    calls = [call for call in map(_parse_call, form.calls[:MAX_CALLS]) if call is not None and call["tool"] in tools]
    possible = {
        "retrieve": bool(requests),
        "use_tool": bool(calls),
        "investigate": not state.get("findings"),
        "generate": not _is_fresh(state),
        "clarify": can_ask and bool(form.clarification.strip()) and not state.get("clarified"),
    }
    if not possible[form.route]:
        return None
    made = decide_retrieval(
        requests if form.route == "retrieve" else [],
        fast_path=False,
        reasoning=_clean_line(form.reasoning, _MAX_SENTENCE),
    )
    return {
        **made,
        "route": form.route,
        "calls": calls if form.route == "use_tool" else [],
        "clarification": _clean_line(form.clarification, _MAX_SENTENCE) if form.route == "clarify" else "",
    }


def _make_requests(forms: Sequence[SearchOutput], state: AgentState) -> list[RetrievalRequest]:
    """Return the useful searches: not empty, and new."""
    done = set(_list_searched(state))
    requests: dict[str, RetrievalRequest] = {}
    for form in forms[:MAX_REQUESTS]:
        query = _clean_line(form.query, _MAX_QUERY)
        if not query or query in done:
            continue
        request = request_search(
            query,
            patterns=_clean_filters(form.patterns),
            source_types=list(dict.fromkeys(form.source_types))[:MAX_FILTERS],
            reasoning=_clean_line(form.reasoning, _MAX_SENTENCE),
        )
        requests.setdefault(query, {**request, "folders": [one.strip("/") for one in _clean_filters(form.folders)]})
    return list(requests.values())


def _clean_filters(values: Sequence[str]) -> list[str]:
    return [value for value in (_clean_line(value, 200) for value in values[:MAX_FILTERS]) if value.strip("/")]


def _parse_call(form: CallOutput) -> ToolRequest | None:
    if len(form.arguments) > _MAX_ARGUMENTS:
        return None
    try:
        args = json.loads(form.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return {"tool": form.tool, "args": args} if isinstance(args, dict) and is_storable(args, depth=2) else None


def _decide_without_model(state: AgentState) -> RouterDecision:
    """Search once more with a better query if there is one, else write with the evidence so far."""
    better = _clean_line(state.get("better_query", ""), _MAX_QUERY)
    if better and better not in _list_searched(state):
        return decide_retrieval(
            [request_search(better, reasoning="a better query")], fast_path=False, reasoning="a better query"
        )
    return {**decide_retrieval([], fast_path=False, reasoning="nothing is left to look for"), "route": "generate"}


def _clean_line(text: str, longest: int) -> str:
    """Put a model's text on one storable line."""
    line = " ".join(text[: longest * 4].split())[:longest]
    return make_storable(line)


async def tool_executor(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Call the tools in parallel through the registry; the lines that they read become evidence.

    Reads router_output, approved, retrieved, tool_history, retrieval_metadata, flagged. Writes
    retrieved, tool_history, retrieval_metadata, flagged.
    """
    deps = runtime.context
    decision = state.get("router_output")
    wanted = [(call["tool"], call["args"]) for call in decision["calls"]] if decision is not None else []
    names = [name[:40] for name in dict.fromkeys(name for name, _ in wanted)][:4]
    deps.emit("step_start", node="tool_executor", stage=f"Using {', '.join(names) or 'no tool'}")
    called = await ToolCalls(deps, state.get("approved", [])).run(wanted)
    return {
        "retrieved": merge_refs(state.get("retrieved", []), called),
        "tool_history": append_tool_records(state.get("tool_history", []), called),
        "retrieval_metadata": _add_call_results(state.get("retrieval_metadata", make_empty_metadata()), called),
        "flagged": add_flags(state.get("flagged", []), called, deps),
    }


def _add_call_results(metadata: RetrievalMetadata, called: list[ToolCallResult]) -> RetrievalMetadata:
    """Note searches and failures."""
    queries = [str(one.args.get("query") or one.args.get("pattern") or "")[:200] for one in called if one.outcome.ok]
    failures = [one.outcome.text for one in called if not one.outcome.ok]
    return {
        **metadata,
        "searched": list(dict.fromkeys([*metadata["searched"], *filter(None, queries)])),
        "failures": list(dict.fromkeys([*metadata["failures"], *failures])),
    }
