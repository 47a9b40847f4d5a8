"""Graphs that people are shown: whatever names hold stays text, and everything is on the sheet and apart."""

from __future__ import annotations

import io
import shutil
import stat
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from bot.pictures import dot_layout, flow_png
from bot.pictures.flow import Flow, FlowBox, FlowLine, shorten
from bot.pictures.flow_png import draw_png
from bot.pictures.flow_rendering import lay_out_alone, lay_out_flow, render_flow
from bot.pictures.flow_svg import write_svg, write_svg_part
from bot.pictures.layered_layout import LAYER_HEIGHT, DiagramLayout, Line, lay_out
from bot.pictures.placed_flow import BOX_HEIGHT, GAP, PlacedFlow, measure_column, place_flow, place_upright

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '<script>alert(1)</script>"&',
    "\x00\x1b[31m\u202e\ufffe\ud800",
    "x" * 100_000,
    "",
    '"]\n  click n0 "evil"',
    "é漢",
]
PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=16)


def make_flow(names: list[str], pairs: list[tuple[int, int]], *, link: str = "", gathers: bool = False) -> Flow:
    boxes = [FlowBox(key=f"k{n}", label=name, note=name, link=link) for n, name in enumerate(names)]
    lines = [
        FlowLine(source=f"k{source}", target=f"k{target}", is_dashed=source > target)
        for source, target in dict.fromkeys(pairs)
        if max(source, target) < len(names)
    ]
    return Flow(title=names[0], verb="calls", boxes=boxes, lines=lines, gathers=gathers)


def place_in_rows(flow: Flow) -> PlacedFlow:
    widths = {box.key: measure_column([box]) for box in flow.boxes}
    layout = lay_out(widths, [(line.source, line.target) for line in flow.lines], gap=4.0)
    return place_upright(flow, layout, widths)


def lay_out_ours(flow: Flow) -> DiagramLayout:
    lines = [(line.source, line.target) for line in flow.lines]
    return lay_out_alone([box.key for box in flow.boxes], lines, gathers=flow.gathers)


@settings(max_examples=40)
@example(HOSTILE, "javascript:alert(1)")
@example(HOSTILE, 'https://example.com/"><script>')
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.text(max_size=30))
def test_any_names_are_text_in_an_svg_and_never_markup(names: list[str], link: str) -> None:
    flow = make_flow(names, [*pairwise(range(len(names)))], link=link)

    for written in (write_svg(place_flow(flow, lay_out_ours(flow))), write_svg_part(place_in_rows(flow))):
        check_text(ElementTree.fromstring(written), names)


def check_text(drawn: ElementTree.Element, names: list[str]) -> None:
    tags = {SVG + tag for tag in ("svg", "g", "a", "rect", "text", "path", "title", "style")}
    assert {element.tag for element in drawn.iter()} <= tags
    assert len(drawn.findall(f".//{SVG}text")) == 2 * len(names) - 2 * names.count("") + names.count("")
    for element in drawn.iter():
        assert set(element.attrib) <= {
            "x", "y", "width", "height", "viewBox", "role", "aria-label", "class", "d", "rx", "fill", "href",
        }  # fmt: skip
        assert element.get("href", "https://").startswith(("https://", "http://"))
        assert len(element.text or "") <= 1_000


@settings(max_examples=40)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), PAIRS)
def test_a_graph_in_rows_is_on_its_sheet_and_its_boxes_apart(names: list[str], pairs: list[tuple[int, int]]) -> None:
    placed = place_in_rows(make_flow(names, pairs))

    for one, other in combinations(placed.boxes, 2):
        assert abs(one.y - other.y) >= BOX_HEIGHT or one.x >= other.x + other.width or other.x >= one.x + one.width
    for box in placed.boxes:
        assert 0 <= box.x <= box.x + box.width <= placed.width
        assert 0 <= box.y <= box.y + BOX_HEIGHT <= placed.height
    tops = {box.box.key: box.y for box in placed.boxes}
    for line in placed.lines:
        source, target = tops[line.line.source], tops[line.line.target]
        assert line.curves[0][0][1] == (source + BOX_HEIGHT if target > source else source)
        assert line.tip[1] == (target if target > source else target + BOX_HEIGHT)


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


@settings(max_examples=40)
@given(st.integers(1, 8), PAIRS, st.booleans())
def test_our_own_layout_keeps_boxes_apart_and_on_the_sheet(
    size: int, pairs: list[tuple[int, int]], gathers: bool
) -> None:
    flow = make_flow([f"name {n}" for n in range(size)], pairs, gathers=gathers)

    check_placed(flow, lay_out_ours(flow))


@pytest.mark.skipif(shutil.which("dot") is None, reason="there is no dot on this machine")
@settings(max_examples=12, deadline=None)
@given(st.integers(1, 8), PAIRS)
def test_the_layout_of_dot_keeps_boxes_apart_and_on_the_sheet(size: int, pairs: list[tuple[int, int]]) -> None:
    flow = make_flow([f"name {n}" for n in range(size)], pairs)
    lines = [(line.source, line.target) for line in flow.lines]

    found = dot_layout.lay_out_by_dot([box.key for box in flow.boxes], lines, along=BOX_HEIGHT, across=140.0, gap=GAP)

    assert found is not None
    check_placed(flow, found)


def check_placed(flow: Flow, layout: DiagramLayout) -> None:
    placed = place_flow(flow, layout)
    for one, other in combinations(placed.boxes, 2):
        assert abs(one.x - other.x) >= one.width or abs(one.y - other.y) >= BOX_HEIGHT
    for box in placed.boxes:
        assert 0 <= box.x <= box.x + box.width <= placed.width
        assert 0 <= box.y <= box.y + BOX_HEIGHT <= placed.height
    sides = {box.box.key: (box.x, box.x + box.width, box.y + BOX_HEIGHT / 2) for box in placed.boxes}
    for line in placed.lines:
        left, right, middle = sides[line.line.target]
        assert line.tip[1] == pytest.approx(middle)
        assert line.tip[0] == pytest.approx(left) or line.tip[0] == pytest.approx(right)
        assert all(before[3] == after[0] for before, after in pairwise(line.curves))
        for curve in line.curves:
            assert all(0 <= x <= placed.width and 0 <= y <= placed.height for x, y in curve)


def test_where_it_gathers_boxes_stand_beside_what_they_lead_to() -> None:
    lines: list[Line] = [("far", "near"), ("near", "end"), ("alone", "end")]

    layout = lay_out_alone(["far", "near", "alone", "end"], lines, gathers=True)

    columns = {name: round(depth / LAYER_HEIGHT) for name, (_, depth) in layout.nodes.items()}
    assert columns == {"far": 0, "near": 1, "alone": 1, "end": 2}


@pytest.mark.parametrize("names", [["one"], ["a", "b", "é漢\x00", "<b>"], [f"name_{n}" for n in range(40)]])
def test_a_png_is_drawn_of_everything(names: list[str]) -> None:
    flow = make_flow(names, [(n, len(names) - 1) for n in range(len(names) - 1)], gathers=True)
    placed = place_flow(flow, lay_out_ours(flow))

    picture = Image.open(io.BytesIO(draw_png(placed)))

    assert picture.size == pytest.approx((1.5 * placed.width, 1.5 * placed.height), abs=3)
    assert len(picture.convert("RGB").getcolors(100_000) or []) > 2


def test_a_graph_that_is_far_too_large_is_drawn_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_png, "_MOST_PIXELS", 100_000)
    flow = make_flow([f"name_{n}" for n in range(20)], [(n, 19) for n in range(19)], gathers=True)

    picture = Image.open(io.BytesIO(draw_png(place_flow(flow, lay_out_ours(flow)))))

    assert picture.width * picture.height < 30_000


@pytest.mark.parametrize("program", ["exit 1", "echo nonsense", "echo 'node n0 x y'", "head -c 9000000 /dev/zero"])
def test_a_dot_that_fails_is_done_without(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dot = tmp_path / "dot"
    dot.write_text(f"#!/bin/sh\n{program}\n")
    dot.chmod(dot.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    flow = make_flow(["a", "b"], [(0, 1)])

    assert lay_out_flow(flow) == lay_out_ours(flow)
    assert "dot did not lay a graph out" in caplog.text


def test_a_dot_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\nexec sleep 600\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(dot_layout, "_SECONDS", 0.1)

    assert dot_layout.lay_out_by_dot(["a", "b"], [("a", "b")], along=40.0, across=90.0, gap=9.0) is None


def test_without_a_dot_it_is_laid_out_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert b"<svg" in render_flow(make_flow(["a", "b"], [(0, 1)]), "svg").content


@given(st.text(max_size=200), st.integers(5, 50))
def test_a_shortened_name_is_one_line_that_fits(text: str, longest: int) -> None:
    short = shorten(text, longest)

    assert 0 < len(short) <= max(longest, len("(nameless)"))
    assert "\n" not in short
