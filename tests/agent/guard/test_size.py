"""The length limit on questions: checked first, in linear time, and without counting extra white space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guard.size import MAX_QUESTION, MAX_RAW_TEXT, clip, fit_text, squeeze


@given(st.text(max_size=200))
def test_what_is_short_stays_as_it_is(text: str) -> None:
    assert fit_text(text) == text


@given(st.lists(st.sampled_from(["a", "word", " ", "\t", "\n", "\r\n", "  ", "\u3000"])))
def test_a_text_either_fits_with_all_its_words_or_not_at_all(parts: list[str]) -> None:
    text = "".join(parts)

    fitting = fit_text(text, 20)

    assert fitting is None or (len(fitting) <= 20 and fitting.split() == text.split())
    assert (fitting is None) == (len(text) > 20 and len(squeeze(text)) > 20)


def test_a_log_with_columns_fits_by_its_words() -> None:
    line = "12:00:01      WARNING      shop.orders      the order was not paid\n\n"

    fitting = fit_text(line * 60)

    assert fitting is not None
    assert fitting.splitlines()[0] == "12:00:01 WARNING shop.orders the order was not paid"
    assert len(fitting.splitlines()) == 60


def test_a_line_that_is_set_in_stays_set_in() -> None:
    assert squeeze("Traceback:\n    File x\n\n\n  y") == "Traceback:\n File x\n y"


@pytest.mark.parametrize(
    "text", ["x" * (MAX_QUESTION + 1), "x " * 3_000, " " * MAX_RAW_TEXT + "x", "x" + " " * MAX_RAW_TEXT]
)
def test_what_does_not_fit_is_kept_as_a_beginning_that_does_not_fit_either(text: str) -> None:
    assert fit_text(text) is None
    assert len(clip(text)) == MAX_QUESTION + 1
    assert fit_text(clip(text)) is None
