"""Reads the members of an enumeration, an array, a table or a struct from the lines that declare it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from indexer.text.linear_patterns import compile_pattern

MOST_MEMBERS = 400
_LONGEST = 60_000  # characters of a declaration that are looked at
_LONGEST_VALUE = 200
_RESTARTS = 3  # brackets of a type that come before those of the values: `[]string{...}`
_HASH_COMMENTS = frozenset("python ruby bash php elixir perl yaml toml r".split())
_ABOVE = ("#[", "@", "//", "/*", "*")  # attributes and comments above a declaration
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_QUOTES = "\"'`"
_PREFIX = compile_pattern(
    r"(?:#\[[^\]]{0,200}\]|@\w+(?:\([^)]{0,200}\))?|\.\.\.|(?:case|const|static|readonly|export|public|final)\s|[&*:\s])+"
)
_TEXT = compile_pattern(r"(?:[bruf]{0,2})(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`)")
_NAME = compile_pattern(r"[\w$]+(?:(?:\.|::|-)[\w$]+)*")
_VALUE = compile_pattern(r"\s*(?::|=>|=)\s*")
_FIELD = compile_pattern(r"([A-Za-z]\w*)\s*(?::[^=]{0,120})?=\s*(\S.*)")
_TYPE_BEFORE = compile_pattern(r"\s*[\w.*\[\]]{0,60}\s*\{")
_MULTIPLE = compile_pattern(r"(?:^|[=(\s])%[wi]([\[({])([^\])}]*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One member: its name, the value that it is given, and how many lines below the first it stands."""

    name: str
    value: str
    offset: int


def read_members(lines: Sequence[str], language: str) -> tuple[Member, ...]:
    """Return the members of the declaration that begins on the first line; none where it has no brackets."""
    above = next((at for at, line in enumerate(lines) if not line.lstrip().startswith(_ABOVE)), len(lines))
    found = _read_declaration(lines[above:], language) if lines[above:] else ()
    return tuple(replace(one, offset=one.offset + above) for one in found)


def split_arguments(text: str, language: str) -> list[tuple[int, str]]:
    """Return what stands between the first parentheses, cut at the commas, each with the lines above it."""
    start = text.find("(")
    items = _split_items(text, start, language)[0] if start >= 0 else []
    return [(text.count("\n", 0, begin), item.strip()) for begin, item in items if item.strip()]


def _read_declaration(lines: Sequence[str], language: str) -> tuple[Member, ...]:
    if language == "python" and lines[0].lstrip().startswith("class "):
        return tuple(_read_fields(lines))
    text = "\n".join(lines)[:_LONGEST]
    if language == "ruby" and (words := _MULTIPLE.search(text.partition("\n\n")[0])) is not None:
        return tuple(_read_words(text, words[2]))
    head = lines[0].partition("{")[0] if "{" in lines[0] else lines[0]
    start = _find_opening(text, max(0, head.find("=")) if "=" in head else max(0, text.find("{")))
    found: tuple[Member, ...] = ()
    for _ in range(_RESTARTS):
        if start < 0:
            return found
        items, end = _split_items(text, start, language)
        found = tuple(_read_items(text, items))
        following = _TYPE_BEFORE.match(text[end : end + 100])
        if len(found) > 1 or following is None:
            if len(items) == 1 and text[start] == "(" and (inner := _find_opening(text, start + 1)) < end:
                start = inner
                continue
            return found
        start = text.index("{", end)
    return found


def _find_opening(text: str, start: int) -> int:
    return min((at for sign in _CLOSING if (at := text.find(sign, start)) >= 0), default=-1)


def _read_words(text: str, words: str) -> Iterator[Member]:
    begin = text.index(words)
    for word in words.split()[:MOST_MEMBERS]:
        begin = text.index(word, begin)
        yield Member(name=word, value="", offset=text.count("\n", 0, begin))


def _read_fields(lines: Sequence[str]) -> Iterator[Member]:
    """Read the assignments right within a Python class."""
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    own = len(lines[0]) - len(lines[0].lstrip())
    within = next((indent for indent in indents if indent > own), own + 4)
    for offset, line in enumerate(lines[1 : 10 * MOST_MEMBERS], start=1):
        indent = len(line) - len(line.lstrip())
        found = _FIELD.fullmatch(line.strip()) if indent == within else None
        if found is not None:
            yield Member(name=found[1], value=found[2][:_LONGEST_VALUE], offset=offset)


def _split_items(text: str, start: int, language: str) -> tuple[list[tuple[int, str]], int]:
    """Cut what stands between a bracket and its other half at the commas; return each with its place, and the end."""
    items: list[tuple[int, str]] = []
    expected: list[str] = []
    piece: list[str] = []
    begin, at = start + 1, start
    for place, sign in _list_tokens(text, start, language):
        at = place + len(sign)
        is_inside = len(expected) > 0
        if sign in _CLOSING:
            expected.append(_CLOSING[sign])
        elif expected and sign == expected[-1]:
            expected.pop()
        is_end = is_inside and (not expected or (sign == ";" and len(expected) == 1))
        if is_end or (sign == "," and len(expected) == 1):
            items.append((begin, "".join(piece)))
            piece = []
        elif is_inside and (piece or not sign.isspace()):
            begin = begin if piece else place
            piece.append(sign)
        if is_end or len(items) >= MOST_MEMBERS:
            break
    return items, at


def _list_tokens(text: str, start: int, language: str) -> Iterator[tuple[int, str]]:
    """Yield quoted texts and all other signs with their places, comments left out."""
    at = start
    while at < len(text):
        skipped = _skip_comment(text, at, language)
        if skipped > at:
            at = skipped
            continue
        end = _find_quote(text, at) + 1 if text[at] in _QUOTES else at + 1
        yield at, text[at:end]
        at = end


def _skip_comment(text: str, at: int, language: str) -> int:
    if text.startswith("/*", at):
        end = text.find("*/", at)
        return len(text) if end < 0 else end + 2
    is_comment = text[at] == "#" if language in _HASH_COMMENTS else text.startswith("//", at)
    if not is_comment:
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _find_quote(text: str, at: int) -> int:
    """Return where a text ends that begins here; the place itself where it does not end on its line."""
    end = at + 1
    while end < len(text) and end - at < _LONGEST_VALUE * 10:
        if text[end] == text[at]:
            return end
        if text[end] == "\n" and text[at] != "`":
            return at
        end += 2 if text[end] == "\\" else 1
    return at


def _read_items(text: str, items: Sequence[tuple[int, str]]) -> Iterator[Member]:
    line, counted = 0, 0
    for begin, written in items:
        line, counted = line + text.count("\n", counted, begin), begin
        item = written.strip()
        if (prefix := _PREFIX.match(item)) is not None:
            item = item[prefix.end() :]
        found = _TEXT.match(item) or _NAME.match(item)
        if found is None:
            continue
        name = next((part for part in found.groups() if part), found[0])
        rest = item[found.end() :]
        sign = _VALUE.match(rest)
        value = " ".join(rest[sign.end() :].split())[:_LONGEST_VALUE] if sign is not None else ""
        yield Member(name=name.rstrip(":."), value=value, offset=line)
