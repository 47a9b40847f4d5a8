"""Layouts in layers: nothing overlaps, and lines run through every layer between."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.pictures.layered_layout import LAYER_HEIGHT, lay_out

NAMES = [f"n{number}" for number in range(9)]


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


def test_nodes_that_nothing_leads_to_have_a_place_too() -> None:
    layout = lay_out(dict.fromkeys("abc", 50.0), [("a", "b")])

    assert len(set(layout.nodes.values())) == 3
