"""Routing, grading and reading follow-ups with a model, and without one that works."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.runtime import Runtime
from pydantic import SecretStr

from agent.agent import Agent
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import decide_retrieval, request_search
from agent.limits import Budget
from agent.llm.models import ChatModels, RetryPolicy, open_models
from agent.nodes.grade_documents import grade_documents
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.router import router
from agent.nodes.synthesis import synthesis
from agent.persistence.checkpointer import SqliteConversations
from agent.ports import Deps
from agent.state import AgentState, make_empty_metadata
from agent.tools.registry import make_tool_registry
from indexer.types import Location
from tests.agent.conftest import Told, answer_to, by_forms, redact
from tests.agent.questions.test_questions import turn
from tests.fakes.code import FakeCode, FakeLibrary
from tests.fakes.gemini import Failure, FakeGemini, Received, Reply, fills, says
from tests.fakes.shop import SHOP

PATIENT = RetryPolicy(backoff=0.001)
PLAIN = "where do customers get their parcels?"
HITS = [
    make_lines_ref(Location(path="shop/dates.py", start_line=1, end_line=13), "hit"),
    make_lines_ref(Location(path="shop/orders.py", start_line=1, end_line=30), "hit"),
]


@pytest.fixture
async def models(gemini: FakeGemini) -> AsyncIterator[ChatModels]:
    async with open_models(google_api_key=SecretStr("k"), google_base_url=gemini.url, retry=PATIENT) as opened:
        yield by_forms(opened)


def runtime(models: ChatModels) -> Runtime[Deps]:
    budget, told = Budget(), Told()
    deps = Deps(
        code=FakeCode(SHOP),
        redact=redact,
        emit=told,
        budget=budget,
        models=models.make_turn_models(budget, told),
        tools=make_tool_registry(),
    )
    return Runtime(context=deps)


async def test_a_question_that_names_its_target_asks_no_model(gemini: FakeGemini, models: ChatModels) -> None:
    for question in ("who calls parse_date?", "shop/payments.py:20", "where is no_such_name?", "what is 0xDEADBEEF?"):
        await router({"cleaned_query": question}, runtime(models))

    assert gemini.received == []


async def test_a_quoted_message_is_looked_for_whatever_the_model_searches(
    gemini: FakeGemini, models: ChatModels
) -> None:
    gemini.replies.append(fills({"route": "retrieve", "requests": [{"query": "bank errors"}]}))

    changes = await router({"cleaned_query": 'why "The bank said no to 17 orders"?'}, runtime(models))

    chosen = changes["router_output"]
    assert chosen is not None
    assert [(one["lookup"], one["query"]) for one in chosen["requests"]] == [
        ("message", "The bank said no to 17 orders"),
        ("search", "bank errors"),
    ]


async def test_the_model_chooses_searches_with_filters(gemini: FakeGemini, models: ChatModels) -> None:
    wanted = {"query": "ship parcel", "source_types": ["code"], "folders": ["/shop/"], "patterns": ["*.py"]}
    gemini.replies.append(fills({"route": "retrieve", "requests": [wanted, {"query": " "}], "reasoning": "names"}))

    changes = await router({"cleaned_query": PLAIN}, runtime(models))

    chosen = changes["router_output"]
    assert chosen is not None
    assert (chosen["route"], chosen["fast_path"], changes["iteration_count"]) == ("retrieve", False, 1)
    (request,) = chosen["requests"]
    assert (request["query"], request["source_types"], request["folders"], request["patterns"]) == (
        "ship parcel",
        ["code"],
        ["shop"],
        ["*.py"],
    )
    prompt = gemini.received[0].prompt
    assert "- grep: " in prompt
    assert "The repository:\n<data-" in prompt
    assert "web_search" not in prompt


@pytest.mark.parametrize(
    ("form", "route"),
    [
        ({"route": "investigate"}, "investigate"),
        ({"route": "clarify", "clarification": "Which parcels?"}, "clarify"),
        ({"route": "use_tool", "calls": [{"tool": "grep", "arguments": '{"pattern": "parcel"}'}]}, "use_tool"),
        ({"route": "generate"}, "retrieve"),  # nothing was looked at yet
        ({"route": "clarify"}, "retrieve"),  # asks nothing
        ({"route": "retrieve"}, "retrieve"),
        ({"route": "use_tool", "calls": [{"tool": "rm", "arguments": "{}"}]}, "retrieve"),
        ({"route": "use_tool", "calls": [{"tool": "grep", "arguments": "[1]"}]}, "retrieve"),
        ({"route": "use_tool", "calls": [{"tool": "web_search", "arguments": '{"query": "x"}'}]}, "retrieve"),
        ({"route": "nonsense"}, "retrieve"),
    ],
)
async def test_a_choice_that_leads_nowhere_becomes_one_broad_search(
    gemini: FakeGemini, models: ChatModels, form: dict[str, Any], route: str
) -> None:
    gemini.script = lambda _: fills(form)

    chosen = (await router({"cleaned_query": PLAIN}, runtime(models)))["router_output"]

    assert chosen is not None
    assert chosen["route"] == route
    assert [one["query"] for one in chosen["requests"]] == ([PLAIN] if route == "retrieve" else [])


async def test_after_a_round_the_model_sees_what_was_found(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies.append(fills({"route": "generate"}))
    state: AgentState = {
        "cleaned_query": PLAIN,
        "iteration_count": 1,
        "retrieved": HITS,
        "retrieval_metadata": {**make_empty_metadata(), "searched": [PLAIN]},
        "better_query": "ship label",
    }
    chosen = (await router(state, runtime(models)))["router_output"]

    assert chosen is not None
    assert chosen["route"] == "generate"
    prompt = gemini.received[0].prompt
    assert "shop/dates.py:L1-L13" in prompt
    assert "ship label" in prompt


async def test_a_better_query_is_searched_when_the_model_fails(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.script = lambda _: Failure(status=503)
    state: AgentState = {
        "cleaned_query": PLAIN,
        "retrieval_metadata": {**make_empty_metadata(), "searched": [PLAIN]},
        "better_query": "ship label",
    }
    first = (await router(state, runtime(models)))["router_output"]
    state["retrieval_metadata"]["searched"].append("ship label")
    second = (await router(state, runtime(models)))["router_output"]

    assert first is not None
    assert [one["query"] for one in first["requests"]] == ["ship label"]
    assert second is not None
    assert second["route"] == "generate"


def graded(**more: Any) -> AgentState:
    made: AgentState = {
        "cleaned_query": PLAIN,
        "retrieved": HITS,
        "retrieval_metadata": {**make_empty_metadata(), "searched": [PLAIN]},
        "router_output": decide_retrieval([request_search(PLAIN, reasoning="")], fast_path=False, reasoning=""),
        "iteration_count": 1,
    }
    return {**made, **more}  # type: ignore[typeddict-item]


async def test_hits_that_say_it_all_ask_no_model(gemini: FakeGemini, models: ChatModels) -> None:
    changes = await grade_documents(graded(cleaned_query="order dates"), runtime(models))

    assert (changes["grade"], gemini.received) == ("enough", [])


async def test_the_hits_that_matter_to_the_model_come_first(gemini: FakeGemini, models: ChatModels) -> None:
    gemini.replies.append(fills({"verdict": "enough", "relevant": [2, 99, -1]}))

    changes = await grade_documents(graded(), runtime(models))

    assert [ref["path"] for ref in changes["retrieved"]] == ["shop/orders.py", "shop/dates.py"]
    assert changes["retrieved"][1]["score"] == 0
    assert (changes["grade"], changes["retrieval_metadata"]["weak"]) == ("enough", False)


@pytest.mark.parametrize(
    ("form", "count", "outcome"),
    [
        ({"verdict": "rewrite", "better_query": " ship\n label "}, 1, ("rewrite", "ship label")),
        ({"verdict": "rewrite", "better_query": "ship label"}, 3, ("give_up", "")),  # searched often enough
        ({"verdict": "rewrite", "better_query": PLAIN}, 1, ("give_up", "")),  # searched before
        ({"verdict": "rewrite"}, 1, ("give_up", "")),
        ({"verdict": "give_up"}, 1, ("give_up", "")),
        ({"verdict": "maybe"}, 1, ("enough", "")),  # unreadable: the words decide
    ],
)
async def test_a_rewrite_needs_a_new_query_and_a_round(
    gemini: FakeGemini, models: ChatModels, form: dict[str, Any], count: int, outcome: tuple[str, str]
) -> None:
    gemini.script = lambda _: fills(form)

    changes = await grade_documents(graded(iteration_count=count), runtime(models))

    assert (changes["grade"], changes["better_query"]) == outcome


@pytest.mark.parametrize(
    ("form", "intent", "cleaned"),
    [
        ({"intent": "follow_up"}, "follow_up", "more details please"),
        (
            {"intent": "follow_up_with_retrieval", "standalone": "How does `parse_date` fail?"},
            "follow_up_with_retrieval",
            "How does `parse_date` fail?",
        ),
        ({"intent": "follow_up_with_retrieval"}, "new_question", "more details please"),
        ({"intent": "out_of_scope"}, "out_of_scope", "more details please"),
        ({"intent": "order_pizza"}, "new_question", "more details please"),
    ],
)
async def test_the_model_reads_what_the_patterns_cannot(
    gemini: FakeGemini, models: ChatModels, form: dict[str, Any], intent: str, cleaned: str
) -> None:
    gemini.script = lambda _: fills(form)
    state: AgentState = {"user_query": "more details please", "conversation_history": [turn(symbol="parse_date")]}

    changes = await input_preprocessor(state, runtime(models))

    assert (changes["intent"], changes["cleaned_query"]) == (intent, cleaned)
    assert changes["needs_retrieval"] == (intent in {"new_question", "follow_up_with_retrieval"})


@pytest.mark.parametrize("question", ["and who calls it?", "where is format_date?", "say that again", "thanks!"])
async def test_sure_patterns_ask_no_model(gemini: FakeGemini, models: ChatModels, question: str) -> None:
    await input_preprocessor(
        {"user_query": question, "conversation_history": [turn(symbol="parse_date")]}, runtime(models)
    )
    await input_preprocessor({"user_query": "more details please"}, runtime(models))

    assert gemini.received == []


async def test_a_lookup_makes_one_call(gemini: FakeGemini, models: ChatModels, saver: SqliteConversations) -> None:
    gemini.script = lambda _: says("`parse_date` is here [E1].")
    agent = Agent(FakeLibrary(FakeCode(SHOP)), saver, redact, models=models)

    answer = await answer_to(agent, "where is parse_date defined?")
    again = await answer_to(agent, "and who calls it?")

    assert (answer.text, answer.route) == ("`parse_date` is here [1].", "fast_path")
    assert answer.model == "google_genai:gemini-flash-latest"
    assert again.citations
    assert len(gemini.received) == 2


async def test_a_rewritten_query_finds_what_the_first_did_not(
    gemini: FakeGemini, models: ChatModels, saver: SqliteConversations
) -> None:
    def script(request: Received) -> Reply:
        if "You decide how" in request.prompt:
            first = "A query that may find more" not in request.prompt
            return fills({"route": "retrieve", "requests": [{"query": "overview" if first else "retry delays"}]})
        if "You judge which" in request.prompt:
            found = "growing delays" in request.prompt.partition("The results")[2]
            return fills({"verdict": "enough"} if found else {"verdict": "rewrite", "better_query": "retry delays"})
        return says("`send` retries with growing pauses [E1].")

    gemini.script = script
    code = FakeCode({path: text for path, text in SHOP.items() if path != "README.md"})
    agent = Agent(FakeLibrary(code), saver, redact, models=models)

    answer = await answer_to(agent, "what is done against congestion at peak hours?")

    assert "retry delays" in answer.searched
    assert answer.text.startswith("`send` retries with growing pauses")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    ["route", "requests", "calls", "clarification", "verdict", "relevant", "better_query", "intent", "standalone"]
)
VALUES = (
    JUNK
    | st.just("x" * 1_000_000)
    | st.sampled_from(
        ["retrieve", "use_tool", "clarify", "rewrite", "enough", "follow_up_with_retrieval", [{"query": "\ud800"}]]
    )
)
FORMS = st.dictionaries(FIELDS, VALUES, max_size=5).map(json.dumps)
OUTPUT = st.one_of(FORMS, JUNK.map(json.dumps), st.text(max_size=50), st.just("```json\n{}\n```"), st.just("{" * 5000))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(output=OUTPUT)
@pytest.mark.exhaustive
async def test_whatever_a_model_writes_every_node_goes_on(gemini: FakeGemini, models: ChatModels, output: str) -> None:
    gemini.script = lambda _: Reply(parts=({"text": output},))
    context = runtime(models)
    began: AgentState = {"user_query": "more details please", "conversation_history": [turn(symbol="parse_date")]}
    read = await input_preprocessor(began, context)
    assert read["cleaned_query"]
    chosen = (await router({"cleaned_query": PLAIN}, context))["router_output"]
    assert chosen is not None
    assert chosen["requests"] or chosen["calls"] or chosen["route"] in {"investigate", "clarify"}
    assert all(0 < len(one["query"]) <= 300 for one in chosen["requests"])
    judged = await grade_documents(graded(), context)
    assert judged["retrieved"]
    written = await synthesis(graded(), context)
    assert written["final_answer"].strip()
    assert len(written["final_answer"]) < 20_000
    json.dumps([read, chosen, judged["better_query"]]).encode()
