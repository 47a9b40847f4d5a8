"""The scanner for code blocks reads them as Markdown does, or as chats do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text.code_marks import CodeBlockScanner, find_open_fence, move_fence_to_margin, strip_fence

PIECES = st.sampled_from(
    ["```", "````", "``", "`", "~~~", "~~~~", "~", "`" * 41, "py", " ", "   ", "    ", "\t", "- ", "1. ", "a", "\r"]
)
LINES = st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=12)


def scan(lines: list[str], *, chat: bool = False) -> list[bool]:
    scanner = CodeBlockScanner(chat=chat)
    return [scanner.take(line) for line in lines]


@given(LINES)
def test_a_line_is_code_where_a_block_was_open_before_it_or_is_after_it(lines: list[str]) -> None:
    scanner = CodeBlockScanner()
    for line in lines:
        before = scanner.fence
        is_code = scanner.take(line)
        assert is_code == bool(before or scanner.fence)
    assert find_open_fence("\n".join(lines)) == scanner.fence


@pytest.mark.parametrize(
    "lines",
    [
        ["````", "```", "````", "- `a` [1]"],  # a shorter fence within a block is its content
        ["```", "~~~", "```", "- `a` [1]"],  # and so is one of the other kind
        ["```", "```py", "```", "- `a` [1]"],  # what names a language closes nothing
        ["```a``` is inline", "- `a` [1]"],  # code within a line is no block
        ["  ```", "x", "  ```", "- `a` [1]"],  # a fence may be indented
    ],
)
def test_only_a_fence_that_closes_ends_a_block(lines: list[str]) -> None:
    assert not scan(lines)[-1]
    assert find_open_fence("\n".join(lines)) is None


@pytest.mark.parametrize(
    ("line", "in_markdown", "in_chats"),
    [
        ("   ```", True, True),
        ("    ```", False, True),  # in Markdown an indented block; in chats a fence in an item of a list
        ("\t```", False, True),
        (" " * 13 + "```", False, False),
        ("~~~", True, False),  # Discord knows none
        ("`" * 40, True, True),
        ("`" * 41, True, False),  # nobody writes it, and it must not be repeated at each cut
        ("- ```", False, False),  # move_fence_to_margin() is for those
    ],
)
def test_the_two_rules_differ_in_these_lines_alone(line: str, in_markdown: bool, in_chats: bool) -> None:
    assert scan([line]) == [in_markdown]
    assert scan([line], chat=True) == [in_chats]


@pytest.mark.parametrize(
    ("line", "is_open", "moved"),
    [
        ("- ```py", False, "```py"),
        ("  2) ```", False, "```"),
        ("~~~py", False, ""),
        ("```a``` b", False, "```a``` b"),
        ("   ```", True, "```"),
        ("- ```", True, "- ```"),
        ("~~~", True, "~~~"),
    ],
)
def test_a_fence_in_a_list_moves_to_the_first_column(line: str, is_open: bool, moved: str) -> None:
    assert move_fence_to_margin(line, is_open=is_open) == moved


@pytest.mark.parametrize("text", ["{}", "```\n{}\n```", "```json\n{}\n```", "```json {}```", "```{}```"])
def test_a_form_is_read_without_its_block(text: str) -> None:
    assert strip_fence(text) == "{}"
