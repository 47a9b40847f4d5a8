"""Questions are parsed: intents, forms, mentions, stack traces, and references to earlier turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.questions.follow_ups import Antecedent, find_antecedent, is_pointing_back, resolve_references
from agent.questions.intent import clean_question, find_small_talk, is_history_request, is_repeat_request
from agent.questions.mentions import PathMention, find_mentions, refer_to_project
from agent.questions.stack_traces import StackFrame, parse_error_name, parse_frames
from agent.questions.terms import find_content_terms, match_terms, split_words, stem_word
from agent.state import PastTurn

_SAID = (
    "tries",
    "try",
    "flies",
    "butterfly",
    "retries",
    "parser",
    "ParseDate",
    "HTTPServer",
    "İSTANBUL",
    "straße",
    "ΟΔΟΣ",
)
SEND = Antecedent(symbol="Session.send", kind="method", path="app/session.py")


def turn(symbol: str = "", path: str = "") -> PastTurn:
    return {
        "question": "q",
        "answer": "a",
        "intent": "new_question",
        "citations": [],
        "symbol": symbol,
        "kind": "",
        "path": path,
        "repository": "shop",
        "commit": "c",
        "asked_at": 0.0,
    }


@pytest.mark.parametrize(
    ("question", "resolved"),
    [
        ("and who calls it?", "who calls `Session.send`?"),
        ("what about its tests?", "what about `Session.send`'s tests?".removeprefix("what about ")),
        ("show me that class", "show me `Session`"),
        ("where is that defined", "where is `Session.send` defined"),
        ("and the callers?", "callers of `Session.send`"),
        ("what about tests?", "tests of `Session.send`"),
        ("why?", "how does `Session.send` work"),
        ("show me that file", "show me `app/session.py`"),
        ("what does it call?", "what does `Session.send` call?"),
        ("who else calls this function?", "who else calls `Session.send`?"),
        ("what does this return?", "what does `Session.send` return?"),
        ("are they tested?", "are `Session.send` tested?"),
    ],
)
def test_a_pointer_is_replaced_by_what_it_means(question: str, resolved: str) -> None:
    assert is_pointing_back(question)
    assert resolve_references(question, SEND) == resolved


@pytest.mark.parametrize(
    "question",
    [
        "where is the code that parses dates?",
        "How does the retry loop know when it should stop?",
        "Is it possible to configure retries?",
        "does this project support plugins?",
        "what happens in this repository at startup?",
        "where are payment retries handled?",
    ],
)
def test_a_question_with_its_own_words_points_at_nothing(question: str) -> None:
    assert not is_pointing_back(question)


def test_it_means_the_newest_symbol_then_the_newest_file() -> None:
    found = find_antecedent([turn(symbol="a", path="x.py"), turn(symbol="b"), turn()])
    assert found == Antecedent(symbol="b", kind="", path="")
    assert find_antecedent([turn(path="x.py")]) == Antecedent(symbol="", kind="", path="x.py")
    assert find_antecedent([turn()]) is None


def test_politeness_before_a_question_is_dropped() -> None:
    assert clean_question("Hi, can you tell me where parse_date is defined?") == "where parse_date is defined?"
    assert clean_question("ok and who calls it?") == "who calls it?"
    assert clean_question("hello") == "hello"


@pytest.mark.parametrize(
    ("question", "name", "path"),
    [
        ("parse_dateを呼び出しているのは誰ですか", "parse_date", ""),
        ("どこでparse_dateが定義されていますか", "parse_date", ""),
        ("在哪里调用parse_date", "parse_date", ""),
        ("parse_date는 어디에 정의되어 있나요", "parse_date", ""),
        ("app/x.pyに何がある", "", "app/x.py"),
        ("`計算_x`の定義", "計算_x", ""),
    ],
)
def test_a_name_ends_where_words_of_another_script_begin(question: str, name: str, path: str) -> None:
    found = find_mentions(question)

    assert [*found.names] == [name] * bool(name)
    assert [one.path for one in found.paths] == [path] * bool(path)


def test_mentions_are_told_from_prose() -> None:
    found = find_mentions("Why does HTTPServer call parse_date() in src/app.py:12-20, e.g. with 0xFF and `x y`?")
    assert found.names == ("HTTPServer", "parse_date")
    assert found.paths == (PathMention(path="src/app.py", start_line=12, end_line=20),)
    assert found.codes == ("0xFF",)


@pytest.mark.parametrize(
    "question", ["app/x.py:7", "line 7 of app/x.py", "app/x.py#L7", "`app/x.py` or app/x.py line 7", "app\\x.py:7"]
)
def test_a_line_of_a_file_is_read_however_it_is_written(question: str) -> None:
    assert PathMention(path="app/x.py", start_line=7, end_line=7) in find_mentions(question).paths


@pytest.mark.parametrize("question", ["where are retries handled?", "What is Django?", "i.e. the thing", "and/or"])
def test_plain_words_name_no_code(question: str) -> None:
    assert find_mentions(question).names == ()


@pytest.mark.parametrize(
    ("trace", "frames"),
    [
        (
            'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f\n  File "b.py", line 2, in g\nE: x',
            (StackFrame(path="b.py", line=2, function="g"), StackFrame(path="/srv/a.py", line=1, function="f")),
        ),
        (
            "TypeError: x\n    at foo (/srv/app/src/index.js:10:5)\n    at /srv/b.ts:3:1",
            (StackFrame(path="/srv/app/src/index.js", line=10, function="foo"), StackFrame(path="/srv/b.ts", line=3)),
        ),
        (
            "java.lang.RuntimeException: x\n\tat com.acme.Foo$Bar.run(Foo.java:12)",
            (StackFrame(path="com/acme/Foo.java", line=12, function="run"),),
        ),
        (
            "panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/home/x/main.go:12 +0x1d",
            (StackFrame(path="/home/x/main.go", line=12, function="main"),),
        ),
        (
            "thread 'main' panicked at src/main.rs:10:5:\nboom\n   0: f\n             at src/lib.rs:3:4",
            (StackFrame(path="src/main.rs", line=10), StackFrame(path="src/lib.rs", line=3)),
        ),
        ("app/x.rb:12:in `call'", (StackFrame(path="app/x.rb", line=12),)),
        ("   at A.B() in C:\\src\\A.cs:line 7", (StackFrame(path="C:/src/A.cs", line=7),)),
        ("what is in main.go:12?", ()),
    ],
)
def test_stack_traces_are_read_innermost_first(trace: str, frames: tuple[StackFrame, ...]) -> None:
    assert parse_frames(trace) == frames


def test_the_error_of_a_trace_is_its_last() -> None:
    assert parse_error_name("KeyError: 1\n\nTraceback\nshop.payments.PaymentError: no") == "PaymentError"
    assert parse_error_name("all is well") == ""


@pytest.mark.parametrize(
    "question", ["what did I ask?", "What have we talked about so far?", "list my previous questions"]
)
def test_the_history_is_asked_for_in_many_words(question: str) -> None:
    assert is_history_request(question)


def test_questions_about_history_in_code_are_no_history_requests() -> None:
    assert not is_history_request("where is the chat history stored?")
    assert not is_repeat_request("what repeats the job?")


@pytest.mark.parametrize(
    "question", ["what can you do?", "Was kannst du?", "que peux-tu faire ?", "¿qué puedes hacer?", "何ができますか？"]
)
def test_what_citebot_can_do_is_asked_in_several_languages(question: str) -> None:
    assert find_small_talk(question) == "abilities"


@pytest.mark.parametrize(
    "question",
    ["how does the weather client work?", "where is the greeting hello built?", "who are you calling in run()?"],
)
def test_code_that_sounds_like_small_talk_is_not(question: str) -> None:
    assert find_small_talk(question) is None


def test_inflections_share_a_stem() -> None:
    assert {stem_word(word) for word in ("parse", "parser", "parsing", "parses", "parsed")} == {"pars"}
    assert stem_word("retries") == stem_word("retry")
    assert find_content_terms("Where are payment retries handled?") == {"payment", "retry"}
    assert match_terms("def maxRetry(payment_id)", {"payment", "retry", "bank"}) == {"payment", "retry"}


@pytest.mark.parametrize("text", ["max_tries = 3", "when ties are broken", "maxTries"])
def test_a_word_of_three_letters_is_known_by_its_plural(text: str) -> None:
    terms = find_content_terms(text)
    assert match_terms(text, terms) == terms


@given(
    st.lists(st.sampled_from(_SAID), max_size=9), st.lists(st.sampled_from(_SAID), max_size=9), st.sampled_from(" _")
)
def test_looking_at_beginnings_first_overlooks_no_word(asked: list[str], said: list[str], between: str) -> None:
    terms, text = find_content_terms(" ".join(asked)), between.join(said)
    assert match_terms(text, terms) == terms & {stem_word(word) for word in split_words(text)}


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("what does viper do?", "what does this project do?"),
        ("what is Viper's purpose", "what is this project's purpose"),
        ("how is viper.New used", "how is viper.New used"),
        ("what is in src/viper?", "what is in src/viper?"),
        ("what does `viper` do", "what does `viper` do"),
    ],
)
def test_the_name_of_the_repository_is_read_as_this_project(question: str, read: str) -> None:
    assert refer_to_project(question, "spf13/viper") == read
