"""Texts for the fuzz targets: pieces of the real grammars among noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

# What breaks readers of text: controls, marks of direction, joiners, capitals that grow, other digits, other spaces.
ODD = (
    "\0", "\x1b[31m", "\x1c", "\x1e", "\x85", "\u2028", "\u202e", "\u200b", "\u200d", "\ufeff",
    "\ufffd", "İ", "ß", "ﬁ", "٣", "²", "𝟜", "e\u0301", "👩\u200d👩\u200d👧", "\U000e0041", "\t", "\r",
    "\r\n", "\n", "\n\n", " ", "\u3000",
)  # fmt: skip

noise = st.text(max_size=6) | st.sampled_from(ODD)
# Halves of characters come out of JSON, and nowhere else.
halves = st.characters(categories=["Cs"])


def among(pieces: Sequence[str], *, most: int = 30) -> st.SearchStrategy[str]:
    """Texts of which most parts are pieces of a grammar; now and then one part is said very often."""
    part = st.sampled_from(list(pieces)) | st.sampled_from(list(pieces)) | noise
    often = st.builds(lambda piece, times: piece * times, part, st.sampled_from([1, 1, 1, 1, 2, 3, 40]))
    return st.lists(often, max_size=most).map("".join)


def json_values(names: Sequence[str], texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Any JSON, in which the names of the real fields are likely, with values of all types."""
    plain = st.none() | st.booleans() | st.integers() | st.floats() | texts | texts
    return st.recursive(
        plain,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(names)) | noise, inner, max_size=6)
        ),
        max_leaves=12,
    )


def objects(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects in which each field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)
