"""Answers are scored against a known truth, and the questions of the benchmark can be read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent import Citation
from benchmarks.answer_scoring import Place, Question, Truth, cut_screen, score_answer
from benchmarks.keyless import QUESTIONS, Subject, find_percentile, read_subjects

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


def test_a_place_in_the_midst_of_hundreds_of_cited_lines_earns_one_point() -> None:
    assert score_answer(ask({"places": ["a.py:10-20"]}), "", cite("a.py:1-400")) == 1


def test_other_lines_of_the_right_file_earn_nothing() -> None:
    assert score_answer(ask({"places": ["a.py:10-20"]}), "`a.py` has it", cite("a.py:21-30")) == 0


def test_one_of_several_alternative_places_is_enough() -> None:
    assert score_answer(ask({"places": ["a.py:10-20", "docs/a.md"]}), "", cite("docs/a.md:3-4")) == 2


def test_a_file_that_is_only_named_earns_one_point() -> None:
    assert score_answer(ask({"places": ["docs/a.md"]}), "Read `docs/a.md`.", []) == 1


def test_a_command_in_the_first_screen_earns_two_points_whatever_its_markup() -> None:
    question = ask({"says": ["make  test"]})
    assert score_answer(question, "Run **`make test`** [1].", []) == 2


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("`make test` [1]\n\nThere is also:\n\n- `make lint`", 2),
        ("From `README.md`:\n\n```sh\nmake test\n```", 2),
        ("`make lint` [1]\n\nThere is also:\n\n- `make test`", 1),
        ("```sh\nmake lint\n```\n\n```sh\nmake test\n```", 1),
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


@pytest.mark.parametrize("text", ["make testing", "cmake test", "re_make test", "make test_all"])
def test_a_name_inside_a_longer_word_does_not_count(text: str) -> None:
    assert score_answer(ask({"says": ["make test"]}), text, []) == 0


def test_a_name_after_one_that_only_contains_it_is_found() -> None:
    assert score_answer(ask({"says": ["test"]}), "latest, then test", []) == 2


@pytest.mark.parametrize(("named", "points"), [(10, 2), (9, 2), (8, 1), (5, 1), (4, 0)])
def test_a_list_earns_points_by_how_much_of_it_is_there(named: int, points: int) -> None:
    names = [f"name{number}x" for number in range(10)]
    assert score_answer(ask({"names": names}), ", ".join(names[:named]), []) == points


def test_a_list_without_the_count_that_was_asked_for_earns_one_point() -> None:
    question = ask({"names": ["a", "b"], "count": 2})
    assert score_answer(question, "There are 2: a, b", []) == 2
    assert score_answer(question, "There are 12: a, b", []) == 1


@pytest.mark.parametrize("text", ["a, b [2]", "- a\n- b, line 2", "a, b\n\n```\n2\n```", "| a, b | 2 |"])
def test_a_number_in_a_list_in_code_or_in_a_citation_is_no_count(text: str) -> None:
    assert score_answer(ask({"names": ["a", "b"], "count": 2}), text, []) == 1


def test_a_count_alone_can_be_asked_for() -> None:
    assert score_answer(ask({"count": 23}), "There are 23 translations.", []) == 2
    assert score_answer(ask({"count": 23}), "There are 22 translations.", []) == 0
    assert score_answer(ask({"count": [23, 24]}), "24, with the tests", []) == 2


def test_a_wrong_name_beside_the_right_ones_costs_a_point() -> None:
    assert score_answer(ask({"names": ["a", "b"], "wrong": ["c"]}), "a, b, c", []) == 1


def test_a_commit_counts_by_its_id_and_by_its_subject() -> None:
    question = ask({"names": [["abc1234", "Fix the pump"], ["def5678", "Oil the wheel"]]})
    assert score_answer(question, "- `abc1234` Fix\n- oil the wheel (#12)", []) == 2
    assert score_answer(question, "abc123456789, def5678", []) == 2


def test_a_screen_counts_the_rows_that_a_long_line_fills() -> None:
    assert cut_screen("x" * 250 + "\nafter", 3) == "x" * 250
    assert cut_screen("x" * 250 + "\nafter", 2) == "x" * 200
    assert cut_screen("x\n\nafter", 2) == "x\n"


@pytest.mark.parametrize("record", [{}, {"wrong": ["a"]}, {"path": ["a.py"], "says": ["a"]}])
def test_a_truth_that_nothing_can_be_judged_by_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a truth"):
        Truth.parse(record)


def test_the_ninetieth_percentile_is_not_exceeded_by_nine_tenths() -> None:
    assert find_percentile(list(range(1, 11)), 90) == 9
    assert find_percentile([7], 90) == 7


def test_questions_are_chosen_by_repository_and_kind(tmp_path: Path) -> None:
    truth = {"says": ["x"]}
    asked = [{"kind": kind, "question": kind, "truth": truth} for kind in ("how", "where")]
    for name in ("one", "two"):
        record = {"name": name, "url": "https://host/o/r", "commit": "c", "questions": asked}
        (tmp_path / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")

    (chosen,) = read_subjects(tmp_path, "two", "how")

    assert (chosen.name, [each.text for each in chosen.questions]) == ("two", ["how"])


@pytest.mark.parametrize("file", sorted(QUESTIONS.glob("*.json")), ids=lambda file: file.stem)
def test_every_file_of_questions_can_be_read_and_asks_nothing_twice(file: Path) -> None:
    subject = Subject.read(file)
    assert subject.name == file.stem
    assert len({question.text for question in subject.questions}) == len(subject.questions)


def test_each_kind_of_question_is_asked_often_enough_for_its_share_to_mean_something() -> None:
    asked = Counter(question.kind for subject in read_subjects(QUESTIONS, None, None) for question in subject.questions)
    assert len(asked) == 14
    assert min(asked.values()) >= 8
