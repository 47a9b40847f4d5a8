"""Remarks that ask for nothing: every sentence of the table is tried, for it and against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from agent.questions.intent import find_small_talk
from agent.questions.remarks import (
    LONGEST,
    RemarkKind,
    find_remark,
    is_bare_question,
    is_statement,
    is_stop_request,
    load_remarks,
)

RULES = load_remarks().rules
CHECKS: Mapping[RemarkKind, Callable[[str], bool]] = {
    "bare": is_bare_question,
    "statement": is_statement,
    "stop": is_stop_request,
}


def is_said(text: str) -> bool:
    return find_small_talk(text) is not None


def test_the_examples_of_the_table_are_remarks_and_its_counterexamples_are_not() -> None:
    checks = [(CHECKS.get(rule.kind, is_said), rule) for rule in RULES]
    missed = [text for is_one, rule in checks for text in rule.examples if not is_one(text)]
    taken = [text for is_one, rule in checks for text in rule.others if is_one(text)]
    assert (missed, taken) == ([], [])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ok, thanks a lot, bye!", "thanks"),
        ("great, that works", "remark"),
        ("Hmmmmm", "remark"),
        ("hi all", "greeting"),
        ("see you tomorrow", "farewell"),
        ("I’ll look tomorrow", "remark"),
    ],
)
def test_a_remark_has_a_kind(text: str, kind: str) -> None:
    assert find_remark(text) == kind


def test_a_long_message_says_something() -> None:
    assert find_remark("ok " * LONGEST) is None
    assert not is_bare_question("any idea " * LONGEST)
    assert not is_statement("I think so " * LONGEST)
    assert not is_stop_request("stop " * LONGEST)


def test_every_rule_has_its_sentences() -> None:
    assert all(rule.says and rule.examples and rule.others for rule in RULES)
