"""Every reader of text from outside does work that grows with the text alone, whatever somebody puts into it."""

from __future__ import annotations

import pytest

from tests.entry_points import ENTRY_POINTS, PIECES, read_all
from tests.work import find_steep_piece

pytestmark = pytest.mark.exhaustive


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_the_work_grows_no_faster_than_the_text(name: str) -> None:
    assert find_steep_piece(read_all(ENTRY_POINTS[name]), PIECES) == ""


def test_work_that_grows_faster_than_the_text_is_found() -> None:
    def compare_all(text: str) -> None:
        for _ in range(len(text) // 20):
            for _ in range(len(text) // 20):
                pass

    assert find_steep_piece(compare_all, ["a"]) != ""
