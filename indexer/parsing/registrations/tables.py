"""Tables, views and indexes in SQL and object mappers, and the code that reads or changes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    JOINED_TEXTS,
    TEXTS,
    Invocation,
    find_definition,
    find_literals,
    read_definition_name,
)
from indexer.parsing.registrations.sql_statements import TableUse, find_table_uses
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration, RegistrationKind

_MAX_STRINGS = 2_000  # of a file, that begin as SQL does
_MAX_STRING = 20_000  # bytes
# A text that is plainly SQL: prose does not go on so behind its verb, or is not written so.
_EMBEDDED = compile_pattern(
    r"[\"'`]\s{0,40}(?:SELECT\s[^;]{1,400}?\sFROM\s|WITH\s+(?:RECURSIVE\s+)?\w+\s*(?:\([^)]{0,200}\))?\s+AS\s+"
    r"|(?:INSERT|REPLACE|MERGE)\s+(?:\w+\s+)?INTO\s|UPDATE\s[^\"']{1,80}?\sSET\s|DELETE\s+FROM\s|TRUNCATE\s+TABLE\s"
    r"|(?:CREATE|ALTER|DROP)\s+(?:\w+\s+){0,3}(?:TABLE|VIEW|INDEX)\s"
    r"|select\s+(?:\*|count\(\*\)|[\w.,\s\"`]+?)\s+from\s+[\w.\"`]+\s*(?:[\"'`;]|\b(?:where|join|left|inner|order|group|limit)\b)"
    r"|insert\s+into\s+[\w.\"`]+\s*(?:\(|values\b)|update\s+[\w.\"`]+\s+set\s+[\w.\"`]+\s*="
    r"|delete\s+from\s+[\w.\"`]+\s*(?:[\"'`;]|where\b)|create\s+table\s+(?:if\s+not\s+exists\s+)?[\w.\"`]+\s*\()"
)
# Where a framework takes the name of a table from what something is set to.
_NAMED: dict[str, Pattern] = {
    "python": compile_pattern(r"(?m)^[ \t]+(?:__tablename__|db_table)\s*(?::\s*\w+\s*)?=\s*[\"']([\w.]+)[\"']"),
    "ruby": compile_pattern(r"(?m)^\s*self\.table_name\s*=\s*[:\"']([\w.]+)"),
    "php": compile_pattern(r"(?m)^\s*(?:protected|public)\s+(?:\?string\s+)?\$table\s*=\s*[\"']([\w.]+)[\"']"),
    "go": compile_pattern(r"\)\s*TableName\(\)\s*string\s*\{\s*return\s*[\"`]([\w.]+)[\"`]"),
    "rust": compile_pattern(r"\btable!\s*[{(]\s*(?:(?:#\[|//)[^\n]*\s*)*([\w.]+)\s*\("),
    "csharp": compile_pattern(r"(?:\[Table\(\s*\"|\.ToTable\(\s*\"|\.CreateTable\(\s*name:\s*\")([\w.]+)\""),
    "kotlin": compile_pattern(
        r"@(?:Table|Entity)\(\s*(?:name|tableName)\s*=\s*\"([\w.]+)\"|:\s*\w*Table\(\s*\"([\w.]+)\""
    ),
    "prisma": compile_pattern(r"(?m)^\s*@@map\(\s*(?:name:\s*)?\"([\w.]+)\""),
}
_QUOTES = re.compile(r"[\"`\[\]]")
_DROPS = re.compile(r"(?i)^drop_?(?:table|if_?exists|join_table)?$")
_CREATES = re.compile(r"(?i)create|^(?:table|pgtable|mysqltable|sqlitetable|entity)$")


def find_sql(context: FileContext) -> Iterator[Registration]:
    """Find the created, read and changed tables of an SQL file."""
    text = context.source.decode("utf-8", "replace")
    yield from _register(find_table_uses(text), text, 1, context)


def find_embedded_sql(root: Node, context: FileContext) -> Iterator[Registration]:
    """Find the tables that SQL in strings of code reads, changes or creates."""
    end = 0
    text = context.source.decode("latin-1")  # a character for each byte
    for count, found in enumerate(_EMBEDDED.finditer(text)):
        if count >= _MAX_STRINGS:
            return
        if found.start() < end:
            continue
        node = _find_text(root, found.start() + 1)
        if node is None or node.end_byte - node.start_byte > _MAX_STRING:
            continue
        end = node.end_byte
        said = _read_inside(node, context.source)
        yield from _register(find_table_uses(said), said, node.start_point[0] + 1, context)


def _find_text(root: Node, at: int) -> Node | None:
    """Return the string around a byte, with adjoining ones."""
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type not in TEXTS:
        node = node.parent
    while node is not None and node.parent is not None and node.parent.type in JOINED_TEXTS:
        node = node.parent
    return node


def _read_inside(node: Node, source: bytes) -> str:
    """Return the text of the strings in a node, each character at its place, and blanks around it."""
    room = bytearray(0x0A if byte == 0x0A else 0x20 for byte in source[node.start_byte : node.end_byte])
    pending, base = [node], node.start_byte
    while pending:
        each = pending.pop()
        if each.type not in TEXTS:
            pending.extend(each.named_children)
            continue
        said = source[each.start_byte : each.end_byte]
        first = next((at for at, byte in enumerate(said) if byte in b"\"'`"), 0)
        marks = 3 if said[first : first + 3] in {b'"""', b"'''"} else 1
        inner = said[first + marks : len(said) - marks].replace(b"\\n", b"  ").replace(b'\\"', b'" ')
        start = each.start_byte - base + first + marks
        room[start : start + len(inner)] = inner
    return room.decode("utf-8", "replace")


def _register(uses: Iterator[TableUse], text: str, first: int, context: FileContext) -> Iterator[Registration]:
    line, counted = first, 0
    for use in uses:
        line, counted = line + text.count("\n", counted, use.start), max(counted, use.start)
        if use.action == "created":
            is_index = use.sort == "index"
            end = line + text.count("\n", use.start, use.end)
            context.define(use.name, "constant" if is_index else "struct", line, end)
            kind: RegistrationKind = "index" if is_index else "table"
            yield context.make(kind, use.name, line, detail=f"on {use.about}" if use.about else use.sort)
        else:
            handler = _QUOTES.sub("", context.find_enclosing(line))
            yield context.make("access", use.name, line, detail=use.action, handler=handler)


def find_named_tables(context: FileContext) -> Iterator[Registration]:
    """Find the tables named by models: `__tablename__ = "orders"`."""
    pattern = _NAMED.get("prisma" if context.path.endswith(".prisma") else context.language)
    if pattern is None:
        return
    text = context.source.decode("utf-8", "replace")
    line, counted = 1, 0
    for count, found in enumerate(pattern.finditer(text)):
        if count >= _MAX_STRINGS:
            return
        name = next(filter(None, found.groups()))
        at = found.start() + found[0].index(name)
        line, counted = line + text.count("\n", counted, at), at
        handler = context.find_enclosing(line).removesuffix(".Meta")
        yield context.make("table", name, line, handler=handler)


def read_table_call(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read the effects of migrations and mappers: `create_table "orders"`, `Schema::table('orders', ...)`."""
    name = invocation.text_at(0) or invocation.text_of("name", "table", "table_name")
    if not name and invocation.positional and "able" in invocation.name:  # new Table({ name: "orders" })
        name = next(find_literals(invocation.positional[0], context.source), "")
    if not name or not name.replace(".", "").replace("_", "").isalnum() or name[0].isdigit():
        return
    if _DROPS.match(invocation.name):
        yield context.make("access", name, invocation.line, detail="dropped")
    elif _CREATES.search(invocation.name):
        yield context.make("table", name, invocation.line)
    else:
        yield context.make("access", name, invocation.line, detail="altered")


def read_table_annotation(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@Table(name = "orders")` and `@Entity("orders")` above a class."""
    name = invocation.text_of("name") or invocation.text_at(0)
    if name:
        own = read_definition_name(find_definition(invocation.node), context.source)
        yield context.make("table", name, invocation.line, handler=own)
