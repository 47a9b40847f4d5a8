"""Drawings of the graph: every node and line is there, nothing overlaps, nothing is asked of the network."""

from __future__ import annotations

import io
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bot.cli.diagram import LAYER_HEIGHT, draw_png, format_boxes, format_mermaid, lay_out, read_graph

NAMES = [f"n{number}" for number in range(9)]


def test_mermaid_names_every_node_and_line() -> None:
    graph, drawn = read_graph(), format_mermaid()

    assert all(
        f"\t{edge.source} {'-.->' if edge.conditional else '-->'} {edge.target};" in drawn for edge in graph.edges
    )
    assert all(f"\t{name}(" in drawn for name in graph.nodes)


def test_boxes_show_every_node_and_line_within_eighty_columns() -> None:
    graph, lines = read_graph(), format_boxes().splitlines()

    assert [line.strip("| ") for line in lines if line.startswith("| ")] == list(graph.nodes)
    assert sum(line.startswith(("  |-->", "  |..>")) for line in lines) == len(graph.edges)
    assert max(map(len, lines)) < 80


def test_the_picture_is_a_png_with_boxes_and_lines_on_it() -> None:
    with Image.open(io.BytesIO(draw_png())) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(maxcolors=100_000) or []}

    assert picture.format == "PNG"
    assert min(picture.size) > 500
    assert {(255, 255, 255), (242, 240, 255), (59, 59, 88)} <= colours


def test_the_picture_is_the_same_every_time() -> None:
    assert draw_png() == draw_png()


@given(
    st.sets(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda line: line[0] != line[1]), max_size=30
    )
)
def test_any_graph_is_laid_out_without_overlaps(extra: set[tuple[str, str]]) -> None:
    lines = sorted({*pairwise(NAMES), *extra})
    widths = dict.fromkeys(NAMES, 80.0)

    layout = lay_out(widths, lines)

    for (x, y), (other_x, other_y) in combinations(layout.nodes.values(), 2):
        assert y != other_y or abs(x - other_x) >= 80.0
    for (source, target), points in layout.lines.items():
        assert (points[0], points[-1]) == (layout.nodes[source], layout.nodes[target])
        assert all(abs(after[1] - before[1]) <= LAYER_HEIGHT for before, after in pairwise(points))


def test_a_line_back_runs_upwards_through_every_layer() -> None:
    layout = lay_out(dict.fromkeys("abcd", 50.0), [*pairwise("abcd"), ("d", "a")])

    assert [y / LAYER_HEIGHT for _, y in layout.lines["d", "a"]] == pytest.approx([3, 2, 1, 0])
