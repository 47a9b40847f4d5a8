"""Storable values are exactly those that SQLite and the checkpoints return unchanged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent.text.storable import is_storable, make_storable, make_storable_in_postgres

HALF = "\ud83d"
texts = st.text(st.characters())  # halves of surrogate pairs among them
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:")
    yield opened
    opened.close()


@given(texts)
def test_any_text_is_made_into_one_that_sqlite_gives_back(database: sqlite3.Connection, text: str) -> None:
    made = make_storable(text)

    assert database.execute("SELECT ?", (made,)).fetchone() == (made,)
    assert len(made) == len(text)
    assert make_storable(made) == made


@given(texts)
def test_a_text_for_postgres_has_no_zero_bytes_either(text: str) -> None:
    assert make_storable_in_postgres(text) == make_storable(text).replace("\0", "")
    assert make_storable_in_postgres("a\0" + text).startswith("a" + make_storable(text[:1]).strip("\0"))
    assert make_storable_in_postgres([text]) == [text]


@given(texts)
def test_only_what_no_store_takes_is_changed(text: str) -> None:
    made = make_storable(text)

    assert [new for old, new in zip(text, made, strict=True) if old != new] == ["?"] * sum(
        "\ud800" <= char <= "\udfff" for char in text
    )
    assert is_storable(text) == (made == text)


@given(values)
def test_what_is_called_storable_comes_back_from_a_checkpoint_as_it_was(value: Any) -> None:
    serializer = JsonPlusSerializer(allowed_msgpack_modules=None)

    if is_storable(value):
        assert serializer.loads_typed(serializer.dumps_typed(value)) == value


def nested(depth: int) -> object:
    value: object = "x"
    for level in range(depth):
        value = [value] if level % 2 else {"key": value}
    return value


@pytest.mark.parametrize(
    "value",
    [HALF, {HALF: 1}, {"key": HALF}, [["x", HALF]], 2**53, -(2**53), [2**64], nested(9), nested(10_000), {"key": (1,)}],
    ids=["half", "key", "value", "inner", "large", "negative", "larger", "deep", "deepest", "no JSON"],
)
def test_what_would_come_back_otherwise_or_never_is_not_storable(value: object) -> None:
    assert not is_storable(value)


def test_calls_as_models_make_them_are_storable() -> None:
    call = {"name": "grep", "args": {"pattern": "größe 🎉", "limit": 5, "paths": ["a", None], "share": 0.5}, "id": None}

    assert is_storable(call)
    assert is_storable(2**53 - 1)
    assert is_storable(nested(8))
