"""Answers are scored against a known truth, and the questions of the benchmark can be read."""

from __future__ import annotations

from typing import Any

import pytest

from agent import Citation
from benchmarks.answer_scoring import Question, Truth, cut_screen, score_answer
from bot.questions.expectations import Place

FILLER = "\n".join(["something else"] * 30)


def ask(truth: dict[str, Any], lines: int = 20) -> Question:
    """Make a question with a truth."""
    return Question(kind="where", text="where?", truth=Truth.parse(truth), at_most_lines=lines)


def cite(*places: str) -> list[Citation]:
    """Make citations of `path:start-end`."""
    parsed = map(Place.parse, places)
    return [
        Citation(mark=mark, path=each.path, start_line=each.start or 1, end_line=each.end or 1, commit="c", url=None)
        for mark, each in enumerate(parsed, start=1)
    ]


def test_a_place_among_the_first_three_citations_earns_two_points() -> None:
    question = ask({"places": ["a.py:10-20"]})
    assert score_answer(question, "", cite("b.py:1-5", "c.py:1-5", "a.py:18-30")) == 2


def test_a_place_that_is_cited_fourth_earns_one_point() -> None:
    question = ask({"places": ["a.py:10-20"]})
    assert score_answer(question, "", cite("b.py:1-5", "c.py:1-5", "d.py:1-5", "a.py:18-30")) == 1


def test_other_lines_of_the_right_file_earn_nothing() -> None:
    assert score_answer(ask({"places": ["a.py:10-20"]}), "`a.py` has it", cite("a.py:21-30")) == 0


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("`make test` [1]\n\nThere is also:\n\n- `make lint`", 2),
        ("`make lint` [1]\n\nThere is also:\n\n- `make test`", 1),
    ],
)
def test_a_command_that_does_not_lead_the_answer_earns_one_point(text: str, points: int) -> None:
    question = Question(kind="commands", text="how do I test?", truth=Truth.parse({"says": ["make test"]}))
    assert score_answer(question, text, []) == points


def test_a_command_below_the_first_screen_earns_one_point() -> None:
    assert score_answer(ask({"says": ["make test"]}), f"{FILLER}\nmake test", []) == 1


def test_a_command_that_stands_in_cited_lines_but_is_not_shown_earns_one_point() -> None:
    question = ask({"says": ["make test"], "places": ["Makefile:3"]})
    assert score_answer(question, "See there [1].", cite("Makefile:1-9")) == 1


def test_everything_that_is_to_be_said_has_to_be_said() -> None:
    question = ask({"says": ["Ada", ["2024-01-10", "January 2024"]]})
    assert score_answer(question, "Ada, in January 2024", []) == 2
    assert score_answer(question, "Ada wrote it", []) == 0


@pytest.mark.parametrize(
    "text",
    [
        "cmake test",
    ],
)
def test_a_name_inside_a_longer_word_does_not_count(text: str) -> None:
    assert score_answer(ask({"says": ["make test"]}), text, []) == 0


@pytest.mark.parametrize(("named", "points"), [(9, 2), (8, 1), (4, 0)])
def test_a_list_earns_points_by_how_much_of_it_is_there(named: int, points: int) -> None:
    names = [f"name{number}x" for number in range(10)]
    assert score_answer(ask({"names": names}), ", ".join(names[:named]), []) == points


def test_a_list_without_the_count_that_was_asked_for_earns_one_point() -> None:
    question = ask({"names": ["a", "b"], "count": 2})
    assert score_answer(question, "There are 2: a, b", []) == 2
    assert score_answer(question, "There are 12: a, b", []) == 1


@pytest.mark.parametrize("text", ["a, b [2]", "a, b\n\n```\n2\n```"])
def test_a_number_in_a_list_in_code_or_in_a_citation_is_no_count(text: str) -> None:
    assert score_answer(ask({"names": ["a", "b"], "count": 2}), text, []) == 1


def test_a_count_alone_can_be_asked_for() -> None:
    assert score_answer(ask({"count": 23}), "There are 23 translations.", []) == 2
    assert score_answer(ask({"count": 23}), "There are 22 translations.", []) == 0
    assert score_answer(ask({"count": [23, 24]}), "24, with the tests", []) == 2


def test_a_wrong_name_beside_the_right_ones_costs_a_point() -> None:
    assert score_answer(ask({"names": ["a", "b"], "wrong": ["c"]}), "a, b, c", []) == 1


def test_a_screen_counts_the_rows_that_a_long_line_fills() -> None:
    assert cut_screen("x" * 250 + "\nafter", 3) == "x" * 250
    assert cut_screen("x" * 250 + "\nafter", 2) == "x" * 200
    assert cut_screen("x\n\nafter", 2) == "x\n"
