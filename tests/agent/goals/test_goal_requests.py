"""Messages that ask for a goal run are recognized, and some answers offer one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.goals.checks.goal_registry import GoalRegistry
from agent.goals.checks.goal_requests import (
    LONGEST_CLAIM,
    claim_answer,
    is_inference,
    is_verify_request,
    parse_goal_request,
)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("check that parse('') returns []", "parse('') returns []"),
        ("Could you please check whether send retries?", "send retries?"),
        ("verify parse accepts empty input", "parse accepts empty input"),
        ("Verify: the sum is 3", "the sum is 3"),
        ("confirm that\n`a` is\n\nb", "`a` is\n\nb"),
    ],
)
def test_a_claim_is_read_as_it_was_written(text: str, claim: str) -> None:
    wanted = parse_goal_request(text)

    assert wanted is not None
    assert (wanted.goal, wanted.arguments, wanted.task) == ("claim", {"claim": claim}, claim)


@pytest.mark.parametrize(
    ("text", "select"),
    [
        ("make tests/test_x.py pass", ["tests/test_x.py"]),
        ("please make `tests/test_x.py::test_a[1-b]` green again", ["tests/test_x.py::test_a[1-b]"]),
        ("can you get the tests in tests/unit/ and test_b.py to pass?", ["tests/unit/", "test_b.py"]),
    ],
)
def test_tests_that_are_to_pass_are_read(text: str, select: list[str]) -> None:
    wanted = parse_goal_request(text)

    assert wanted is not None
    assert (wanted.goal, wanted.arguments) == ("pytest", {"select": select})


@pytest.mark.parametrize(
    "text",
    [
        "check where settings are read",
        "verify how login works",
        "check that",
        "make sure that tests/test_x.py is read",
        "make it pass",
        "make -k tests/ pass",
        "make tests/test_x.py pass by changing the parser",
        "how do I make tests/test_x.py pass",
        "",
        "check that " + "x" * (LONGEST_CLAIM + 1),
    ],
)
def test_everything_else_is_a_question(text: str) -> None:
    assert parse_goal_request(text) is None


@pytest.mark.parametrize("text", ["verify", "Verify!", "yes, verify it", "please verify this by running a test"])
def test_verify_alone_means_what_was_said_before(text: str) -> None:
    assert is_verify_request(text)


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("does send retry?", "Yes [1].", True),
        ("what happens when the token is old?", "It is refused [1].", True),
        ("where is send?", "It probably is in `session.py`.", True),
        ("where is send?", "It is in `session.py` [1].", False),
        ("is there a test for send?", "Yes, `test_send` [1].", False),
    ],
)
def test_an_answer_about_what_the_code_does_rests_on_inference(question: str, answer: str, expected: bool) -> None:
    assert is_inference(question, answer) is expected


def test_the_first_paragraph_of_an_answer_is_what_is_verified() -> None:
    claim = claim_answer("does send\nretry?", "Yes, three times [1].\n\nIt waits between them [2].")

    assert claim is not None
    assert claim.task == 'The answer to "does send retry?" is: Yes, three times .'


@given(st.text(max_size=400) | st.from_regex(r"(check that|verify|make) [\w ./:-]{0,60} ?(pass)?", fullmatch=True))
def test_whatever_is_read_can_be_made_a_goal_or_is_refused_in_a_sentence(text: str) -> None:
    wanted = parse_goal_request(text)

    if wanted is not None and wanted.goal == "claim":
        GoalRegistry().make(wanted.goal, wanted.arguments)
    is_verify_request(text)
    is_inference(text, text)
    claim_answer(text, text)
