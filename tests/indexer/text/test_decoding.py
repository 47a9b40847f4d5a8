from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.text.decoding import decode_file, find_encoding, is_binary, is_lfs_pointer


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
        ("int main(); // итог\n".encode("utf-16-le"), "int main(); // итог\n"),
        ("int main(); // итог\n".encode("utf-32-be"), "int main(); // итог\n"),
        ("x = 1 # Если пользователь не найден\n".encode("utf-16-be"), "x = 1 # Если пользователь не найден\n"),
        ("// 注文の合計".encode("iso2022_jp"), "// 注文の合計"),
        (
            "// größe für übersicht\n".encode() * 9 + b"test = '\xff'\n",
            "// größe für übersicht\n" * 9 + "test = '\ufffd'\n",
        ),
    ],
)
def test_text_is_read_in_its_encoding(data: bytes, text: str) -> None:
    assert decode_file(data) == text


SENTENCES = {
    "cp1252": "Prüft die Größe für alle Einträge",
    "iso8859-15": "Añade una línea más según la configuración",
    "cp1250": "Zażółć gęślą jaźń",
    "iso8859-2": "Sprawdza długość łańcucha znaków",
    "cp1251": "Считает сумму заказа",
    "koi8-r": "Считает сумму заказа",
    "cp866": "Удаляет лишние записи",
    "cp1253": "Ελέγχει το μήκος",
    "cp932": "注文の合計を計算する処理",
    "euc_jp": "文字列の長さを確認",
    "gb18030": "从队列中删除多余的记录",
    "big5": "從佇列中刪除多餘的記錄",
    "cp949": "대기열에서 불필요한 기록을 삭제",
}


def test_one_comment_in_its_own_script_tells_an_encoding_that_nothing_declares() -> None:
    texts = {encoding: f"int sum(int a) {{\n  return a; // {words}\n}}\n" for encoding, words in SENTENCES.items()}
    assert {encoding: decode_file(text.encode(encoding)) for encoding, text in texts.items()} == texts


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("koi8-r", "# -*- coding: koi8-r -*-\n# да\n"),
        ("cp1251", "#!/usr/bin/env ruby\n# encoding: windows-1251\n# да\n"),
        ("cp866", "int x; // да\n/* vim: set fileencoding=cp866 ts=4: */\n"),
        ("koi8-r", "x = 1; // да\n\n// Local Variables:\n// coding: koi8-r-unix\n// End:\n"),
        ("cp1251", "<?xml version='1.0' encoding='windows-1251'?>\n<a>да</a>\n"),
        ("koi8-r", '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">\nда'),
        ("iso8859-5", '@charset "iso-8859-5";\n/* да */\n'),
        ("cp932", "# coding: x-sjis\n# 値\n"),
    ],
)
def test_what_a_file_declares_comes_before_what_its_words_say(encoding: str, text: str) -> None:
    assert decode_file(text.encode(encoding)) == text


def test_a_declared_encoding_that_changes_ascii_or_does_not_fit_is_not_believed() -> None:
    for name in ("utf-7", "unicode_escape", "cp037", "ascii", "rot13", "no-such"):
        data = f"# coding: {name}\nx = '\\u0041+AGE-'  # naïve\n".encode("cp1252")
        assert decode_file(data) == data.decode("cp1252")


def test_the_rest_of_the_repository_decides_over_a_few_letters() -> None:
    data = "x = 1  # да\n".encode("cp1251")
    assert decode_file(data, declared="koi8-r") == data.decode("koi8-r")
    assert decode_file(data, usual="cp1251") == "x = 1  # да\n"
    assert decode_file("# größe\n".encode("cp1252")) == "# größe\n"


def test_bytes_that_are_no_words_have_no_encoding_but_keep_their_lines() -> None:
    data = b"\n".join(b"x = '\xff\xfe\x81\xff'" for _ in range(20))
    assert find_encoding(data) is None
    assert (decode_file(data) or "").count("\n") == 19


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


def test_a_long_line_beside_one_in_another_encoding_is_read_in_one_pass() -> None:
    data = b"caf\xe9 noir\n" + b"a" * 900_000

    assert decode_file(data) == f"café noir\n{'a' * 900_000}"
