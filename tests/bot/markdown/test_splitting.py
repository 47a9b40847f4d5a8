"""Splitting: whatever is split, the pieces are whole, within the limit, and together the text."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.markdown.splitting import MIN, MarkdownPiece, count_units, find_fence, read_lines, split_markdown

WORDS = st.text(st.sampled_from("abc äß🎉👩‍👩‍👧éz\u0301"), min_size=1, max_size=30)
LINKS = st.builds(
    "[{}](https://git.example.com/{})".format, st.sampled_from(["src/a.py:1-2", "x y"]), st.text("ab/", max_size=40)
)
PROSE = st.lists(st.one_of(WORDS, LINKS, st.just("`code span`")), min_size=1, max_size=30).map(" ".join)
FENCED = st.builds(
    "{0}{1}\n{2}\n{0}".format,
    st.sampled_from(["```", "~~~", "````", "  ```"]),
    st.sampled_from(["", "python", "c++", "x" * 60]),
    st.lists(st.text("abc {}()=\t🎉", max_size=90), max_size=20).map("\n".join),
)
TABLES = st.lists(st.just("| name | what it is |\n"), min_size=1, max_size=12).map("".join)
ANYTHING = st.text(st.sampled_from("`~|[]()<>! \nab🎉\ud83d\udc00"), max_size=400)
MARKDOWN = st.lists(st.one_of(PROSE, FENCED, TABLES, ANYTHING), max_size=8).map("\n\n".join)
LIMITS = st.integers(MIN, 400)


def shown(pieces: list[MarkdownPiece]) -> list[str]:
    return [piece.text for piece in pieces]


@given(MARKDOWN, LIMITS, st.booleans())
def test_no_piece_is_longer_than_the_limit(text: str, limit: int, utf16: bool) -> None:
    assert all(count_units(piece.text, utf16=utf16) <= limit for piece in split_markdown(text, limit, utf16=utf16))


@given(MARKDOWN, LIMITS, st.booleans())
def test_the_parts_follow_one_another_without_a_gap(text: str, limit: int, utf16: bool) -> None:
    pieces = split_markdown(text, limit, utf16=utf16)

    edges = [0, *(piece.end for piece in pieces)]
    assert [piece.start for piece in pieces] == edges[:-1]
    assert text[edges[-1] :].strip() == "" if not pieces else edges[-1] == len(text)


@given(MARKDOWN, LIMITS)
def test_a_piece_is_its_part_of_the_text_but_for_fences(text: str, limit: int) -> None:
    for piece in split_markdown(text, limit):
        source = text[piece.start : piece.end]
        assert piece.text.count("a") >= source.count("a")
        added = piece.text.replace(source.strip("\n"), "", 1) if source.strip("\n") else piece.text
        assert source.strip("\n") in piece.text
        assert re.fullmatch(r"[\s\S]{0,130}", added)
        assert not find_fence(text, piece.start) or re.match(r"[ \t]*(```|~~~)", piece.text)


@given(MARKDOWN, LIMITS)
def test_fences_are_balanced_in_every_piece(text: str, limit: int) -> None:
    for piece in split_markdown(text, limit):
        last = [line.fence for line in read_lines(piece.text)][-1]
        assert last is None


@given(st.lists(LINKS, min_size=1, max_size=20).map(" and ".join), LIMITS)
def test_links_are_never_torn(text: str, limit: int) -> None:
    link = re.compile(r"\[[^\]]+\]\([^)\s]*\)")

    assert [found for piece in split_markdown(text, limit) for found in link.findall(piece.text)] == link.findall(text)


@given(st.text("🎉a", min_size=1, max_size=500), LIMITS)
def test_characters_of_two_units_stay_whole(text: str, limit: int) -> None:
    pieces = split_markdown(text, limit, utf16=True)

    assert "".join(shown(pieces)) == text
    assert all(len(piece.text.encode("utf-16-le")) // 2 <= limit for piece in pieces)


def test_two_halves_of_a_pair_stay_together() -> None:
    pieces = split_markdown("a" * 99 + "\ud83d\ude00" + "b" * 50, 100)

    assert [piece.text[-1] for piece in pieces] == ["a", "b"]


def test_a_code_block_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"line {number:02}" for number in range(20))
    first, second, *_ = shown(split_markdown(f"```python\n{code}\n```\nDone.", 100))

    assert first.startswith("```python\nline 00\n")
    assert first.endswith("\n```")
    assert second.startswith("```python\nline ")


def test_a_language_that_is_too_long_is_left_out_when_opened_again() -> None:
    _, second, *_ = shown(split_markdown("```" + "x" * 50 + "\n" + "line\n" * 60 + "```", 100))

    assert second.startswith("```\nline\n")


def test_a_code_block_that_fits_goes_whole_into_the_next_message() -> None:
    first, second = shown(
        split_markdown("Some words before the code. " * 3 + "\n```go\n" + "x = 1\n" * 8 + "```\n", 120)
    )

    assert "```" not in first
    assert second == "```go\n" + "x = 1\n" * 8 + "```\n"


def test_a_table_that_fits_is_not_torn() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    first, second = shown(split_markdown("Words. " * 12 + "\n" + table, 110))

    assert second == table
    assert "|" not in first


def test_a_row_is_never_torn() -> None:
    rows = "".join(f"| row {number} | some text |\n" for number in range(30))

    assert all(
        line.startswith("| row") and line.endswith("|")
        for piece in split_markdown(rows, 100)
        for line in piece.text.splitlines()
    )


def test_an_open_code_block_is_closed() -> None:
    assert shown(split_markdown("```\nfirst", 100)) == ["```\nfirst\n```"]


def test_blank_text_gives_no_message() -> None:
    assert split_markdown(" \n\n ", 100) == []


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="100 are needed"):
        split_markdown("x", MIN - 1)


@given(st.one_of(MARKDOWN, st.text("ab <>&\n`", max_size=600)), LIMITS)
def test_no_piece_is_longer_than_the_limit_once_it_is_escaped(text: str, limit: int) -> None:
    pieces = split_markdown(text, limit, escaped=True)
    assert all(count_units(piece.text, utf16=False, escaped=True) <= limit for piece in pieces)
    assert all(len(html.escape(piece.text, quote=False)) <= limit for piece in pieces)
