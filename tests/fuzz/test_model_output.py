"""Fuzzes model output: citations, marks, plans, and calls of tools."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import BaseModel, ValidationError

from agent.guard.approval import parse_decision
from agent.ports import Deps
from agent.prompts.model_text import CitationParser, clean_model_sentence
from agent.prompts.output_schemas import (
    GradeOutput,
    IntentOutput,
    PlanOutput,
    RefineryOutput,
    RouterOutput,
    clean_steps,
)
from agent.prompts.prompt_evidence import PromptEvidence
from agent.text.citation_markers import find_markers, replace_markers
from agent.text.storable import is_storable
from agent.tools.registry import make_call_key, make_tool_registry, shorten_arguments
from indexer.types import Location
from tests.agent.conftest import Told, redact
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP
from tests.fuzz.texts import among, halves, json_values

prose = among(
    (
        "[E1]", "[E2:4-9]", "[E99]", "[1]", "[12]", "[0]", "[E1, E2 and E3]", "[shop/dates.py:3-9]",
        "[shop/dates.py#L3]", "(x)", "](", "[a](https://evil.example)",
        "![i](https://evil.example/p.png)", "[a]: https://evil.example", "`", "``", "`code`", "<b>",
        "<!channel>", "@everyone", "https://evil.example", "www.evil.example", "hunter2secret",
        "a/b.py:3", "\\", "*", "_", "|", "# ", "- ", "1. ", "Dates are parsed. ", "The [list][0] ",
        ":", ",", "\n", "[", "]",
    ),
    most=14,
)  # fmt: skip
EXHIBITS = [
    SimpleNamespace(number=number, location=Location(path="shop/dates.py", start_line=1, end_line=9))
    for number in (1, 2)
]


def mark_maker() -> CitationParser:
    exhibits: list[Any] = EXHIBITS
    assert PromptEvidence.__name__
    return CitationParser(exhibits, redact)


@given(prose)
@example("[12](")
@example("[E1][12][12](")
def test_cleaned_prose_cites_only_what_has_a_citation(text: str) -> None:
    maker = mark_maker()
    cleaned = maker.prose(text)

    assert {mark.number for mark in find_markers(cleaned)} <= {each["mark"] for each in maker.citations}
    assert "hunter2secret" not in cleaned


@given(prose)
def test_cleaned_prose_holds_no_link_and_no_secret(text: str) -> None:
    cleaned = mark_maker().prose(text)

    tokens = [token for block in MarkdownIt("commonmark").parse(cleaned) for token in block.children or ()]
    assert [token.attrs for token in tokens if token.type in {"link_open", "image"}] == []
    assert "hunter2secret" not in mark_maker().code(text)
    assert find_markers(clean_model_sentence(text, redact)) == []


@given(prose)
def test_marks_keep_their_places(text: str) -> None:
    numbers = [each.number for each in find_markers(text)]

    assert replace_markers(text, [f"[{number}]" for number in numbers]) == text or any(
        f"[0{number}" in text for number in "0123456789"
    )
    assert find_markers(replace_markers(text, ["*x*"] * len(numbers))) == []


forms: list[type[BaseModel]] = [RouterOutput, GradeOutput, IntentOutput, PlanOutput, RefineryOutput]
filled = json_values(
    ("route", "requests", "calls", "verdict", "relevant", "intent", "steps", "decision", "query", "tool", "arguments"),
    st.sampled_from(["retrieve", "enough", "FINISH", "follow_up", "grep", "{}"]) | prose,
)


@pytest.mark.parametrize("form", forms)
@given(filled)
def test_a_form_is_filled_in_or_refused(form: type[BaseModel], told: Any) -> None:
    try:
        made = form.model_validate(told)
    except ValidationError:
        return
    assert form.model_validate(made.model_dump()) == made


@given(st.lists(prose | halves, max_size=60), st.integers(1, 8))
def test_steps_of_a_plan_are_short_lines_that_can_be_stored(steps: list[str], most: int) -> None:
    cleaned = clean_steps(steps, known=frozenset({"grep"}), most=most)

    assert len(cleaned) <= most
    assert all(each and len(each) <= 300 and "\n" not in each and is_storable(each) for each in cleaned)


@given(prose | json_values(("approve",), prose))
def test_a_reply_is_a_decision_or_none(reply: Any) -> None:
    assert parse_decision(reply) in {"", "approve", "abort"}


arguments = st.dictionaries(
    st.sampled_from(["query", "pattern", "path", "file_path", "start", "end", "name", "function", "n_results", "line"])
    | prose,
    json_values(
        ("a",), among(("shop/dates.py", "../", "/etc/passwd", "(", "[", "a{1000}", "\\", "*", "parse_date"), most=6)
    ),
    max_size=5,
)
TOOLS = (
    "search_codebase", "grep", "read_file", "list_directory", "find_symbol", "get_callers",
    "get_callees", "file_history",
)  # fmt: skip


@given(st.sampled_from([*TOOLS, "web_search", "rm", ""]), arguments)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_call_of_a_tool_has_an_outcome_whatever_it_says(name: str, args: dict[str, Any]) -> None:
    import asyncio

    registry, told = make_tool_registry(), Told()
    deps = Deps(code=FakeCode(SHOP), redact=redact, emit=told, tools=registry, asked="where?")
    outcome = asyncio.run(registry.call(name, args, deps))

    assert outcome.text
    assert "failed. Try another tool" not in outcome.text  # which is what an exception becomes
    assert "hunter2secret" not in outcome.text
    assert outcome.ok or not outcome.refs
    assert json.dumps(shorten_arguments(args), default=str)
    assert make_call_key(name, args)
