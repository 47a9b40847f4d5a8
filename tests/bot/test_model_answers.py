"""Answers by a model: the whole program from the command line to a Gemini on loopback that answers, or fails."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from agent.llm.models import ChatModels
from bot.app import open_models
from bot.settings import Settings
from tests.fakes.citebot import Citebot, run_citebot
from tests.fakes.gemini import (
    Failure,
    FakeGemini,
    Received,
    Reply,
    blocks_prompt,
    breaks,
    calls,
    fills,
    hangs,
    running_gemini,
    says,
    withholds,
)
from tests.forks import ForkServer
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent.parent
KEY = "AIza-a-very-secret-key"
LOOKUP = "where is parse_date defined?"
BROAD = "How does an order get paid in the end?"
WRITTEN = "The function `parse_date` reads it [E1]."
SEARCHES = {"route": "retrieve", "requests": [{"query": "pay order session"}]}
PLANS = {"steps": ["Find pay", "Read send"]}


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setattr(random, "uniform", lambda *_: 0.01)  # the pause between two tries is not waited out
    with running_gemini() as fake:
        monkeypatch.setenv("GOOGLE_API_BASE_URL", fake.url)
        yield fake


def test_an_answer_is_written_by_gemini_and_cited(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.replies.append(says(WRITTEN))

    answer = citebot("ask", LOOKUP, "--json").answer

    assert answer["answer"] == "The function `parse_date` reads it [1]."
    assert [citation["path"] for citation in answer["citations"]] == ["shop/dates.py"]
    assert answer["model"] == "google_genai:gemini-flash-latest"
    (asked,) = gemini.received
    assert (asked.method, asked.model, asked.key) == ("streamGenerateContent", "gemini-flash-latest", KEY)
    assert "def parse_date" in asked.prompt


def test_the_model_is_named_below_the_answer(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "google_genai:gemini-2.5-flash")
    gemini.replies.append(says(WRITTEN))

    done = citebot("ask", LOOKUP)

    text, cited, author = done.out.strip().split("\n\n")
    assert (text, cited) == ("The function `parse_date` reads it [1].", "[1] shop/dates.py:6-8")
    assert author.startswith("google_genai:gemini-2.5-flash, ")
    assert done.err == ""


def test_a_trace_follows_the_model_while_it_writes(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.replies += [
        calls(("find_symbol", {"name": "pay"}), usage=(400, 30)),
        says("It is paid by `pay` [E1].", usage=(700, 5)),
    ]

    done = citebot("ask", "How does a parcel get shipped and the order paid in the end?", "--json", "--trace")

    assert done.answer["model"]
    told = [line.partition(" ms  ")[2] for line in done.err.splitlines()]
    # A comment of the shop gives orders to a model, so that the answer is checked as a whole before it is shown.
    order = ["router: ", "retrieval: Searching", "evidence: ", "guard: ", "model google_genai:", "tool find_symbol: "]
    order.append("text begins")
    places = [next(number for number, line in enumerate(told) if line.startswith(each)) for each in order]
    assert places == sorted(places)
    assert told[-1].startswith("answer: broad, by google_genai:gemini-flash-latest, 1 citations")
    assert told[-1].endswith("in 1 pieces; 1,100 tokens in, 35 out")
    assert not any(" = " in line for line in told)


@pytest.mark.exhaustive
def test_a_verbose_trace_adds_the_state(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.replies.append(says(WRITTEN))

    done = citebot("ask", LOOKUP, "--json", "--verbose")

    assert done.answer["model"]
    assert 'cleaned_query = "where is parse_date defined?"' in done.err
    assert "final_answer = " in done.err
    assert KEY not in done.err


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (Failure(status=404), "the provider has no language model of the configured name"),
        (Failure(status=429, reason="RESOURCE_EXHAUSTED"), "the quota of the language model is used up"),
        (Failure(status=400), "the provider of the language model refused the request"),
        (Failure(status=503), "the provider of the language model is down"),
        (withholds("SAFETY"), "the provider of the language model withheld its answer"),
        (blocks_prompt(), "the provider of the language model withheld its answer"),
        (withholds("STOP"), "the language model gave an empty answer"),
        (withholds("MAX_TOKENS"), "the language model reached its length limit before it wrote anything"),
        (calls(("grep", {"pattern": "pay"})), "the language model kept calling tools instead of answering"),
    ],
)
def test_a_failing_model_leaves_an_answer_from_the_code(
    citebot: Citebot, gemini: FakeGemini, caplog: pytest.LogCaptureFixture, failure: Reply | Failure, reason: str
) -> None:
    gemini.script = lambda _: failure

    answer = citebot("ask", LOOKUP, "--json").answer

    first, _, rest = answer["answer"].partition("\n\n")
    assert first == f"*Without the language model, because {reason}.*"
    assert rest.startswith("`")
    assert (answer["model"], bool(answer["citations"])) == (None, True)
    assert "the answer is quoted from the code: " in caplog.text


@pytest.mark.parametrize(
    "refusal",
    [
        Failure(status=429, message="Quota exceeded. Please retry in 0.4s.", reason="RESOURCE_EXHAUSTED"),
        Failure(status=429, reason="RESOURCE_EXHAUSTED", retry_delay="0.4s"),
    ],
)
def test_a_model_that_is_asked_too_often_is_asked_again_when_it_says(
    citebot: Citebot, gemini: FakeGemini, refusal: Failure
) -> None:
    gemini.replies += [refusal, says(WRITTEN)]

    assert citebot("ask", LOOKUP, "--json").answer["answer"] == "The function `parse_date` reads it [1]."
    assert len(gemini.received) == 2


@pytest.mark.exhaustive
def test_a_wait_that_the_question_has_no_time_for_is_not_begun(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MAX_SECONDS", "30")
    gemini.script = lambda _: Failure(status=429, message="Please retry in 55.5s.", reason="RESOURCE_EXHAUSTED")

    answer = citebot("ask", LOOKUP, "--json").answer

    assert answer["answer"].count("because the quota of the language model is used up") == 1
    assert len(gemini.received) == 1


async def test_the_first_word_may_take_as_long_as_the_model_is_waited_for(tmp_path: Path) -> None:
    settings = Settings.load({"GOOGLE_API_KEY": KEY, "CITEBOT_MODEL_TIMEOUT": "90"}, tmp_path)

    async with open_models(settings) as models:
        assert isinstance(models, ChatModels)
        assert (models.retry.first, models.retry.whole) == (90.0, 90.0)


def test_a_question_that_needs_the_model_to_look_is_answered_without_it(citebot: Citebot, gemini: FakeGemini) -> None:
    gemini.script = lambda _: Failure(status=429)

    answer = citebot("ask", BROAD, "--json").answer

    assert answer["answer"].count("because the quota of the language model is used up") == 1
    assert "shop/orders.py" in [citation["path"] for citation in answer["citations"]]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_key_is_told_by_the_name_of_its_variable(
    citebot: Citebot, gemini: FakeGemini, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    gemini.script = lambda _: Failure(status=status, message=f"API key not valid: {KEY}", reason="API_KEY_INVALID")

    done = citebot("--debug", "ask", LOOKUP, "--json", "--verbose")

    assert done.answer["citations"]
    assert "because the provider of the language model refused the API key" in done.answer["answer"]
    assert "refused the API key; set the variable GOOGLE_API_KEY to a valid one" in caplog.text
    assert KEY not in done.out + done.err + caplog.text
    assert len(gemini.received) == 1


@pytest.mark.usefixtures("shop")
@pytest.mark.exhaustive
def test_text_of_a_model_that_breaks_off_is_taken_back(forks: ForkServer, gemini: FakeGemini) -> None:
    begun = Event()
    gemini.script = lambda _: breaks("Half of a sentence that goes on and on, " * 40, read=begun)

    with forks.listening(run_citebot, "ask", LOOKUP, "--json", "--trace") as asking:
        asking.read_until('text begins: "Half of')
        begun.set()
        traced = asking.err.read()
        answer = json.loads(asking.out.read())

    assert "text is withdrawn" in traced
    assert "Half of a sentence" not in answer["answer"]
    assert answer["answer"].startswith("*Without the language model, because the provider of the language model")


@pytest.mark.exhaustive
def test_a_provider_that_cannot_be_reached_leaves_an_answer(citebot: Citebot, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(random, "uniform", lambda *_: 0.01)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_API_BASE_URL", f"http://127.0.0.1:{port}")

    done = citebot("ask", LOOKUP, "--json")

    assert "because the provider of the language model is down" in done.answer["answer"]
    assert done.answer["citations"]


@pytest.mark.exhaustive
def test_a_model_that_never_answers_leaves_an_answer(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL_TIMEOUT", "0.2")
    gemini.script = lambda _: hangs()

    answer = citebot("ask", LOOKUP, "--json").answer

    assert "because the language model did not answer in time" in answer["answer"]


def test_the_fallback_model_takes_over(citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "google_genai:gone")
    monkeypatch.setenv("CITEBOT_FALLBACK_MODEL", "google_genai:there")
    gemini.replies += [Failure(status=404), says(WRITTEN)]

    answer = citebot("ask", LOOKUP, "--json").answer

    assert (answer["model"], answer["answer"]) == ("google_genai:there", "The function `parse_date` reads it [1].")
    assert [asked.model for asked in gemini.received] == ["gone", "there"]


@pytest.mark.exhaustive
def test_the_small_model_chooses_where_to_look_for_a_model_that_cannot_call_tools(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_SMALL_MODEL", "google_genai:small")
    forms = {"RouterOutput": SEARCHES, "GradeOutput": {"verdict": "enough", "relevant": [1]}}

    def script(asked: Received) -> Reply | Failure:
        if "tools" in asked.body:
            return Failure(status=400, message="Function calling is not supported for this model")
        return fills(forms[form_of(asked)]) if asked.is_form else says("By `pay` [E1].")

    gemini.script = script

    assert citebot("ask", BROAD, "--json").answer["model"] == "google_genai:gemini-flash-latest"
    assert {(asked.model, asked.is_form, "tools" in asked.body) for asked in gemini.received} == {
        ("gemini-flash-latest", False, True),
        ("small", True, False),
        ("gemini-flash-latest", False, False),
    }


@pytest.mark.exhaustive
def test_the_name_none_switches_the_model_off(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "none")

    answer = citebot("ask", LOOKUP, "--json").answer

    assert answer["model"] is None
    assert gemini.received == []


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("gogle:gemini", "There is no language model 'gogle:gemini'. Possible are google_genai:MODEL"),
        ("google_genai:gemini-2.5-flash", "needs a key: set the variable GOOGLE_API_KEY."),
        ("gemini-2.5-flash", "CITEBOT_MODEL: write it as provider:model, such as google_genai:"),
    ],
)
def test_a_model_that_cannot_be_set_up_is_refused(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch, model: str, sentence: str
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", model)

    assert sentence in citebot("ask", LOOKUP, "--json").complaint


@pytest.mark.exhaustive
def test_without_a_model_no_provider_is_imported(shop: Path) -> None:
    code = (
        "import sys; from bot.cli.main import run\n"
        f"assert run(['ask', {LOOKUP!r}, '--json']) == 0\n"
        "sys.exit(any(name.startswith(('langchain_google_genai', 'google.genai', 'PIL')) for name in sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False, timeout=LIMIT_SECONDS
    )

    assert done.returncode == 0, done.stderr


# Questions that wait for a person


def form_of(asked: Received) -> str:
    """The name of the form that is to be filled in; empty if text is asked for."""
    schema = asked.body["generationConfig"].get("responseJsonSchema", {})
    return str(schema.get("title", ""))


def plans(asked: Received) -> Reply:
    """Investigate by a plan of two steps, each of which searches once."""
    if "make_plan" in str(asked.body.get("tools")) and "Notes of the research" not in asked.prompt:
        return calls(("make_plan", PLANS))
    if "tools" in asked.body and "functionResponse" not in str(asked.body["contents"]):
        return calls(("search_codebase", {"query": "pay the order"}))
    return says("It is paid by `pay` [E1].")


READINGS = "It is paid by `pay` [E1]. You may also have meant the parcels."


def asks_back(asked: Received) -> Reply:
    """Ask what is meant, unless that was said or nobody could say it."""
    if "Nobody can reply to a question of yours" in asked.prompt:
        return says(READINGS)
    said = "the order's" in asked.prompt
    return says("It is paid by `pay` [E1].") if said else calls(("ask_person", {"question": "Which payment?"}))


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that is standard input."""
    path = tmp_path / "lines"
    path.touch()
    with path.open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield path


def test_a_question_that_waits_is_shown_and_told_where_to_reply(
    citebot: Citebot, gemini: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_APPROVAL_CALLS", "1")
    gemini.script = plans

    done = citebot("ask", BROAD)

    assert done.code == 1
    assert "1. `Find pay`\n2. `Read send`" in done.out
    assert "Ask it in `citebot chat`" in done.err


@pytest.mark.parametrize(("reply", "outcome"), [("approve", "paid by `pay` [1]"), ("abort", "not approved")])
def test_the_next_line_of_a_chat_decides_about_a_plan(
    citebot: Citebot,
    gemini: FakeGemini,
    monkeypatch: pytest.MonkeyPatch,
    lines: Path,
    reply: str,
    outcome: str,
) -> None:
    monkeypatch.setenv("CITEBOT_APPROVAL_CALLS", "1")
    gemini.script = plans
    lines.write_text(f"{BROAD}\n{reply}\n", encoding="utf-8")

    done = citebot("chat")

    assert done.code == 0, done
    assert done.out.index("Reply `approve` or `abort`.") < done.out.index(outcome)
    assert done.err.count("(Your next line is the reply.)") == 1


def test_the_next_line_of_a_chat_answers_what_was_asked_back(citebot: Citebot, gemini: FakeGemini, lines: Path) -> None:
    gemini.script = asks_back
    lines.write_text(f"{BROAD}\nthe order's\n", encoding="utf-8")

    done = citebot("chat")

    assert done.code == 0, done
    assert done.out.startswith("Which payment?\n")
    assert "It is paid by `pay` [1]." in done.out


@pytest.mark.exhaustive
def test_an_unclear_question_that_nobody_can_be_asked_about_is_answered_with_its_other_readings(
    citebot: Citebot, gemini: FakeGemini
) -> None:
    gemini.script = asks_back

    done = citebot("ask", BROAD)

    assert done.code == 0
    assert done.out.startswith("It is paid by `pay` [1]. You may also have meant the parcels.")
    assert "ask_person" not in str(gemini.received[0].body["tools"])


@pytest.mark.exhaustive
def test_a_model_that_asks_back_although_nobody_can_reply_is_told_so_and_answers(
    citebot: Citebot, gemini: FakeGemini
) -> None:
    gemini.replies += [calls(("ask_person", {"question": "Which payment?"})), says(READINGS)]

    done = citebot("ask", BROAD)

    assert (done.code, done.out.partition("[")[0]) == (0, "It is paid by `pay` ")
    assert "Nobody can reply to a question here." in str(gemini.received[1].body["contents"])


@pytest.mark.exhaustive
def test_a_model_without_tools_cannot_ask_back_where_nobody_can_reply(citebot: Citebot, gemini: FakeGemini) -> None:
    forms = {
        "RouterOutput": {"route": "clarify", "clarification": "Which payment?"},
        "GradeOutput": {"verdict": "enough", "relevant": [1]},
    }

    def script(asked: Received) -> Reply | Failure:
        if "tools" in asked.body:
            return Failure(status=400, message="Function calling is not supported for this model")
        return fills(forms[form_of(asked)]) if asked.is_form else asks_back(asked)

    gemini.script = script

    assert citebot("ask", BROAD).out.startswith("It is paid by `pay` [1]. You may also have meant the parcels.")
