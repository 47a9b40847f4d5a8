"""Each table of question kinds holds its own sentences: those it is to take, and those that it is to leave."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.questions.mentions import refer_to_project
from agent.questions.question_kinds import load_kinds, parse_kind
from agent.state import Lookup

TABLES = load_kinds()


@pytest.mark.parametrize(
    ("lookup", "question"),
    [(table.lookup, question) for table in TABLES for question in table.asks],
)
def test_a_question_is_taken_for_the_kind_in_whose_table_it_stands(lookup: Lookup, question: str) -> None:
    asked = parse_kind(question)

    assert asked is not None
    assert asked.lookup == lookup


@pytest.mark.parametrize(
    ("lookup", "question"),
    [(table.lookup, question) for table in TABLES for question in table.asks_not],
)
def test_a_question_that_only_sounds_alike_is_not_taken_for_the_kind(lookup: Lookup, question: str) -> None:
    asked = parse_kind(question)

    assert asked is None or asked.lookup != lookup


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.lookup)
def test_each_kind_has_a_lookup_and_sentences_in_several_languages(table: object) -> None:
    [found] = [one for one in TABLES if one is table]

    assert found.lookup in get_args(Lookup)
    assert len(found.asks) >= 10
    assert any(not question.isascii() or question.startswith(("wie", "was", "wer")) for question in found.asks)
    assert len(found.asks_not) >= 3


def test_the_target_of_a_question_is_the_part_that_names_it() -> None:
    asked = parse_kind("Which settings are there for `retries`?")

    assert asked is not None
    assert asked.parts["target"] == "retries"


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("which commands does koa have?", "which commands does this project have?"),
        ("what is Koa's default port", "what is this project's default port"),
        ("what is in koa/lib?", "what is in koa/lib?"),
        ("who calls `koa`?", "who calls `koa`?"),
    ],
)
def test_the_name_of_the_project_stands_for_the_project(question: str, meant: str) -> None:
    assert refer_to_project(question, "koa") == meant


@pytest.mark.parametrize(
    "ending", [" and what are their defaults?", " and their defaults", ", and which?", " und welche?", " and how many?"]
)
def test_what_only_adds_to_a_list_is_no_part_of_what_it_is_about(ending: str) -> None:
    asked = parse_kind(f"which settings are there for retries{ending}")

    assert asked is not None
    assert (asked.lookup, asked.parts["target"]) == ("options", "retries")


def test_a_question_as_long_as_a_page_is_of_no_kind() -> None:
    assert parse_kind("what settings are there for " + "a" * 400) is None


@given(st.text(max_size=400))
def test_no_text_is_refused_with_an_error(text: str) -> None:
    asked = parse_kind(text)

    assert asked is None or all(asked.parts.values())
