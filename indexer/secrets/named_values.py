"""Reads what stands behind a name such as `password`, whatever the language, and tells whether it is a secret."""

from __future__ import annotations

from typing import Any

import re2

from indexer.secrets.secret_values import is_literal, is_random

JUDGED = 256  # bytes of a value that decide whether it is a secret


def _compile_bytes(pattern: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


# A name with more behind its noun describes the secret: `password_field`, `token_ttl`.
_PLAIN_TAIL = _compile_bytes(
    rb"(?i)(?:[_.-]?(?:base|value|default|prod|production|dev|development|staging|local|old|new|current|string|str|plain|"
    rb"text|plaintext|raw|confirmation|again|root|admin|user|db|\d{1,3})|[_.-][a-z])*"
)
_WRITER = _compile_bytes(
    rb"(?i)(?:^|[^a-z])(?:(?:set|with|add|use|using|change|update)\w*)?$"
)  # before a name that is called
_LINE_START = _compile_bytes(
    rb"(?i)[ \t]*(?:\d{1,6}:[ \t]*)?(?:[-+*>#][ \t]*|//[ \t]+)?"
    rb"(?:(?:export|set -x|setx|set|setenv|env|arg|run export)[ \t]+"
    rb"|\$env:|//[^\s:]{1,80}:)?[\w.-]*"
)
_LINE_END = _compile_bytes(rb"(?:[ \t]+(?:#|//|;).*)?[ \t]*\r?(?:\n|$)")
_END = _compile_bytes(rb"[;,<>()|\\\"'`]|&[\w.-]{1,40}=|&(?:#\d{1,5}|[a-z]{2,6});")  # what ends a value within a line
_NEXT_KEY = _compile_bytes(rb"[\"'`]\s{0,4}:")  # behind a value that is the name of another one
_NAME = _compile_bytes(rb"[\w.$]+")
_TYPE = re2.compile(r"(?:[A-Z][a-z]+)+\d")
_BACK = 200  # bytes before a name in which its line begins


def read_named_value(forms: tuple[str, ...], data: bytes, match: Any) -> tuple[int, int, bool]:
    """Return where the value of a match begins and ends, and whether it is a secret.

    `forms` names the form of each group of the pattern.
    """
    group = match.lastindex
    start, stop = match.span(group)
    if forms[group] in {"bare", "spoken"}:
        return _read_bare(forms[group], data, match, start, stop)
    value = data[start : min(stop, start + JUDGED)].decode("utf-8", "replace")
    gap = data[match.end(2) : start]
    if is_random(value):
        return start, stop, True
    if not _is_plain(match) or _NEXT_KEY.match(data, stop) is not None:
        return start, stop, False
    if gap.strip(b"\"'`").startswith(b"(") and _WRITER.search(data[max(0, match.start() - 40) : match.start()]) is None:
        return start, stop, False  # of a call that reads a secret or tests it
    is_password = match.start(1) >= 0
    words = is_password and _takes_words(forms[group], gap, value)
    return start, stop, is_literal(value, words=words, chosen=is_password)


def _takes_words(form: str, gap: bytes, value: str) -> bool:
    """Whether a plain word behind a password's name is its value, rather than a label or another name."""
    if form == "quoted":
        return b"," not in gap and (b"=" in gap or b"(" in gap or (b":" in gap and value.islower()))
    return form == "pair" or (form == "element" and gap == b">")


def _read_bare(form: str, data: bytes, match: Any, start: int, stop: int) -> tuple[int, int, bool]:
    """Read a value without quotes: the whole of it where it ends a line of configuration, else as far as it goes."""
    run = data[start : min(stop, start + JUDGED)]
    if len(run) < stop - start:
        return start, stop, is_random(_decode(run))
    whole = run.rstrip(b";,")
    if is_random(_decode(whole)) and _is_line(data, match, stop):
        return start, start + len(whole), True
    end = _END.search(run)
    part = run[: end.start() if end else None].rstrip(b".:*" if form == "spoken" else b"*")
    if (is_code := _is_code(form, data, stop, run, part)) or is_random(_decode(part)):
        return start, start + len(part), not is_code
    if b"{" not in part:
        part = part.partition(b"}")[0]
    value, after = _decode(part), run[len(part) : len(part) + 1]
    found = start, start + len(part)
    if after in {b"(", b"<"} or not _is_plain(match) or (match.start(1) < 0 and _TYPE.fullmatch(value)):
        return *found, False
    before = data[max(0, match.start() - 40) : match.start()].rpartition(b" ")[2]
    if form == "spoken":
        chosen = match.start(1) >= 0 and _is_line(data, match, stop)
        return *found, is_literal(value, words=False, bare=not before.startswith(b"--"), chosen=chosen)
    is_default = after == b"}" and b"${" in before  # of a variable, as of shells and Spring
    is_line = not after.strip(b";") and _is_line(data, match, stop)
    return *found, _is_setting(data, match, value, before, is_default=is_default, is_line=is_line)


def _is_plain(match: Any) -> bool:
    """Whether nothing behind the noun of a name describes the secret; for most names nothing stands there."""
    return match.start(2) == match.end(2) or _PLAIN_TAIL.fullmatch(match[2]) is not None


def _is_line(data: bytes, match: Any, stop: int) -> bool:
    """Whether a name and its value are a line of configuration."""
    begun = data.rfind(b"\n", max(0, match.start() - _BACK), match.start()) + 1
    return _LINE_START.fullmatch(data, begun, match.start()) is not None and _LINE_END.match(data, stop) is not None


def _is_code(form: str, data: bytes, stop: int, run: bytes, part: bytes) -> bool:
    """Whether what was read is the name of a function that is called, or of a variable behind its type."""
    is_called = run[len(part) : len(part) + 1] == b"(" and _NAME.fullmatch(part) is not None
    return is_called or (form == "spoken" and data[stop : stop + 4].lstrip().startswith(b"="))


def _is_setting(data: bytes, match: Any, value: str, before: bytes, *, is_default: bool, is_line: bool) -> bool:
    """Whether a value without quotes is no name: what may be one counts only where nothing but values stands."""
    name, gap = data[match.start() : match.end(2)], data[match.end(2) : match.start(match.lastindex)]
    is_part = before.endswith(b";") and gap == b"="  # of a connection string
    is_variable = gap == b"=" and (name.isupper() or (is_line and b"." in before))
    is_value = is_default or is_part or is_variable
    is_setting = is_line and b" " not in gap.rstrip()  # `name = value` may be code
    is_password = match.start(1) >= 0
    return is_literal(
        value, words=is_password and is_value, bare=not (is_value or is_setting),
        chosen=is_password and (is_setting or before.startswith(b"--")),
    )  # fmt: skip


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")
