"""Reads YAML, JSON, TOML and indented lines as nested values with line numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from indexer.text.linear_patterns import compile_pattern

if TYPE_CHECKING:  # a question about packages loads no parser
    from tree_sitter import Node

LONGEST_TEXT = 300  # characters; of names, defaults and help alike
_DEEPEST = 24  # levels
_MAX_VALUES = 50_000  # of one file
_MAPPINGS = frozenset({"block_mapping", "flow_mapping"})
_SEQUENCES = frozenset({"block_sequence", "flow_sequence"})
_PAIRS = frozenset({"block_mapping_pair", "flow_pair"})
_WRAPPERS = frozenset({"block_node", "flow_node", "block_sequence_item"})
_LEFT_OUT = frozenset({"comment", "tag", "anchor"})
_QUOTED = compile_pattern(r"^(?:\"([^\"]+)\"|'([^']+)'):?\s+(.*)$")
_HEADER = compile_pattern(r"^\[\[?\s*(?P<name>[^\]]+?)\s*\]")
_PAIR = compile_pattern(r"^(?P<key>\"[^\"]+\"|'[^']+'|[\w.-]+)\s*=\s*(?P<value>.*)$")
_LIST_END = compile_pattern(r"\]\s*,?\s*(?:#[^\"'\]]*)?$")
_IN_TABLE = compile_pattern(r"\bversion\s*=\s*[\"']([^\"']*)[\"']")
_NAMES_IN_TABLES = compile_pattern(r"\bname\s*=\s*\"([^\"]*)\"")
_TEXTS = compile_pattern(r"\"([^\"]*)\"|'([^']*)'")
_TOKEN = compile_pattern(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s"{}\[\],:]+')


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A scalar's text, or the members of a mapping or a sequence; members of a sequence have no key."""

    key: str = ""
    line: int = 0
    end_line: int = 0
    text: str = ""
    members: tuple[Value, ...] = ()

    def get(self, *path: str) -> Value:
        """Return the value below some keys, an empty one without it."""
        found = self
        for key in path:
            found = next((member for member in found.members if member.key == key), Value())
        return found

    def walk(self) -> Iterator[Value]:
        """Yield the value and everything below it."""
        yield self
        for member in self.members:
            yield from member.walk()


def read_yaml(root: Node, source: bytes) -> list[Value]:
    """Return the documents of a YAML file, without unparsable parts."""
    reader = _YamlReader(source)
    documents = [child for child in root.named_children if child.type == "document"]
    return [reader.read(node, "", node, 0) for document in documents for node in document.named_children[-1:]]


class _YamlReader:
    def __init__(self, source: bytes) -> None:
        self._source, self._left = source, _MAX_VALUES

    def read(self, node: Node, key: str, whole: Node, depth: int) -> Value:
        """Read a node; `whole` has its key too."""
        while node.type in _WRAPPERS:
            held = [child for child in node.named_children if child.type not in _LEFT_OUT]
            if not held:
                break
            node = held[-1]
        line, end = whole.start_point[0] + 1, whole.end_point[0] + (1 if whole.end_point[1] else 0)
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return Value(key=key, line=line, end_line=end)
        is_nested = node.type in _MAPPINGS or node.type in _SEQUENCES
        members = tuple(self._read_members(node, depth)) if is_nested else ()
        text = "" if is_nested else self._read_text(node)
        return Value(key=key, line=line, end_line=max(line, end), text=text, members=members)

    def _read_members(self, node: Node, depth: int) -> Iterator[Value]:
        for child in node.named_children:
            if child.type in _PAIRS:
                key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
                name = self._read_text(key) if key is not None else ""
                if value is not None:
                    yield self.read(value, name, child, depth + 1)
                elif name:
                    yield Value(key=name, line=child.start_point[0] + 1, end_line=child.end_point[0] + 1)
            elif child.type not in _LEFT_OUT:
                yield self.read(child, "", child, depth + 1)

    def _read_text(self, node: Node) -> str:
        cut = self._source[node.start_byte : min(node.end_byte, node.start_byte + 4 * LONGEST_TEXT)]
        text = cut.decode("utf-8", "replace").strip()
        is_quoted = len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]
        return text[1:-1] if is_quoted else text.lstrip("|>-+ \n") if node.type == "block_scalar" else text


@dataclass(slots=True)
class _Open:
    key: str
    line: int
    members: list[Value]
    is_mapping: bool
    name: str | None = None


def read_json(text: str, *, most: int = 4 * _MAX_VALUES) -> Value:
    """Return the value of a JSON file; for an invalid one, the part before the error."""
    whole = _Open(key="", line=1, members=[], is_mapping=False)
    stack = [whole]
    line, counted = 1, 0
    for count, token in enumerate(_TOKEN.finditer(text)):
        if count > most:
            break
        line, counted = line + text.count("\n", counted, token.start()), token.start()
        sign, around = token[0], stack[-1]
        if sign in "{[":
            stack.append(_Open(key=around.name or "", line=line, members=[], is_mapping=sign == "{"))
            around.name = None
        elif sign in "}]":
            if len(stack) > 1:
                closed = stack.pop()
                members = tuple(closed.members) if len(stack) <= _DEEPEST else ()
                stack[-1].members.append(Value(key=closed.key, line=closed.line, end_line=line, members=members))
        elif sign not in ",:":
            said = _unquote(sign)
            if around.is_mapping and around.name is None:
                around.name = said
            else:
                around.members.append(Value(key=around.name or "", line=line, end_line=line, text=said))
                around.name = None
    return whole.members[0] if whole.members else Value()


def _unquote(sign: str) -> str:
    if sign[:1] != '"':
        return sign
    try:
        return str(json.loads(sign[: 8 * LONGEST_TEXT]))
    except ValueError:
        return sign.strip('"')


def read_indented(text: str) -> Value:
    """Return lines, such as `key: value`, as values nested by indentation."""
    whole = _Open(key="", line=1, members=[], is_mapping=True)
    stack: list[tuple[int, _Open]] = [(-1, whole)]
    for number, line in enumerate(islice(text.split("\n"), 4 * _MAX_VALUES), 1):
        said = line[: 4 * LONGEST_TEXT].strip()
        if not said or said.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        while indent <= stack[-1][0] and len(stack) > 1:
            _close_last(stack)
        key, value = _split_line(said.removeprefix("- "))
        if len(stack) <= _DEEPEST:
            stack.append(
                (indent, _Open(key=_unmark(key), line=number, members=[], is_mapping=True, name=_unmark(value)))
            )
    while len(stack) > 1:
        _close_last(stack)
    return Value(members=tuple(whole.members))


def _split_line(said: str) -> tuple[str, str]:
    if said.endswith(":"):
        return said[:-1], ""
    if (quoted := _QUOTED.match(said)) is not None:
        return quoted[1] or quoted[2], quoted[3]
    if ": " in said or ' "' not in said:  # the second is Yarn's: `version "1.2.3"`
        key, _, value = said.partition(": ")
    else:
        key, _, value = said.partition(" ")
    return key, value


def _close_last(stack: list[tuple[int, _Open]]) -> None:
    _, closed = stack.pop()
    members = tuple(closed.members)
    end = members[-1].end_line if members else closed.line
    value = Value(key=closed.key, line=closed.line, end_line=end, text=closed.name or "", members=members)
    stack[-1][1].members.append(value)


def _unmark(text: str) -> str:
    return text.strip().strip("\"'")


@dataclass(slots=True)
class _Section:
    name: str
    line: int
    is_listed: bool
    members: list[Value]


def read_sections(text: str) -> Value:
    """Return the sections of a TOML file by their dotted names, those in a list as its members."""
    sections = [_Section(name="", line=1, is_listed=False, members=[])]
    pending: _Open | None = None  # a list over several lines
    for number, line in enumerate(islice(text.split("\n"), 4 * _MAX_VALUES), 1):
        said = line[: 4 * LONGEST_TEXT].strip()
        if pending is not None:
            pending.members += _read_items(said, number)
            if _LIST_END.search(said) is not None:
                sections[-1].members.append(Value(key=pending.key, line=pending.line, members=tuple(pending.members)))
                pending = None
        elif (header := _HEADER.match(said)) is not None:
            sections.append(_Section(name=header["name"], line=number, is_listed=said.startswith("[["), members=[]))
        elif (pair := _PAIR.match(said)) is not None:
            key, value = _unmark(pair["key"]), pair["value"]
            if value.startswith("[") and _LIST_END.search(value) is None:
                pending = _Open(key=key, line=number, members=_read_items(value, number), is_mapping=False)
            else:
                items = tuple(_read_items(value, number)) if value.startswith("[") else ()
                inner = _IN_TABLE.search(value) if value.startswith("{") else None
                plain = inner[1] if inner is not None else "" if value[:1] in "{[" else _unmark(value)
                sections[-1].members.append(Value(key=key, line=number, text=plain, members=items))
    return Value(members=tuple(_nest_sections(sections)))


def _nest_sections(sections: list[_Section]) -> Iterator[Value]:
    last = sections[0]
    yield from last.members
    below: list[Value] = []
    for section in [*sections[1:], _Section(name="", line=0, is_listed=False, members=[])]:
        if last.is_listed and section.name.startswith(f"{last.name}."):
            key = section.name.removeprefix(f"{last.name}.")
            below.append(Value(key=key, line=section.line, members=tuple(section.members)))
            continue
        if last is not sections[0]:
            yield Value(key=last.name, line=last.line, members=(*last.members, *below))
        last, below = section, []


def _read_items(text: str, line: int) -> list[Value]:
    """Read the texts in one line of a list; for a table in it, the name."""
    found = _NAMES_IN_TABLES.findall(text) if "{" in text else [one[1] or one[2] for one in _TEXTS.finditer(text)]
    return [Value(line=line, text=one) for one in found]
