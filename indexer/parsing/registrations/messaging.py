"""Calls between programs: requests by HTTP clients, and produced and consumed topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    JOINED_TEXTS,
    TEXTS,
    Invocation,
    find_definition,
    find_literals,
    read_definition_name,
    read_literal,
    read_object,
)
from indexer.types import Registration

_METHODS = frozenset("GET POST PUT PATCH DELETE HEAD OPTIONS".split())
_VERB = re.compile(r"(?i)(get|post|put|patch|delete|head|options|exchange|request)")
_URL = re.compile(r"(?:(?:https?|lb)://([^/\s]{0,200})|[$#]?\{[^{}]{0,200}\}|%s)?(/[^\s?#]{0,300})")
_JOINED = JOINED_TEXTS | {"binary_operator"}
_CALLS = frozenset("call call_expression method_invocation".split())
_OBJECTS = frozenset("object literal_value dictionary".split())
_NAMED = re.compile(r"(?i)topic|queue|channel|subject|stream|exchange")
_SET = r"\bNAME\s{0,4}(?::\s{0,2}\w{1,20}\s{0,2})?=\s{0,4}[\"']([\w.:/-]{2,200})[\"']"
_CONSTANT = re.compile(r"[A-Za-z_][\w.]{2,80}")
_JOB = re.compile(r"[A-Z]\w*(?:::[A-Z]\w*)*")
_DEFAULTED = re.compile(r"^\$\{[\w.-]+:([^{}]+)\}$")  # of Spring: `${app.topic:orders}`
_PLAIN = re.compile(r"[\w.$:/{}#*-]{2,200}")
_TOPIC_KEYS = (
    "topic", "topics", "topicPattern", "Topic", "topic_id", "queue", "queues", "Queue", "queue_name", "routing_key",
    "routingKey", "QueueUrl", "TopicArn", "TopicARN", "channel", "subject", "destination", "exchange", "value",
    "queueNames",
)  # fmt: skip


def read_request(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `requests.get(f"{BASE}/orders/{id}")`, `fetch("/orders", {method: "POST"})`, `NewRequest("GET", url)`."""
    given = invocation.positional[:3]
    places = [
        place for place, node in enumerate(given) if (read_literal(node, context.source) or "").upper() in _METHODS
    ]
    method = read_literal(given[places[0]], context.source) if places else _find_method(invocation, context)
    nodes = [node for place, node in enumerate(given) if place not in places]
    members = {**_read_members(invocation, context), **invocation.named}
    nodes += [members[key] for key in ("url", "uri", "path") if key in members]
    texts = (read_template(node, context.source) for node in nodes)
    found = next((url for text in texts if text and (url := _URL.match(text)) is not None), None)
    if found is None or _is_handled(invocation):
        return
    name = f"{(method or 'GET').upper()} {found[2].rstrip('/') or '/'}"
    handler = context.find_enclosing(invocation.line)
    yield context.make("client", name, invocation.line, detail=found[1] or "", handler=handler)


def _find_method(invocation: Invocation, context: FileContext) -> str | None:
    """Return the method of a request: an option, a named argument, or the callee's name."""
    members = {**_read_members(invocation, context), **invocation.named}
    named = read_literal(members["method"], context.source) if "method" in members else None
    code = " ".join(map(context.code_of, invocation.positional[1:3]))
    constant = re.search(r"(?:Http)?Method\.?([A-Z][A-Za-z]{2,6})\b", code[:200])
    verb = _VERB.match(invocation.name) or re.search(r"(?i)\.(get|post|put|patch|delete)\(\)\W*$", invocation.receiver)
    said = named or (constant[1] if constant is not None else verb[1] if verb is not None else None)
    return said if said is not None and said.upper() in _METHODS else None


def _read_members(invocation: Invocation, context: FileContext) -> dict[str, Node]:
    """Return the members of the objects among the first arguments."""
    given = [node for node in invocation.positional[:3] if node.type in _OBJECTS]
    return {key: value for node in given for key, value in read_object(node, context.source).items()}


def _is_handled(invocation: Invocation) -> bool:
    """Whether a function after the path handles it, which makes it a route."""
    return any(
        "function" in node.type or "lambda" in node.type or node.type == "func_literal"
        for node in invocation.positional
    )


def read_template(node: Node, source: bytes, *, depth: int = 6) -> str | None:
    """Return the text of a string with `{}` for interpolations; None for anything else."""
    if node.type in TEXTS:
        return read_literal(node, source)
    if node.type in _CALLS:  # fmt.Sprintf("%s/orders/%s", base, id)
        arguments = node.child_by_field_name("arguments")
        return next(find_literals(arguments, source), None) if arguments is not None else None
    if node.type not in _JOINED or not depth:
        return None
    parts = [read_template(child, source, depth=depth - 1) for child in node.named_children[:40]]
    return "".join("{}" if part is None else part for part in parts) if any(parts) else None


def read_topic(action: str, place: int = 0) -> Callable[[Invocation, FileContext], Iterator[Registration]]:
    """Make a reader of calls that produce or consume the topic in an argument or a member."""

    def read(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
        own = read_definition_name(find_definition(invocation.node), context.source) if invocation.is_above else ""
        for name in _find_topics(invocation, place, context):
            handler = own or context.find_enclosing(invocation.line)
            yield context.make("topic", name, invocation.line, detail=action, handler=handler)

    return read


def read_enqueued_job(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `SyncJob.perform_async(1)` of Sidekiq and `SyncJob.set(wait: 1).perform_later` of Active Job."""
    found = _JOB.match(invocation.receiver)
    if found is not None:
        handler = context.find_enclosing(invocation.line)
        yield context.make("topic", found[0], invocation.line, detail="produced", handler=handler)


def _find_topics(invocation: Invocation, place: int, context: FileContext) -> list[str]:
    members = {**_read_members(invocation, context), **invocation.named}
    keyed = next((members[key] for key in _TOPIC_KEYS if key in members), None)
    given = invocation.positional[place:]
    if len(given) > 1 and read_literal(given[0], context.source) == "":  # the nameless exchange: the queue comes next
        given = given[1:]
    node = keyed or (given[0] if given else None)
    if node is None:
        return []
    texts = (_DEFAULTED.sub(r"\1", name) for name in find_literals(node, context.source))
    names = [name for name in texts if _PLAIN.fullmatch(name)]
    if names:
        return [name.rpartition("/")[2] if "://" in name else name for name in names]
    code = context.code_of(node)
    is_constant = _CONSTANT.fullmatch(code) is not None and bool(keyed is not None or _NAMED.search(code))
    if not is_constant:
        return []
    own = re.search(_SET.replace("NAME", re.escape(code.rpartition(".")[2])).encode(), context.source)
    return [own[1].decode("utf-8", "replace") if own is not None else code.rpartition(".")[2]]
