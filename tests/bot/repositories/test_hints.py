"""Hints in a question that can be looked up, and the repository that they speak for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.repositories.hints import (
    RepositoryHint,
    find_hints,
    is_defined,
    is_path_match,
    pick_winner,
    sort_by_likelihood,
)
from tests.fakes.parts import SEND

TRACE = """Traceback (most recent call last):
  File "/srv/app/shop/orders.py", line 12, in total
    return price(order)
shop.errors.NoPrice: there is none
OrderError: no price
"""


def texts(question: str) -> dict[str, int]:
    return {clue.text: clue.weight for clue in reversed(find_hints(question))}  # what proves most comes last


@pytest.mark.parametrize(
    ("question", "clues"),
    [
        ("where is `send`?", {"send": 1}),
        ("who calls parse_date?", {"parse_date": 3}),
        ("what does Session.send do?", {"Session.send": 4}),
        ("why does shop/orders.py:12 fail?", {"shop/orders.py": 4}),
        ("what is in read-me.md?", {"read-me.md": 2}),
        ("where is it done?", {}),
    ],
)
def test_names_and_paths_are_clues(question: str, clues: dict[str, int]) -> None:
    assert texts(question) == clues


def test_a_stack_trace_is_full_of_clues() -> None:
    assert {"/srv/app/shop/orders.py", "total", "OrderError"} <= set(texts(TRACE))


def test_a_capitalised_word_has_to_be_written_just_so() -> None:
    (clue,) = find_hints("does the Send button work?")

    assert not is_defined(clue, [SEND])
    assert is_defined(find_hints("is `Send` there?")[0], [SEND])


@pytest.mark.parametrize(
    ("written", "path", "fit"),
    [
        ("shop/orders.py", "shop/orders.py", True),
        ("orders.py", "shop/orders.py", True),
        ("/srv/app/shop/orders.py", "shop/orders.py", True),
        ("/srv/app/shop/orders.py", "web/orders.py", False),
        ("/srv/orders.py", "orders.py", True),
        ("ders.py", "shop/orders.py", False),
        ("/", "shop/orders.py", False),
    ],
)
def test_a_path_fits_an_end_of_an_indexed_one(written: str, path: str, fit: bool) -> None:
    assert is_path_match(written, path) is fit


A, B, C = (RepositoryHint(kind="name", text=text, weight=3) for text in "abc")
PATH = RepositoryHint(kind="path", text="shop/orders.py", weight=4)
WORD = RepositoryHint(kind="name", text="Order", weight=1, exact=True)


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"shop": [A], "web": []}, "shop"),
        ({"shop": [A, B], "web": [B]}, "shop"),
        ({"shop": [A, PATH], "web": [B]}, "shop"),
        ({"shop": [A], "web": [B]}, None),
        ({"shop": [A], "web": [A]}, None),
        ({"shop": [A, WORD], "web": [B]}, None),
        ({"shop": [], "web": []}, None),
        ({"shop": [PATH], "web": [WORD], "docs": []}, "shop"),
    ],
)
def test_only_what_is_clearly_meant_wins(found: Mapping[str, list[RepositoryHint]], best: str | None) -> None:
    assert pick_winner(found) == best


def test_what_more_speaks_for_is_likelier_and_order_decides_the_rest() -> None:
    found = {"shop": [A], "web": [A, B], "docs": [], "site": []}

    assert sort_by_likelihood(found, ["site", "docs", "shop", "web"]) == ("web", "shop", "site", "docs")


CLUES = st.builds(RepositoryHint, kind=st.just("name"), text=st.sampled_from("abcdef"), weight=st.integers(1, 4))
FOUND = st.dictionaries(st.sampled_from(["shop", "web", "docs", "site"]), st.frozensets(CLUES), min_size=2)


@given(FOUND)
def test_a_winner_is_the_likeliest_and_stays_so_with_more_clues(found: dict[str, frozenset[RepositoryHint]]) -> None:
    best = pick_winner(found)
    if best is None:
        return
    more = found | {best: found[best] | {RepositoryHint(kind="path", text="new.py", weight=2)}}

    assert found[best]
    assert pick_winner(more) == best
    assert pick_winner(dict(reversed(list(found.items())))) == best
