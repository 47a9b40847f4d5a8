"""The members of what the code of many languages lists by hand are read from its declaration."""

from __future__ import annotations

import pytest

from agent.kinds.listing.member_text import read_members


@pytest.mark.parametrize(
    ("language", "text", "members"),
    [
        ("python", 'STEPS = [\n    "shop.A",  # the first, of "all"\n    "shop.B",\n]', [("shop.A", 1), ("shop.B", 2)]),
        ("python", 'NAMES = frozenset({"a", "b"})', [("a", 0), ("b", 0)]),
        ("python", 'class Exit(IntEnum):\n    """Why."""\n\n    OK = 0\n    FAILED = 1\n', [("OK", 3), ("FAILED", 4)]),
        ("go", 'var names = []string{"a", "b"}', [("a", 0), ("b", 0)]),
        ("go", "var Default = Config{\n\tSkip: nil,\n\tLength: 32,\n}", [("Skip", 1), ("Length", 2)]),
        ("javascript", "const hooks = [\n  'onSend',\n  'onError'\n]", [("onSend", 1), ("onError", 2)]),
        ("javascript", 'const codes = {\n  /* a, b */\n  A: make("x, y", 4),\n  B: make(1)\n}', [("A", 2), ("B", 3)]),
        ("typescript", "export enum Side { Left = 'l', Right = 'r' }", [("Left", 0), ("Right", 0)]),
        ("rust", "#[test]\npub enum Exit {\n /// Fine.\n  Done,\n  Killed(i32),\n}", [("Done", 3), ("Killed", 4)]),
        ("rust", 'const SHELLS: &[&str] = &["bash", "zsh"];', [("bash", 0), ("zsh", 0)]),
        ("java", "enum Tone { RED(1), BLUE(2); Tone(int value) { } }", [("RED", 0), ("BLUE", 0)]),
        ("java", 'static final String[] KEYS = new String[] {"a", "b"};', [("a", 0), ("b", 0)]),
        ("ruby", "KEYS = %w[a b\n  c].freeze", [("a", 0), ("b", 0), ("c", 1)]),
        ("c", "typedef enum {\n  TYPE_A = 1,\n  TYPE_B,\n} kind;", [("TYPE_A", 1), ("TYPE_B", 2)]),
        ("python", "TOTAL = 4", []),
        ("python", "UNFINISHED = [1, ", [("1", 0)]),
    ],
)  # fmt: skip
def test_each_member_is_named_with_its_line(language: str, text: str, members: list[tuple[str, int]]) -> None:
    found = read_members(text.split("\n"), language)

    assert [(one.name, one.offset) for one in found] == members


def test_a_member_has_the_value_that_it_is_given() -> None:
    found = read_members(["var Default = Config{", '\tName: "shop",', "\tPorts: []int{80, 443},", "}"], "go")

    assert [(one.name, one.value) for one in found] == [("Name", '"shop"'), ("Ports", "[]int{80, 443}")]
