"""A message is parted into its questions; what greets and thanks around them falls away."""

from __future__ import annotations

import pytest

from agent.questions.question_parts import drop_talk, split_questions


@pytest.mark.parametrize(
    ("message", "questions"),
    [
        (
            "two things: 1) who calls `send` 2) where is parse_date defined",
            ["who calls `send`?", "where is parse_date defined?"],
        ),
        ("1. what does as_site return?\n2. load_json callers", ["what does as_site return?", "load_json callers?"]),
        ("- who wrote app.py\n- parse_date tests", ["who wrote app.py?", "parse_date tests?"]),
        ("where is parse_date and what does load_order do?", ["where is parse_date?", "what does load_order do?"]),
        ("Hi team! where is parse_date? and who calls it? thanks!", ["where is parse_date?", "who calls it?"]),
        ("where is parse_date and what is this project about", ["where is parse_date?", "what is this project about?"]),
        ("describe the project and how do I run the tests?", ["describe the project?", "how do I run the tests?"]),
    ],
)
def test_each_question_of_a_message_is_one(message: str, questions: list[str]) -> None:
    assert split_questions(message) == questions


@pytest.mark.parametrize(
    "message",
    [
        "how does it decide when to retry and how long to wait?",
        "where is the code that reads a) the file b) the socket",
        "why is `a? b: c` wrong here?",
        "how does the cache work and what happens when it is full?",
        "what changed last week and who did it",
        "I looked at parse_date. where is it called?",
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: no\nwhere is that? what is it?',
    ],
)
def test_a_message_that_asks_one_thing_is_left_whole(message: str) -> None:
    assert split_questions(message) == [message]


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("hi! where is parse_date? thx", "where is parse_date?"),
        ("Hello, who calls send", "who calls send"),
        ("who calls send? thank you!", "who calls send?"),
        ("thanks!", "thanks!"),
        ("got `a. thanks` from send", "got `a. thanks` from send"),
    ],
)
def test_a_greeting_and_thanks_fall_away(message: str, question: str) -> None:
    assert drop_talk(message) == question
