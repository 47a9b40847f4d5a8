"""Searching text by pattern: what is found, what is refused, and what ends a search."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import BadPattern
from indexer.generations.grep import MAX_LINE, MAX_PATTERN, MAX_PATTERNS, MAX_PER_FILE, grep_texts
from indexer.types import Location, Match, Matches

ORDERS = "class Order:\n    total = 0\n\ndef total(order):\r\n    return order.total\n"


def found(text: str, pattern: str, *, limit: int = 100) -> list[tuple[int, str]]:
    return [(m.location.start_line, m.text) for m in grep_texts([("a.py", text)], pattern, limit=limit).lines]


def test_every_line_is_found_once_and_whole() -> None:
    assert grep_texts([("a.py", ORDERS)], "order", limit=10) == Matches(
        lines=(
            Match(location=Location(path="a.py", start_line=4, end_line=4), text="def total(order):"),
            Match(location=Location(path="a.py", start_line=5, end_line=5), text="    return order.total"),
        ),
        files_searched=1,
        complete=True,
        files=1,
        counts=(2,),
    )


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("^def", [4]),
        ("total$", [5]),
        ("^class|^def", [1, 4]),
        ("(?i)ORDER", [1, 4, 5]),
        ("Order:[^x]*total", []),
        ("^$", [3]),
        ("", None),
    ],
)
def test_a_pattern_never_leaves_its_line(pattern: str, lines: list[int] | None) -> None:
    if lines is None:
        with pytest.raises(BadPattern):
            found(ORDERS, pattern)
    else:
        assert [number for number, _ in found(ORDERS, pattern)] == lines


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "x" * (MAX_PATTERN + 1), "a{1,100000}", "\udc80", "*"])
def test_what_is_no_pattern_gets_a_sentence(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"\.$"):
        found(ORDERS, pattern)


def test_the_limit_is_kept_and_told() -> None:
    matches = grep_texts([("a.py", ORDERS), ("b.py", ORDERS)], "order", limit=3)

    assert ([m.location.path for m in matches.lines], matches.complete) == (["a.py", "a.py", "b.py"], False)


def test_one_file_cannot_take_all_places() -> None:
    matches = grep_texts([("a.txt", "x\n" * 1000), ("b.txt", "x\n")], "x", limit=500)

    assert (len(matches.lines), matches.complete) == (MAX_PER_FILE + 1, False)


def test_time_ends_a_search_between_files() -> None:
    ticks = iter([0.0, 0.5, 3.0])
    matches = grep_texts(
        [("a.py", ORDERS), ("b.py", ORDERS)], "class", limit=10, seconds=2.0, clock=lambda: next(ticks)
    )

    assert (matches.files_searched, matches.complete, matches.is_out_of_time) == (1, False, True)


def test_waiting_for_other_work_uses_up_no_time() -> None:
    assert inspect.signature(grep_texts).parameters["clock"].default is time.thread_time


def test_patterns_asked_together_read_each_text_once_and_keep_their_own_limits() -> None:
    read: list[str] = []

    def texts() -> Iterator[tuple[str, str]]:
        for path in ("a.py", "b.py"):
            read.append(path)
            yield path, ORDERS

    matches = grep_texts(texts(), "total", "^class", "nothing", limit=4, total=2)

    assert read == ["a.py", "b.py"]
    places = [(one.location.path, one.location.start_line) for one in matches.lines]
    assert places == [("a.py", 1), ("a.py", 2), ("a.py", 4), ("a.py", 5), ("b.py", 1), ("b.py", 2)]
    assert (matches.counts, matches.complete, matches.files) == ((6, 2, 0), False, 2)


@given(
    st.lists(st.sampled_from(["a", "b+", "^a", "a$", "(?i)B", "a|b", "."]), min_size=1, max_size=4, unique=True),
    st.text(alphabet="abB\n ", max_size=60),
)
def test_several_patterns_find_what_each_finds_alone(patterns: list[str], text: str) -> None:
    alone = {number for pattern in patterns for number, _ in found(text, pattern)}
    together = grep_texts([("a.py", text)], *patterns, limit=100)

    assert [one.location.start_line for one in together.lines] == sorted(alone)


@pytest.mark.parametrize("patterns", [(), ("a",) * (MAX_PATTERNS + 1)])
def test_too_few_or_too_many_patterns_get_a_sentence(patterns: tuple[str, ...]) -> None:
    with pytest.raises(BadPattern, match=r"\.$"):
        grep_texts([("a.py", ORDERS)], *patterns, limit=5)


def test_long_lines_are_cut() -> None:
    assert len(found("y" * 10_000, "y")[0][1]) == MAX_LINE


@given(st.text(alphabet="ab\n\r é\U0001f600", max_size=60), st.sampled_from(["a", "b+", "^a", "a$", "é", "a|b", "."]))
def test_lines_agree_with_a_line_by_line_search(text: str, pattern: str) -> None:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    expected = [number for number, line in enumerate(lines, 1) if re.search(pattern, line.replace("\r", "x"))]
    ours = [number for number, _ in found(text.replace("\r", "x"), pattern)]

    assert ours == expected[: MAX_PER_FILE + 1]
