"""Texts are compared in full, and in bounded time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sandbox.patch import find_changes
from tests.work import find_steepness

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b""]), max_size=30)


@given(LINES, LINES)
def test_the_changes_lead_from_the_old_text_to_the_new_one(old: list[bytes], new: list[bytes]) -> None:
    made: list[bytes] = []
    position = 0
    for old_from, old_to, new_from, new_to in find_changes(old, new):
        made += old[position:old_from] + new[new_from:new_to]
        position = old_to

    assert made + old[position:] == new


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("", "", []),
        ("abc", "abc", []),
        ("abc", "axc", [(1, 2, 1, 2)]),
        ("abc", "ac", [(1, 2, 1, 1)]),
        ("ac", "abc", [(1, 1, 1, 2)]),
        ("abcde", "bcdex", [(0, 1, 0, 0), (5, 5, 4, 5)]),
        ("", "ab", [(0, 0, 0, 2)]),
    ],
)
def test_no_line_changes_that_need_not(old: str, new: str, changes: list[tuple[int, int, int, int]]) -> None:
    assert find_changes([*map(str.encode, old)], [*map(str.encode, new)]) == changes


@pytest.mark.exhaustive
def test_texts_with_nothing_in_common_are_replaced_as_a_whole_in_few_steps() -> None:
    def compare(length: int) -> object:
        return find_changes(*([b"%s%d\n" % (letter, n % 977) for n in range(length)] for letter in (b"a", b"b")))

    assert find_steepness(compare) == ""
    assert compare(5_000) == [(0, 5_000, 0, 5_000)]
