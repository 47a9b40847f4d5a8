"""Settings with their defaults: modules of constants, settings classes, tables of defaults, and setter calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    Invocation,
    find_definition,
    list_surroundings,
    read_definition_name,
    read_literal,
    read_object,
)
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Registration

_SETTINGS_FILE = re.compile(
    r"(?:^|/)(?:[\w-]*settings|config|conf|configuration|defaults?|[\w-]*_defaults)(?:/\w+)?\.py$"
)
_CONFIG_FILE = re.compile(r"conf|option|setting|default|env", re.IGNORECASE)
_SETTING = re.compile(r"[A-Z][A-Z0-9_]*[A-Z0-9]")
_SETTINGS_CLASS = re.compile(r"\w*(?:Settings|Config|Configuration|Options)")
_PLACEHOLDER = re.compile(r"[$#]\{([\w.-]{1,120})(?::([^}]{0,120}))?\}")
_DEFAULT_FIELD = re.compile(r"default|value$", re.IGNORECASE)
_COMMENT_MARK = re.compile(r"^#[#:\s]*")
_MAX_FIELDS = 300
_FEATURE = re.compile(r"[A-Za-z][\w.:/-]{1,100}")


def find_module_settings(names: list[Node], context: FileContext) -> Iterator[Registration]:
    """Find the constants of a Python module of settings, each with its value."""
    if not _SETTINGS_FILE.search(context.path):
        return
    for name in names:
        text = context.code_of(name)
        assignment = name.parent
        value = assignment.child_by_field_name("right") if assignment is not None else None
        if value is not None and _SETTING.fullmatch(text) and "__file__" not in context.code_of(value):
            yield context.make("setting", text, name, detail=context.code_of(value), text=_read_remark(name, context))


def _read_remark(name: Node, context: FileContext) -> str:
    """Read the comment after an assignment, or the one directly above it."""
    statement = name.parent.parent if name.parent is not None else None
    if statement is None:
        return ""
    following, above = statement.next_sibling, statement.prev_sibling
    if following is not None and following.type == "comment" and following.start_point[0] == statement.end_point[0]:
        return _COMMENT_MARK.sub("", context.code_of(following))
    if above is None or above.type != "comment" or above.end_point[0] != statement.start_point[0] - 1:
        return ""
    before = above.prev_sibling
    if before is None or before.end_point[0] != above.start_point[0]:  # else it is about the line that it ends
        return _COMMENT_MARK.sub("", context.code_of(above))
    return ""


def find_settings_class(base: Node, context: FileContext) -> Iterator[Registration]:
    """Find the fields of a pydantic settings class, by its base or, for a plain model, by its name."""
    owner = next((each for each in list_surroundings(base) if each.type == "class_definition"), None)
    kind = context.code_of(base).rpartition(".")[2]
    if owner is not None and kind in {"BaseSettings", "BaseModel"}:
        name = read_definition_name(owner, context.source)
        if kind == "BaseSettings" or _SETTINGS_CLASS.fullmatch(name):
            yield from _read_fields(owner, context)


def read_dataclass(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read the fields of a dataclass with a configuration's name."""
    owner = find_definition(invocation.node)
    if owner is not None and _SETTINGS_CLASS.fullmatch(read_definition_name(owner, context.source)):
        yield from _read_fields(owner, context)


def _read_fields(owner: Node, context: FileContext) -> Iterator[Registration]:
    body = owner.child_by_field_name("body")
    own = read_definition_name(owner, context.source)
    statements = body.named_children[:_MAX_FIELDS] if body is not None else []
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        field = statement.named_child(0) if statement.type == "expression_statement" else None
        name = field.child_by_field_name("left") if field is not None and field.type == "assignment" else None
        if field is None or name is None or field.child_by_field_name("type") is None:
            continue
        value = field.child_by_field_name("right")
        default, said, alias = _read_field_value(value, context)
        said = said or _read_remark(name, context) or _read_docstring(following, context)
        label = context.code_of(name)
        if alias.isupper():
            yield context.make("environment", alias, name, detail=default, text=said)
        if not label.startswith("_") and label != "model_config":
            yield context.make("setting", label, name, detail=default, text=said, handler=own)


def _read_field_value(value: Node | None, context: FileContext) -> tuple[str, str, str]:
    """Return the default of a field, its description, and its environment variable, from `Field(...)`."""
    called = (
        context.code_of(value.child_by_field_name("function")) if value is not None and value.type == "call" else ""
    )
    if value is None or called.rpartition(".")[2] not in {"Field", "field"}:
        return context.code_of(value), "", ""
    arguments = value.child_by_field_name("arguments")
    named = read_object(arguments, context.source) if arguments is not None else {}
    first = arguments.named_child(0) if arguments is not None and arguments.named_child_count else None
    default = named.get("default") or named.get("default_factory") or first
    if default is not None and default.type == "keyword_argument":
        default = None
    said = read_literal(named["description"], context.source) if "description" in named else ""
    alias = next((named[key] for key in ("validation_alias", "alias", "env") if key in named), None)
    variable = read_literal(alias, context.source) if alias is not None else ""
    return context.code_of(default).removesuffix("..."), said or "", variable or ""


def _read_docstring(statement: Node | None, context: FileContext) -> str:
    text = statement.named_child(0) if statement is not None and statement.type == "expression_statement" else None
    return (read_literal(text, context.source) or "").partition(". ")[0] if text is not None else ""


def read_settings_entry(key: Node, value: Node, context: FileContext) -> Iterator[Registration]:
    """Read an entry of a table of defaults in Go: `"BASE_URL": {rawValue: "http://localhost"}`."""
    name = read_literal(key, context.source)
    if name is None or not _SETTING.fullmatch(name) or not _CONFIG_FILE.search("/".join(context.path.split("/")[-2:])):
        return
    members = read_object(value, context.source)
    defaults = [node for key, node in members.items() if _DEFAULT_FIELD.search(key)]
    default = defaults[-1] if defaults else None
    yield context.make("environment", name, key, detail=context.code_of(default))


def read_set_call(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `set :port, 4567` of Sinatra and `viper.SetDefault("port", 80)`."""
    name = invocation.text_at(0)
    if name and len(invocation.positional) > 1:
        value = context.code_of(invocation.positional[1])
        yield context.make("setting", name, invocation.line, detail=value)


def read_feature(action: str) -> Callable[[Invocation, FileContext], Iterator[Registration]]:
    """Make a reader of calls that query or set a feature flag: `client.variation("new-checkout", ...)`."""

    def read(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
        texts = (read_literal(node, context.source) for node in invocation.positional[:3])
        name = next((text for text in texts if text and _FEATURE.fullmatch(text)), "")
        if name:
            handler = context.find_enclosing(invocation.line)
            yield context.make("feature", name, invocation.line, detail=action, handler=handler)

    return read


def read_application_setting(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `app.set('views', './views')` and `app.enable('etag')` of Express, and the same within it."""
    name = invocation.text_at(0)
    is_set = invocation.name == "set" and len(invocation.positional) > 1
    if not name or name.startswith("/") or b"express" not in context.source or not (is_set or invocation.name != "set"):
        return
    value = context.code_of(invocation.positional[1]) if is_set else str(invocation.name == "enable").lower()
    yield context.make("setting", name, invocation.line, detail=value)


def read_value_annotation(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@Value("${server.port:8080}")`."""
    found = _PLACEHOLDER.fullmatch(invocation.text_at(0) or invocation.text_of("value") or "")
    if found is not None:
        yield context.make("setting", found[1], invocation.line, detail=found[2] or "")


def read_env_tag(tag: Node, context: FileContext) -> Iterator[Registration]:
    """Read a struct tag of Go: `env:"PORT" envDefault:"80"`."""
    words = {found[1]: found[2] for found in _TAG.finditer(context.code_of(tag))}
    name = words.get("env", words.get("envconfig", "")).partition(",")[0]
    if name:
        default = words.get("envDefault", words.get("default", ""))
        yield context.make("environment", name, tag, detail=default, text=words.get("desc", words.get("usage", "")))


_TAG = compile_pattern(r"(\w+):\"([^\"]{0,200})\"")
