"""Makes text and values storable: valid UTF-8, numbers that every reader reads exactly, and no deep nesting."""

from __future__ import annotations

from typing import Any

_DEEPEST = 8
_FIRST_TOO_LARGE = 2**53  # of whole numbers: from there on, some readers round


def make_storable(text: str) -> str:
    """Replace each half of a surrogate pair, which cannot be stored, by a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def make_storable_in_postgres(value: Any) -> Any:
    """Take out of a text what Postgres does not take: what cannot be stored at all, and zero bytes.

    What is no text stays as it is.
    """
    return make_storable(value).replace("\0", "") if isinstance(value, str) else value


def is_storable(value: object, depth: int = _DEEPEST) -> bool:
    """Whether a value as it may be in JSON can be stored as it is; `depth` counts the levels of lists and tables."""
    if isinstance(value, str):
        return value == make_storable(value)
    if isinstance(value, int):
        return abs(value) < _FIRST_TOO_LARGE
    if isinstance(value, dict):
        return depth > 0 and all(is_storable(each, depth - 1) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return depth > 0 and all(is_storable(each, depth - 1) for each in value)
    return isinstance(value, float | None)
