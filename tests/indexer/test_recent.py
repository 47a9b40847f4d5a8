"""What is kept of what was asked for last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from indexer.recent import Recent


def test_what_was_used_longest_ago_gives_way() -> None:
    texts: Recent[str, str] = Recent(6, len)
    texts.keep("a", "xxx")
    texts.keep("b", "xxx")
    assert texts.get("a") == "xxx"

    texts.keep("c", "x")

    assert [texts.get(key) for key in "abc"] == ["xxx", None, "x"]


def test_a_value_that_takes_the_place_of_another_weighs_what_it_weighs() -> None:
    texts: Recent[str, str] = Recent(6, len)
    texts.keep("a", "xxxxx")
    texts.keep("a", "x")
    texts.keep("b", "xxxxx")

    assert [texts.get(key) for key in "ab"] == ["x", "xxxxx"]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.text("x", max_size=9))))
def test_never_more_than_fits_is_kept_and_always_the_last(steps: list[tuple[str, str]]) -> None:
    texts: Recent[str, str] = Recent(10, len)
    for key, text in steps:
        texts.keep(key, text)
        others = [kept for other in "abcde" if other != key and (kept := texts.get(other)) is not None]
        assert texts.get(key) == text
        assert not others or sum(map(len, others)) + len(text) <= 10
