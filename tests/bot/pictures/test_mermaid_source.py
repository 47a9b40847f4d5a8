"""Flowcharts in Mermaid's language: what is read of them, and that whatever is not known is not drawn."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.pictures.flow import FlowLine
from bot.pictures.mermaid_source import LONGEST_SOURCE, MAX_BOXES, read_flowchart
from bot.surfaces.web.answer_markup import draw_diagram

CHART = """\
%% how a question is answered
flowchart TD
    A[Question] --> B{"Is it #quot;ok#quot;?"}
    B -->|yes| C(Search<br/>the index):::found
    B -- no, never --> D[[Refuse]]; C & D -.-> E([Answer])
    subgraph one [The rest]
        direction LR
        E === F
    end
    F <--> A
    F --> one
    A --> A; direction --> A
    classDef found fill:#fff
"""
PIECES = ["graph TD\n", "flowchart LR\n", "A", "b-1", "[x]", "{y}", "((z))", "-->", "---", "-.->", "|t|", "-- u -->"]
PIECES += ["<-->", "&", ";", "\n", " ", "subgraph s [t]\n", "end\n", "style A fill:red\n", '["', '"]', "%%", "<script>"]


def test_boxes_lines_labels_and_subgraphs_of_a_flowchart_are_read() -> None:
    read = read_flowchart(CHART)

    assert read is not None
    flow, direction = read
    assert direction == "downwards"
    assert [(box.label, box.note, box.shape) for box in flow.boxes] == [
        ("Question", "", "box"), ('Is it "ok"?', "", "choice"), ("Search", "the index", "round"),
        ("Refuse", "", "box"), ("Answer", "", "round"), ("F", "", "box"), ("The rest", "", "box"),
        ("direction", "", "box"),
    ]  # fmt: skip
    assert flow.lines == [
        FlowLine(source="A", target="B"),
        FlowLine(source="B", target="C", label="yes"),
        FlowLine(source="B", target="D", label="no, never"),
        FlowLine(source="C", target="E", is_dashed=True),
        FlowLine(source="D", target="E", is_dashed=True),
        FlowLine(source="E", target="F", has_tip=False),
        FlowLine(source="F", target="A"),
        FlowLine(source="A", target="F"),
        FlowLine(source="F", target="one"),
        FlowLine(source="A", target="A"),
        FlowLine(source="direction", target="A"),
    ]
    assert 'Is it "ok"? leads to Search (yes), Refuse (no, never)' in flow.title


@pytest.mark.parametrize(
    "source",
    [
        "",
        "graph TD",
        "sequenceDiagram\nA->>B: hi",
        "pie\n a: 1",
        "graph RL\nA --> B",
        "graph TD\nA --> B@{ shape: cyl }",
        "graph TD\nA[open --> B",
        "graph TD\nA -- open\nB --> C",
        "graph TD\nA --> ",
        "graph TD\nA[] --> B[x]",
        'graph TD\nA["x" y] --> B["z"]',
        "graph TD\nA[x[0]] --> B",
        "graph TD\nA ~~~ B",
        "graph TD\n" + "\n".join(f"A{n} --> B{n}" for n in range(MAX_BOXES)),
        "graph TD\nA --> B[" + "x" * LONGEST_SOURCE + "]",
    ],
)
def test_a_chart_that_is_not_understood_or_too_large_is_not_drawn(source: str) -> None:
    assert draw_diagram(source) == ""


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["graph TD\n", "flowchart LR\n"]))
def test_whatever_is_drawn_is_markup_of_nothing_but_a_picture(pieces: list[str], head: str) -> None:
    drawn = draw_diagram(f"{head}A --> B\n{''.join(pieces)}")

    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()} if drawn else set()
    assert names <= {"div", "svg", "g", "path", "text", "title", "rect", "polygon"}


def test_labels_stay_text() -> None:
    drawn = draw_diagram('graph LR\nA["</text><script>alert(1)</script>"] -->|"<b onload=x>"| B[#60;img#62;]')

    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn
    assert "<b" not in drawn
    assert "<img" not in drawn
