"""The model that tells what a question wants, by sentences that it was not fitted to."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.questions.intents.model import INTENTS, SURE, load_model
from agent.questions.intents.placeholders import mask_question
from scripts.intent_training.lines import compute_digest, read_lines
from scripts.train_intents import HELD_OUT, read_held_out
from tests.test_architecture import ROOT

# The kinds of the questions that real repositories were asked, and the intents whose lookups answer each.
ANSWERED_BY = {
    "add": {"add_another"},
    "callers": {"callers"},
    "changes": {"changes", "origin"},
    "commands": {"command"},
    "entry points": {"listing"},
    "errors": {"error"},
    "how": {"explanation", "definition"},
    "lists": {"listing"},
    "options": {"listing", "value"},
    "outline": {"contents"},
    "overview": {"overview"},
    "people": {"people"},
    "reasons": {"reason", "origin"},
    "where": {"place", "definition"},
}


def test_the_model_was_made_of_the_example_lines_as_they_are() -> None:
    assert load_model().digest == compute_digest(), "run python -m scripts.train_intents"


def test_there_are_lines_of_every_intent_in_nine_languages() -> None:
    languages = defaultdict(set)
    for line in read_lines():
        languages[line.intent].add(line.language)

    assert sorted(languages) == sorted(INTENTS)
    assert len(read_lines()) >= 3_000
    assert all({"en", "de", "fr", "es", "pt", "ru", "ja", "zh", "ko"} <= own for own in languages.values())


def test_lines_that_were_held_out_are_taken_for_what_they_are() -> None:
    held = read_held_out(HELD_OUT)
    best = [(load_model().rank(sentence)[0], intent) for intent, _, sentence in held]
    right = sum(one.name == intent for one, intent in best)
    surely_wrong = sum(one.confidence >= SURE and one.name != intent for one, intent in best)

    assert right / len(held) >= 0.75
    assert surely_wrong / len(held) <= 0.03


def test_no_line_that_was_held_out_is_among_the_examples() -> None:
    examples = {line.text for line in read_lines()}

    assert not [sentence for _, _, sentence in read_held_out(HELD_OUT) if sentence in examples]


def test_real_questions_are_taken_for_their_kind() -> None:
    questions = [
        (asked["question"], ANSWERED_BY[asked["kind"]])
        for file in sorted((ROOT / "benchmarks" / "keyless").rglob("*.json"))
        for asked in json.loads(file.read_text(encoding="utf-8"))["questions"]
    ]
    ranked = [(load_model().rank(question), wanted) for question, wanted in questions]

    assert sum(best[0].name in wanted for best, wanted in ranked) / len(ranked) >= 0.88
    assert sum(not {best[0].name, best[1].name}.isdisjoint(wanted) for best, wanted in ranked) / len(ranked) >= 0.93


@pytest.mark.parametrize(
    ("question", "masked"),
    [
        ("who calls `send`?", "who calls xsym ?"),
        ("who calls Session.send in app/mail.py:12?", "who calls xsym in xpath ?"),
        ("what changed between v1.2 and 1.3.0", "what changed between xver and xver"),
        ('why do we get "no such user: 12"?', "why do we get xmsg ?"),
        ("ask @anna about #12 or https://example.com/x", "ask xperson about xref or xurl"),
        ("e.g. on GitHub", "e.g. on GitHub"),
    ],
)
def test_what_a_question_names_is_masked_by_its_form(question: str, masked: str) -> None:
    assert mask_question(question) == masked


def test_plain_words_are_masked_as_the_repository_knows_them() -> None:
    known = {"flush": "xsym", "redis": "xlib"}

    assert mask_question("does flush use redis", lambda word: known.get(word, "")) == "does xsym use xlib"


@given(st.text(max_size=400))
def test_every_text_has_a_likeliest_intent(text: str) -> None:
    ranked = load_model().rank(text)

    assert len(ranked) == len(INTENTS)
    assert sum(one.confidence for one in ranked) == pytest.approx(1, abs=1e-3)


def test_the_model_stays_small() -> None:
    assert (ROOT / "agent" / "questions" / "intents" / "model.npz").stat().st_size <= 400 * 1024
