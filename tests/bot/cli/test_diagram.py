"""Drawings of the graph: every node and line is there, and nothing is asked of the network."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import cast

import pytest
from PIL import Image

from bot.cli.diagram import draw_png, format_boxes, format_mermaid, read_graph
from tests.fakes.citebot import Citebot

pytestmark = pytest.mark.exhaustive


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
    assert picture.width <= 2_000  # else a chat shows it too small to be read
    assert {(255, 255, 255), (242, 240, 255)} <= colours
    assert any(sum(colour) < 200 for colour in colours)


def test_the_picture_is_the_same_every_time() -> None:
    assert draw_png() == draw_png()


def test_a_map_lists_which_parts_of_a_folder_import_which(citebot: Citebot, shop: Path) -> None:
    done = citebot("map", "shop")

    assert done.code == 0
    title, *rows = done.out.splitlines()
    assert title.startswith(f"The architecture of shop/ in {shop.name} at ")
    assert "- orders.py imports dates.py (1), payments.py (1)" in rows


def test_a_map_as_json_names_both_ends_of_each_line(citebot: Citebot) -> None:
    modules = citebot("map", "shop", "--json").answer["modules"]

    assert {"from": "orders.py", "to": "dates.py", "imports": 1, "certain": True} in modules


@pytest.mark.parametrize("ending", ["svg", "png", "mmd"])
def test_a_map_is_drawn_in_a_file(citebot: Citebot, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"shop.{ending}"

    done = citebot("map", "shop", "--graph", str(picture))

    assert f"Drawn in {picture}." in done.err
    content = picture.read_bytes()
    assert content.startswith({"svg": b"<svg", "png": b"\x89PNG", "mmd": b"graph LR"}[ending])
    assert ending == "png" or b"orders.py" in content


def test_a_map_of_a_folder_that_is_not_there_names_the_nearest(citebot: Citebot) -> None:
    assert "The nearest: `shop`." in citebot("map", "shpo").complaint
    assert json.loads(citebot("map", "shpo", "--json").out)["coverage"]["files"] > 0
