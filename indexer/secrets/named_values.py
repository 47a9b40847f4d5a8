"""Reads what stands behind a name such as `password`, whatever the language, and tells whether it is a secret."""

from __future__ import annotations

from typing import Any

import re2

from indexer.secrets.secret_values import is_literal, is_random, is_value

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
_NAME = _compile_bytes(rb"[\w.$:]+")
_TYPE = re2.compile(r"(?:[A-Z][a-z]+)+\d")
_BACK = 200  # bytes before a name in which its line begins
_FAR = 2_000  # bytes around a name in which its line and its section are looked for
_NEAR = 120  # bytes around a name that tell of what it is
_SHORT_NAME = _compile_bytes(rb"(?i)_?(?:pass|pw|psk)")
_USER = _compile_bytes(rb"(?i)(?:\b|_)(?:user(?:_?name)?|login|e?mail|host|smtp|ssid)\b")
_SETTER = _compile_bytes(
    rb"(?i)(?:\b(?:define|getenv|env|get\w{0,20}|put|set\w{0,20}|environ|fill|type|send_keys)|property)"
    rb"[ \t]*\([ \t]*[\"'][\w.#-]*$"
)
_OPTION = _compile_bytes(rb"(?:^|\s)--?[A-Za-z][\w-]*(?:[ \t]+|=)?[^\s()]*$")
_PART = (
    rb"(?:server|host(?:name)?|data source|database|dbname|initial catalog|user(?: ?id|name)?|uid|port|"
    rb"\w+_(?:user|host))"
)
_PART_BEFORE = _compile_bytes(rb"(?i)\b" + _PART + rb"[ ]?=[^=(),\n]{1,80}[;\s]")
_PART_AFTER = _compile_bytes(rb"(?i);[ ]?[\w ]{2,40}=[^=]|[ ]" + _PART + rb"=[^=]")
_FLOW = _compile_bytes(rb"[ \t]*(?:-[ \t]+)?(?:[\w.-]+:[ \t]*)?\{[^{}();]*\}[ \t]*(?:#.*)?\r?")
_COMMENT = _compile_bytes(rb"(?://|#|--|/\*)[ \t]*$")
_SECTION = _compile_bytes(rb"(?m)^[ \t]*\[[\w. :\"'/-]+\][ \t]*\r?$")
_PAIR = _compile_bytes(
    rb"[ \t]*(?:[#!].*|;.*|//.*|---|\[[^\[\]]+\]|(?:-[ \t]+)?[\w.\"'$/-]+[ \t]*[:=][^(){};]*|-[ \t]+[^(){};]*)"
)
_TYPED = _compile_bytes(
    rb"[:?][ \t]*(?i:str|string|number|int|integer|bool|boolean|any|bytes|float|optional\[.*)\b[^:]*$|,\s*$"
)
_USER_LINE = _compile_bytes(rb"(?i)[\s*>#+-]*(?:user(?:[ _]?name)?|login|e-?mail)[*\"']{0,3}[ ]?[:=][^(){};,]+")
_LOOKUP = _compile_bytes(rb"(?:^|[^:\w])(?:\w+\.)*[a-z]\w*\([\s\"'`]*$")
_PROPERTY = _compile_bytes(
    rb"<(?:\w+:)?(?:property|entry|param|string|item|setting|prop|arg)[ \t]+(?:name|key|id)=\"[\w.-]*$"
)
_DIRECTIVE = _compile_bytes(
    rb"[ \t]*(?:.*\{[ \t]*|#[ \t]*define[ \t]+)?[\w.-]*|(?i:.*\b(?:role|user|login|with|encrypted)\b.*)"
)
_CLOSED = _compile_bytes(rb"[ \t]*(?:[;)},]|--|#|\r?\n|$)")


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
    is_password = _is_password(data, match)
    if is_password and _is_assigned(forms[group], gap, value, data, match):
        return start, stop, is_value(value)
    return start, stop, is_literal(value, words=False, chosen=is_password)


def _is_password(data: bytes, match: Any) -> bool:
    """Whether a name is that of a password; a short one is where somebody's name stands beside it."""
    if match.start(1) >= 0:
        return True
    if _SHORT_NAME.fullmatch(data, match.start(), match.end(2)) is None:
        return False
    if data[match.start() : match.end(2)] == b"_PASS":  # of a constant or a variable of the environment
        return True
    return _USER.search(data, max(0, match.start() - _NEAR), min(len(data), match.end() + _NEAR)) is not None


def _is_assigned(form: str, gap: bytes, value: str, data: bytes, match: Any) -> bool:
    """Whether what stands in quotes behind a password's name is its value, rather than a label or another name."""
    if form != "quoted":
        before = data[max(0, match.start() - _NEAR) : match.start()]
        return form == "pair" or gap == b">" or _PROPERTY.search(before) is not None
    if b"," in gap:  # of a call that sets what a name stands for
        return _SETTER.search(data[max(0, match.start() - _NEAR) : match.start()]) is not None
    if b":" in gap and b"=" not in gap:  # one word with a capital may be its label
        return not (value.istitle() and value.isalpha())
    if _LOOKUP.search(gap) is not None:  # what is called is given a name or an encoding
        return False
    if any(sign in gap for sign in (b"=", b"(", b"|", b"?", b" or")):
        return True
    return match.start(1) >= 0 and _is_directive(gap, data, match)


def _is_directive(gap: bytes, data: bytes, match: Any) -> bool:
    """Whether a name and a value in quotes are all of a line, a block or the end of a statement."""
    if not gap.startswith((b" ", b"\t")):
        return False
    line = data.rfind(b"\n", max(0, match.start() - _BACK), match.start()) + 1
    return _DIRECTIVE.fullmatch(data, line, match.start()) is not None and _CLOSED.match(data, match.end()) is not None


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
    if after in {b"(", b"<"} or not _is_plain(match) or (not _is_password(data, match) and _TYPE.fullmatch(value)):
        return *found, False
    before = data[max(0, match.start() - 40) : match.start()].rpartition(b" ")[2]
    if form == "spoken":
        chosen = match.start(1) >= 0 and _is_line(data, match, stop)
        return *found, is_literal(value, words=False, bare=not before.startswith(b"--"), chosen=chosen)
    is_default = after == b"}" and b"${" in before  # of a variable, as of shells and Spring
    is_line = not after.strip(b";") and _is_line(data, match, stop)
    return *found, _is_setting(data, match, value, before, found[1], is_default=is_default, is_line=is_line)


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


def _is_setting(
    data: bytes, match: Any, value: str, before: bytes, stop: int, *, is_default: bool, is_line: bool
) -> bool:
    """Whether a value without quotes is no name: what may be one counts only where nothing but values stands."""
    name, gap = data[match.start() : match.end(2)], data[match.end(2) : match.start(match.lastindex)]
    is_part = before.endswith(b";") and gap == b"="  # of a connection string
    is_variable = gap == b"=" and (name.isupper() or (is_line and b"." in before))
    is_literal_only = is_default or is_part or is_variable
    is_setting = is_line and b" " not in gap.rstrip()  # `name = value` may be code
    is_password = _is_password(data, match)
    if is_password and (is_literal_only or _holds_only_values(data, match, stop, is_line=is_line)):
        return is_value(value)
    is_chosen = is_password and (is_setting or before.startswith(b"--"))
    return is_literal(value, words=False, bare=not (is_literal_only or is_setting), chosen=is_chosen)


def _holds_only_values(data: bytes, match: Any, stop: int, *, is_line: bool) -> bool:
    """Whether nothing but a literal can stand behind a name: of an option, in a connection string, in a data file."""
    gap = data[match.end(2) : match.start(match.lastindex)]
    line = max(data.rfind(b"\n", max(0, match.start() - _FAR), match.start()) + 1, match.start() - _FAR, 0)
    end = data.find(b"\n", stop, stop + _FAR)
    end = min(len(data), stop + _FAR) if end < 0 else end
    before, after = data[max(line, match.start() - _BACK) : match.start()], data[stop : min(end, stop + _BACK)]
    if gap == b"=" and (_OPTION.search(before) or _PART_BEFORE.search(before) or _PART_AFTER.match(after)):
        return True
    if end - line <= 2 * _BACK and _FLOW.fullmatch(data, line, end):
        return True
    if _COMMENT.search(before) and _LINE_END.match(data, stop):
        return True
    return (
        is_line
        and (b":" in gap or _SECTION.search(data[max(0, line - _FAR) : line]) is not None)
        and (_stands_in_data(data, line, end))
    )


def _stands_in_data(data: bytes, line: int, end: int) -> bool:
    """Whether the lines around one are pairs of names and values, or the next one is of the name of a user."""
    above = [each for each in data[max(0, line - 2 * _BACK) : line].split(b"\n")[-4:] if each.strip()][-2:]
    below = [each for each in data[end : end + 2 * _BACK].split(b"\n")[:4] if each.strip()][:2]
    if any(_TYPED.search(each) for each in (*above, *below)):
        return False
    if any(_USER_LINE.fullmatch(each) for each in (*above[-1:], *below[:1])):
        return True
    return bool(above or below) and all(_PAIR.fullmatch(each) for each in (*above, *below))


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")
