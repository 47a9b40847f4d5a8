"""Lookups as commands: what the catalogue has can be asked for, as text and as JSON."""

from __future__ import annotations

from tests.fakes.citebot import Citebot


def test_a_lookup_writes_its_text_and_with_json_its_result(citebot: Citebot) -> None:
    text, record = citebot("read-file", "shop/orders.py", "--limit", "1").out, citebot("grep", "^def ", "--json").answer

    assert text.startswith("shop/orders.py has ")
    assert record["matches"][0]["text"].startswith("def ")
    assert record["total"] >= len(record["matches"])


def test_the_main_argument_of_a_lookup_may_be_left_out_where_it_need_not_be_given(citebot: Citebot) -> None:
    assert citebot("list-files").out.startswith("/: ")
    assert citebot("list-files", "shop").out.startswith("shop/: ")


def test_what_is_not_found_is_said_and_fails(citebot: Citebot) -> None:
    done = citebot("grep", "no_such_line_anywhere")

    assert done.code == 1
    assert "No line matches in the " in done.out


def test_a_wrong_argument_is_named(citebot: Citebot) -> None:
    done = citebot("file-history", "shop/orders.py", "--line", "first")

    assert done.code == 2
    assert "line: Input should be a valid integer" in done.err
