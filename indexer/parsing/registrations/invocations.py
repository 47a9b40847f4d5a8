"""Calls, decorators, annotations, attributes and composite literals of any language, read in one form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from indexer.parsing.registrations.nested_values import LONGEST_TEXT

_MAX_ARGUMENTS = 200
_READ = 4 * LONGEST_TEXT  # bytes of a node that are looked at
_MAX_COMMENT_LINES = 12
_FURTHEST_UP = 40  # nodes between a registration and the definition that it is in

_NO_WORD = re.compile(rb"\W+")
_SEPARATOR = re.compile(r"(?:\.|->|::|\?\.)$")
_PREFIXED_QUOTE = re.compile(r"^[A-Za-z@$]{0,2}(?=[\"'`#])")
TEXTS = frozenset(
    """string string_literal interpreted_string_literal raw_string_literal encapsed_string template_string
    char_literal interpolated_string_expression simple_symbol hash_key_symbol rune_literal""".split()
)
JOINED_TEXTS = frozenset("concatenated_string binary_expression binary parenthesized_expression chained_string".split())
_VALUE_OF = frozenset(
    "literal_element element_value argument array_element_initializer attribute_argument value_argument".split()
)
_ARGUMENT_LISTS = ("arguments", "parameters", "body")
UNNAMED_LISTS = frozenset({"attribute_argument_list", "value_arguments"})  # of C# and Kotlin
_COMMENTS = frozenset("comment line_comment block_comment".split())
_DEFINITIONS = frozenset(
    """function_definition class_definition method_definition class_declaration abstract_class_declaration
    method_declaration function_item struct_item enum_item field_declaration enum_variant function_declaration
    public_field_definition interface_declaration record_declaration enum_declaration property_declaration
    abstract_method_signature""".split()
)
_BESIDE = frozenset("decorator attribute_item".split()) | _COMMENTS
_AROUND = frozenset("decorator modifiers attribute attribute_item attribute_group attribute_list".split())


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """A called name, or one that annotates a definition; `receiver` is the object of the call."""

    name: str
    receiver: str
    node: Node
    positional: tuple[Node, ...]
    named: Mapping[str, Node]
    source: bytes
    is_above: bool

    @property
    def line(self) -> int:
        """Return its first line; for a chain of calls, the line of the last name."""
        callee = self.node.child_by_field_name("function")
        return (callee.end_point[0] if callee is not None else self.node.start_point[0]) + 1

    def text_at(self, place: int) -> str | None:
        """Return the text of a positional argument, None if it is not a literal."""
        return read_literal(self.positional[place], self.source) if place < len(self.positional) else None

    def text_of(self, *names: str) -> str | None:
        """Return the text of the first of these named arguments that is a literal."""
        nodes = [self.named[name] for name in names if name in self.named]
        return next((text for node in nodes if (text := read_literal(node, self.source)) is not None), None)

    def texts_of(self, *names: str) -> list[str]:
        """Return all texts of the first of these named arguments, in a list or single."""
        node = next((self.named[name] for name in names if name in self.named), None)
        return [] if node is None else list(find_literals(node, self.source))

    def code_of(self, node: Node | None) -> str:
        """Return the source of an argument on one line."""
        return "" if node is None else read_code(node, self.source)


def read_name(node: Node, source: bytes) -> str:
    """Return the last name of the callee."""
    tail = source[max(node.start_byte, node.end_byte - 80) : node.end_byte].rstrip()
    return _NO_WORD.split(tail)[-1].decode("utf-8", "replace")


def read_invocation(callee: Node, receiver: Node | None, source: bytes) -> Invocation | None:
    """Read the surroundings of a name in a call, a decorator, an annotation or an attribute."""
    node = callee.parent
    if node is None:
        return None
    if node.type in {"qualified_type", "await_expression"}:  # of a composite literal, or `await send<T>()`
        node = node.parent or node
    name = read_name(callee, source)
    if receiver is not None:
        before = _read_tail(receiver, source)
    else:
        written = _read_tail(callee, source)
        before = _SEPARATOR.sub("", written[: len(written) - len(name)].rstrip())
    positional, named = _read_arguments(node, source)
    parent = node.parent
    around = parent.type if parent is not None else ""
    is_above = bool({node.type, around} & _AROUND) or "annotation" in f"{node.type} {around}"
    return Invocation(
        name=name,
        receiver=before,
        node=node,
        positional=tuple(positional),
        named=named,
        source=source,
        is_above=is_above,
    )


def _read_tail(node: Node, source: bytes) -> str:
    return source[max(node.start_byte, node.end_byte - _READ) : node.end_byte].decode("utf-8", "replace")


def _read_arguments(node: Node, source: bytes) -> tuple[list[Node], dict[str, Node]]:
    held = next((found for name in _ARGUMENT_LISTS if (found := node.child_by_field_name(name)) is not None), None)
    if held is None and node.type in {"attribute", "constructor_invocation", "call_expression"}:
        held = next((child for child in node.children if child.type in UNNAMED_LISTS), None)
    if held is None and node.type == "macro_invocation":
        held = next((child for child in node.children if child.type == "token_tree"), None)
    if held is None or held.named_child_count > _MAX_ARGUMENTS:
        return [], {}
    if held.type == "token_tree":
        return _read_tokens(held, source)
    positional: list[Node] = []
    named: dict[str, Node] = {}
    for child in held.named_children:
        pair = read_pair(child, source)
        if pair is not None:
            named[pair[0]] = pair[1]
        elif child.type not in _COMMENTS:
            positional.append(_unwrap(child))
    return positional, named


def read_pair(node: Node, source: bytes) -> tuple[str, Node] | None:
    """Return the key and the value of a named argument, a member of an object or a field of a literal."""
    key = node.child_by_field_name("key") or node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if node.type == "argument" and key is not None:
        value = node.named_child(node.named_child_count - 1)
    if node.type in _PLACED and node.named_child_count > 1:
        key, value = node.named_child(0), node.named_child(node.named_child_count - 1)
    if key is None or value is None or node.type not in _PAIRS:
        return None
    return read_literal(_unwrap(key), source) or read_code(key, source), _unwrap(value)


_PLACED = frozenset({"value_argument", "attribute_argument"})  # whose names have no field, in Kotlin and C#
_PAIRS = _PLACED | frozenset(
    "keyword_argument pair element_value_pair keyed_element argument array_element_initializer".split()
)


def _unwrap(node: Node) -> Node:
    if node.type in _VALUE_OF and node.named_child_count:
        return node.named_child(0) or node
    return node


def read_object(node: Node, source: bytes) -> dict[str, Node]:
    """Return the members of an object, a dictionary or a composite literal; none of anything else."""
    inner = node.child_by_field_name("body") or node
    if inner.named_child_count > _MAX_ARGUMENTS:
        return {}
    pairs = (read_pair(child, source) for child in inner.named_children)
    return {pair[0]: pair[1] for pair in pairs if pair is not None}


def _read_tokens(tree: Node, source: bytes) -> tuple[list[Node], dict[str, Node]]:
    """Read the arguments of a Rust attribute or macro, which are words and signs: `long, short = 'x'`."""
    positional: list[Node] = []
    named: dict[str, Node] = {}
    group: list[Node] = []
    for token in [*tree.children[1:-1], None]:
        if token is not None and token.type != ",":
            group.append(token)
            continue
        if group and group[0].type == "identifier":
            value = group[2] if len(group) > 2 and group[1].type == "=" else group[1] if len(group) > 1 else group[0]
            named[read_code(group[0], source)] = value
        elif group:
            positional.append(group[0])
        group = []
    return positional, named


def read_literal(node: Node, source: bytes) -> str | None:
    """Return the text of a string, a symbol or joined strings; None for anything else."""
    text = _read_text(node, source, depth=4)
    return None if text is None else " ".join(text.split())[:LONGEST_TEXT]


def _read_text(node: Node, source: bytes, *, depth: int) -> str | None:
    if node.type in TEXTS:
        return _read_string(node, source)
    if node.type in JOINED_TEXTS and depth and node.named_child_count <= _MAX_ARGUMENTS:
        parts = [_read_text(child, source, depth=depth - 1) for child in node.named_children]
        known = [part for part in parts if part is not None]
        return "".join(known) if known and len(known) == len(parts) else None
    return None


def _read_string(node: Node, source: bytes) -> str:
    text = source[node.start_byte : min(node.end_byte, node.start_byte + _READ)].decode("utf-8", "replace")
    text = _PREFIXED_QUOTE.sub("", text).strip("#").replace("\\\n", " ")
    if text[:3] in {'"""', "'''"}:
        text = text.strip(text[0])
    elif text[:1] and text[0] in "\"'`":
        text = text[1:].removesuffix(text[0])
    return text.removeprefix(":") if node.type == "simple_symbol" else text


def find_literals(node: Node, source: bytes) -> Iterator[str]:
    """Yield the texts in a list, or of a single node."""
    text = read_literal(node, source)
    if text is not None:
        yield text
        return
    for child in node.named_children[:_MAX_ARGUMENTS]:
        if (text := read_literal(_unwrap(child), source)) is not None:
            yield text


def read_code(node: Node, source: bytes) -> str:
    """Return the code of a node on one line, three dots if it is long."""
    text = source[node.start_byte : min(node.end_byte, node.start_byte + _READ)].decode("utf-8", "replace")
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT // 2 else line[: LONGEST_TEXT // 2 - 3] + "..."


def find_definition(node: Node) -> Node | None:
    """Return the definition below a decorator, an annotation or an attribute."""
    above = node
    for _ in range(6):
        if above.type in _DEFINITIONS:
            return above
        if above.type == "decorated_definition":
            return above.child_by_field_name("definition")
        if above.type in _BESIDE and (following := _find_following(above)) is not None:
            return following
        if above.parent is None:
            return None
        above = above.parent
    return None


def _find_following(node: Node) -> Node | None:
    following = node.next_named_sibling
    for _ in range(12):
        if following is None or following.type not in _BESIDE:
            break
        following = following.next_named_sibling
    return following if following is not None and following.type in _DEFINITIONS else None


def read_definition_name(node: Node | None, source: bytes) -> str:
    """Return the name of a definition, empty without one."""
    name = node.child_by_field_name("name") if node is not None else None
    return "" if name is None else read_code(name, source)


def list_surroundings(node: Node) -> Iterator[Node]:
    """Yield the surroundings of a node, innermost first."""
    around = node.parent
    for _ in range(_FURTHEST_UP):
        if around is None:
            return
        yield around
        around = around.parent


def read_comment_above(node: Node, source: bytes) -> str:
    """Return the first sentence of the comment lines directly above a node, ignoring attributes."""
    lines: list[str] = []
    above = node.prev_named_sibling
    while above is not None and above.type in _BESIDE and len(lines) < _MAX_COMMENT_LINES:
        if above.type in _COMMENTS:
            lines.append(read_code(above, source).lstrip("/!#* "))
        above = above.prev_named_sibling
    return " ".join(reversed(lines)).partition(". ")[0]
