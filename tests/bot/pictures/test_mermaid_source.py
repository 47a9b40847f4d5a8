"""Flowcharts and sequence diagrams in Mermaid's language: those that are understood are drawn, as pictures alone."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.pictures.flow import FlowLine
from bot.pictures.mermaid_source import LONGEST_SOURCE, MAX_BOXES, MAX_LINES, read_flowchart
from bot.pictures.sequence_source import read_sequence
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
SEQUENCE = """\
sequenceDiagram
    autonumber
    participant U as User #quot;Ann#quot;
    U->>+Bot: ask(question)
    Note over U,Bot: <b>written</b><br/>first
    alt allowed
        Bot->>Bot: mask
    else not
        Bot--)-U: refusal
    end
"""
STEPS = [
    "A->>B: hi\n",
    "B-->>-A: no\n",
    "A-xC: </svg>\n",
    "A->>A: me\n",
    "participant D as <i>\n",
    "note left of C: n\n",
]
STEPS += ["B->>A:\n", "loop x\n", "else\n", "end\n", "%% c\n", "A->>\n", "box\n"]
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
        "sequenceDiagram",
        "sequenceDiagram\nparticipant A",
        "sequenceDiagram\nA->>B",
        "sequenceDiagram\nA->>B: hi\nbox red\nend",
        "sequenceDiagram\nA->>B: hi\nend",
        "sequenceDiagram\nloop\nA->>B: hi",
        "sequenceDiagram\nA-->: hi",
        "sequenceDiagram\n" + "A->>B: hi\n" * (MAX_LINES + 1),
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


def test_a_sequence_is_drawn_from_above_with_its_words_in_order() -> None:
    placed = read_sequence(SEQUENCE)

    assert placed is not None
    assert [(one.box.label, one.box.note) for one in placed.boxes] == [
        ('User "Ann"', ""), ("Bot", ""), ("<b>written</b>", "first"), ("alt allowed", ""), ("else not", ""),
    ]  # fmt: skip
    told = 'Sequence: User "Ann" to Bot: ask(question); Bot to Bot: mask; Bot to User "Ann": refusal'
    assert placed.title == told
    words = [line.curves[0][0] for line in placed.lines if line.line.label]
    assert [y for _, y in words] == sorted(y for _, y in words)
    assert all(one.x >= 0 and one.x + one.width <= placed.width for one in placed.boxes)
    assert "&lt;b&gt;written" in draw_diagram(SEQUENCE)


@given(
    st.one_of(
        st.tuples(
            st.sampled_from(["graph TD\nA --> B\n", "flowchart LR\nA --> B\n"]), st.lists(st.sampled_from(PIECES))
        ),
        st.tuples(st.just("sequenceDiagram\nA->>B: x\n"), st.lists(st.sampled_from(STEPS))),
    )
)
def test_whatever_is_drawn_is_markup_of_nothing_but_a_picture(source: tuple[str, list[str]]) -> None:
    drawn = draw_diagram(f"{source[0]}{''.join(source[1])}")

    names = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn).iter()} if drawn else set()
    assert names <= {"div", "svg", "g", "path", "text", "title", "rect", "polygon"}


def test_labels_stay_text() -> None:
    drawn = draw_diagram('graph LR\nA["</text><script>alert(1)</script>"] -->|"<b onload=x>"| B[#60;img#62;]')

    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn
    assert "<b" not in drawn
    assert "<img" not in drawn
