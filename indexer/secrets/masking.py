"""Masks secrets in text: the token forms of providers, key blocks, and random values behind the names of secrets.

Everything runs on RE2, so that no text can make it slow: one pass over the text tells which rules to apply at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import re2

from indexer.secrets.secret_rules import Rule, load_rules

_JUDGED = 256  # bytes of a value that decide whether it is a secret

_Step = Callable[[bytes], bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """Ways to mask, each behind a pattern, and an automaton that tells in one pass which patterns match anywhere."""

    automaton: Any
    steps: Sequence[_Step]

    def mask(self, data: bytes) -> bytes:
        """Take the steps whose patterns match, in their order."""
        for index in sorted(self.automaton.Match(data) or ()):
            data = self.steps[index](data)
        return data


def redact_secrets(text: str) -> str:
    """Replace every known form of secret by a mark such as `[REDACTED:github]`.

    The number of lines stays, and a text that was masked already stays as it is.
    """
    mask = _open_steps().mask
    data = text.encode("utf-8", "surrogatepass")
    masked = mask(data)
    if masked == data:
        return text
    # Taking a secret out can make its neighbour recognisable; each round masks something, so this ends.
    while (again := mask(masked)) != masked:
        masked = again
    return masked.decode("utf-8", "surrogatepass")


@lru_cache(maxsize=1)
def _open_steps() -> _Steps:
    """Build the automata: one of the rules that look everywhere, and one of those that look behind a name."""
    loaded = load_rules()
    everywhere = [(rule.regex, partial(_apply_rule, rule)) for rule in loaded.rules if not rule.prefilter]
    behind = [
        (
            regex,
            partial(_mask_regions, regex, _build([(rule.regex, partial(_apply_rule, rule)) for rule in rules])),
        )
        for name, regex in loaded.prefilters.items()
        if (rules := [rule for rule in loaded.rules if rule.prefilter == name])
    ]
    return _build([*everywhere, *behind])


def _build(steps: Sequence[tuple[str, _Step]]) -> _Steps:
    automaton = re2.Set.SearchSet(_make_options())
    for regex, _ in steps:
        automaton.Add(regex.encode())
    automaton.Compile()
    return _Steps(automaton=automaton, steps=[step for _, step in steps])


def _mask_regions(regex: str, steps: _Steps, data: bytes) -> bytes:
    """Mask in the lines that a prefilter matches: few, so that their rules cost the rest of the text nothing."""
    pieces: list[bytes] = []
    end = 0
    for start, stop in _find_regions(regex, data):
        pieces += [data[end:start], steps.mask(data[start:stop])]
        end = stop
    return b"".join(pieces) + data[end:]


def _find_regions(regex: str, data: bytes) -> list[tuple[int, int]]:
    """Find the whole lines that hold a match, as many together as follow each other."""
    find = _compile_regex(regex).search
    regions: list[tuple[int, int]] = []
    end = 0
    while (match := find(data, end)) is not None:
        start = max(end, data.rfind(b"\n", 0, match.start()) + 1)
        stop = data.find(b"\n", match.end())
        stop = len(data) if stop < 0 else stop
        if regions and start <= end + 1:
            start, _ = regions.pop()
        regions.append((start, stop))
        end = stop
    return regions


def _apply_rule(rule: Rule, data: bytes) -> bytes:
    """Mask what a rule finds and takes for a secret."""
    find = _compile_regex(rule.regex).search
    pieces: list[bytes] = []
    end = position = 0
    while (match := find(data, position)) is not None:
        start, stop = match.span(match.lastindex or 0)  # the group that took part, or everything
        secret = data[start:stop]
        if rule.is_secret(secret[:_JUDGED].decode("utf-8", "replace")) and not _is_in_mark(data, start):
            pieces += [data[end:start], f"[REDACTED:{rule.label}]".encode(), b"\n" * secret.count(b"\n")]
            end = position = stop
        else:  # what is no secret may hold the name of one
            position = start if match.start() < start and stop - start <= _JUDGED else stop
    return b"".join(pieces) + data[end:] if pieces else data


def _is_in_mark(data: bytes, start: int) -> bool:
    """Whether what was found is a part of a mark, such as the name in it: that would be masked for ever."""
    mark = data.rfind(b"[REDACTED", max(0, start - 64), start)
    return mark >= 0 and data.find(b"]", mark, start) < 0


@cache
def _compile_regex(regex: str) -> Any:
    return re2.compile(regex.encode(), _make_options())


def _make_options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20  # room for the automaton of all rules: without it nothing would be found
    return options
