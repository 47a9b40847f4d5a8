"""Models that misbehave, from the command line to a Gemini over HTTP and back: each time there is a usable answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from agent.answering.model_answer import BROKEN_OFF
from agent.limits import MAX_ROUNDS
from agent.text.code_marks import CodeFence
from bot.markdown.splitting import read_lines
from tests.fakes.citebot import Citebot
from tests.fakes.gemini import Failure, FakeGemini, Received, Reply, calls, hangs, running_gemini, says, withholds
from tests.fakes.shop import SHOP

QUESTION = "How does an order get paid in the end?"
WRITTEN = "An order is paid by `pay` [E1]."
FALLBACK = "*Without the language model, because "


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    monkeypatch.setenv("GOOGLE_API_KEY", "a-key")
    monkeypatch.setattr(random, "uniform", lambda *_: 0.01)  # the pause between two tries is not waited out
    with running_gemini() as fake:
        monkeypatch.setenv("GOOGLE_API_BASE_URL", fake.url)
        yield fake


def ask(citebot: Citebot) -> str:
    """Ask, and return an answer that a person can use: it has words, true places, and nothing left open."""
    done = citebot("ask", QUESTION, "--json")
    answer: dict[str, Any] = done.answer
    text: str = answer["answer"]
    assert any(map(str.isalpha, text)), done
    assert len(text) < 25_000
    assert "[E" not in text
    fence: CodeFence | None = None
    for line in read_lines(text):
        fence = line.fence
    assert fence is None, text
    assert {citation["path"] for citation in answer["citations"]} <= SHOP.keys()
    assert "Traceback" not in done.err
    return text


def has_called(asked: Received) -> bool:
    return "functionResponse" in str(asked.body["contents"])


def part(**call: Any) -> Reply:
    return Reply(parts=({"functionCall": call},))


@pytest.mark.parametrize(
    "reply",
    [
        withholds("STOP"),
        says(" \n "),
        withholds("MALFORMED_FUNCTION_CALL"),
        part(args={"pattern": "pay"}),
        part(name="", args={}),
        part(name="grep", args={"pattern": {"deep": [None]}}),
        calls(("delete_everything", {"path": "/"})),
        calls(("grep", {"pattern": "x" * 1_000_000})),
        calls(*[("grep", {"pattern": f"pay{number}"}) for number in range(100)]),
        calls(("make_plan", {"steps": "x" * 100_000})),
    ],
    ids=lambda reply: str(reply)[:60],
)
def test_after_a_reply_that_is_of_no_use_the_model_still_answers(
    citebot: Citebot, gemini: FakeGemini, reply: Reply
) -> None:
    begun: list[Received] = []

    def script(asked: Received) -> Reply:
        begun.append(asked)
        return reply if len(begun) == 1 else says(WRITTEN)

    gemini.script = script

    assert ask(citebot) == "An order is paid by `pay` [1]."
    assert len(gemini.received) <= 3


@pytest.mark.parametrize(
    "reply",
    [
        withholds("STOP"),
        withholds("MALFORMED_FUNCTION_CALL"),
        calls(("delete_everything", {})),
        calls(("grep", {"pattern": "x" * 1_000_000})),
        calls(("make_plan", {"steps": ["Find pay"]})),
    ],
    ids=lambda reply: str(reply)[:60],
)
@pytest.mark.exhaustive
def test_a_model_that_does_nothing_else_leaves_an_answer_from_the_code(
    citebot: Citebot, gemini: FakeGemini, reply: Reply
) -> None:
    gemini.script = lambda _: reply

    text = ask(citebot)

    assert text.count(FALLBACK) == 1
    assert text.startswith(FALLBACK)
    assert "shop/orders.py" in text
    assert len(gemini.received) < 20


@pytest.mark.exhaustive
def test_a_model_that_makes_the_same_call_for_ever_answers_in_the_end(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.script = lambda asked: calls(("grep", {"pattern": "pay"})) if "tools" in asked.body else says(WRITTEN)

    assert ask(citebot) == "An order is paid by `pay` [1]."
    assert len(gemini.received) == MAX_ROUNDS + 1  # what calls even then is asked once more, without tools


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("注文は `pay` で支払われます【E1】。", "注文は `pay` で支払われます[1]。"),
        ("Заказ оплачивает `pay` (E1).", "Заказ оплачивает `pay` [1]."),
        (
            "It is paid by `pay` [E1].\n\n```python\ndef pay(self):",
            "It is paid by `pay` [1].\n\n```python\ndef pay(self):",
        ),
        ("It is **paid by `pay` [E1] and _sent", "It is **paid by `pay` [1] and _sent"),
        ("It is paid by `pay` [E1] and [sent](http", "It is paid by `pay` [1] and "),
    ],
)
@pytest.mark.exhaustive
def test_a_language_that_nobody_asked_for_and_markdown_that_never_closes_keep_their_citations(
    citebot: Citebot, gemini: FakeGemini, written: str, shown: str
) -> None:
    gemini.script = lambda _: says(written)

    assert ask(citebot).startswith(shown)


def test_citations_of_nothing_are_dropped_and_the_claims_marked(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.script = lambda _: says("Elves carry the crown [E98]. It is paid by `pay` [E1]. Dwarves dig [E77:3-4].")

    text = ask(citebot)

    assert "It is paid by `pay` [1]." in text
    assert text.count("[1]") == 1


@pytest.mark.exhaustive
def test_an_answer_that_ends_in_the_middle_of_a_word_says_so(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.script = lambda _: says("It is paid by `pay` [E1], and then it is sent to the ba", finish="MAX_TOKENS")

    text = ask(citebot)

    assert text.startswith("It is paid by `pay` [1], and then it is sent to the ba")
    assert text.endswith("*(The answer was cut here: it reached the length limit.)*")


@pytest.mark.exhaustive
def test_an_answer_whose_time_ends_in_the_middle_of_a_word_is_kept_without_that_word(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MAX_SECONDS", "1")
    gemini.script = lambda _: hangs("It is paid by `pay` [E1], and then it is sent to the ba" * 9)

    text = ask(citebot)

    told, _, remark = text.partition("\n\n")
    assert told.rstrip().endswith("it is sent to the")
    assert remark.startswith(BROKEN_OFF)


@pytest.mark.exhaustive
def test_tokens_that_are_spent_leave_an_answer_from_what_was_found(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MAX_TOKENS", "5000")
    gemini.replies.append(calls(("grep", {"pattern": "pay"}), usage=(4900, 200)))
    gemini.script = lambda _: Failure(status=500)

    text = ask(citebot)

    assert text.startswith(f"{FALLBACK}this question used up its budget for the language model.*")
    assert len(gemini.received) == 1
