"""Each node on its own: plain state in, changes out."""

from __future__ import annotations

import pytest
from langgraph.runtime import Runtime

from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import decide_retrieval, request_lookup, request_search
from agent.evidence.rule_router import route_by_rules
from agent.nodes.conversation_memory import MAX_TURNS, conversation_memory
from agent.nodes.grade_documents import grade_documents
from agent.nodes.input_preprocessor import input_preprocessor
from agent.nodes.retrieval import retrieval
from agent.nodes.security_gateway import security_gateway
from agent.nodes.synthesis import synthesis
from agent.ports import Deps
from agent.state import AgentState, EvidenceRef, Intent, reset_turn
from indexer.types import FileEntry, Filters, Location
from tests.agent.conftest import SECRET, Told, redact
from tests.agent.questions.test_questions import turn
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP


def hit(path: str, start: int, end: int, score: float) -> EvidenceRef:
    return make_lines_ref(Location(path=path, start_line=start, end_line=end), "hit", score=score)


async def test_the_gateway_clears_what_a_dead_turn_left(runtime: Runtime[Deps]) -> None:
    left: AgentState = {"user_query": "where is x?", "final_answer": "old", "retrieved": [hit("a.py", 1, 2, 1.0)]}
    changes = await security_gateway(left, runtime)
    assert changes == {**reset_turn(left), "gateway_passed": True, "gateway_verdict": "allow"}


@pytest.mark.parametrize(
    ("question", "intent", "cleaned"),
    [
        ("Hi, where is parse_date?", "new_question", "where is parse_date?"),
        ("and who calls it?", "follow_up_with_retrieval", "who calls `parse_date`?"),
        ("and where is format_date?", "new_question", "where is format_date?"),
        ("say that again", "follow_up", "say that again"),
        ("what did I ask?", "history_request", "what did I ask?"),
        ("thanks!", "out_of_scope", "thanks!"),
    ],
)
async def test_the_preprocessor_tells_intents_apart(
    runtime: Runtime[Deps], question: str, intent: Intent, cleaned: str
) -> None:
    changes = await input_preprocessor(
        {"user_query": question, "conversation_history": [turn(symbol="parse_date")]}, runtime
    )
    assert (changes["intent"], changes["cleaned_query"]) == (intent, cleaned)


@pytest.mark.parametrize("before", [0, 1])
async def test_a_question_that_quotes_a_message_points_at_that(before: int, runtime: Runtime[Deps]) -> None:
    asked = 'where does this come from: "Cannot resolve keyword"'
    history = [turn(symbol="parse_date")] * before
    changes = await input_preprocessor({"user_query": asked, "conversation_history": history}, runtime)
    assert (changes["intent"], changes["cleaned_query"]) == ("new_question", asked)


@pytest.mark.parametrize(
    ("question", "requests", "fast"),
    [
        ("where are payment retries handled?", [("search", "where are payment retries handled?")], False),
        ("shop/payments.py:20", [("lines", "shop/payments.py")], True),
        ("payments.py", [("file", "shop/payments.py")], True),
        ("what does 0xDEADBEEF mean?", [("search", "0xDEADBEEF"), ("search", "what does 0xDEADBEEF mean?")], True),
        ("where is no_such_name?", [("search", "no_such_name"), ("attribute", "no_such_name")], False),
        ("how does Order pay?", [("definition", "Order"), ("search", "how does Order pay?")], True),
        ("which tests are there for Order?", [("tests", "Order")], True),
        ("at f (/srv/shop/other.js:1:1)", [("search", "at f (/srv/shop/other.js:1:1)")], False),
    ],
)
async def test_the_fast_path_chooses_exact_requests(
    code: FakeCode, question: str, requests: list[tuple[str, str]], fast: bool
) -> None:
    chosen = await route_by_rules(question, code)
    assert [(one["lookup"], one["query"]) for one in chosen["requests"]] == requests
    assert chosen["fast_path"] is fast
    assert code.searches == []


async def test_a_question_about_a_file_searches_within_it(code: FakeCode) -> None:
    chosen = await route_by_rules("how are delays computed in shop/payments.py?", code)
    assert chosen["requests"][0]["patterns"] == ["/shop/payments.py"]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("shop/dates.py", "shop/dates.py"),
        ("/home/me/work/shop/dates.py", "shop/dates.py"),
        ("dates.py", "shop/dates.py"),
        ("/usr/lib/python3/json/dates.py", None),
        ("util.py", None),
        ("a/util.py", "a/util.py"),
        ("", None),
    ],
)
def test_a_written_path_means_one_file_or_none(written: str, found: str | None) -> None:
    paths = ["shop/dates.py", "main.py", "a/util.py", "b/util.py"]
    files = [FileEntry(path=path, language="python", source_type="code", lines=9) for path in paths]
    entry = FilePathLookup(files, [written]).find(written)
    assert (entry.path if entry else None) == found


async def test_retrieval_relaxes_its_filters_step_by_step(runtime: Runtime[Deps], code: FakeCode) -> None:
    request = request_search("payment", patterns=["*.sql"], source_types=["config"], reasoning="")
    request["folders"] = ["db"]
    changes = await retrieval({"router_output": decide_retrieval([request], fast_path=False, reasoning="")}, runtime)
    assert [filters for _, _, filters in code.searches] == [
        Filters(source_types=("config",), folders=("db",), patterns=("*.sql",)),
        Filters(source_types=("config",), folders=("db",)),
        Filters(source_types=("config",)),
        Filters(),
    ]
    assert changes["retrieval_metadata"]["relaxed"] == ["everywhere"]
    assert changes["retrieved"]


async def test_retrieval_falls_back_from_mode_to_mode(told: Told) -> None:
    code = FakeCode(SHOP, failing=["hybrid", "lexical"])
    runtime = Runtime(context=Deps(code=code, redact=redact, emit=told))
    request = request_search("payment", reasoning="")
    changes = await retrieval({"router_output": decide_retrieval([request], fast_path=False, reasoning="")}, runtime)
    assert [mode for _, mode, _ in code.searches] == ["hybrid", "lexical", "vector"]
    assert changes["retrieved"]
    assert changes["retrieval_metadata"]["failures"] == [
        "The hybrid search is out of order.",
        "The lexical search is out of order.",
    ]


async def test_a_search_that_fails_in_every_mode_is_said(told: Told) -> None:
    code = FakeCode(SHOP, failing=["hybrid", "lexical", "vector"])
    runtime = Runtime(context=Deps(code=code, redact=redact, emit=told))
    chosen = decide_retrieval([request_search("how is it sent?", reasoning="")], fast_path=False, reasoning="")
    found = await retrieval({"router_output": chosen}, runtime)
    written = await synthesis({**found, "router_output": chosen, "cleaned_query": "how is it sent?"}, runtime)
    assert "The index could not be read: `The hybrid search is out of order.`" in written["final_answer"]


async def test_one_request_that_fails_leaves_the_others(runtime: Runtime[Deps]) -> None:
    lost = request_lookup("file", "gone.py", reasoning="")
    lost["path"] = "gone.py"
    requests = [lost, request_lookup("definition", "parse_date", reasoning="")]
    changes = await retrieval({"router_output": decide_retrieval(requests, fast_path=True, reasoning="")}, runtime)
    assert [ref["symbol"] for ref in changes["retrieved"]] == ["parse_date"]
    assert changes["retrieval_metadata"]["failures"] == ["gone.py is not in the commit."]


async def test_grading_drops_hits_far_below_the_best(runtime: Runtime[Deps]) -> None:
    refs = [hit("shop/payments.py", 1, 30, 1.0), hit("shop/dates.py", 1, 13, 0.1)]
    changes = await grade_documents({"retrieved": refs, "cleaned_query": "payment retries"}, runtime)
    assert [ref["path"] for ref in changes["retrieved"]] == ["shop/payments.py"]
    assert not changes["retrieval_metadata"]["weak"]


async def test_grading_calls_hits_without_the_words_weak(runtime: Runtime[Deps]) -> None:
    state: AgentState = {"retrieved": [hit("shop/dates.py", 1, 13, 1.0)], "cleaned_query": "quantum elephants"}
    changes = await grade_documents(state, runtime)
    assert changes["retrieval_metadata"]["weak"]


async def test_memory_keeps_the_first_and_the_last_turns(runtime: Runtime[Deps]) -> None:
    history = [{**turn(), "question": str(number)} for number in range(MAX_TURNS)]
    changes = await conversation_memory(
        {"user_query": f"is {SECRET} safe?", "conversation_history": history, "turn_count": 40},  # type: ignore[typeddict-item]
        runtime,
    )
    questions = [one["question"] for one in changes["conversation_history"]]
    assert questions == ["0", *map(str, range(2, MAX_TURNS)), "is [REDACTED:password] safe?"]
    assert changes["turn_count"] == 41
    assert changes["retrieved"] == []


async def test_memory_cuts_a_long_answer_outside_its_code(runtime: Runtime[Deps]) -> None:
    block = "```python\n" + "\n\n".join(["x = 1"] * 300) + "\n```"
    changes = await conversation_memory({"user_query": "q", "final_answer": f"Lead.\n\n{block}\n\n{block}"}, runtime)
    (kept,) = changes["conversation_history"]
    assert kept["answer"].count("```") % 2 == 0
    assert kept["answer"].startswith("Lead.")
    assert len(kept["answer"]) <= 4000


async def test_memory_does_not_keep_a_refused_question(runtime: Runtime[Deps]) -> None:
    changes = await conversation_memory({"user_query": "bad", "is_blocked": True}, runtime)
    assert "conversation_history" not in changes
