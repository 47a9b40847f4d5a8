"""Patterns on RE2 mean what they would mean to `re`, and their time grows with the text alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.text.linear_patterns import compile_pattern


@pytest.mark.parametrize(
    "pattern",
    [r"\w+", r"\W", r"\s+", r"\S+", r"\d+", r"[\w.-]+", r"[^\s:]+", r"(?i)ab|(\w)\.", r"\[(\w+)\]", r"(?m)^\w+"],
)
@given(text=st.text(alphabet="aB_1 .:[]-\n\t\xa0\u2003\x1c\x85éß中٣²\u0301\u202e", max_size=30))
def test_patterns_find_what_re_finds(pattern: str, text: str) -> None:
    ours, theirs = compile_pattern(pattern), re.compile(pattern)

    assert [found.span() for found in ours.finditer(text)] == [found.span() for found in theirs.finditer(text)]
    assert [found.groups() for found in ours.finditer(text)] == [found.groups() for found in theirs.finditer(text)]
    assert ours.sub("-", text) == theirs.sub("-", text)
    assert (ours.match(text) is None, ours.fullmatch(text) is None) == (
        theirs.match(text) is None,
        theirs.fullmatch(text) is None,
    )


@pytest.mark.parametrize("pattern", [r"\w+", r"\W", r"[\w.-]+", r"(?i)ab|(\w)\."])
@given(text=st.text(alphabet="aB_1 .:[]-\n\téß中٣", max_size=30))
def test_a_loose_pattern_finds_the_letters_of_all_scripts(pattern: str, text: str) -> None:
    ours, theirs = compile_pattern(pattern, loose=True), re.compile(pattern)

    assert [found.span() for found in ours.finditer(text)] == [found.span() for found in theirs.finditer(text)]


def test_a_loose_pattern_takes_signs_beyond_ascii_for_letters() -> None:
    assert compile_pattern(r"\w+", loose=True).fullmatch("a…") is not None


def test_half_a_character_is_read_as_one_that_is_unknown() -> None:
    found = compile_pattern(r"\w+").search("\ud800 é\udfffa b")

    assert found is not None
    assert found.span() == (2, 3)


def test_a_pattern_that_is_exponential_elsewhere_is_not_here() -> None:
    assert compile_pattern(r"(\w+\s?)+$").search("a" * 100_000 + "!") is None


def test_a_class_cannot_hold_what_another_leaves_out() -> None:
    with pytest.raises(ValueError, match=r"\\W"):
        compile_pattern(r"[^\W_]").search("")
