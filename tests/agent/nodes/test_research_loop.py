"""The research loop node by node: plain state in, changes out, and what happens when a model misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from agent.answering.rounds import LONGEST_ANSWER
from agent.errors import BudgetExceeded, ModelUnavailable
from agent.graph import (
    route_after_executor,
    route_after_planner,
    route_after_refinery,
)
from agent.limits import MAX_PLAN, TurnLimits
from agent.nodes.research import aggregate, planner, refinery, setup_executor
from agent.nodes.tool_loop import executor_llm, tool_node
from agent.ports import Deps, TurnModels
from agent.prompts.research_prompts import GONE, MAX_CONTEXT, NOTHING_LEFT, insert_results
from agent.state import AgentState, Finding
from agent.tools.registry import MAX_CALLS, make_tool_registry
from tests.agent.conftest import SECRET, Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.scripted_model import ScriptedModel
from tests.fakes.shop import SHOP

LIMITS = TurnLimits()
QUESTION = "How does an order get paid, and what happens when the bank is busy?"


def runtime_with(model: ScriptedModel | None = None, **changes: Any) -> Runtime[Deps]:
    deps = Deps(
        code=FakeCode(SHOP),
        redact=redact,
        emit=Told(),
        tools=make_tool_registry(),
        models=TurnModels(main=model, small=model),
    )
    return Runtime(context=replace(deps, **changes))


def finding(*, found: bool = True, summary: str = "seen") -> Finding:
    return {"summary": summary, "keys": [], "found": found}


def messages_after(before: Sequence[BaseMessage], changes: AgentState) -> list[BaseMessage]:
    """What the graph makes of a change of the messages."""
    return list(add_messages(list(before), list(changes["messages"])))  # type: ignore[arg-type]


# planner


async def test_the_plan_is_what_the_model_lists() -> None:
    model = ScriptedModel({"planner": [{"steps": ["Find  pay", "", "Read send", "find pay\n", "Find pay"]}]})
    changes = await planner({"cleaned_query": QUESTION, "iteration_count": 2}, runtime_with(model))

    assert changes == {
        "plan": ["Find pay", "Read send", "find pay"],
        "current_step": 0,
        "plan_applies": True,
        "dependent": [],
        "proposal": None,
        "loop_decision": "CONTINUE",
        "iteration_count": 3,
        "pause_reason": "",
    }


@pytest.mark.parametrize(
    "line",
    [
        {"steps": []},
        {"steps": [1, None]},
        "no json",
        ModelUnavailable("x"),
        {"steps": ["  "]},
    ],
)
async def test_a_bad_plan_becomes_one_search(line: object) -> None:
    changes = await planner({"cleaned_query": QUESTION}, runtime_with(ScriptedModel({"planner": [line]})))

    assert changes["plan"] == [f"Search for code about: {QUESTION}"]


async def test_a_second_plan_leaves_out_what_was_done() -> None:
    model = ScriptedModel({"planner": [{"steps": ["Find pay", "Read send"]}]})
    state: AgentState = {"cleaned_query": QUESTION, "findings": {"step_1: Find pay": finding()}}

    assert (await planner(state, runtime_with(model)))["plan"] == ["Read send"]


async def test_a_plan_is_short_and_its_steps_are_too() -> None:
    model = ScriptedModel({"planner": [{"steps": [f"{n} " + "x" * 5000 for n in range(100)]}]})
    plan = (await planner({"cleaned_query": QUESTION}, runtime_with(model)))["plan"]

    assert len(plan) == MAX_PLAN
    assert max(map(len, plan)) <= 300


@pytest.mark.parametrize(
    ("steps", "web", "has_engine", "reason"),
    [(2, False, False, ""), (6, False, False, "plan"), (2, True, True, "web_search"), (2, True, False, "")],
)
async def test_what_costs_much_or_leaves_the_house_waits_for_a_person(
    steps: int, web: bool, has_engine: bool, reason: str
) -> None:
    plan = {"steps": [f"Step {n}" for n in range(steps)], "tools": ["web_search"] if web else []}
    model = ScriptedModel({"planner": [plan]})
    runtime = runtime_with(model, web=object() if has_engine else None)
    changes = await planner({"cleaned_query": QUESTION}, runtime)

    assert changes["pause_reason"] == reason
    assert route_after_planner(changes) == ("human_check" if reason else "setup_executor")


# setup_executor


async def test_a_step_begins_with_a_clean_table() -> None:
    old: list[BaseMessage] = [HumanMessage("old", id="1")]
    state: AgentState = {
        "plan": ["Find pay", "Read send"],
        "current_step": 1,
        "cleaned_query": QUESTION,
        "findings": {"step_1: Find pay": finding(summary=f"Order.pay sends {SECRET}")},
        "messages": old,
    }
    changes = await setup_executor(state, runtime_with())
    system, human = messages_after(old, changes)

    assert isinstance(system, SystemMessage)
    assert all(part in human.text for part in ("Read send", QUESTION, "Order.pay sends [REDACTED:password]"))
    assert changes["executor_call_count"] == 0


async def test_an_empty_plan_is_survived() -> None:
    changes = await setup_executor({"plan": [], "current_step": 0}, runtime_with())

    assert NOTHING_LEFT in messages_after([], changes)[1].text


async def test_a_step_is_told_which_places_the_evidence_ids_in_it_mean() -> None:
    state: AgentState = {
        "plan": ["Find what calls the method in [E7]"],
        "cleaned_query": QUESTION,
        "findings": {"step_1: Find send": finding(summary="`send` is retried [E2:3-4], see E9.")},
        "shown": [
            {"mark": 2, "path": "shop/payments.py", "start_line": 3, "end_line": 9},
            {"mark": 3, "path": "shop/other.py", "start_line": 1, "end_line": 2},
            {"mark": 7, "path": "shop/orders.py", "start_line": 12, "end_line": 20},
        ],
    }
    human = messages_after([], await setup_executor(state, runtime_with()))[1].text

    assert "[E2] shop/payments.py lines 3-9\n[E7] shop/orders.py lines 12-20" in human
    assert "shop/other.py" not in human


async def test_a_step_of_a_follow_up_is_told_what_was_said_before() -> None:
    turn = {"question": "how are orders paid?", "answer": "By `Order.pay` [1].", "citations": []}
    state: AgentState = {
        "plan": ["Find the default"],
        "cleaned_query": "why?",
        "mode": "tools",
        "loop_decision": "CONTINUE",
        "is_follow_up": True,
        "conversation_history": [turn],  # type: ignore[list-item]
    }
    runtime = runtime_with(ScriptedModel({"planner": [{"steps": ["x"]}], "refinery": [FINISH]}))
    step = messages_after([], await setup_executor(state, runtime))[1].text
    model = runtime.context.models.main
    assert isinstance(model, ScriptedModel)
    await planner(state, runtime)
    await refinery({**state, "findings": {"step_1: x": finding(found=False)}}, runtime)
    told = [step, *(str(messages[1].text) for _, messages, _ in model.asked)]

    assert len(told) == 3
    assert all("Question: how are orders paid?\nAnswer: By `Order.pay`" in each for each in told)


async def test_a_call_of_another_step_is_made_again_for_one_that_has_not_seen_it() -> None:
    def act(messages: Sequence[BaseMessage]) -> object:
        is_slow = "Read send" in str(messages[1].text).partition("The step")[2]
        rounds = sum(message.type == "ai" for message in messages)
        return [[("grep", {"pattern": "send" if is_slow and not rounds else "pay"})], "Found."][rounds > is_slow]

    model = ScriptedModel({"executor_llm": [act]})
    state: AgentState = {"plan": ["Find pay", "Read send"], "current_step": 0, "cleaned_query": QUESTION}
    await take_step(state, runtime_with(model))
    last = "\n".join(str(message.text) for message in model.asked[-1][1])

    assert "This call was made before" not in last
    assert "def pay" in last


async def test_a_call_whose_result_had_to_make_room_is_answered_again() -> None:
    runtime = runtime_with()
    calls = [{"name": "grep", "args": {"pattern": "pay"}, "id": "a", "type": "tool_call"}]
    first = await tool_node({"messages": [AIMessage("", tool_calls=calls)]}, runtime)
    await runtime.context.evidence.keep("long", "x" * MAX_CONTEXT)
    state: AgentState = {
        "messages": [
            *first["messages"],
            ToolMessage("", tool_call_id="l", additional_kwargs={"evidence": "long"}),
            AIMessage("", tool_calls=[*calls, {**calls[0], "id": "b"}]),
        ],
        "tool_history": first["tool_history"],
    }
    changes = await tool_node(state, runtime)
    keys = [message.additional_kwargs["evidence"] for message in changes["messages"]]
    texts = await runtime.context.evidence.texts(keys)

    assert "def pay" in texts[keys[0]]
    assert "This call was made before" in texts[keys[1]]


# executor_llm and tool_node


async def step(model: ScriptedModel, runtime: Runtime[Deps] | None = None) -> tuple[AgentState, Runtime[Deps]]:
    """Take one step of a plan through the inner loop, as the graph would."""
    runtime = runtime or runtime_with(model)
    return await take_step({"plan": ["Find pay"], "current_step": 0, "cleaned_query": QUESTION}, runtime), runtime


async def take_step(state: AgentState, runtime: Runtime[Deps]) -> AgentState:
    """Take the steps that are due."""
    state = {**state, "messages": []}
    node = setup_executor
    while True:
        changes = await node(state, runtime)
        messages = messages_after(state["messages"], changes)
        state = {**state, **changes, "messages": messages}
        if node is executor_llm and route_after_executor(state) == "aggregate":
            return state
        node = tool_node if node is executor_llm else executor_llm


async def test_the_model_calls_tools_and_sums_up() -> None:
    model = ScriptedModel({"executor_llm": [[("find_symbol", {"name": "Order.pay"})], "It is in orders.py."]})
    state, runtime = await step(model)
    last = model.asked[-1][1]
    changes = await aggregate(state, runtime)

    assert "def pay" in last[-1].text
    assert "def pay" not in str(state["messages"])
    assert [(ref["path"], ref["symbol"]) for ref in state["retrieved"]] == [("shop/orders.py", "Order.pay")]
    assert changes["findings"] == {
        "step_1: Find pay": {
            "summary": "It is in orders.py.", "keys": [state["tool_history"][0]["key"]], "found": True,
        },
    }  # fmt: skip
    assert (changes["current_step"], messages_after(state["messages"], changes)) == (1, [])


async def test_a_model_that_never_stops_is_given_no_tools_in_the_end() -> None:
    model = ScriptedModel({"executor_llm": [lambda _: [("grep", {"pattern": "pay"})]]})
    state, _ = await step(model)

    assert len(model.asked) == LIMITS.executor_steps
    assert [bool(tools) for _, _, tools in model.asked] == [True] * (LIMITS.executor_steps - 1) + [False]
    assert state["executor_call_count"] == LIMITS.executor_steps


async def test_every_call_is_answered_whatever_is_wrong_with_it() -> None:
    reply = AIMessage(
        "",
        tool_calls=[
            {"name": "nothing", "args": {}, "id": "a", "type": "tool_call"},
            {"name": "read_file", "args": {"file_path": 7}, "id": "b", "type": "tool_call"},
            {"name": "grep", "args": {"pattern": "pay"}, "id": None, "type": "tool_call"},
        ],
        invalid_tool_calls=[{"name": "grep", "args": "{", "id": "c", "error": "x", "type": "invalid_tool_call"}],
    )
    changes = await tool_node({"messages": [reply]}, runtime_with())
    answers = [message for message in changes["messages"] if isinstance(message, ToolMessage)]

    assert [(one.tool_call_id, one.status) for one in answers] == [
        ("a", "error"),
        ("b", "error"),
        ("", "success"),
        ("c", "error"),
    ]


async def test_too_many_calls_at_once_are_refused() -> None:
    calls = [{"name": "grep", "args": {"pattern": f"p{n}"}, "id": f"{n}", "type": "tool_call"} for n in range(30)]
    changes = await tool_node({"messages": [AIMessage("", tool_calls=calls)]}, runtime_with())

    assert [record["ok"] for record in changes["tool_history"]] == [True] * MAX_CALLS + [False] * (30 - MAX_CALLS)
    assert len(changes["messages"]) == 30


async def test_a_step_goes_on_without_a_model_that_fails() -> None:
    model = ScriptedModel({})
    state, runtime = await step(model)
    changes = await aggregate(state, runtime)
    (found,) = changes["findings"].values()

    assert len(model.asked) == 1
    assert [record["tool"] for record in state["tool_history"]] == ["search_codebase"]
    assert found["found"]
    assert "[E1] shop/" in found["summary"]
    assert "def pay" not in found["summary"]  # the lines are shown by their ids


async def test_what_a_model_found_before_it_failed_is_kept() -> None:
    model = ScriptedModel({"executor_llm": [[("find_symbol", {"name": "Order.pay"})], ModelUnavailable("x")]})
    state, runtime = await step(model)
    (found,) = (await aggregate(state, runtime))["findings"].values()

    assert len(model.asked) == 2
    assert "[E1] shop/orders.py" in found["summary"]


async def test_an_endless_reply_is_cut() -> None:
    text = await executor_llm({"messages": []}, runtime_with(ScriptedModel({"executor_llm": ["x" * 1_000_000]})))
    flood = [("grep", {"pattern": "x" * 1_000_000})]
    calls = await executor_llm({"messages": []}, runtime_with(ScriptedModel({"executor_llm": [flood]})))

    assert len(text["messages"][0].text) == LONGEST_ANSWER
    assert calls["messages"][0].text == ""
    assert route_after_executor(calls) == "aggregate"


def test_old_results_make_room_for_new_ones() -> None:
    results = [ToolMessage("", tool_call_id=str(n), additional_kwargs={"evidence": f"k{n}"}) for n in range(4)]
    told = insert_results(
        results, {f"k{n}": str(n) * (MAX_CONTEXT // 2 - 100) for n in range(3)}, runtime_with().context
    )

    assert [GONE in message.text for message in told] == [True, False, False, True]


async def test_a_step_that_found_nothing_says_so() -> None:
    state, runtime = await step(ScriptedModel({"executor_llm": [""]}))

    assert (await aggregate(state, runtime))["findings"] == {
        "step_1: Find pay": {"summary": "Nothing was found.", "keys": [], "found": False}
    }


# refinery


def researched(*, done: int, of: int, found: bool = True, iteration: int = 1) -> AgentState:
    return {
        "cleaned_query": QUESTION,
        "plan": [f"Step {n}" for n in range(of)],
        "current_step": done,
        "findings": {f"step_{n}: x": finding(found=found) for n in range(1, done + 1)},
        "iteration_count": iteration,
        "plan_applies": True,
    }


CONTINUE = {"decision": "CONTINUE", "reason": "more", "plan_still_applies": True}
REPLAN = {"decision": "CONTINUE", "reason": "other", "plan_still_applies": False}
FINISH = {"decision": "FINISH", "reason": "done"}


@pytest.mark.parametrize(
    ("state", "line", "calls", "target", "iteration"),
    [
        (researched(done=1, of=3), FINISH, 0, "setup_executor", 2),
        (researched(done=1, of=3, found=False), CONTINUE, 1, "setup_executor", 2),
        (researched(done=1, of=3, found=False), REPLAN, 1, "planner", 1),
        (researched(done=1, of=3, found=False), FINISH, 1, "synthesis", 1),
        (researched(done=3, of=3), CONTINUE, 1, "planner", 1),
        (researched(done=3, of=3), FINISH, 1, "synthesis", 1),
        (researched(done=1, of=3, iteration=LIMITS.iterations), CONTINUE, 0, "synthesis", LIMITS.iterations),
        (researched(done=1, of=3, found=False), ModelUnavailable("x"), 1, "setup_executor", 2),
        (researched(done=3, of=3), ModelUnavailable("x"), 1, "synthesis", 1),
        (researched(done=1, of=3, found=False), BudgetExceeded("x"), 1, "synthesis", 1),
        (researched(done=3, of=3), {"decision": "MAYBE"}, 1, "synthesis", 1),
        (researched(done=0, of=0), "nonsense", 1, "synthesis", 1),
    ],
)
async def test_the_loop_goes_on_while_there_is_something_to_gain(
    state: AgentState, line: object, calls: int, target: str, iteration: int
) -> None:
    model = ScriptedModel({"refinery": [line]})
    changes = await refinery(state, runtime_with(model))

    assert len(model.asked) == calls
    assert route_after_refinery({**state, **changes}) == target
    assert changes["iteration_count"] == iteration


@pytest.mark.parametrize(
    ("found", "dependent", "calls"),
    [
        ([False, True], [2], 1),  # both were taken side by side, and one brought nothing
        ([True, True], [2], 0),
        ([False, True], [1, 2], 0),  # the first was judged before the second was taken
    ],
)
async def test_each_of_the_steps_taken_side_by_side_is_judged(
    found: list[bool], dependent: list[int], calls: int
) -> None:
    model = ScriptedModel({"refinery": [CONTINUE]})
    state = researched(done=2, of=3)
    findings = {f"step_{n}: x": finding(found=one) for n, one in enumerate(found, 1)}
    await refinery({**state, "findings": findings, "dependent": dependent}, runtime_with(model))

    assert len(model.asked) == calls


async def test_without_a_model_the_plan_is_followed() -> None:
    on = await refinery(researched(done=1, of=2, found=False), runtime_with())
    over = await refinery(researched(done=2, of=2, found=False), runtime_with())

    assert (on["loop_decision"], over["loop_decision"]) == ("CONTINUE", "FINISH")


# routing


# Whatever a model writes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.just("x" * 1_000_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
PLANS = st.fixed_dictionaries({"steps": JSON}, optional={"tools": JSON}) | JSON
VERDICTS = st.fixed_dictionaries({"decision": st.sampled_from(["CONTINUE", "FINISH"]) | JSON, "reason": JSON}) | JSON


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(PLANS, VERDICTS)
@pytest.mark.exhaustive
def test_no_form_that_a_model_fills_in_raises(plan: object, verdict: object) -> None:
    model = ScriptedModel({"planner": [plan], "refinery": [verdict]})
    planned = asyncio.run(planner({"cleaned_query": QUESTION}, runtime_with(model)))
    judged = asyncio.run(refinery(researched(done=1, of=1), runtime_with(model)))

    assert 1 <= len(planned["plan"]) <= MAX_PLAN
    assert judged["loop_decision"] in {"CONTINUE", "FINISH"}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["grep", "read_file", "search_codebase", "nothing", ""]),
            st.dictionaries(st.sampled_from(["pattern", "file_path", "query", "start"]), JSON, max_size=3),
        ),
        max_size=4,
    )
    | JSON.map(str)
)
@pytest.mark.exhaustive
def test_no_reply_of_a_model_breaks_a_step(line: object) -> None:
    model = ScriptedModel({"executor_llm": [line, "Done."]})
    state, runtime = asyncio.run(step(model))
    (found,) = asyncio.run(aggregate(state, runtime))["findings"].values()

    assert len(found["summary"]) <= 4000
