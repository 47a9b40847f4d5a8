"""Routes: registrations by calls, decorators and annotations of web frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    Invocation,
    find_definition,
    find_literals,
    read_code,
    read_definition_name,
    read_literal,
    read_object,
)
from indexer.parsing.registrations.route_groups import find_class_prefix, find_enclosing_prefix, find_owner, join_path
from indexer.types import Registration

_METHODS = frozenset("GET POST PUT PATCH DELETE HEAD OPTIONS TRACE CONNECT".split())
_GO_PATTERN = re.compile(r"(?:([A-Z]{3,7}) )?([^\s/]*/\S*)")
_FUNCTIONS = frozenset(
    "lambda_expression arrow_function function_expression func_literal lambda closure_expression".split()
)
_ROUTE_OF_CHAIN = re.compile(r"\.route\(\s*[\"'`]([^\"'`\s]{1,200})[\"'`]")
_GO_METHODS = re.compile(rb"\.Methods\(([^()]{1,120})\)")
_WORD = re.compile(rb"[A-Za-z]+")
_RUST_METHOD = re.compile(r"\b(get|post|put|patch|delete|head|options|any)\(\s*([\w:]{0,120})")
_MAPPING = re.compile(r"(?:Http|Map)?(Get|Post|Put|Patch|Delete|Head|Options)(?:Mapping|Exchange)?")
# Interfaces whose methods are requests: of Feign, Spring and MicroProfile; and of Retrofit and Refit, by their methods.
_CLIENT = re.compile(r"@(?:FeignClient|HttpExchange|RegisterRestClient)\b(?:\((?P<said>[^()]{0,400})\))?")
_CLIENT_PATH = re.compile(r"\bpath\s*=\s*\"([^\"]{1,200})\"")
_CLIENT_NAME = re.compile(r"(?:\b(?:name|value)\s*=\s*|^\s*)\"([\w.-]{1,100})\"")
_HEAD = 600  # bytes of a class in which it is annotated and named
_RESOURCE_ACTIONS = {
    "index": "GET {0}",
    "create": "POST {0}",
    "new": "GET {0}/new",
    "edit": "GET {0}/:id/edit",
    "show": "GET {0}/:id",
    "update": "PATCH {0}/:id",
    "destroy": "DELETE {0}/:id",
}
_SINGULAR_ACTIONS = ("create", "new", "edit", "show", "update", "destroy")


def read_decorated_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@app.get("/x")` and `@app.route("/x", methods=[...])` above a Python function."""
    path = invocation.text_at(0)
    path = path if path is not None else invocation.text_of("path", "rule", "uri")
    if path is None or (path and path[0] not in "/{<^*"):
        return
    handler = read_definition_name(find_definition(invocation.node), context.source)
    whole = join_path(context.prefixes.get(invocation.receiver, ""), path)
    yield context.make("route", f"{_list_methods(invocation)} {whole}", invocation.line, handler=handler)


def _list_methods(invocation: Invocation) -> str:
    name = invocation.name.removeprefix("add_").upper()
    if name in _METHODS:
        return name
    return "WS" if "WEBSOCKET" in name else "|".join(invocation.texts_of("methods", "method")).upper() or "GET"


def read_added_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `add_url_rule("/x", view_func=f)`, `web.get("/x", f)`, `Route("/x", f)` in Python."""
    path = invocation.text_at(1) if invocation.text_at(0) in _METHODS else invocation.text_at(0)
    if path is None or not path.startswith("/"):
        return
    named = [invocation.named[key] for key in ("view_func", "endpoint", "handler") if key in invocation.named]
    held = named[:1] or [each for each in invocation.positional[1:] if read_literal(each, context.source) is None]
    methods = _list_methods(invocation)
    handler = _name_handler(held[0], context) if held else ""
    whole = join_path(context.prefixes.get(invocation.receiver, ""), path)
    yield context.make("route", f"{methods} {whole}", invocation.line, handler=handler)


def read_django_path(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `path("x/", view, name=...)` and similar; one that includes a module prefixes its paths."""
    path = invocation.text_at(0)
    if path is None or len(invocation.positional) < 2 or read_literal(invocation.positional[1], context.source):
        return
    handler = context.code_of(invocation.positional[1])
    arguments = invocation.positional[1].child_by_field_name("arguments")
    is_include = handler.startswith("include(") and arguments is not None
    modules = list(find_literals(arguments, context.source))[:1] if is_include and arguments is not None else []
    for prefix in find_enclosing_prefix(invocation.node, context):
        whole = join_path("", join_path(prefix, path))
        if not is_include:
            yield context.make("route", whole, invocation.line, handler=handler)
        for module in modules:
            yield context.make("mount", whole, invocation.line, handler=module)


def read_included_router(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `app.include_router(users.router, prefix="/users")`, which is about the module `users`."""
    prefix = invocation.text_of("prefix", "url_prefix")
    router = context.code_of(invocation.positional[0]) if invocation.positional else ""
    module = router.rpartition(".")[0]
    if prefix and module:
        yield context.make("mount", prefix, invocation.line, handler=module)


def read_called_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `app.get('/x', handler)` of JavaScript, Go, Ruby and PHP, with its group's prefix."""
    path = invocation.text_at(0)
    chained = _ROUTE_OF_CHAIN.search(invocation.receiver) if path is None else None
    if chained is not None and invocation.positional:
        path = chained[1]
    elif path is None or path[:1] not in {"/", "*"} or not _has_handler(invocation, context):
        return
    mapping = _MAPPING.fullmatch(invocation.name)
    method = (
        (mapping[1] if mapping else invocation.name)
        .upper()
        .replace("ALL", "ANY")
        .replace("DEL", "DELETE")
        .replace("DELETEETE", "DELETE")
    )
    base = invocation.receiver.partition("\n")[0].partition(".route(")[0]
    for prefix in find_enclosing_prefix(invocation.node, context, base):
        # Echo takes middleware after the handler, all others before it.
        place = 1 if b"labstack/echo" in context.source and len(invocation.positional) > 1 else -1
        handler = _name_handler(invocation.positional[place], context)
        yield context.make("route", f"{method} {join_path(prefix, path)}", invocation.line, handler=handler)


def _has_handler(invocation: Invocation, context: FileContext) -> bool:
    """Whether a function is given with the path: a block, or an argument that is not a literal."""
    if invocation.node.child_by_field_name("block") is not None:
        return True
    last = invocation.positional[-1]
    is_given = len(invocation.positional) > 1 and last.type != "object" and read_literal(last, context.source) is None
    return is_given or bool({"to", "controller"} & set(invocation.named))


def _name_handler(node: Node, context: FileContext) -> str:
    if node.type in _FUNCTIONS or read_literal(node, context.source) is not None:
        return ""
    if node.type == "array_creation_expression":  # [UserController::class, 'show']
        return ".".join([read_code(node, context.source).strip("[ ").partition("::")[0], *find_last(node, context)])
    return context.code_of(node)


def find_last(node: Node, context: FileContext) -> Sequence[str]:
    """Return the last text in a list, as a list."""
    return list(find_literals(node, context.source))[-1:]


def read_go_handler(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `mux.HandleFunc("GET /x", h)`, and the methods of a following `.Methods(...)`."""
    pattern = _GO_PATTERN.fullmatch(invocation.text_at(0) or "")
    if pattern is None or len(invocation.positional) < 2:
        return
    following = context.source[invocation.node.end_byte : invocation.node.end_byte + 200]
    said = _GO_METHODS.match(following)
    words = [word.decode() for word in _WORD.findall(said[1])] if said else []
    methods = [pattern[1]] if pattern[1] else [word.removeprefix("Method").upper() for word in words if word != "http"]
    handler = _name_handler(invocation.positional[1], context)
    for prefix in find_enclosing_prefix(invocation.node, context, invocation.receiver):
        name = f"{'|'.join(methods)} {join_path(prefix, pattern[2])}".strip()
        yield context.make("route", name, invocation.line, handler=handler)


def read_route_object(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `fastify.route({ method: 'GET', url: '/x', handler })`."""
    if not invocation.positional:
        return
    members = read_object(invocation.positional[0], context.source)
    path = next((members[key] for key in ("url", "path") if key in members), None)
    text = read_literal(path, context.source) if path is not None else None
    if text is None or "method" not in members:
        return
    methods = "|".join(find_literals(members["method"], context.source)).upper()
    handler = _name_handler(members["handler"], context) if "handler" in members else ""
    yield context.make("route", f"{methods} {text}", invocation.line, handler=handler)


def read_annotated_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@GetMapping("/x")`, `@GET @Path("x")`, `@Get(':id')` and `#[Route('/x')]` above a method."""
    target = find_definition(invocation.node)
    if target is None or "class" in target.type or "interface" in target.type:
        return  # above a class it is the prefix of all that is in it
    if context.language in {"java", "kotlin"} and invocation.name == "Path":
        return  # the word next to it names the method
    mapping = _MAPPING.fullmatch(invocation.name)
    said = [
        each.rpartition(".")[2] for each in map(context.code_of, invocation.named.values()) if "RequestMethod" in each
    ]
    method = mapping[1] if mapping else said[0] if said else invocation.name
    method = "|".join(invocation.texts_of("methods")) or ("ANY" if "Mapping" in method or method == "All" else method)
    paths = [path for node in invocation.positional[:1] for path in find_literals(node, context.source)]
    paths = paths or invocation.texts_of("value", "path", "uri") or _read_path_beside(target, context)
    if not paths and invocation.positional:
        return  # a constant, which is not known here
    handler = read_definition_name(target, context.source)
    method = "" if method == "Route" else method.strip("} ").upper()
    client = _read_client(target, invocation, context) if paths else None
    prefix = client.prefix if client is not None else find_class_prefix(target, context.source)
    owner = read_definition_name(find_owner(target), context.source)
    prefix = f"/{prefix.strip('/')}".rstrip("/").replace("[controller]", owner.removesuffix("Controller"))
    for path in paths or [""]:
        is_whole = path.startswith(("~/", "/")) and context.language == "csharp"
        whole = path.lstrip("~") if is_whole else join_path(prefix, path).replace("[action]", handler)
        label = f"{method} {whole}".strip()
        if client is None:
            yield context.make("route", label, invocation.line, handler=handler)
        else:
            yield context.make("client", label, invocation.line, detail=client.service, handler=f"{owner}.{handler}")


class _Client(NamedTuple):
    service: str = ""
    prefix: str = ""


def _read_client(target: Node, invocation: Invocation, context: FileContext) -> _Client | None:
    """Return the service and the base path of a client interface; None for a server's."""
    owner = find_owner(target)
    head = context.source[owner.start_byte : owner.start_byte + _HEAD] if owner is not None else b""
    above = head.partition(b"{")[0].decode("utf-8", "replace")
    if "interface" not in above:
        return None
    found = _CLIENT.search(above)
    if found is None:
        is_request = invocation.name.isupper() or context.language == "csharp"
        return _Client() if is_request and invocation.positional else None
    said = found["said"] or ""
    service, path = _CLIENT_NAME.search(said), _CLIENT_PATH.search(said)
    prefix = path[1] if path is not None else find_class_prefix(target, context.source)
    return _Client(service=service[1] if service is not None else "", prefix=prefix)


def _read_path_beside(target: Node, context: FileContext) -> list[str]:
    """Return the path in another annotation of the same method, as in JAX-RS."""
    modifiers = next((child for child in target.children if child.type == "modifiers"), None)
    for each in modifiers.named_children if modifiers is not None else ():
        if read_definition_name(each, context.source) == "Path":
            arguments = each.child_by_field_name("arguments")
            return list(find_literals(arguments, context.source)) if arguments is not None else []
    return []


def read_rust_attribute(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `#[get("/x")]` above a Rust function."""
    path = invocation.text_at(0)
    if path is None or not path.startswith("/"):
        return
    handler = read_definition_name(find_definition(invocation.node), context.source)
    yield context.make("route", f"{invocation.name.upper()} {path}", invocation.line, handler=handler)


def read_rust_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `.route("/x", get(list).post(create))` of Axum and Actix."""
    path = invocation.text_at(0)
    if path is None or not path.startswith("/") or len(invocation.positional) < 2:
        return
    for found in _RUST_METHOD.finditer(context.code_of(invocation.positional[1])):
        yield context.make("route", f"{found[1].upper()} {path}", invocation.line, handler=found[2])


def read_rails_route(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `get 'x', to: 'c#a'`, `root 'c#a'` and `match` of a Rails routes file."""
    if not is_rails_routes(context.path):
        return
    path = "/" if invocation.name == "root" else invocation.text_at(0)
    if path is None:
        return
    handler = invocation.text_of("to") or (invocation.text_at(0) if invocation.name == "root" else "") or ""
    methods = {"root": "GET", "match": "|".join(invocation.texts_of("via")).upper() or "ANY"}
    method = methods.get(invocation.name, invocation.name.upper())
    for prefix in find_enclosing_prefix(invocation.node, context):
        yield context.make("route", f"{method} {join_path(prefix, path)}", invocation.line, handler=handler)


def read_rails_resources(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `resources :users, only: [...]`: seven routes, or the selected ones."""
    if not is_rails_routes(context.path):
        return
    only, without = invocation.texts_of("only"), invocation.texts_of("except")
    known = _RESOURCE_ACTIONS if invocation.name == "resources" else _SINGULAR_ACTIONS
    actions = [each for each in known if (not only or each in only) and each not in without]
    names = [text for node in invocation.positional if (text := read_literal(node, context.source))]
    for prefix in find_enclosing_prefix(invocation.node, context):
        for name in names:
            for action in actions:
                path = join_path(prefix, invocation.text_of("path") or name)
                route = _RESOURCE_ACTIONS[action].format(path)
                route = route.replace("/:id", "") if invocation.name == "resource" else route
                yield context.make("route", route, invocation.line, handler=f"{name}#{action}")


def is_rails_routes(path: str) -> bool:
    """Whether a file defines a Rails application's routes."""
    return path.endswith("routes.rb") or "config/routes/" in path
