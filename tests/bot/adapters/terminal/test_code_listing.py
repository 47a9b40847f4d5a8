"""Lists of places in the code: coloured on a terminal, plain elsewhere, and nothing in them steers the terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from bot.adapters.terminal.display import format_code_lines
from bot.adapters.terminal.output import CodeLine, choose_line, describe_caller, trim_code
from tests.fakes.parts import CALL, HIT

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LINE = CodeLine(path="src/main.py", where="src/main.py:7", notes=("run",), code="return session.send(1)")


def console(*, terminal: bool = True, **environment: str) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=40,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={"TERM": "xterm-256color"} | environment,
    )


def test_code_is_highlighted_on_a_terminal() -> None:
    text = format_code_lines([LINE], console())

    assert COLOURS.sub("", text) == "src/main.py:7  run\n    return session.send(1)"
    assert re.search(r"\x1b\[\d+mreturn", text)


def test_no_colour_is_used_where_the_person_wants_none() -> None:
    text = format_code_lines([LINE], console(NO_COLOR="1"))

    assert not re.search(r"\x1b\[[0-9;]*(3\d|9\d)[;m]", text)


def test_a_place_is_one_plain_line_elsewhere() -> None:
    assert format_code_lines([LINE, LINE], console(terminal=False)) == (
        "src/main.py:7  run  return session.send(1)\nsrc/main.py:7  run  return session.send(1)"
    )


def test_a_file_of_no_known_language_is_listed_all_the_same() -> None:
    line = CodeLine(path="what.isthis", where="what.isthis:1", notes=(), code="x = 1")

    assert "x = 1" in format_code_lines([line], console())


@pytest.mark.parametrize("terminal", [True, False])
def test_code_does_not_steer_the_terminal(*, terminal: bool) -> None:
    line = describe_caller(CALL, "a\x1b]0;x\x07 [bold]b\u202e\x9b2J")

    left = COLOURS.sub("", format_code_lines([line], console(terminal=terminal)))

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", left)
    assert "[bold]b" in left


def test_a_long_line_is_cut() -> None:
    assert trim_code("  " + "x" * 500) == "x" * 199 + "…"


@pytest.mark.parametrize(
    ("query", "line"), [("EVENT", "def send(self, event): ..."), ("unheard of", "def send(self, event): ...")]
)
def test_a_line_is_chosen_for_any_query(query: str, line: str) -> None:
    assert choose_line(HIT, query) == line
