"""Finds the prefixes of routes: groups of routers, blocks around them, and annotations of their class."""

from __future__ import annotations

import re

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    UNNAMED_LISTS,
    Invocation,
    find_literals,
    list_surroundings,
    read_code,
    read_literal,
    read_name,
)

_CLASS_PREFIXES = frozenset("RequestMapping Path Controller JsonController Route HttpExchange".split())
_CLASSES = frozenset("class_declaration interface_declaration abstract_class_declaration record_declaration".split())
_BLOCK_GROUPS = frozenset("Route namespace scope resources resource group prefix route mount".split())
_CALLS = frozenset("call call_expression member_call_expression scoped_call_expression".split())
_PREFIX_BEFORE_GROUP = re.compile(r"prefix\(\s*['\"]([^'\"]{1,200})['\"]")
_NO_NAME = re.compile(r"[^\w$]+")
_MAX_PREFIXES = 4  # places that one list of routes is included at


def join_path(prefix: str, path: str) -> str:
    """Join the path of a group and that of a route in it."""
    if not prefix:
        return path if path[:1] in {"/", "*", "^"} else f"/{path}"
    return f"{prefix.rstrip('/')}/{path.lstrip('/')}" if path else prefix


def note_group(invocation: Invocation, context: FileContext) -> tuple[()]:
    """Record the variable of a group of routes: `v1 := r.Group("/v1")`, `APIRouter(prefix="/x")`."""
    prefix = invocation.text_of("url_prefix", "prefix")
    if prefix is None and invocation.name in {"Group", "group", "MapGroup", "PathPrefix", "Party", "basePath"}:
        prefix = invocation.text_at(0)
    before = context.source[max(0, invocation.node.start_byte - 120) : invocation.node.start_byte]
    written = before.decode("utf-8", "replace").rstrip()
    if prefix and written.endswith("="):
        variable = _NO_NAME.split(written.rstrip(":= "))[-1]
        context.prefixes[variable] = join_path(context.prefixes.get(invocation.receiver, ""), prefix)
    return ()


def note_include(invocation: Invocation, context: FileContext) -> tuple[()]:
    """Record where Django includes a list of this file: `path("api/", include(api_urls))`."""
    path = invocation.text_at(0)
    target = invocation.positional[1] if len(invocation.positional) > 1 else None
    if (
        path is None
        or target is None
        or read_name(target.child_by_field_name("function") or target, context.source) != "include"
    ):
        return ()
    arguments = target.child_by_field_name("arguments")
    included = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
    if included is not None and included.type == "tuple":
        included = included.named_child(0)
    if included is not None and included.type == "identifier":
        around = _find_list_name(invocation.node, context.source)
        places = context.includes.setdefault(read_code(included, context.source), [])
        if len(places) < _MAX_PREFIXES:
            places.append((around, path))
    return ()


def find_enclosing_prefix(node: Node, context: FileContext, receiver: str = "") -> list[str]:
    """Return the prefix of a route: of its group, else of the enclosing blocks or lists."""
    if context.language == "python":
        return _find_include_prefixes(_find_list_name(node, context.source), context, depth=4)
    group = context.prefixes.get(receiver.strip())
    parts = [part for around in list_surroundings(node) if (part := _read_block_prefix(around, node, context))]
    inner = "".join(f"/{part.strip('/')}" for part in reversed(parts) if part.strip("/"))
    return [f"{group or ''}{inner}"]


def _find_list_name(node: Node, source: bytes) -> str:
    """Return the variable that the list around a node is assigned to."""
    for around in list_surroundings(node):
        if around.type in {"assignment", "augmented_assignment"}:
            left = around.child_by_field_name("left")
            return read_code(left, source) if left is not None else ""
    return ""


def _find_include_prefixes(name: str, context: FileContext, *, depth: int) -> list[str]:
    places = context.includes.get(name, []) if depth else []
    found = [
        join_path(prefix, path).lstrip("/")
        for around, path in places
        for prefix in _find_include_prefixes(around, context, depth=depth - 1)
    ]
    return found[:_MAX_PREFIXES] or [""]


def _read_block_prefix(around: Node, inner: Node, context: FileContext) -> str:
    """Return the prefix that a call gives to the registrations of its block."""
    if around.type not in _CALLS:
        return ""
    callee = around.child_by_field_name("method") or around.child_by_field_name("function")
    callee = callee or around.child_by_field_name("name")
    if callee is None or callee.start_byte <= inner.start_byte < callee.end_byte:
        return ""
    name = read_name(callee, context.source)
    if name not in _BLOCK_GROUPS:
        return ""
    arguments = around.child_by_field_name("arguments")
    if arguments is not None and name != "group":
        texts = [read_literal(child, context.source) for child in arguments.named_children[:2]]
        first = texts[0] if texts else None
        return f"{first}/:{first.rstrip('s')}_id" if first and name == "resources" else first or ""
    found = _PREFIX_BEFORE_GROUP.search(read_code(around, context.source))
    return found[1] if found else ""


def find_owner(target: Node) -> Node | None:
    """Return the class or the interface around a method."""
    return next((each for each in list_surroundings(target) if each.type in _CLASSES), None)


def find_class_prefix(target: Node, source: bytes) -> str:
    """Return the path that an annotation of a method's class puts before its routes."""
    owner = find_owner(target)
    if owner is None:
        return ""
    places = [*owner.children[:4], *(owner.parent.children[:4] if owner.parent is not None else ())]
    for place in places:
        candidates = (
            place.named_children if place.type in {"modifiers", "attribute_list", "attribute_group"} else [place]
        )
        for each in candidates:
            if (prefix := _read_prefix_annotation(each, source)) is not None:
                return prefix
    return ""


def _read_prefix_annotation(node: Node, source: bytes) -> str | None:
    call = node.named_child(0) if node.type in {"decorator", "attribute_group"} and node.named_child_count else node
    if call is None or not (node.type in {"decorator", "attribute_group", "attribute"} or "annotation" in node.type):
        return None
    named = call.child_by_field_name("function") or call.child_by_field_name("name") or call.named_child(0)
    arguments = call.child_by_field_name("arguments") or call.child_by_field_name("parameters")
    if arguments is None and call.named_child_count > 1 and call.named_child(1).type in UNNAMED_LISTS:
        arguments = call.named_child(1)
    if named is None or arguments is None or read_name(named, source) not in _CLASS_PREFIXES:
        return None
    texts = list(find_literals(arguments, source)) or [
        text for child in arguments.named_children[:4] for text in find_literals(child, source)
    ]
    return texts[0] if texts else None
