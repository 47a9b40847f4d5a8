"""One scanner for code blocks: it reads what the rules that it replaced read, and where it differs is written here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text.code_fences import CodeBlockScanner, CodeFence, find_open_fence, move_fence_to_margin, strip_fence

PIECES = st.sampled_from(
    ["```", "````", "``", "`", "~~~", "~~~~", "~", "`" * 41, "py", " ", "   ", "    ", "\t", "- ", "1. ", "a", "\r"]
)
LINES = st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=12)
# What citebot itself writes: blocks that begin in the first column, each closed by a fence like its own.
PROSE = st.lists(st.sampled_from(["a", "- `a` [1]", "`b`", ""]), max_size=4)
CODE = st.lists(st.sampled_from(["a", "- `a` [1]", "", "    c"]), max_size=4)
BLOCKS = CODE.map(lambda code: ["```py", *code, "```"])
ANSWERS = st.lists(PROSE | BLOCKS, max_size=6).map(lambda parts: [line for part in parts for line in part])


def scan(lines: list[str], *, chat: bool = False) -> list[bool]:
    scanner = CodeBlockScanner(chat=chat)
    return [scanner.take(line) for line in lines]


def scan_as_citations_did(lines: list[str]) -> list[bool]:
    """The rule that citation markers and streams had: CommonMark's."""
    opened = ""
    found: list[bool] = []
    for line in lines:
        opening = re.match(r" {0,3}(`{3,}(?!`)|~{3,}(?!~))(?=[^`\n]*$)", line)
        if opened:
            found.append(True)
            if opening and opening[1][0] == opened[0] and len(opening[1]) >= len(opened):
                opened = "" if line.strip() == opening[1] else opened
        else:
            opened = opening[1] if opening else ""
            found.append(opening is not None)
    return found


def scan_as_chats_did(lines: list[str]) -> list[CodeFence | None]:
    """The rule that pages and links had: deep white space, and no tildes."""
    fence: CodeFence | None = None
    found: list[CodeFence | None] = []
    for line in lines:
        read = re.match(r"(?P<indent>[ \t]{0,12})(?P<run>`{3,40})(?!`)(?P<info>[^`\n]*)\n?\Z", line)
        if read and fence is None:
            fence = CodeFence(indent=read["indent"], run=read["run"], info=read["info"].strip())
        elif read and fence and not read["info"].strip() and len(read["run"]) >= len(fence.marker.strip()):
            fence = None
        found.append(fence)
    return found


def scan_as_follow_ups_did(lines: list[str]) -> list[bool]:
    """The rule of "the second one": every line that begins with a fence opens or closes."""
    inside = False
    found: list[bool] = []
    for line in lines:
        is_fence = line.startswith(("```", "~~~"))
        found.append(is_fence or inside)
        inside = inside != is_fence
    return found


def strip_as_forms_did(text: str) -> str:
    return text.strip("`").removeprefix("json").strip() if text.startswith("```") else text


@given(LINES)
def test_citations_are_read_outside_of_the_same_code_as_before(lines: list[str]) -> None:
    assert scan(lines) == scan_as_citations_did(lines)


@given(LINES, st.sampled_from(["", "\n"]))
def test_messages_are_cut_between_the_same_blocks_as_before(lines: list[str], end: str) -> None:
    scanner = CodeBlockScanner(chat=True)
    fences = []
    for line in lines:
        scanner.take(line + end)
        fences.append(scanner.fence)

    assert fences == scan_as_chats_did([line + end for line in lines])


@given(LINES)
def test_a_line_is_code_where_a_block_was_open_before_it_or_is_after_it(lines: list[str]) -> None:
    scanner = CodeBlockScanner()
    for line in lines:
        before = scanner.fence
        is_code = scanner.take(line)
        assert is_code == bool(before or scanner.fence)
    assert find_open_fence("\n".join(lines)) == scanner.fence


@given(ANSWERS, st.integers(0, 40))
def test_answers_as_citebot_writes_them_are_read_as_before(lines: list[str], end: int) -> None:
    lines = lines[:end]

    assert scan(lines) == scan_as_follow_ups_did(lines)
    assert (find_open_fence("\n".join(lines)) is not None) == bool("\n".join(lines).count("```") % 2)


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
def test_where_follow_ups_and_memory_read_a_block_otherwise_the_scanner_is_right(lines: list[str]) -> None:
    assert not scan(lines)[-1]
    assert find_open_fence("\n".join(lines)) is None
    assert scan(lines) != scan_as_follow_ups_did(lines)


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


@given(st.lists(PIECES | st.sampled_from(["json", "{}", "\n"]), max_size=8).map("".join))
def test_forms_are_read_out_of_the_same_blocks_as_before(text: str) -> None:
    assert strip_fence(text) == strip_as_forms_did(text)


@pytest.mark.parametrize("text", ["{}", "```\n{}\n```", "```json\n{}\n```", "```json {}```", "```{}```"])
def test_a_form_is_read_without_its_block(text: str) -> None:
    assert strip_fence(text) == "{}"
