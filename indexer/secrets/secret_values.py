"""Decides whether a value that stands behind a name such as `password` is a secret, or a word or a reference."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import re2

from indexer.secrets.randomness import measure_surprise

SHORTEST_RANDOM = 12  # characters; of fewer, nobody can tell whether they are random
_USUAL_BITS = 5.5  # what a pair of characters costs in one name of a hundred
_FEWEST_PAIRS = 5
_LONG = 32  # characters; a random value of so many may hold a word such as "xxxx" by chance

# What a value is goes by patterns of RE2 as well: the values come from outside.
_PLACEHOLDER = re2.compile(
    r"(?i)\[REDACTED|change.?me|example|sample|dummy|placeholder|replace|insert|your[_-]|^my[_-]|x{4,}|0{6,}|1234567"
    r"|abcdef|deadbeef|redacted|passw|secret|token|^test|[_-]test|fake|mock|foobar|localhost"
)
_VARIABLE = re2.compile(r"\$[\w-]+\$?|%\w+%\W*|\{\w*\}|<[^<>]*>|@\w+@|__\w+__|\*+|\.+")
_TEMPLATE = re2.compile(r"[$#]\{[A-Za-z_][\w.:-]*\}|\$\([A-Za-z_][^()]*\)|\{\{[^{}]*\}\}|<%[^<>%]*%>|%\(\w+\)")
_EXPRESSION = re2.compile(
    r"[*&]?[A-Za-z_$][\w$.:]*(?:->\w+|\[[^\[\]]{1,20}\]|\([^()]*\))(?:->|[\w$.:]|\[[^\[\]]{1,20}\]|\([^()]*\))*;?"
)
_PATTERN = re2.compile(r"\[\^?(?:[aA]-[zZfF]|0-9)|\\[dDwWsS][+*{)\]]|\(\?[:=!<P]")
_WORD = r"[A-Za-z]*(?:\d{1,3}[A-Za-z]*)?"
_WORDS = re2.compile(rf"[A-Za-z]+\W*|{_WORD}(?:[\s._/:,-]{_WORD})+")
_ADDRESS = re2.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|mailto:|~/[\w.-]{2,40}(?:/|$)|sha(?:1|256|384|512)[-:]")
_HEX = re2.compile(r"[0-9a-f]+(?:-[0-9a-f]+)*|[0-9A-F]+(?:-[0-9A-F]+)*")
_WRAPPING = "[]{}()=\\"  # what a language puts around a value, or fills it up with
_DOCUMENTED_PASSWORDS = frozenset(
    "pass passwd password pw pwd secret changeme xxx xxxx example token hunter2 admin guest root postgres mysql".split()
)


def is_random(value: str) -> bool:
    """Tell what was drawn by lot from names, words, numbers, expressions and references."""
    if len(value) < SHORTEST_RANDOM or not value.isascii() or not value.isprintable():
        return False
    if is_placeholder(value) or is_reference(value) or _is_monotonous(value):
        return False
    return _is_random_hex(value.strip(_WRAPPING).removeprefix("0x")) or _is_noise(value)


def is_password(value: str) -> bool:
    """Tell a quoted password from the other strings that are assigned to such names.

    Words, names and placeholders are none; a password mixes kinds of characters.
    """
    if is_random(value):
        return True
    if is_placeholder(value) or is_reference(value) or _WORDS.fullmatch(value):
        return False
    has_symbol = any(char in "!@#$%^&*+=?~" for char in value)
    return _count_kinds(value) + has_symbol >= 2 and measure_entropy(value) >= 2.7 and not _is_code_like(value)


def is_url_password(value: str) -> bool:
    """Tell a password in an address from the ones that documentation has there, and from variables."""
    if value.lower() in _DOCUMENTED_PASSWORDS or is_reference(value) or value.startswith("[REDACTED"):
        return False
    return len(value) >= SHORTEST_RANDOM or not value.startswith(("%", "*", "$", ":", "(", "\\", "["))


def is_placeholder(value: str) -> bool:
    """Tell what stands for a secret in documentation; long random values hold such words by chance."""
    ends = (value,) if len(value) < _LONG else (value[:8], value[-10:])
    return any(_PLACEHOLDER.search(end) for end in ends)


def is_reference(value: str) -> bool:
    """Tell what points at a secret, or describes one: a variable, a template, an address, a digest, a pattern."""
    return bool(
        _ADDRESS.match(value)
        or _VARIABLE.fullmatch(value)
        or _TEMPLATE.search(value)
        or _EXPRESSION.fullmatch(value)
        or _PATTERN.search(value)
    )


def measure_entropy(value: str) -> float:
    """Return Shannon's entropy in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _is_monotonous(value: str) -> bool:
    """Whether a value repeats few characters, or goes up or down the alphabet."""
    if len(set(value)) < (5 if len(value) < 20 else 7):
        return True
    steps = sum(abs(ord(one) - ord(two)) <= 1 for one, two in pairwise(value))
    return 2 * steps > len(value)


def _is_random_hex(value: str) -> bool:
    return bool(_HEX.fullmatch(value)) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_noise(value: str) -> bool:
    """Whether letters and digits follow each other as they do in no language."""
    bits, pairs = measure_surprise(value)
    if pairs >= _FEWEST_PAIRS:
        return bits > _USUAL_BITS
    return _count_kinds(value) >= 2 and len(set(value)) >= 8


def _count_kinds(value: str) -> int:
    return any(map(str.islower, value)) + any(map(str.isupper, value)) + any(map(str.isdigit, value))


def _is_code_like(value: str) -> bool:
    return value.startswith(("/", "./", "../", "~/", "#", ".", "@")) or "(" in value
