"""Approval by a word: the table of replies, and the one word that runs code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent.guard import approval
from agent.guard.approval import is_undecided, parse_decision, parse_run_decision

TABLE = tomllib.loads(Path(approval.__file__).with_name("approval.toml").read_text(encoding="utf-8"))["decisions"]
RULES = [pytest.param(rule, id=rule["decision"]) for rule in TABLE]
HESITATIONS = [
    "okay not now", "ok hold on", "ok let me look first", "yes but wait", "approve nothing", "sure, later",
    "no idea yet", "approve it tomorrow", "!approve", "~approve~", "~~yes~~", "[ ] approve",
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_every_phrase_of_the_table_decides_and_its_counterexamples_do_not(rule: dict[str, Any]) -> None:
    assert {parse_decision(text) for text in (*rule["says"], *rule["examples"])} == {rule["decision"]}
    assert [text for text in rule["others"] if parse_decision(text)] == []


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        ({"decision": "approve"}, "approve"), ({"decision": "abort"}, "abort"), ("ok, don't", "abort"),
        ("", ""), (None, ""), ("yes " * 100, ""), ({"x": 1}, ""), ("where is parse_date?", ""),
        ("ok, where is Order defined", ""),
    ],
)  # fmt: skip
def test_what_is_no_whole_message_of_the_table_decides_nothing(reply: object, decision: str) -> None:
    assert parse_decision(reply) == decision


@pytest.mark.parametrize("text", HESITATIONS)
def test_who_hesitates_decides_nothing_and_is_told(text: str) -> None:
    assert (parse_decision(text), parse_run_decision(text)[0], is_undecided(text)) == ("", "", True)


@pytest.mark.parametrize(
    "text", ["where is send?", "check that parse('7') returns [8]", "ok, who calls send()?", "make test_parser.py pass"]
)
def test_another_question_is_not_taken_for_a_reply(text: str) -> None:
    assert not is_undecided(text)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("approve", ("approve", "")), ("`Approve`.", ("approve", "")), ("approve 3f9a01bc", ("approve", "3f9a01bc")),
        ("yes", ("", "")), ("ok", ("", "")), ("approved", ("", "")), ("approve it please", ("", "")),
        ("please approve", ("", "")), ("go ahead", ("", "")), ("👍", ("", "")),
        ("no", ("abort", "")), ("abort", ("abort", "")), ("don't", ("abort", "")),
    ],
)  # fmt: skip
def test_only_the_word_itself_runs_code(text: str, decision: tuple[str, str]) -> None:
    assert parse_run_decision(text) == decision
