"""Questions about releases and environments, told from all others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent.evidence.rule_router import read_asked_release

ASKED: Mapping[str, Mapping[str, str]] = {
    "which release has commit 4f2c9d1?": {"commit": "4f2c9d1"},
    "is `4F2C9D10` in production yet?": {"commit": "4f2c9d10"},
    "is the fix of rounding in production?": {"change": "rounding"},
    "has the rounding fix been deployed to prod?": {"change": "rounding"},
    "which version contains the change that renames carts?": {"change": "renames carts"},
    "is the refund of negative amounts fixed?": {"change": "the refund of negative amounts"},
    "is refund live?": {"name": "refund"},
    "does the latest release have parse_date?": {"name": "parse_date"},
    "since which version is parse_date included?": {"name": "parse_date"},
    "in which release was parse_date shipped?": {"name": "parse_date"},
    "what runs in production?": {"running": "yes"},
    "which version is running on staging right now?": {"running": "yes"},
    "is production up to date?": {"running": "yes"},
}


@pytest.mark.parametrize(("question", "expected"), ASKED.items())
def test_what_is_asked_about(question: str, expected: Mapping[str, str]) -> None:
    assert read_asked_release(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "is parse_date used in production code?",
        "which release notes mention parse_date?",
        "how is the version computed?",
        "where do we deploy to production?",
        "what runs in production code paths?",
        "who fixed the rounding?",
        "is there a release script?",
        "is " + "x " * 400 + "released?",
    ],
)
def test_other_questions_are_none_of_these(question: str) -> None:
    assert read_asked_release(question) is None
