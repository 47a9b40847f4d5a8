"""Questions with known answers: what `citebot eval` reports, compares, and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.citebot import Citebot
from tests.fakes.gemini import running_gemini, says

RIGHT = '[[questions]]\nquestion = "where is parse_date defined?"\nplaces = ["shop/dates.py:6-8"]\n'
WRONG = '[[questions]]\nquestion = "who calls parse_date?"\nwords = [["load_order", "orders"], "load_nothing"]\n'
MODEL = "google_genai:gemini-flash-latest"


def write(text: str, name: str = "questions.toml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_each_question_is_found_cited_and_right_or_not(citebot: Citebot) -> None:
    done = citebot("eval", write(RIGHT + WRONG))

    rows = [line.split() for line in done.out.splitlines()]
    assert (rows[1][:4], rows[2][:4]) == (["yes", "yes", "yes", "new"], ["yes", "yes", "no", "new"])
    assert "does not say 'load_nothing'" in done.out
    assert done.out.endswith("Of 2: 2 found, 2 cited, 1 right. 0 tokens, $0.\n")
    assert done.code == 0


def test_a_question_that_got_worse_fails_until_it_is_right_or_accepted(citebot: Citebot) -> None:
    assert citebot("eval", write(RIGHT)).code == 0
    write(RIGHT.replace("dates.py:6-8", "payments.py"))
    worse, again = citebot("eval", "questions.toml"), citebot("eval", "questions.toml")

    assert (worse.code, again.code) == (1, 1)
    assert "no    no    worse" in again.out
    assert "cites none of shop/payments.py" in worse.out
    assert "0 right (last run: 1)." in worse.out
    assert citebot("eval", "questions.toml", "--accept").code == 1
    assert citebot("eval", "questions.toml").code == 0
    assert "better" in (citebot("eval", write(RIGHT)).out)


def test_too_few_right_answers_fail(citebot: Citebot) -> None:
    assert citebot("eval", write(RIGHT + WRONG), "--threshold", "50").code == 0

    done = citebot("eval", "questions.toml", "--threshold", "51", "--json")
    told = json.loads(done.out)
    assert (done.code, told["ok"], told["right"]) == (1, False, 1)
    assert [row["right"] for row in told["questions"]] == [True, False]


def test_who_may_ask_is_checked_by_the_rules_of_access(
    citebot: Citebot, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = '[[access.rules]]\nrepositories = ["shop"]\npeople = ["slack:U1"]\n'
    repository = f'[[repositories]]\nname = "shop"\npath = "{shop}"\n'
    monkeypatch.setenv("CITEBOT_CONFIG", write(rules + repository, "citebot.toml"))
    done = citebot(
        "eval", write(f'{RIGHT}repository = "shop"\nseen_by = ["slack:U1", "slack:U2"]\nhidden_from = "slack:U3"\n')
    )

    assert [line.strip() for line in done.out.splitlines() if "slack:" in line] == ["slack:U2 may not ask about shop"]


def test_tokens_and_cost_of_a_model_are_summed_and_no_model_is_asked_without(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "CITEBOT_CONFIG", write(f'[prices."{MODEL}"]\ninput = 10_000\noutput = 50_000\n', "citebot.toml")
    )
    with running_gemini() as gemini:
        gemini.script = lambda _: says("It is `parse_date` [E1].", usage=(100, 20))
        monkeypatch.setenv("GOOGLE_API_KEY", "planted-key")
        monkeypatch.setenv("GOOGLE_API_BASE_URL", gemini.url)
        done = citebot("eval", write(RIGHT))
        asked = len(gemini.received)
        without = citebot("eval", "questions.toml", "--no-model")

        assert f"{120 * asked:,} tokens, ${2.0 * asked:.2f}." in done.out
        assert "new" in without.out  # the last run with a model is another one
        assert len(gemini.received) == asked


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[questions]]\nquestion = "a?"\nplace = "b"\n',
            "question 1 (line 1): place: there is no such key; there are: ",
        ),
        (f'{RIGHT}\n[[questions]]\nplaces = ["a.py:x"]\n', "question 2 (line 5): question: this key is missing"),
        (
            f'{RIGHT}\n[[questions]]\nplaces = ["a.py:x"]\n',
            "question 2 (line 5): places.0: write it as PATH, PATH:LINE",
        ),
        ('[[questions]]\nquestion = "a?"\n', "question 1 (line 1): a question needs the `places` or `words`"),
        (RIGHT + RIGHT, "questions: the question 'where is parse_date defined?' appears twice"),
        ("questions = []\n", "questions: there are no questions; write a table [[questions]] for each"),
        ("[[questions\n", "cannot be read: Expected ']]' at the end of an array declaration (at line 1, column 12)"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_line_and_key(citebot: Citebot, text: str, told: str) -> None:
    done = citebot("eval", write(text))

    assert (done.code, done.out) == (1, "")
    assert told in done.err


def test_an_unknown_repository_and_a_missing_file_are_sentences(citebot: Citebot) -> None:
    assert "none.toml cannot be read: No such file or directory." in citebot("eval", "none.toml").complaint
    assert "gone does not exist." in citebot("eval", write(f'{RIGHT}repository = "./gone"\n')).complaint
