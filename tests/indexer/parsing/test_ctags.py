"""Definitions by universal-ctags: what is found, and what becomes of files that are too much for it."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from indexer.parser_pool.pool import ParserPool
from indexer.parser_pool.process import Limits
from indexer.parser_pool.wire_format import ParsedContents, Request
from indexer.types import ParsedFile
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.needs("ctags")

TCL = b"namespace eval shop {\n  proc add {a b} {\n    return [expr {$a + $b}]\n  }\n}\nproc helper {} {}\n"


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(processes=1, limits=Limits(tree=0.2))
    yield pool
    pool.close()


def read(pool: ParserPool, path: str, data: bytes) -> ParsedFile:
    contents = pool.submit(Request(path=path, data=data)).result(timeout=LIMIT_SECONDS)
    assert isinstance(contents, ParsedContents)
    return contents.parsed


def test_definitions_are_found_where_no_grammar_reads_a_language(pool: ParserPool) -> None:
    tcl = read(pool, "a.tcl", TCL)
    python = read(pool, "a.py", b"def f(): pass\n")

    found = [(symbol.qualified_name, symbol.kind, symbol.start_line, symbol.end_line) for symbol in tcl.symbols]
    assert found == [("shop", "module", 1, 5), ("shop.add", "function", 2, 4), ("helper", "function", 6, 6)]
    assert [symbol.name for symbol in python.symbols] == ["f"]
    assert read(pool, "a.txt", TCL).symbols == ()


@pytest.mark.parametrize(
    ("path", "data", "found"),
    [
        ("a.pp", b"class shop::web {\n}\n", "shop.web"),
        ("a.vim", b"function! shop#cart#Add(x)\nendfunction\n", "shop.cart.Add"),
        ("a.pas", b"unit Shop;\nimplementation\nprocedure TUser.Next;\nbegin\nend;\nend.\n", "TUser.Next"),
        ("a.tcl", b"proc ::shop::add {a} {}\n", "shop.add"),
    ],
)
def test_a_name_is_what_follows_its_last_separator(pool: ParserPool, path: str, data: bytes, found: str) -> None:
    [symbol] = read(pool, path, data).symbols

    assert (symbol.qualified_name, symbol.name) == (found, found.rpartition(".")[2])


def find_ctags(pool: ParserPool) -> psutil.Process:
    read(pool, "a.py", b"")
    children = psutil.Process().children(recursive=True)
    (found,) = [each for each in children if "ctags" in each.name() and each.status() != psutil.STATUS_ZOMBIE]
    return found


def test_a_file_is_tried_again_where_ctags_was_ended_from_outside(pool: ParserPool) -> None:
    find_ctags(pool).kill()

    again = read(pool, "a.tcl", TCL)

    assert (len(again.symbols), again.plain) == (3, None)


def test_a_file_that_ctags_is_never_done_with_is_read_as_words(pool: ParserPool) -> None:
    find_ctags(pool).suspend()

    given_up = read(pool, "a.tcl", TCL)

    assert (given_up.symbols, given_up.plain, len(given_up.chunks)) == ((), "time", 1)
    assert len(read(pool, "b.tcl", TCL).symbols) == 3
