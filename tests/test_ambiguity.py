"""The judge of patterns tells slow ones from those that only look slow."""

from __future__ import annotations

import re

from tests.ambiguity import Mode, find_slowness

SLOW: list[tuple[str, int, Mode, str]] = [
    (r"(a*)*b", 0, "match", "exponential"),
    (r"(a|a)*b", 0, "match", "exponential"),
    (r"(a|ab|b)*c", 0, "match", "exponential"),
    (r"(\w+\s?)+$", 0, "match", "exponential"),
    (r"(\w{1,16}\s?){1,16}x", 0, "search", "exponential"),
    (r"\s*\s*x", 0, "match", "quadratic"),
    (r"\d+\d+", 0, "fullmatch", "quadratic"),
    (r"[ \t]{0,500}\s*x", 0, "match", "quadratic"),
    (r"\s+$", 0, "search", "quadratic"),
    (r"\w+x", 0, "search", "quadratic"),
    (r"a++b", 0, "search", "quadratic"),
    (r"a{0,400}b", 0, "search", "quadratic"),
    (r"^\s*foo", re.MULTILINE, "search", "quadratic"),
    (r"a.*b|a", 0, "search", "quadratic"),
    (r"a(?:.*b)?", 0, "search", "quadratic"),
    (r"/\*.*?\*/", re.DOTALL, "search", "quadratic"),
    (r"\[[^\]\n]{0,500}\]", 0, "search", "quadratic"),
    (r"(?:(?!\w*x).)*", 0, "match", "quadratic"),
    (r"A+a*b", re.IGNORECASE, "match", "quadratic"),
    (r"using\s+\w+\s*[=:;\w]*;", 0, "match", "quadratic"),
]
LINEAR: list[tuple[str, int, Mode]] = [
    (r"\w+", 0, "search"),
    (r"\w+\s*(?:\(\))?", 0, "search"),
    (r"\b\w+x\b", 0, "search"),
    (r"(?<!\S)\S+x", 0, "search"),
    (r"(?<=://)[^/\s]*@", 0, "search"),
    (r"^\s*foo", 0, "search"),
    (r"^[ \t]*foo", re.MULTILINE, "search"),
    (r"\[[^\[\]\n]{0,500}\]", 0, "search"),
    (r"\s{0,9}/?\s{0,9}x", 0, "search"),
    (r"(?:ab|a)(?:bc|c)", 0, "search"),
    (r".*", re.DOTALL, "fullmatch"),
    (r"[.!?](?=\s|$)", 0, "search"),
    (r"`{3,}(?!`)[^`\n]*$", 0, "match"),
    (r"A+b*c", re.IGNORECASE, "match"),
    (r"a{40}a*", 0, "match"),
    (r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[^\W\d]\w*)*(?:\(\))?", 0, "search"),
]


def test_slow_patterns_are_found() -> None:
    found = [(pattern, flags, mode, find_slowness(pattern, flags, mode)) for pattern, flags, mode, _ in SLOW]
    assert found == SLOW


def test_linear_patterns_are_let_through() -> None:
    assert [each for each in LINEAR if find_slowness(*each)] == []


def test_what_no_automaton_has_is_not_judged() -> None:
    assert find_slowness(r"(`+)(.+?)\1") == "has a groupref, which no automaton has"
