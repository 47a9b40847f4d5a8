"""Follow-ups pick places out of the last answer, and questions quote texts."""

from __future__ import annotations

import pytest

from agent.questions.follow_ups import resolve_selection
from agent.questions.literals import Literal, find_literals, make_literal_query, parse_literal
from agent.questions.scopes import parse_language_filter, parse_only_language
from agent.questions.stack_traces import StackFrame, parse_error_message, parse_frames
from agent.state import PastTurn
from tests.agent.questions.test_questions import turn

ANSWER = """From the code: these places fit best.

`Order`, class in `shop/orders.py` [1], lines 7–16.

```python
- [3] = "`no item`"
```

Lines 12–14 [2]:

See also:

- `load_order` in `shop/orders.py:19` [3]
- function `label` [4], lines 4–8"""


def told() -> PastTurn:
    places = {1: ("shop/orders.py", 7, 16), 2: ("shop/orders.py", 12, 14), 3: ("shop/orders.py", 19, 22)}
    places[4] = ("shop/parcels.py", 4, 8)
    return {
        **turn(symbol="Order"),
        "answer": ANSWER,
        "citations": [
            {"mark": mark, "path": path, "start_line": start, "end_line": end}
            for mark, (path, start, end) in places.items()
        ],
    }


@pytest.mark.parametrize(
    ("question", "picked"),
    [
        ("show me the second one", "shop/orders.py:19-22"),
        ("the first?", "shop/orders.py:7-16"),
        ("open the last one please", "shop/parcels.py:4-8"),
        ("what about the 3rd one?", "shop/parcels.py:4-8"),
        ("explain #2", "shop/orders.py:19-22"),
        ("what is [2]?", "shop/orders.py:12-14"),
        ("show me the first function", "shop/parcels.py:4-8"),
        ("show me more", "shop/orders.py:7-16"),
        ("show the whole class", "shop/orders.py:7-16"),
        ("and in Go?", "where is `Order` defined in Go?"),
        ("show me the ninth one", None),
        ("what is [7]?", None),
        ("where is the second factor checked?", None),
        ("first", None),
    ],
)
def test_a_follow_up_picks_a_place_of_the_last_answer(question: str, picked: str | None) -> None:
    assert resolve_selection(question, [told()]) == picked


def test_nothing_is_picked_before_anything_was_said() -> None:
    assert resolve_selection("show me the second one", []) is None
    assert resolve_selection("show me the second one", [{**told(), "citations": []}]) is None


def test_a_question_names_its_language_at_the_end() -> None:
    asked = parse_language_filter("where are payments retried in Go?")
    assert asked is not None
    assert (asked.question, asked.language, asked.endings) == ("where are payments retried", "Go", (".go",))
    assert parse_language_filter("how do we go in circles?") is None
    assert parse_only_language("what about in C++?") == "C++"


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ('I get "Working outside of context", why?', [("Working outside of context", True)]),
        ("Cannot register a blueprint on itself", []),
        ("where is FLASK_DEBUG read?", [("FLASK_DEBUG", False)]),
        ("what does --env-file do?", [("--env-file", False)]),
        ("what does the -W option do?", [("-W", False)]),
        ("where are payment retries handled?", []),
        ("it's what don't and can't do", []),
        ("wo werden Zahlungen wiederholt", []),
        ("retry payments", []),
    ],
)
def test_the_texts_that_a_question_quotes_are_found(question: str, texts: list[tuple[str, bool]]) -> None:
    assert [(literal.text, literal.is_message) for literal in find_literals(question)] == texts


def test_a_flag_of_one_letter_is_searched_for_with_words() -> None:
    flag = Literal(text="-W", is_message=False)
    assert parse_literal(make_literal_query(flag)) == flag


@pytest.mark.parametrize(
    ("lines", "text", "is_message", "found"),
    [
        (['raise E("no secret "', '    "key was set.")'], "no secret key was set", True, (0, 1)),
        (["a", 'f"payment {number} was refused 3 times"'], "payment 17 was refused 3 times", True, (1, 1)),
        (["Working outside of\\nrequest context"], "outside of request context", True, (0, 0)),
        (["FLASK_DEBUG_PIN", "x = FLASK_DEBUG"], "FLASK_DEBUG", False, (1, 1)),
        (["'--debugger'"], "--debug", False, None),
        (["nothing of it"], "no secret key was set", True, None),
    ],
)
def test_a_text_is_found_as_code_breaks_it(
    lines: list[str], text: str, is_message: bool, found: tuple[int, int] | None
) -> None:
    assert Literal(text=text, is_message=is_message).find_lines("\n".join(lines)) == found


def test_a_very_long_message_is_found_by_how_it_begins() -> None:
    said = [f"word{number}" for number in range(60)]
    message = Literal(text=" ".join([*said, *"abcdefghijklmnopqrstuvwxyz" * 50]), is_message=True)
    assert message.find_lines(f"def fail():\n    raise Error('{' '.join(said)}')") == (1, 1)
    assert message.find_lines(" ".join(f"{word}x" for word in said)) is None


def test_a_frame_knows_its_function_and_its_source() -> None:
    trace = 'Traceback:\n  File "/srv/a.py", line 3, in run\n    go(now)\nValueError: it broke'
    assert parse_frames(trace) == (StackFrame(path="/srv/a.py", line=3, function="run", source="go(now)"),)


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("Traceback:\nshop.PaymentError: payment 1 was refused", "payment 1 was refused"),
        ("panic: runtime error: index out of range\n\ngoroutine 1", "runtime error: index out of range"),
        ("thread 'main' panicked at src/a.rs:1:2:\nno reactor running", "no reactor running"),
        ("thread 'main' panicked at 'no reactor', src/a.rs:1:2", "no reactor"),
        ("all is well", ""),
    ],
)
def test_what_the_error_of_a_trace_says_is_read(trace: str, message: str) -> None:
    assert parse_error_message(trace) == message
