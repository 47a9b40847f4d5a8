"""Graphs that people are shown: whatever names hold stays text, and everything is on the sheet and apart."""

from __future__ import annotations

import io
import math
from itertools import combinations, pairwise, product
from xml.etree import ElementTree

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from bot.pictures.flow import Flow, FlowBox, FlowLine, shorten
from bot.pictures.flow_rendering import (
    arrange_flow,
    draw_png,
    lay_out_flow,
    place_numbers,
    render_flow,
    spell_letters,
    write_svg,
    write_svg_part,
)
from bot.pictures.layered_layout import LAYER_HEIGHT, mark_implied, order_boxes
from bot.pictures.placed_flow import BOX_HEIGHT, Direction, PlacedFlow, place_flow

pytestmark = pytest.mark.exhaustive

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '<script>alert(1)</script>"&',
    "\x00\x1b[31m\u202e\ufffe\ud800",
    "x" * 100_000,
    "",
    '"]\n  click n0 "evil"',
    "é漢",
    "`backticks` \u200f\u2067\u05e9\u05dc\u05d5\u05dd\u202c",
    "漢" * 10_000,
]
DIRECTIONS: list[Direction] = ["rightwards", "downwards"]
PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=16)


def make_flow(names: list[str], pairs: list[tuple[int, int]], *, link: str = "", gathers: bool = False) -> Flow:
    boxes = [FlowBox(key=f"k{n}", label=name, note=name, link=link) for n, name in enumerate(names)]
    lines = [
        FlowLine(source=f"k{source}", target=f"k{target}", is_dashed=source > target, weight=source * target)
        for source, target in dict.fromkeys(pairs)
        if max(source, target) < len(names)
    ]
    return Flow(title=names[0], verb="calls", boxes=boxes, lines=lines, gathers=gathers)


def place_bare(flow: Flow) -> PlacedFlow:
    return place_flow(flow, lay_out_flow(flow, "downwards"), "downwards", is_bare=True)


def place_alone(flow: Flow, direction: Direction = "rightwards") -> PlacedFlow:
    return place_flow(flow, lay_out_flow(flow, direction), direction)


@settings(max_examples=40)
@example(HOSTILE, "javascript:alert(1)")
@example(HOSTILE, 'https://example.com/"><script>')
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.text(max_size=30))
def test_any_names_are_text_in_an_svg_and_never_markup(names: list[str], link: str) -> None:
    flow = make_flow(names, [*pairwise(range(len(names)))], link=link)

    for written in (write_svg(place_alone(flow)), write_svg_part(place_bare(flow))):
        check_text(ElementTree.fromstring(written), names)


def check_text(drawn: ElementTree.Element, names: list[str]) -> None:
    tags = {SVG + tag for tag in ("svg", "g", "a", "rect", "text", "path", "title", "style")}
    assert {element.tag for element in drawn.iter()} <= tags
    labels = [element for element in drawn.iter(f"{SVG}text") if element.get("class") in {"label", "note"}]
    assert len(labels) == 2 * len(names) - names.count("")
    for element in drawn.iter():
        assert set(element.attrib) <= {
            "x", "y", "width", "height", "viewBox", "role", "aria-label", "class", "d", "rx", "href",
            "stroke-width", "transform",
        }  # fmt: skip
        assert element.get("href", "https://").startswith(("https://", "http://"))
        assert len(element.text or "") <= 1_500


@settings(max_examples=40)
@example(HOSTILE)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8))
def test_any_names_are_labels_in_mermaid_and_rows_in_text(names: list[str]) -> None:
    flow = make_flow(names, [(0, len(names) - 1)] if len(names) > 1 else [])

    rows = flow.to_mermaid().rstrip("\n").split("\n")
    labels = [row.strip().partition('["')[2].removesuffix('"]') for row in rows[1 : 1 + len(names)]]

    assert len(rows) == 1 + len(names) + len(flow.lines)
    assert not set("".join(labels)) & set('"<>[]{}()|`')
    assert len(flow.to_text().split("\n")) == 1 + (len(names) - 1 if len(names) > 1 else 1)


@settings(max_examples=60)
@given(
    st.integers(1, 8),
    PAIRS,
    st.booleans(),
    st.sampled_from(DIRECTIONS),
    st.sampled_from([60.0, 200.0, 10_000.0]),
    st.booleans(),
)
def test_our_own_layout_keeps_boxes_apart_and_on_the_sheet(
    size: int, pairs: list[tuple[int, int]], gathers: bool, direction: Direction, widest: float, is_bare: bool
) -> None:
    flow = make_flow([f"name {n}" * n for n in range(size)], pairs, gathers=gathers)
    layout = lay_out_flow(flow, direction, widest=widest)

    check_placed(place_flow(flow, layout, direction, is_bare=is_bare), direction)


def check_placed(placed: PlacedFlow, direction: Direction) -> None:
    for one, other in combinations(placed.boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert beside or abs(one.y - other.y) >= BOX_HEIGHT
    for box in placed.boxes:
        assert 0 <= box.x <= box.x + box.width <= placed.width - placed.aside
        assert 0 <= box.y <= box.y + BOX_HEIGHT <= placed.height - placed.down
    boxes = {box.box.key: box for box in placed.boxes}
    for line in placed.lines:
        box, (x, y) = boxes[line.line.target], line.tip[0]
        edges = (box.x, box.x + box.width) if direction == "rightwards" else (box.y, box.y + BOX_HEIGHT)
        assert (x if direction == "rightwards" else y) in [pytest.approx(edge) for edge in edges]
        assert box.x <= x <= box.x + box.width + 0.01
        assert box.y <= y <= box.y + BOX_HEIGHT + 0.01
        assert all(before[3] == after[0] for before, after in pairwise(line.curves))
        for curve in line.curves:
            assert all(0 <= x <= placed.width and 0 <= y <= placed.height for x, y in curve)
    check_numbers(placed)


def check_numbers(placed: PlacedFlow) -> None:
    places = [middle for _, middle in place_numbers(placed)]
    for (x, y), (other_x, other_y) in combinations(places, 2):
        assert abs(x - other_x) > 6 or abs(y - other_y) >= 13
    for (x, y), box in product(places, placed.boxes):
        assert not (box.x < x < box.x + box.width and box.y < y < box.y + BOX_HEIGHT)


def test_where_it_gathers_boxes_stand_beside_what_they_lead_to() -> None:
    names = ["far", "near", "alone", "end"]
    flow = make_flow(names, [(0, 1), (1, 3), (2, 3)], gathers=True)

    layout = lay_out_flow(flow, "rightwards")

    depths = [layout.nodes[box.key][1] for box in flow.boxes]
    columns = {name: round(depth / LAYER_HEIGHT) for name, depth in zip(names, depths, strict=True)}
    assert columns == {"far": 0, "near": 1, "alone": 1, "end": 2}


@pytest.mark.parametrize("names", [["one"], ["a", "b", "é漢\x00", "<b>"], HOSTILE, [f"name_{n}" for n in range(40)]])
def test_a_png_is_drawn_of_everything_and_never_far_too_large(names: list[str]) -> None:
    flow = make_flow(names, [(n, len(names) - 1) for n in range(len(names) - 1)], gathers=True)

    picture = Image.open(io.BytesIO(render_flow(flow, "png")))

    assert math.prod(picture.size) <= 15_100_000
    assert len(picture.convert("RGB").getcolors(100_000) or []) > 2


@given(st.text(max_size=200), st.integers(5, 50))
def test_a_shortened_name_is_one_line_that_fits(text: str, longest: int) -> None:
    short = shorten(text, longest)

    assert 0 < len(short) <= max(longest, len("(nameless)"))
    assert "\n" not in short


def test_pictures_spell_out_what_their_font_lacks() -> None:
    assert spell_letters("é ß Ω Ж → ￡ plain") == "é ß Ω Ж → £ plain"
    assert spell_letters("漢🎉") == "\\u6f22\\U0001f389"
    assert spell_letters("ﬁ ①") == "ﬁ 1"


def test_letters_outside_of_ascii_are_drawn_as_themselves() -> None:
    drawn = {name: draw_png(write_svg(place_alone(make_flow([name], [])))) for name in ("é", "è", "?", "Ж")}

    assert len({*drawn.values()}) == len(drawn)


@pytest.mark.parametrize(
    "pairs", [[(n, n + 1) for n in range(39)], [(n, 39) for n in range(39)], [(0, n) for n in range(40)]]
)
def test_no_picture_is_wider_than_a_chat_can_show(
    pairs: list[tuple[int, int]],
) -> None:
    flow = make_flow([f"a_function_with_a_long_name_{n}" for n in range(40)], pairs)

    picture = Image.open(io.BytesIO(render_flow(flow, "png")))

    assert picture.width <= 2_000
    assert arrange_flow(flow).width <= 900


def test_lines_with_a_weight_have_its_number_in_every_form() -> None:
    flow = make_flow(["a", "b", "c"], [(1, 2)])

    assert "- b calls c (2)" in flow.to_text()
    assert "n1 -->|2| n2" in flow.to_mermaid()
    assert '<text class="number"' in write_svg(place_alone(flow))


def test_light_and_dark_have_colours_of_their_own() -> None:
    assert "prefers-color-scheme:dark" in write_svg(place_alone(make_flow(["a"], [])))


@given(PAIRS)
def test_what_is_marked_as_implied_can_be_reached_over_what_is_left(pairs: list[tuple[int, int]]) -> None:
    marked = mark_implied(make_flow([f"{n}" for n in range(8)], pairs).lines)
    left = nx.DiGraph([(line.source, line.target) for line in marked if not line.is_only_listed])

    assert len(marked) == len({*pairs})
    for line in marked:
        assert nx.has_path(left, line.source, line.target)


@given(PAIRS)
def test_boxes_are_ordered_so_that_lines_run_forward_where_there_is_no_circle(pairs: list[tuple[int, int]]) -> None:
    forward = [(min(pair), max(pair)) for pair in pairs]
    flow = make_flow([f"{n}" for n in range(8)], forward)

    order = order_boxes([box.key for box in reversed(flow.boxes)], flow.lines)

    assert sorted(order) == [box.key for box in flow.boxes]
    assert all(order.index(line.source) < order.index(line.target) for line in flow.lines)
