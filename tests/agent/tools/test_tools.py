"""The tools through the registry: what they bring, what they refuse, and that a new one needs no other change."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.runtime import Runtime
from pydantic import BaseModel

from agent.evidence.refs import make_lines_ref
from agent.lookups.read_file import ReadFile, find_similar_paths
from agent.lookups.tool import HISTORY, Tool, ToolEvidence
from agent.nodes.router import tool_executor
from agent.ports import Deps, ToolOutcome, WebPage
from agent.state import RouterDecision
from agent.tools.registry import MAX_CALLS, MAX_COST, TOO_MANY, ToolCalls, ToolRegistry, make_tool_registry
from agent.tools.web_search import make_web_query
from indexer.types import Location
from tests.agent.conftest import SECRET, Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP

ALL = {
    "search_codebase", "read_file", "list_directory", "find_files", "find_symbol", "get_callers", "get_callees", "grep",
    "file_history", "repository_log", "compare_refs", "web_search",
}  # fmt: skip


class FakeWeb:
    """A search engine that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def search(self, query: str, *, limit: int) -> list[WebPage]:
        self.asked.append(query)
        return [WebPage(title="Retries", url="https://example.com/retries", text=f"Back off. {SECRET}")]


@pytest.fixture
def deps(code: FakeCode, told: Told) -> Deps:
    return Deps(code=code, redact=redact, emit=told, tools=make_tool_registry(), asked="how are payment retries done?")


async def call(deps: Deps, name: str, /, **args: Any) -> ToolOutcome:
    return await deps.tools.call(name, args, deps)


def places(outcome: ToolOutcome) -> list[tuple[str, int, int]]:
    return [(ref["path"], ref["start_line"], ref["end_line"]) for ref in outcome.refs]


def test_all_are_offered_but_those_that_leave_the_house(deps: Deps) -> None:
    offered = {tool["name"] for tool in deps.tools.menu(deps)}
    with_web = {tool["name"] for tool in deps.tools.menu(replace(deps, web=FakeWeb()), approved=["web_search"])}

    assert (offered, with_web) == (ALL - {"web_search"}, ALL)


def test_the_menu_is_plain_json_schema(deps: Deps) -> None:
    menu = {tool["name"]: tool["parameters"] for tool in deps.tools.menu(deps)}

    assert json.loads(json.dumps(menu)) == menu
    assert menu["read_file"]["required"] == ["path"]
    assert set(menu["read_file"]["properties"]) == {"path", "first_line", "limit", "end", "ranges"}


@pytest.mark.parametrize(
    ("name", "args", "said", "place"),
    [
        ("search_codebase", {"query": "payment retries"}, "MAX_RETRIES", ("shop/payments.py", 3, 30)),
        ("read_file", {"file_path": "shop/dates.py", "start": 6, "end": 8}, "def parse_date", ("shop/dates.py", 6, 8)),
        ("read_file", {"file_path": "dates.py", "start": "6"}, "    6 def parse_date", ("shop/dates.py", 6, 13)),
        ("list_directory", {"path": "shop/"}, "shop/orders.py", ("shop/dates.py", 1, 1)),
        ("list_directory", {}, "tests/ (1 files, 5 lines)", ("README.md", 1, 1)),
        ("find_files", {"glob": "*DATES.py"}, "2 files match *DATES.py", ("shop/dates.py", 1, 1)),
        ("grep", {"pattern": "MAX_.*= \\d", "context": 1}, "    5 MAX_RETRIES = 3", ("shop/payments.py", 4, 6)),
        ("grep", {"pattern": "parse_date", "output": "files"}, "(1 of 3 lines)", ("shop/orders.py", 3, 3)),
        ("find_symbol", {"name": "PaymentSession.send()"}, "def send", ("shop/payments.py", 19, 32)),
        ("get_callers", {"function_name": "parse_date"}, "load_order", ("shop/orders.py", 12, 12)),
        ("get_callees", {"function_name": "Order.pay"}, "send", ("shop/orders.py", 16, 16)),
        ("grep", {"pattern": "MAX_.*= \\d"}, "MAX_RETRIES = 3", ("shop/payments.py", 5, 5)),
        ("file_history", {"path": "shop/dates.py", "line": 8}, "Ada Example", ("shop/dates.py", 8, 8)),
    ],
)
async def test_each_tool_brings_text_and_the_lines_it_stands_in(
    deps: Deps, name: str, args: dict[str, Any], said: str, place: tuple[str, int, int]
) -> None:
    outcome = await call(deps, name, **args)

    assert outcome.ok, outcome.text
    assert said in outcome.text
    assert place in places(outcome)
    assert f"[{place[0]}:L{place[1]}{f'-L{place[2]}' if place[2] > place[1] else ''}]" in outcome.text


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_file", {"file_path": "../../etc/passwd"}),
        ("read_file", {"file_path": "shop/../README.md"}),
        ("read_file", {"file_path": "shop/dates.py\0"}),
        ("read_file", {"file_path": ""}),
        ("read_file", {"file_path": "shop/dates.py", "ranges": ["soon"]}),
        ("read_file", {"file_path": "shop/dates.py", "ranges": ["1-2"] * 50}),
        ("read_file", {"file_path": "shop/dates.py", "start": 1_000_000_000_000}),
        ("grep", {"pattern": "x", "more_patterns": ["x"] * 50}),
        ("repository_log", {"since": "yesterday"}),
        ("repository_log", {"author": "a\nb"}),
        ("repository_log", {"path": "a\0b"}),
        ("repository_log", {"from_ref": "--output=/tmp/x"}),
        ("repository_log", {"message": "x" * 1_000_000}),
        ("read_file", {"file_path": "shop/dates.py", "start": "soon"}),
        ("list_directory", {"path": "/proc/self"}),
        ("grep", {"pattern": "("}),
        ("grep", {"pattern": "x" * 50_000}),
        ("file_history", {"path": "nowhere.py"}),
        ("search_codebase", {"query": "x", "n_results": 10_000}),
        ("run_shell", {"command": "ls"}),
        ("web_search", {"query": "payment retries"}),
    ],
)
async def test_what_cannot_be_done_is_said_in_a_sentence(deps: Deps, name: str, args: dict[str, Any]) -> None:
    outcome = await call(deps, name, **args)

    assert (outcome.ok, outcome.refs) == (False, ())
    assert outcome.text.endswith((".", "?"))
    assert "root:" not in outcome.text
    assert len(outcome.text) < 2000


async def test_a_name_nobody_knows_is_no_error(deps: Deps) -> None:
    outcomes = [
        await call(deps, "find_symbol", name="nobody"),
        await call(deps, "get_callers", function_name="nobody"),
        await call(deps, "grep", pattern="nobody_knows"),
        await call(deps, "search_codebase", query="zzz qqq"),
    ]

    assert [(one.ok, one.refs) for one in outcomes] == [(True, ())] * 4


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_file", {"path": "shop/date.py"}),
        ("list_directory", {"path": "shopp"}),
        ("grep", {"pattern": "x", "path": "shop/dats.py"}),
        ("file_history", {"path": "datas.py"}),
        ("find_files", {"glob": "datess.py"}),
    ],
)
async def test_a_missing_path_is_answered_with_the_nearest(deps: Deps, name: str, args: dict[str, Any]) -> None:
    assert "Similar: shop" in (await call(deps, name, **args)).text


async def test_grep_counts_without_listing(deps: Deps) -> None:
    outcome = await call(deps, "grep", pattern="parse_date", output="count")

    assert (outcome.text, outcome.refs) == ("6 lines in 3 files; 6 of 6 files read.", ())


async def test_secrets_are_masked_in_every_result(deps: Deps) -> None:
    for name, args in [
        ("read_file", {"file_path": "shop/parcels.py"}),
        ("grep", {"pattern": "password"}),
        ("find_symbol", {"name": "label"}),
        ("search_codebase", {"query": "label password"}),
    ]:
        outcome = await call(deps, name, **args)
        assert "[REDACTED:password]" in outcome.text
        assert SECRET not in outcome.text


async def test_results_are_bounded_and_refer_only_to_what_they_show(told: Told) -> None:
    code = FakeCode({"big.py": "\n".join(f"value_{n} = '{'x' * 300}'" for n in range(5000))})
    deps = Deps(code=code, redact=redact, emit=told, tools=make_tool_registry())
    outcome = await call(deps, "read_file", file_path="big.py", end=5000)
    (ref,) = outcome.refs

    assert len(outcome.text) <= ReadFile.room
    assert f"value_{ref['end_line'] - 1} =" in outcome.text
    assert f"value_{ref['end_line']} =" not in outcome.text
    assert f"[big.py:L1-L{ref['end_line']}]" in outcome.text


async def test_the_same_call_at_the_same_commit_is_made_once(deps: Deps, code: FakeCode) -> None:
    first = await call(deps, "search_codebase", query="payment retries")
    again = await call(deps, "search_codebase", query="payment retries", n_results=8)
    other = FakeCode(SHOP)
    other.commit = replace(code.commit, sha="d" * 40)
    await call(replace(deps, code=other), "search_codebase", query="payment retries")

    assert first is again
    assert (len(code.searches), len(other.searches)) == (1, 1)


async def test_calls_and_their_ends_are_told(deps: Deps, told: Told) -> None:
    await call(deps, "grep", pattern="MAX_RETRIES")

    call_id = told.events[0][1]["call"]
    said = {"call": call_id, "args": {"pattern": "MAX_RETRIES"}, "label": "Searching for", "shown": "MAX_RETRIES"}
    assert told.events[0] == ("tool_start", {"tool": "grep", **said})
    assert told.events[1] == ("tool_end", {"tool": "grep", "call": call_id, "ok": True, "found": 4})
    assert told.events[2][0] == "evidence"


def test_each_tool_says_what_it_does_and_with_which_of_its_arguments() -> None:
    for tool in make_tool_registry()._tools.values():
        assert tool.label != Tool.label
        assert tool.argument_shown in tool.arguments.model_fields


def test_each_tool_declares_its_cost_and_unknown_ones_have_none(deps: Deps) -> None:
    costs = {name: deps.tools.estimate_cost(name) for name in ALL}

    assert costs["find_symbol"] < costs["grep"] < costs["file_history"] < costs["web_search"]
    assert deps.tools.estimate_cost("nothing") == 0


async def test_calls_that_cost_more_than_there_is_room_for_are_refused(deps: Deps) -> None:
    histories = [("file_history", {"path": "shop/dates.py", "line": line}) for line in range(1, 9)]
    lookups = [("find_symbol", {"name": f"name_{number}"}) for number in range(9)]
    results = [await ToolCalls(deps, ()).run(calls) for calls in (histories, lookups)]

    assert [sum(one.outcome.ok for one in each) for each in results] == [MAX_COST // HISTORY, MAX_CALLS]
    assert results[0][-1].outcome.text == TOO_MANY


async def test_a_secret_in_the_argument_shown_is_masked(deps: Deps, told: Told) -> None:
    await call(deps, "grep", pattern=f"x{SECRET}" + "y" * 5000)

    assert told.events[0][1]["shown"].startswith("x[REDACTED:password]y")
    assert len(told.events[0][1]["shown"]) == 200


async def test_grep_says_how_much_it_read_and_keeps_code_before_documents(deps: Deps) -> None:
    outcome = await call(deps, "grep", pattern="retries")
    assert outcome.text.splitlines()[0] == "2 lines in 2 files; 6 of 6 files read."
    assert [path for path, _, _ in places(outcome)] == ["shop/payments.py", "README.md"]


async def test_patterns_asked_together_are_counted_apart_and_list_a_line_once(deps: Deps) -> None:
    args = {"pattern": "def parse_date", "more_patterns": ["date\\(text", "nobody"], "path": "shop"}
    outcome = await call(deps, "grep", **args)

    assert "def parse_date: 1 lines" in outcome.text
    assert "nobody: 0 lines" in outcome.text
    assert places(outcome) == [("shop/dates.py", 6, 6)]
    assert "4 of 4 files read" in outcome.text


async def test_grep_lists_some_lines_of_each_file_and_says_of_how_many_they_are(told: Told) -> None:
    code = FakeCode(dict.fromkeys(("a.py", "b.py", "c.py", "d.py", "e.py"), "x = 1\n" * 40))
    outcome = await call(Deps(code=code, redact=redact, emit=told, tools=make_tool_registry()), "grep", pattern="x")

    assert outcome.text.startswith("200 lines in 5 files, of which 20 are listed; 5 of 5 files read.")
    assert [path for path, _, _ in places(outcome)] == ["a.py"] * 5 + ["b.py"] * 5 + ["c.py"] * 5 + ["d.py"] * 5
    assert "Further lines are in a.py (35), b.py (35), c.py (35), d.py (35), e.py (40)." in outcome.text


async def test_grep_says_what_it_left_out_and_how_to_get_it(told: Told) -> None:
    code = FakeCode({f"{name}.py": "x = 1\n" * 100 for name in "abcdef"})
    outcome = await call(Deps(code=code, redact=redact, emit=told, tools=make_tool_registry()), "grep", pattern="x")

    assert "Only the first 200 lines of a pattern are counted. Give a path or a narrower pattern." in outcome.text
    assert "More lines match than are counted in a.py, b.py, c.py." in outcome.text


async def test_the_lines_of_one_file_are_listed_until_there_are_enough(told: Told) -> None:
    code = FakeCode({"a.py": "x = 1\n" * 30, "b.py": "x = 1\n"})
    outcome = await call(Deps(code=code, redact=redact, emit=told, tools=make_tool_registry()), "grep", pattern="x")

    assert [path for path, _, _ in places(outcome)] == ["a.py"] * 19 + ["b.py"]


async def test_a_hit_is_shown_around_the_words_that_were_searched_for(told: Told) -> None:
    body = [f"    value_{at} = compute({at}, precision={at}, unit='bar', source='gauge')" for at in range(25)]
    body[20] = "    raise ValveStuck(pressure)"
    code = FakeCode({"valve.py": "\n".join(["def open_valve(pressure):", *body])})
    deps = Deps(code=code, redact=redact, emit=told, tools=make_tool_registry())
    outcome = await call(deps, "search_codebase", query="valve stuck")
    (path, start, end), *_ = places(outcome)

    assert path == "valve.py"
    assert 1 < start <= 22 <= end
    assert "   22     raise ValveStuck(pressure)" in outcome.text
    assert "from lines 1-26" in outcome.text


async def test_the_same_call_of_several_steps_is_made_once(deps: Deps, code: FakeCode) -> None:
    calls = ToolCalls(deps, ())
    wanted = [("search_codebase", {"query": "payment retries"})]
    first, second = await asyncio.gather(calls.run(wanted), calls.run(wanted))

    assert len(code.searches) == 1
    assert first == second


@pytest.mark.parametrize("pattern", ["[z-a]", "\\", "*", "(?!x)"])
async def test_a_pattern_that_cannot_be_read_is_said_to_be_none(deps: Deps, pattern: str) -> None:
    outcome = await call(deps, "grep", pattern=pattern)

    assert not outcome.ok
    assert "is not a valid" in outcome.text


# The web


async def test_a_web_search_needs_approval_in_the_turn(deps: Deps) -> None:
    web = FakeWeb()
    online = replace(deps, web=web)
    refused = await online.tools.call("web_search", {"query": "payment retries"}, online)
    allowed = await online.tools.call("web_search", {"query": "payment retries"}, online, approved=["web_search"])

    assert (refused.ok, allowed.ok, web.asked) == (False, True, ["payment retries"])
    assert "needs the approval" in refused.text
    assert SECRET not in allowed.text


async def test_no_text_of_the_repository_leaves_with_a_query(deps: Deps) -> None:
    web = FakeWeb()
    online = replace(deps, web=web, asked=f"how are retries done? {SECRET}")
    stolen = f"retries {SECRET} PaymentSession.send https://evil.example.com/?q=delay retries"
    await online.tools.call("web_search", {"query": stolen}, online, approved=["web_search"])
    nothing = await online.tools.call("web_search", {"query": "PaymentSession"}, online, approved=["web_search"])

    assert web.asked == ["retries retries"]
    assert "only use words" in nothing.text


@given(st.text(max_size=200), st.text(max_size=200))
def test_only_words_of_the_question_go_out(query: str, asked: str) -> None:
    assert all(word in asked.lower() for word in make_web_query(query, asked).lower().split())


# A tool of one's own


class WeatherArguments(BaseModel):
    """A place."""

    town: str


class Weather(Tool[WeatherArguments]):
    """The tenth tool."""

    name = "weather"
    description = "Tell the weather."
    arguments = WeatherArguments

    def __init__(self, fails: Exception | None = None, *, hangs: bool = False) -> None:
        self.fails = fails
        self.hangs = hangs

    async def run(self, args: WeatherArguments, deps: Deps) -> ToolEvidence:
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            await asyncio.Event().wait()
        at = Location(path="README.md", start_line=3, end_line=3)
        return ToolEvidence(text=f"Sunny in {args.town}.", refs=(make_lines_ref(at, "lines"),))


def calling(*calls: tuple[str, dict[str, Any]]) -> RouterDecision:
    return {
        "route": "use_tool",
        "requests": [],
        "calls": [{"tool": name, "args": args} for name, args in calls],
        "clarification": "",
        "fast_path": False,
        "unknown": [],
        "reasoning": "",
    }


@pytest.mark.parametrize("error", [RuntimeError("secret detail"), OSError("/etc"), KeyError("x"), RecursionError()])
async def test_a_tool_that_breaks_is_a_sentence(deps: Deps, error: Exception) -> None:
    outcome = await ToolRegistry([Weather(error)]).call("weather", {"town": "x"}, deps)

    assert outcome == ToolOutcome(text="weather failed. Try another tool.", ok=False)


async def test_a_tool_that_hangs_is_ended(deps: Deps) -> None:
    outcome = await ToolRegistry([Weather(hangs=True)], seconds=0.01).call("weather", {"town": "x"}, deps)

    assert "took longer" in outcome.text


# The executor


async def test_the_executor_makes_the_calls_side_by_side_and_keeps_what_was_known(deps: Deps) -> None:
    known = make_lines_ref(Location(path="README.md", start_line=1, end_line=1), "lines")
    calls = calling(("grep", {"pattern": "MAX_RETRIES = 3"}), ("nothing", {}), ("grep", {"pattern": "("}))
    changes = await tool_executor({"router_output": calls, "retrieved": [known]}, Runtime(context=deps))

    assert [(ref["path"], ref["start_line"]) for ref in changes["retrieved"]] == [
        ("README.md", 1),
        ("shop/payments.py", 5),
    ]
    assert [record["ok"] for record in changes["tool_history"]] == [True, False, False]
    assert changes["retrieval_metadata"]["searched"] == ["MAX_RETRIES = 3"]
    assert len(changes["retrieval_metadata"]["failures"]) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([*sorted(ALL), "nothing", ""]),
    st.dictionaries(
        st.sampled_from(
            ["query", "file_path", "start", "end", "path", "line", "name", "function_name", "pattern", "x"]
        ),
        JSON,
        max_size=4,
    ),
)
@pytest.mark.exhaustive
def test_no_arguments_make_a_call_raise(name: str, args: dict[str, Any]) -> None:
    deps = Deps(code=FakeCode(SHOP), redact=redact, emit=Told(), tools=make_tool_registry())
    outcome = asyncio.run(deps.tools.call(name, args, deps))

    assert len(outcome.text) <= ReadFile.room


async def test_others_go_on_while_similar_paths_are_sought(deps: Deps) -> None:
    many = FakeCode({f"shop/part_{number}/orders_{number}.py": "" for number in range(2000)})
    reading = asyncio.create_task(call(replace(deps, code=many), "read_file", file_path="shop/part_7/order_77.py"))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1

    assert "Similar: shop/part_77/orders_77.py" in (await reading).text
    assert turns > 5  # two, where nothing else gets a turn


def test_similar_paths_of_a_large_repository_are_found() -> None:
    paths = [f"src/package_{number % 300}/deep/er/file_number_{number}_of_many.py" for number in range(50_000)]
    near = find_similar_paths("src/package_299/deep/er/file_number_49799_of_mani.py", paths)

    assert near[0] == "src/package_299/deep/er/file_number_49799_of_many.py"
