"""Tokens: what of an identifier, a path and a question can be found again."""

from __future__ import annotations

import pytest

from indexer.text.tokens import split_identifier, stem, tokenize, tokenize_path, tokenize_question


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("parseHTTPDate", ["parse", "http", "date"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("utf8_decode", ["utf", "8", "decode"]),
        ("__init__", ["init"]),
        ("$scope", ["scope"]),
        ("größe_in_mm", ["größe", "in", "mm"]),
    ],
)
def test_identifiers_fall_into_their_words(identifier: str, parts: list[str]) -> None:
    assert split_identifier(identifier) == parts


def test_a_compound_identifier_is_also_a_token_of_its_own() -> None:
    assert tokenize("RetryPolicy")[-1] == "retrypolicy"


@pytest.mark.parametrize(
    "forms",
    [
        ["validate", "validates", "validated", "validating", "validation"],
        ["cache", "caches", "cached", "caching"],
        ["retry", "retries", "retried"],
        ["run", "running"],
        ["serialize", "serializer", "serialized", "serialization"],
    ],
)
def test_inflections_of_a_word_share_a_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["class", "status", "http", "bus", "less"])
def test_words_that_only_look_inflected_keep_their_s(word: str) -> None:
    assert stem(word) == word


def test_a_question_loses_its_stop_words_but_never_all_words() -> None:
    assert tokenize_question("how does the retry work?") == ["retry", "work"]
    assert tokenize_question("what is this?") == ["what", "is", "this"]


def test_path_tokens_leave_out_the_suffix() -> None:
    assert tokenize_path("src/http_client/session.py") == [
        "src",
        "http",
        "client",
        "http_client",
        stem("session"),
    ]
