"""Drawings of the graph: every node and line is there, and nothing is asked of the network."""

from __future__ import annotations

import io
from typing import cast

from PIL import Image

from bot.cli.diagram import draw_png, format_boxes, format_mermaid, read_graph


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
        colours = {
            cast("tuple[int, ...]", each) for _, each in picture.convert("RGB").getcolors(maxcolors=100_000) or []
        }

    assert picture.format == "PNG"
    assert min(picture.size) > 500
    assert {(255, 255, 255), (242, 240, 255)} <= colours
    assert any(sum(colour) < 200 for colour in colours)


def test_the_picture_is_the_same_every_time() -> None:
    assert draw_png() == draw_png()
