"""Masks secrets in text: the token forms of providers, key blocks, and random values behind the names of secrets.

Everything runs on RE2, so that no text can make it slow: one pass over the text tells which rules to apply at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import re2

from indexer.secrets.disguised_tokens import (
    holds_token,
    measure_split_token,
    write_encoded_pattern,
    write_split_pattern,
)
from indexer.secrets.named_values import JUDGED, read_named_value
from indexer.secrets.secret_rules import Rule, load_rules
from indexer.secrets.tables import HEADING, read_table

_LONGEST_TOKEN = 2_000  # characters of a token in pieces or in base64
_SHORTEST_NAME = 2  # characters, as of "pw"
_Step = Callable[[bytes], bytes]
_Read = Callable[
    [bytes, Any], tuple[int, int, bool]
]  # where what was matched begins and ends, and whether it is secret


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
    """Build the steps: of the rules that look everywhere, and of what stands behind the name of a secret."""
    loaded = load_rules()
    steps = [
        (rule.regex, partial(_mask_matches, _compile_regex(rule.regex).search, rule.label, partial(_read_match, rule)))
        for rule in loaded.rules
    ]
    find = partial(_find_named, _compile_regex(loaded.worth), _compile_regex(loaded.named))
    named = partial(_mask_matches, find, "secret", partial(read_named_value, loaded.list_forms()))
    mask = _build(steps).mask
    split, encoded = write_split_pattern(loaded.rules), write_encoded_pattern(loaded.rules)
    disguised = [
        (split, partial(_mask_matches, _compile_regex(split).search, "token", partial(_read_split, mask))),
        (encoded, partial(_mask_matches, _compile_regex(encoded).search, "token", partial(_read_encoded, mask))),
    ]
    tables = (HEADING, partial(_mask_tables, _compile_regex(HEADING).search))
    return _build([*disguised, *steps, (loaded.worth, named), tables])


def _mask_tables(find: Callable[[bytes, int], Any], data: bytes) -> bytes:
    """Mask the passwords in the rows below each heading that is found."""
    pieces: list[bytes] = []
    position = kept = 0
    while (match := find(data, position)) is not None:
        found, position = read_table(data, *match.span())
        for begin, end in found:
            pieces += [data[kept:begin], b"[REDACTED:secret]"]
            kept = end
    return b"".join((*pieces, data[kept:]))


def _read_split(mask: _Step, data: bytes, match: Any) -> tuple[int, int, bool]:
    start, stop = match.span()
    length = measure_split_token(mask, data[start:stop]) if stop - start <= _LONGEST_TOKEN else 0
    return start, start + length if length else stop, length > 0


def _read_encoded(mask: _Step, data: bytes, match: Any) -> tuple[int, int, bool]:
    start, stop = match.span()
    return start, stop, stop - start <= _LONGEST_TOKEN and holds_token(mask, data[start:stop])


def _build(steps: Sequence[tuple[str, _Step]]) -> _Steps:
    automaton = re2.Set.SearchSet(_make_options())
    for regex, _ in steps:
        automaton.Add(regex.encode())
    automaton.Compile()
    return _Steps(automaton=automaton, steps=[step for _, step in steps])


def _read_match(rule: Rule, data: bytes, match: Any) -> tuple[int, int, bool]:
    """Return what a rule found, and whether it is a secret."""
    start, stop = match.span(match.lastindex or 0)  # the group that took part, or everything
    return start, stop, rule.is_secret(data[start : min(stop, start + JUDGED)].decode("utf-8", "replace"))


def _find_named(worth: Any, named: Any, data: bytes, position: int) -> Any:
    """Find the next name with a value behind it: first by a quick search for the place."""
    while (place := worth.search(data, position)) is not None:
        if (match := named.match(data, place.start())) is not None:
            return match
        position = place.start() + _SHORTEST_NAME
    return None


def _mask_matches(find: Callable[[bytes, int], Any], label: str, read: _Read, data: bytes) -> bytes:
    """Mask what a pattern finds and what is read in its matches as a secret."""
    pieces: list[bytes] = []
    end = position = 0
    while (match := find(data, position)) is not None:
        start, stop, is_secret = read(data, match)
        if _is_in_mark(data, match.start()):
            position = data.find(b"]", match.start()) + 1 or stop
        elif is_secret and not _is_in_mark(data, start):
            pieces += [data[end:start], f"[REDACTED:{label}]".encode(), b"\n" * data.count(b"\n", start, stop)]
            end = position = stop
        else:  # what is no secret may hold the name of one
            position = start if match.start() < start and stop - start <= JUDGED else stop
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
