"""Reads the value after a name such as `password`, in any language, and decides whether it is a secret."""

from __future__ import annotations

from typing import Any

import re2

from indexer.secrets.secret_values import is_literal, is_random, is_stated, is_technical, is_value

JUDGED = 256  # bytes of a value that decide whether it is a secret


def _compile_bytes(pattern: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


# A name with more behind its noun describes the secret: `password_field`, `token_ttl`.
_PLAIN_TAIL = _compile_bytes(
    rb"(?i)(?:[_.-]?(?:base|value|default|prod|production|dev|development|staging|local|old|new|current|string|str|plain|"
    rb"text|plaintext|raw|confirmation|again|root|admin|user|db|bytes|hash|\d{1,3})|[_.-][a-z])*"
    rb"(?:\w{0,12}\.(?:set|send|fill|type|encode|hash|encrypt|matches|verify|check|compare)\w*)?"
)
_LINE_START = _compile_bytes(
    rb"(?i)[ \t]*(?:\d{1,6}:[ \t]*)?(?:[-+*>#][ \t]*|//[ \t]+)?[*_]{0,3}"
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
# A call or a pair that a name is in, unless its arguments are names alone: `only("password", "salt")`.
_ARGUMENT = _compile_bytes(
    rb"([\w?!]*)[ \t]*[({][ \t]*(?:[^(){}\"'`\n]{1,60},[ \t]*)?[\"'`:][\w.#$\[\]=-]*$|\{[ \t]*\w*$"
)
_NAMING = _compile_bytes(
    rb"(?i)_*\w*(?:except|only|omit|pick|select|fields?|filter|exclude|permit|hidden|columns?|labels?|errors?|assert\w*|join|"
    rb"has|contains?|includes?|equals?|format|print\w*|log)|t"
)
_ARGUMENT_END = _compile_bytes(rb"[\"'`][ \t]*(?:[)}]|,[ \t]*(?:[^\"'`\s]|[\"'`][^\"'`\n]*[ ]|$))")
_OPTION = _compile_bytes(rb"(?:^|\s)--?(?:[A-Za-z][\w-]*(?:[ \t]+|=)?[^\s()]*)?$")
_FLOW = _compile_bytes(rb"[ \t]*(?:-[ \t]+)?(?:[\w.-]+:[ \t]*)?\{[^{}();]*\}[ \t]*(?:#.*)?\r?")
_COMMENT = _compile_bytes(rb"(?://|#|--|/\*)[ \t]*(?:[A-Za-z]+[ \t]+){0,4}$")
_CODE_AFTER = (b",", b")", b"(", b"[", b".", b"]", b"}")
_LIST_START = _compile_bytes(rb"\*[ \t]+-[ \t]+(?:\w+[ ])?$")
_CELL_START = _compile_bytes(rb"(?:.*\||[ \t]*)[ \t*`_-]*(?:[\w']+[ _-])?")
_RULE = _compile_bytes(rb"\n[ \t]*[|:+-]*--")
_CELL_END = _compile_bytes(rb"[ \t]*\|?[ \t]*\r?(?:\n|$)")
_CLAUSE_END = _compile_bytes(
    rb"[.,;:!)\"'`*]*[ \t]*\r?(?:\n|$)|[.,;!)]+\s|[ \t]+(?:[(-]|(?:and|but|or|on|for|at|by|before|after|until)[ \t])"
)
_SETTING = _compile_bytes(rb"(?i)\b(?:set|chang|reset|updat)[a-z]*\b[^\n.]*$")
_PAIR = _compile_bytes(
    rb"[ \t]*(?:[#!].*|;.*|//.*|---|\[[^\[\]]+\]|(?:-[ \t]+)?[\w.\"'$/-]+[ \t]*[:=][^(){};]*|-[ \t]+[^(){};]*)"
)
_TYPED = _compile_bytes(
    rb"[:?][ \t]*(?i:str|string|number|int|integer|bool|boolean|any|bytes|float|optional\[.*)\b[^:]*$|,\s*$"
)
_IDENTIFIER = _compile_bytes(rb"[a-z]_[a-z]|[a-z0-9][A-Z][a-z]|[()\[\]]")
_LOOKUP = _compile_bytes(rb"(?:^|[^:\w])(?:\w+\.)*[a-z]\w*\((?:\w+,[ ])?[\s\"'`]*$")
_WRAPPER = _compile_bytes(
    rb"(?i)(?:(?:hash|crypt|encode|byte|string|passw|secure|quote|literal|new|optional)\w*|\.(?:send|set|fill|type|val|text)\w*)"
    rb"\((?:\w+,[ ])?[\s\"'`]*$"
)
_CONSTANT = _compile_bytes(rb"_?(?i:pass|pw|psk)[\"']?[ \t]*[:?]?=")
_DESCRIBED = _compile_bytes(  # by a verb before its name, as in `update_password`
    rb"(?i)(?:^|[^a-z])(?:update|requires?|show|reset|forgot|ask|check|verify|validate|prompt|hide)[_-]?$"
)
_LABEL_BEFORE = _compile_bytes(rb"[\"'][\w ]+[ ]$")  # of a key of several words
_TAG = _compile_bytes(rb"<(?:\w+:)?[\w.-]*$")
_VALUE = _compile_bytes(rb"[^;,&\"'`|()<>\\]*")
_USUAL = (b"admin", b"root")
_SEPARATOR = _compile_bytes(rb"[=(|?<>{!]|\),|\b(?:or|with|to|is)\b")
_PROPERTY = _compile_bytes(
    rb"<(?:\w+:)?(?:property|entry|param|string|item|setting|prop|arg)[ \t]+(?:name|key|id)=\"[\w.-]*$"
)
_DIRECTIVE = _compile_bytes(
    rb"[ \t]*(?:.*\{[ \t]*|\([\w-]+[ \t]+|#[ \t]*define[ \t]+)?[\w.-]*|"
    rb"(?i:.*\b(?:role|user|login|with|encrypted|default|initial|using)\b.*)"
)
_CLOSED = _compile_bytes(rb"[ \t]*(?:[;:.)},]|--|#|\r?\n|$)")


def read_named_value(forms: tuple[str, ...], data: bytes, match: Any) -> tuple[int, int, bool]:
    """Return the span of a match's value, and whether it is a secret.

    `forms` names the form of each group of the pattern.
    """
    group = match.lastindex
    start, stop = match.span(group)
    if forms[group] in {"bare", "spoken", "stated"}:
        return _read_bare(forms[group], data, match, start, stop)
    value = data[start : min(stop, start + JUDGED)].decode("utf-8", "replace")
    gap = data[match.end(2) : start]
    is_phrase = " " in value
    if not is_phrase and is_random(value):
        return start, stop, True
    end = start if is_phrase else stop  # several words may hold the name of another secret
    before = data[max(0, match.start() - _NEAR) : match.start()]
    is_mapped = b":" in gap and b"=" not in gap
    is_next = b"=" not in gap and gap.strip(b" \t\"'`") and _NEXT_KEY.match(data, stop)
    is_described = (b"(" not in gap and _DESCRIBED.search(before)) or (is_mapped and _LABEL_BEFORE.search(before))
    if is_next or is_described or not _is_plain(match):
        return start, end, False
    is_password = _is_password(data, match)
    if is_password and _is_assigned(forms[group], gap, value, data, match):
        is_secret = is_value(value, is_given=not is_mapped or value[:1].islower())
    else:
        is_secret = forms[group] != "element" and not is_phrase and is_literal(value, words=False, chosen=is_password)
    return start, stop if is_secret else end, is_secret


def _is_password(data: bytes, match: Any) -> bool:
    """Whether a name is a password's; a short one counts next to a user's name."""
    if match.start(1) >= 0:
        return True
    if _SHORT_NAME.fullmatch(data, match.start(), match.end(2)) is None:
        return False
    if _COMMENT.search(data[max(0, match.start() - _BACK) : match.start()]):
        return True
    if data[match.start() : match.end(2)] == b"_PASS":
        return True
    if _CONSTANT.match(data, match.start()) is not None:
        return b"fail" not in data[max(0, match.start() - _NEAR) : match.end() + _NEAR].lower()
    return _USER.search(data, max(0, match.start() - _NEAR), min(len(data), match.end() + _NEAR)) is not None


def _is_assigned(form: str, gap: bytes, value: str, data: bytes, match: Any) -> bool:
    """Whether a quoted text after a password's name is its value, rather than a label or another name."""
    if form != "quoted":
        before = data[max(0, match.start() - _NEAR) : match.start()]
        is_text = gap.strip() == b">" and _TAG.search(before) is not None
        return is_text or form in {"block", "pair"} or b"</" in gap or _PROPERTY.search(before) is not None
    if gap.strip(b" \t\"'`]").startswith(b",") and b":" not in gap:
        call = _ARGUMENT.search(data[max(0, match.start() - _NEAR) : match.start()])
        is_alone = _ARGUMENT_END.match(data, match.end() - 1) is not None
        return is_alone and call is not None and _NAMING.fullmatch(call[1] or b"") is None
    if b":" in gap and b"=" not in gap:  # one word with a capital may be its label
        return not (value.istitle() and value.isalpha())
    is_tuple = gap.rstrip().endswith(b"=(") and data[match.end() : match.end() + 1] == b","
    if is_tuple or (
        _LOOKUP.search(gap) is not None and _WRAPPER.search(gap) is None
    ):  # what is called is given a name or an encoding
        return False
    if _SEPARATOR.search(gap) is not None:
        return True
    return match.start(1) >= 0 and _is_directive(gap, data, match)


def _is_directive(gap: bytes, data: bytes, match: Any) -> bool:
    """Whether a quoted name and value fill a line, a block or the end of a statement."""
    if not gap.startswith((b" ", b"\t")):
        return False
    line = data.rfind(b"\n", max(0, match.start() - _BACK), match.start()) + 1
    return _DIRECTIVE.fullmatch(data, line, match.start()) is not None and _CLOSED.match(data, match.end()) is not None


def _read_bare(form: str, data: bytes, match: Any, start: int, stop: int) -> tuple[int, int, bool]:
    """Read an unquoted value: whole if it ends a line of configuration, else as far as it extends."""
    run = data[start : min(stop, start + JUDGED)]
    if len(run) < stop - start:
        return start, stop, is_random(_decode(run))
    whole = run.rstrip(b";,")
    if is_random(_decode(whole)) and _is_line(data, match, stop):
        return start, start + len(whole), True
    end = _END.search(run)
    part = run[: end.start() if end else None].rstrip(b"*" if form == "bare" else b".:*")
    if (is_code := _is_code(form, data, stop, run, part)) or is_random(_decode(part)):
        return start, start + len(part), not is_code
    if b"{" not in part:
        part = part.partition(b"}")[0]
    value, after = _decode(part), run[len(part) : len(part) + 1]
    found = start, start + len(part)
    if after in {b"(", b"<"} or not _is_plain(match) or (not _is_password(data, match) and _TYPE.fullmatch(value)):
        return *found, False
    before = data[max(0, match.start() - 40) : match.start()].rpartition(b" ")[2]
    if form != "bare":
        is_named = form == "stated" and match.start(1) >= 0 and is_stated(value) and _ends_clause(data, match, found[1])
        chosen = match.start(1) >= 0 and _is_line(data, match, stop)
        is_option = before.startswith(b"--")
        return *found, is_named or is_literal(value, words=False, bare=not is_option, chosen=chosen)
    is_default = after == b"}" and b"${" in before  # of a variable, as of shells and Spring
    is_line = not after.strip(b";") and _is_line(data, match, stop)
    return *found, _is_setting(data, match, value, before, found[1], is_default=is_default, is_line=is_line)


def _is_plain(match: Any) -> bool:
    """Whether the later parts of a name do not describe the secret, as in most names."""
    return match.start(2) == match.end(2) or _PLAIN_TAIL.fullmatch(match[2]) is not None


def _is_line(data: bytes, match: Any, stop: int) -> bool:
    """Whether a name and its value form a line of configuration."""
    begun = data.rfind(b"\n", max(0, match.start() - _BACK), match.start()) + 1
    return _LINE_START.fullmatch(data, begun, match.start()) is not None and _LINE_END.match(data, stop) is not None


def _is_code(form: str, data: bytes, stop: int, run: bytes, part: bytes) -> bool:
    """Whether a text is the name of a called function, or of a variable after its type."""
    is_called = run[len(part) : len(part) + 1] == b"(" and _NAME.fullmatch(part) is not None
    return is_called or (form == "spoken" and data[stop : stop + 4].lstrip().startswith(b"="))


def _is_setting(
    data: bytes, match: Any, value: str, before: bytes, stop: int, *, is_default: bool, is_line: bool
) -> bool:
    """Whether an unquoted value cannot be a name, by its form or its place."""
    name, gap = data[match.start() : match.end(2)], data[match.end(2) : match.start(match.lastindex)]
    is_part = before.endswith(b";") and gap == b"="  # of a connection string
    is_variable = (gap == b"=" or b"?=" in gap) and (name.isupper() or (is_line and b"." in before))
    is_literal_only = is_default or is_part or is_variable
    is_setting = is_line and b" " not in gap.rstrip()  # `name = value` may be code
    is_password = _is_password(data, match)
    if is_password and (is_literal_only or _holds_only_values(data, match, stop, is_line=is_line)):
        return is_value(value)
    is_chosen = is_password and (is_setting or before.startswith(b"--"))
    return is_literal(value, words=False, bare=not (is_literal_only or is_setting), chosen=is_chosen)


def _holds_only_values(data: bytes, match: Any, stop: int, *, is_line: bool) -> bool:
    """Whether only a literal can follow a name, because a word used nowhere else is not a variable."""
    gap = data[match.end(2) : match.start(match.lastindex)]
    line = max(data.rfind(b"\n", max(0, match.start() - _FAR), match.start()) + 1, match.start() - _FAR, 0)
    end = data.find(b"\n", stop, stop + _FAR)
    end = min(len(data), stop + _FAR) if end < 0 else end
    before = data[max(line, match.start() - _BACK) : match.start()]
    if b"\n" in gap:  # in a table that is written as a list
        return _LIST_START.search(before) is not None
    if b"|" in gap:  # in a table of names and values
        is_cell = _CELL_START.fullmatch(data, line, match.start()) is not None
        return is_cell and _CELL_END.match(data, stop) is not None and _RULE.match(data, end) is None
    is_unique = _is_unique(data, match)
    is_mapped = is_line and b":" in gap
    is_alone = is_unique and data[stop : stop + 1] not in _CODE_AFTER
    if is_alone and (gap == b"=" or (is_mapped and match[match.lastindex][:1].islower())):
        return True
    is_commented = _COMMENT.search(before) and _LINE_END.match(data, stop)
    if is_commented or (gap == b"=" and _OPTION.search(before)) or _is_flow(data, line, end):
        return True
    return (is_mapped or (is_line and is_unique)) and _stands_in_data(data, line, end, is_unique=is_unique)


def _is_flow(data: bytes, line: int, end: int) -> bool:
    """Whether a line is a map of YAML."""
    return end - line <= 2 * _BACK and _FLOW.fullmatch(data, line, end) is not None


def _ends_clause(data: bytes, match: Any, stop: int) -> bool:
    """Whether a sentence about a password ends after a value; `to` one it is set."""
    if _CLAUSE_END.match(data, stop) is None:
        return False
    said = data[match.end(2) : match.start(match.lastindex)].split()
    return said[-1:] != [b"to"] or _SETTING.search(data[max(0, match.start() - _BACK) : match.start()]) is not None


def _is_unique(data: bytes, match: Any) -> bool:
    """Whether a bare value is unique in the text and not written like a variable."""
    value = _VALUE.match(match[match.lastindex])[0]
    is_word = _IDENTIFIER.search(value) is None and is_stated(_decode(value)) and not is_technical(_decode(value))
    return is_word and (value in _USUAL or data.count(value) == 1)


def _stands_in_data(data: bytes, line: int, end: int, *, is_unique: bool) -> bool:
    """Whether the surrounding lines, if any, are pairs of names and values without types."""
    above = [each for each in data[max(0, line - 2 * _BACK) : line].split(b"\n")[-4:] if each.strip()][-2:]
    below = [each for each in data[end : end + 2 * _BACK].split(b"\n")[:4] if each.strip()][:2]
    around = (*above, *below)
    return all(_PAIR.fullmatch(each) and not _TYPED.search(each) for each in around) and bool(around or is_unique)


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")
