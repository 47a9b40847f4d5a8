"""Every way in which models write that they cite, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.citations.written_citations import MAX_CITATIONS, parse_citations
from agent.prompts.model_text import CitationParser
from agent.prompts.prompt_evidence import PromptEvidence
from agent.text.citation_markers import find_markers, replace_markers
from indexer.types import Location
from tests.fuzz.texts import noise

SHOWN = [
    PromptEvidence(number=n, location=Location(path=f"f{n}.py", start_line=1, end_line=20), about="", text="")
    for n in range(1, 13)
]


def place(number: int, start: int = 1, end: int = 20) -> tuple[str, int, int]:
    return f"f{number}.py", start, end


def parse(text: str) -> tuple[str, list[tuple[str, int, int]]]:
    """The text with its markers, and the lines that they stand for in order."""
    parser = CitationParser(SHOWN, lambda text: text)
    clean = "\n".join(map(parser.prose, text.split("\n")))
    cited = {one["mark"]: (one["path"], one["start_line"], one["end_line"]) for one in parser.citations}
    return clean, [cited[mark.number] for mark in find_markers(clean)]


@pytest.mark.parametrize(
    ("written", "cited"),
    [
        ("[E1]", [place(1)]),
        ("[E1] [E2]", [place(1), place(2)]),
        ("[E1, E4:3-5]", [place(1), place(4, 3, 5)]),
        ("[E1/E2]", [place(1), place(2)]),
        ("[E1 \u0438 E2]", [place(1), place(2)]),
        ("[E1\u3001E2]", [place(1), place(2)]),
        ("(E1)", [place(1)]),
        ("(see E1, E2)", [place(1), place(2)]),
        ("\uff08E1\uff09", [place(1)]),
        ("([E1], [E2])", [place(1), place(2)]),
        ("[E1 lines 2 to 5]", [place(1, 2, 5)]),
        ("[E1 (lines 2-3)]", [place(1, 2, 3)]),
        ("[E1, \u0441\u0442\u0440\u043e\u043a\u0438 2-3]", [place(1, 2, 3)]),
        ("[E1\uff0c\u7b2c2-3\u884c]", [place(1, 2, 3)]),
        ("[E10-E12]", [place(10), place(11), place(12)]),
        ("[E10\u2013E12]", [place(10), place(11), place(12)]),
        ("[E1:2-3, 5-6]", [place(1, 2, 3), place(1, 5, 6)]),
        ("[E1:2\u20133]", [place(1, 2, 3)]),
        ("[E1:L2-L3]", [place(1, 2, 3)]),
        ("[E1#L2]", [place(1, 2, 2)]),
        ("\u3010E1\u3011", [place(1)]),
        ("\u3010E1\u2020L3-L5\u3011", [place(1, 3, 5)]),
        ("[E1\u2020L3-L5]", [place(1, 3, 5)]),
        ("[[E1]]", [place(1)]),
        ("[^E1]", [place(1)]),
        ("`[E1]`", [place(1)]),
        ("[e1]", [place(1)]),
        ("[E1](https://evil.example)", [place(1)]),
        ("[E1, f2.py:3-4]", [place(1), ("f2.py", 3, 4)]),
        ("[E2 f2.py:3-4]", [("f2.py", 3, 4)]),
    ],
)
def test_every_way_of_citing_is_read(written: str, cited: list[tuple[str, int, int]]) -> None:
    assert parse(f"It is so {written}.")[1] == cited


@pytest.mark.parametrize("text", ["- it is so {}", "| it | {} | so |", "{} says so", "\u5b83\u662f{}\u3002"])
def test_a_citation_is_read_wherever_it_stands(text: str) -> None:
    assert parse(text.format("[E1, E4:3-5]"))[1] == [place(1), place(4, 3, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "`a[E1]` and `E1`",
        "```\n[E1]\n```",
        "rule (E501) and (E1 or not)",
        "[E1 is red] and [see]",
        "f(E1)",
        "\u3010E99\u3011 and `[E99]`",
        "[E1-E900]",
        "[E10-E]",
    ],
)
def test_what_only_looks_like_a_citation_is_text(text: str) -> None:
    lines = text.split("\n")
    assert parse(text)[1] == [] if len(lines) == 1 else parse_citations(text) == []


def test_a_mark_of_an_earlier_answer_is_not_read_as_one_of_this_answer() -> None:
    assert parse("As [1] and [2] said, it is so [E3].") == ("As `[1]` and `[2]` said, it is so [1].", [place(3)])


PIECES = st.sampled_from(
    [
        "E1",
        "E2",
        "E77",
        "[",
        "]",
        "(",
        ")",
        "\u3010",
        "\u3011",
        ":",
        "-",
        ",",
        " ",
        "3",
        "12",
        "lines",
        "and",
        "`",
        "L4",
        "a",
        ".",
        "\u2020",
    ]
)


WORDS = st.sampled_from(["so", "it", "E1", "lines", "`a[E1]`", "f(x)", "[note]", "2-3", "\u65e5\u672c", "|", "-", "x."])
CITATIONS = st.sampled_from(
    ["[E1]", "[E1][E2]", "(E3)", "[E1, E4:3-5]", "\u3010E1\u2020L3-L5\u3011", "[E10-E12]", "[E1, lines 2-3]"]
)


@given(st.lists(st.tuples(WORDS, CITATIONS | st.just("")), max_size=12))
def test_no_text_outside_of_citations_is_lost(pieces: list[tuple[str, str]]) -> None:
    clean, cited = parse(" ".join(" ".join(filter(None, piece)) for piece in pieces))

    kept = replace_markers(clean, [""] * len(find_markers(clean)))
    assert kept.split() == " ".join(word for word, _ in pieces).split()
    assert bool(cited) == any(citation for _, citation in pieces)


@given(noise | st.lists(PIECES, max_size=60).map("".join))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    found = parse_citations(text)
    assert len(found) <= MAX_CITATIONS
    assert all(one.number >= 0 and one.end >= 0 for one in found)


@given(st.text(st.sampled_from("abc .,;!?\u00e4\u65e5"), max_size=200))
def test_text_without_brackets_stays_as_it_is(text: str) -> None:
    assert parse(text) == (text, [])
