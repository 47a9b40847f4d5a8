"""Interfaces described by documents and schemas: OpenAPI, AsyncAPI, Protocol Buffers, GraphQL, Terraform."""

from __future__ import annotations

from collections.abc import Iterator

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.nested_values import Value
from indexer.types import Registration, RegistrationKind, Symbol, SymbolKind

_METHODS = frozenset("get put post delete options head patch trace".split())
_ROOTS = {"Query": "QUERY", "Mutation": "MUTATION", "Subscription": "SUBSCRIPTION"}
_SENT = {"send": "produced", "receive": "consumed", "subscribe": "produced", "publish": "consumed"}
# Definitions that are part of an interface, by language: those of some kinds.
_DECLARED: dict[str, dict[SymbolKind, RegistrationKind]] = {
    "protobuf": {"interface": "service", "method": "rpc", "struct": "type", "enum": "type"},
    "graphql": {
        "class": "type",
        "interface": "type",
        "struct": "type",
        "enum": "type",
        "type": "type",
        "method": "route",
    },
    "terraform": {"struct": "resource", "module": "resource"},
}
_OF_FLAGS = frozenset({"variants", "variations"})  # of flagd and of go-feature-flag
_BLOCKS = frozenset({"resource", "data", "module"})  # of Terraform


def find_described(document: Value, context: FileContext) -> Iterator[Registration]:
    """Find the operations and types of an OpenAPI document, the channels of an AsyncAPI one, and feature flags."""
    for flag in (*document.get("flags").members, *document.members):
        if flag.key and _OF_FLAGS & {member.key for member in flag.members}:
            yield context.make("feature", flag.key, flag.line, detail="set")
    if document.get("openapi").text or document.get("swagger").text:
        yield from _read_paths(document, context)
        for holder in (document.get("components", "schemas"), document.get("definitions")):
            for schema in holder.members:
                context.define(schema.key, "type", schema.line, schema.end_line)
                yield context.make("type", schema.key, schema.line, detail="schema")
    elif document.get("asyncapi").text:
        yield from _read_channels(document, context)


def _read_paths(document: Value, context: FileContext) -> Iterator[Registration]:
    base = document.get("basePath").text.rstrip("/")
    for path in document.get("paths").members:
        for operation in path.members:
            if operation.key.lower() not in _METHODS or not path.key.startswith("/"):
                continue
            own = operation.get("operationId").text
            if own:
                context.define(own, "method", operation.line, operation.end_line)
            said = operation.get("summary").text or operation.get("description").text
            name = f"{operation.key.upper()} {base}{path.key}"
            yield context.make("route", name, operation.line, text=said, handler=own)


def _read_channels(document: Value, context: FileContext) -> Iterator[Registration]:
    addresses = {
        channel.key: channel.get("address").text or channel.key for channel in document.get("channels").members
    }
    for channel in document.get("channels").members:
        actions = [member for member in channel.members if member.key in _SENT]
        for each in actions:
            said = each.get("summary").text or each.get("description").text
            handler = each.get("operationId").text
            yield context.make("topic", channel.key, each.line, detail=_SENT[each.key], text=said, handler=handler)
        if not actions:
            yield context.make("topic", addresses[channel.key], channel.line, detail="declared")
    for operation in document.get("operations").members:
        key = operation.get("channel", "$ref").text.rpartition("/")[2]
        action = _SENT.get(operation.get("action").text, "")
        if action and key:
            name = addresses.get(key, key)
            yield context.make("topic", name, operation.line, detail=action, handler=operation.key)


def find_declared(context: FileContext) -> Iterator[Registration]:
    """Find the services, calls, types and resources among the definitions of a schema."""
    kinds = _DECLARED.get(context.language)
    if kinds is None:
        return
    for symbol in context.symbols:
        kind = kinds.get(symbol.kind)
        if kind is None:
            continue
        if context.language == "graphql" and (symbol.kind == "method" or symbol.name in _ROOTS):
            root = _ROOTS.get(symbol.parent)
            if root:
                yield context.make("route", f"{root} {symbol.name}", symbol.start_line, text=symbol.doc)
        elif context.language == "terraform":
            yield from _read_block(symbol, context)
        else:
            detail = {"interface": "interface", "enum": "enum"}.get(symbol.kind, "") if kind == "type" else ""
            yield context.make(kind, symbol.qualified_name, symbol.start_line, detail=detail, text=symbol.doc)


def _read_block(symbol: Symbol, context: FileContext) -> Iterator[Registration]:
    block = symbol.signature.partition(" ")[0]
    if block in _BLOCKS:
        prefix = "" if block == "resource" else f"{block}."
        yield context.make("resource", f"{prefix}{symbol.qualified_name}", symbol.start_line, text=symbol.doc)
