"""Masks secrets in text: the token forms of providers, key blocks, and random values behind the names of secrets.

Everything runs on RE2, so that no text can make it slow: one pass over the text tells which rules to apply at all.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import re2

from indexer.secrets.named_values import JUDGED, read_named_value
from indexer.secrets.secret_rules import Rule, load_rules
from indexer.secrets.secret_values import is_literal, is_value

# The text between two pieces of a string: quotes with a joining sign, or a line end.
_JOINT = (
    r"(?:[\"'`][ \t]{0,8}[+.&]{1,2}[ \t]{0,8}[\"'`]|"
    r"[\"'`]?[ \t]{0,8}[+.&\\]{0,2}[ \t]{0,8}\r?\n[ \t>#*]{0,40}[+.&]{0,2}[ \t]{0,8}[\"'`]?)"
)
_PIECE = "[A-Za-z0-9_/+=-]"
_MIN_BEGINNING = 4  # characters of base64 that tell one beginning of a token from another

Mask = Callable[[bytes], bytes]


def write_split_pattern(rules: Sequence[Rule]) -> str:
    """Write the pattern of a text that begins like a token and continues after a joint."""
    return rf"(?:{'|'.join(re.escape(each) for each in _list_beginnings(rules))}){_PIECE}*(?:{_JOINT}{_PIECE}{{4,}})+"


def measure_split_token(mask: Mask, found: bytes) -> int:
    """Return the length of the token in a match; 0 if it is none, or ends before the first joint."""
    pieces = re2.split(_JOINT.encode(), found)
    joined = b"".join(pieces)
    masked = mask(joined)
    if not masked.startswith(b"[REDACTED:") or not (length := len(joined) - len(masked.partition(b"]")[2])) > len(
        pieces[0]
    ):
        return 0
    end = 0
    for piece in pieces:
        end = found.index(piece, end) + min(len(piece), length)
        length -= len(piece)
        if length <= 0:
            break
    return end


def write_encoded_pattern(rules: Sequence[Rule]) -> str:
    """Write the pattern of base64 that encodes the beginning of a token at any offset."""
    beginnings = {each for beginning in _list_beginnings(rules) for each in _encode_beginning(beginning.encode())}
    return rf"[A-Za-z0-9+/]*(?:{'|'.join(re.escape(each) for each in sorted(beginnings))})[A-Za-z0-9+/]{{12,}}={{0,2}}"


def holds_token(mask: Mask, encoded: bytes) -> bool:
    """Whether decoded base64 contains a token."""
    whole = encoded.rstrip(b"=")
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    decoded = base64.b64decode(whole + b"=" * (-len(whole) % 4))
    return mask(decoded) != decoded


def _list_beginnings(rules: Iterable[Rule]) -> list[str]:
    """List the token prefixes that identify a token."""
    return sorted({word for rule in rules for word in rule.keywords if rule.begins(word)})


def _encode_beginning(beginning: bytes) -> Iterable[str]:
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + beginning).decode().rstrip("=")
        certain = encoded[(shift * 8 + 5) // 6 : (shift + len(beginning)) * 8 // 6]
        if len(certain) >= _MIN_BEGINNING:
            yield certain


# A line whose cells are words, one of them a heading of passwords; the automaton asks for it before anything is read.
HEADING = (
    r"(?m)^(?:[^\n]*[|,;\t][ \t\"*]*)?(?i:(?:\w+[ _-])?(?:password|passwd|pwd|passwort|kennwort))[ \t\"*]*"
    r"(?:[|,;\t][^\n]*)?\r?\n"
)
_NAME = re.compile(rb"(?i)(?:\w+[ _-])?(?:password|passwd|pwd|passwort|kennwort)")
_USER = re.compile(rb"(?i)(?:\w+[ _-])?(?:user(?:[ _-]?name)?|login|e-?mail|account|host)")
_CELL = re.compile(rb"[\w .*/()-]{0,40}")
_RULE = re.compile(rb"[ \t|:+-]+")
_WRAPPING = b" \t\"'`*\r"

Span = tuple[int, int]


def read_table(data: bytes, start: int, stop: int) -> tuple[Sequence[Span], int]:
    """Return the positions of the passwords in a table with a heading at a place, and the table's end."""
    heading = data[start:stop].rstrip(b"\r\n")
    for separator in (b"|", b"\t", b",", b";"):
        cells = [one.strip(_WRAPPING) for one in heading.split(separator)]
        columns = [number for number, cell in enumerate(cells) if _NAME.fullmatch(cell)]
        if columns and len(cells) > 1 and all(_CELL.fullmatch(cell) for cell in cells):
            is_login = any(_USER.fullmatch(cell) for cell in cells) and (separator == b"|" or all(cells))
            return _read_rows(data, stop, separator, columns[0], len(cells), is_login=is_login)
    return [], stop


def _read_rows(
    data: bytes, position: int, separator: bytes, column: int, width: int, *, is_login: bool
) -> tuple[Sequence[Span], int]:
    """Find the cells with passwords; beside user names, all but placeholders and types."""
    found: list[Span] = []
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        row = data[position:end].rstrip(b"\n")
        if row.count(separator) + 1 != width:
            break
        cells = row.split(separator)
        value = cells[column].strip(_WRAPPING)
        said = value.decode("utf-8", "replace")
        if not _RULE.fullmatch(row) and ((is_login and is_value(said)) or is_literal(said, words=False, chosen=True)):
            at = position + sum(len(one) + 1 for one in cells[:column]) + cells[column].index(value)
            found.append((at, at + len(value)))
        position = end
    return found, position


_MAX_TOKEN = 2_000  # characters of a token in pieces or in base64
_SHORTEST_NAME = 2  # characters, as of "pw"
_Step = Callable[[bytes], bytes]
_Read = Callable[
    [bytes, Any], tuple[int, int, bool]
]  # where what was matched begins and ends, and whether it is secret


@dataclass(frozen=True, kw_only=True, slots=True)
class _Steps:
    """Ways to mask, each with a pattern, and an automaton that finds in one pass which patterns match."""

    automaton: Any
    steps: Sequence[_Step]

    def mask(self, data: bytes) -> bytes:
        """Apply the steps whose patterns match, in order."""
        for index in sorted(self.automaton.Match(data) or ()):
            data = self.steps[index](data)
        return data


def redact_secrets(text: str) -> str:
    """Replace every known form of secret by a mark such as `[REDACTED:github]`.

    The number of lines stays, and already masked text is unchanged.
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
    """Build the steps: the rules that search everywhere, and those for values after a secret's name."""
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
    length = measure_split_token(mask, data[start:stop]) if stop - start <= _MAX_TOKEN else 0
    return start, start + length if length else stop, length > 0


def _read_encoded(mask: _Step, data: bytes, match: Any) -> tuple[int, int, bool]:
    start, stop = match.span()
    return start, stop, stop - start <= _MAX_TOKEN and holds_token(mask, data[start:stop])


def _build(steps: Sequence[tuple[str, _Step]]) -> _Steps:
    automaton = re2.Set.SearchSet(_make_options())
    for regex, _ in steps:
        automaton.Add(regex.encode())
    automaton.Compile()
    return _Steps(automaton=automaton, steps=[step for _, step in steps])


def _read_match(rule: Rule, data: bytes, match: Any) -> tuple[int, int, bool]:
    """Return a rule's match, and whether it is a secret."""
    start, stop = match.span(match.lastindex or 0)  # the group that took part, or everything
    return start, stop, rule.is_secret(data[start : min(stop, start + JUDGED)].decode("utf-8", "replace"))


def _find_named(worth: Any, named: Any, data: bytes, position: int) -> Any:
    """Find the next name with a value: first by a quick search for the place."""
    while (place := worth.search(data, position)) is not None:
        if (match := named.match(data, place.start())) is not None:
            return match
        position = place.start() + _SHORTEST_NAME
    return None


def _mask_matches(find: Callable[[bytes, int], Any], label: str, read: _Read, data: bytes) -> bytes:
    """Mask the secrets in the matches of a pattern."""
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
    """Whether a match is part of a mark, such as its name, which would be masked forever."""
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
