"""Quoting, marks, excerpts, and the check that every citation has to pass."""

from __future__ import annotations

import pytest

from agent.citations.citation_check import examine_citations
from agent.evidence.refs import make_lines_ref
from agent.state import CitationRef
from agent.text.citation_markers import find_markers
from agent.text.escaping import format_quote, replace_control_characters
from indexer.types import Location
from tests.fakes.code import FakeCode


def at(path: str, start: int, end: int) -> Location:
    return Location(path=path, start_line=start, end_line=end)


def cite(mark: int, path: str, start: int, end: int) -> CitationRef:
    return {"mark": mark, "path": path, "start_line": start, "end_line": end}


READ = [
    make_lines_ref(at("shop/payments.py", 12, 35), "definition"),
    make_lines_ref(at("shop/dates.py", 6, 8), "definition"),
    make_lines_ref(at("shop/dates.py", 11, 13), "definition"),
    make_lines_ref(at("shop/gone.py", 1, 9), "hit"),
]


@pytest.mark.parametrize(
    ("cited", "kept"),
    [
        (at("shop/payments.py", 19, 32), at("shop/payments.py", 19, 32)),
        (at("shop/payments.py", 12, 35), at("shop/payments.py", 12, 35)),
        (at("payments.py", 19, 32), at("shop/payments.py", 19, 32)),  # one file ends like that
        (at("shop/payments.py", 30, 400), at("shop/payments.py", 30, 35)),  # cut to what was read
        (at("shop/payments.py", 1, 20), at("shop/payments.py", 12, 20)),
        (at("shop/dates.py", 5, 14), None),  # two readings are possible
        (at("shop/dates.py", 9, 10), None),  # never read
        (at("shop/payments.py", 0, 3), None),
        (at("shop/payments.py", 20, 19), None),
        (at("shop/orders.py", 7, 16), None),  # there, but not read
        (at("shop/gone.py", 1, 9), None),  # read once, and not in the commit
    ],
)
async def test_a_citation_holds_is_repaired_or_goes(code: FakeCode, cited: Location, kept: Location | None) -> None:
    given_ref = cite(1, cited.path, cited.start_line, cited.end_line)
    checked = (await examine_citations("It is so [1].", [given_ref], READ, code)).settle()
    if kept is None:
        assert (checked.text, checked.citations, checked.dropped) == ("It is so.", [], 1)
    else:
        assert checked.citations == [cite(1, kept.path, kept.start_line, kept.end_line)]
        assert (checked.text, checked.dropped) == ("It is so [1].", 0)


async def test_marks_and_list_agree_after_checking(code: FakeCode) -> None:
    refs = [
        cite(1, "nowhere.py", 1, 2),
        cite(2, "shop/dates.py", 6, 8),
        cite(3, "dates.py", 6, 8),
        cite(4, "shop/payments.py", 19, 20),
        cite(5, "shop/payments.py", 19, 32),
    ]
    text = "A [4]. B [1]. C [2][3] and [9].\n\n```python\nargs[1] = [4]\n```\n\nD `x[2]` [4]."
    checked = (await examine_citations(text, refs, READ, code)).settle()
    assert checked.text == "A [1]. B. C [2][2].\n\n```python\nargs[1] = [4]\n```\n\nD `x[2]` [1]."
    assert checked.citations == [cite(1, "shop/payments.py", 19, 20), cite(2, "shop/dates.py", 6, 8)]


def test_links_and_code_hold_no_marks() -> None:
    text = "[1](https://x.example) `[2]` ``a ` [3]`` [4]\n~~~\n[5]\n~~~\n[6]"
    assert [mark.number for mark in find_markers(text)] == [4, 6]


@pytest.mark.parametrize(
    "text",
    ["[a](https://x.example)", "<!channel>", "@everyone", "*bold*", "a | b", "see https://x.example", "www.x.example"],
)
def test_prose_that_could_be_markup_is_quoted_as_code(text: str) -> None:
    assert format_quote(text) == f"`{text}`"


def test_plain_prose_is_quoted_in_italics() -> None:
    assert format_quote("Parse an ISO date,\nor raise.") == "*Parse an ISO date, or raise.*"
    assert format_quote(" ") == ""


def test_control_characters_are_made_harmless() -> None:
    assert replace_control_characters("a\x1b[31m\u202eb\tc\n") == "a\ufffd[31m\ufffdb\tc\n"
