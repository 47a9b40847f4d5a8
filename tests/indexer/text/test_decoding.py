from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.text.decoding import decode_file, is_binary, is_lfs_pointer


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain\n", "plain\n"),
        ("Grüße 你好 🎉".encode(), "Grüße 你好 🎉"),
        (b"\xef\xbb\xbfmarked", "marked"),
        (b"no final newline", "no final newline"),
        ("wide é\r\n".encode("utf-16"), "wide é\n"),
        (b"\xfe\xff" + "big end".encode("utf-16-be"), "big end"),
        ("wider".encode("utf-32"), "wider"),
        (b"caf\xe9", "café"),
        (b"\x93quoted\x94", "\u201cquoted\u201d"),
        (b"undefined in 1252: \x81 \xe9 is fine", "undefined in 1252: \x81 é is fine"),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, text: str) -> None:
    assert decode_file(data) == text


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        b"text then \0 nul",
        zlib.compress(bytes(range(256)) * 40),
        b"\xff\xfeodd",
        b"\xff\xfe\x00\xd8a\x00",
    ],
    ids=["png", "nul", "compressed", "odd utf-16", "lone surrogate"],
)
def test_binary_data_is_not_text(data: bytes) -> None:
    assert decode_file(data) is None


def test_windows_line_ends_become_newlines_and_count_the_same() -> None:
    assert decode_file(b"one\r\ntwo\r\n\r\nfour") == "one\ntwo\n\nfour"


def test_lone_carriage_returns_do_not_make_lines() -> None:
    assert decode_file(b"a\rb\r\r\nc") == "a\rb\r\nc"


def test_control_characters_of_utf8_text_are_kept() -> None:
    assert decode_file(b"\x1b[31mred\x1b[0m \x0c \x01") == "\x1b[31mred\x1b[0m \x0c \x01"


def test_nul_far_into_a_text_becomes_a_replacement_character() -> None:
    assert decode_file(b"a" * 9000 + b"\0\n") == "a" * 9000 + "\ufffd\n"


def test_marked_utf16_does_not_look_binary() -> None:
    assert not is_binary("abc".encode("utf-16"))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", True),
        (b"version https://git-lfs.github.com/spec/v1\n" + b"x" * 2000, False),
        (b"# about version https://git-lfs.github.com/spec/v1\n", False),
    ],
)
def test_lfs_pointers_are_small_and_begin_with_their_version(data: bytes, expected: bool) -> None:
    assert is_lfs_pointer(data) is expected


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_lines_of_utf8_text_keep_their_numbers(text: str) -> None:
    decoded = decode_file(text.encode())
    assert decoded is not None
    assert decoded.count("\n") == text.count("\n")
