"""Options of command lines and environment variables, with their defaults and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    Invocation,
    find_definition,
    find_literals,
    list_surroundings,
    read_comment_above,
    read_definition_name,
    read_literal,
    read_object,
)
from indexer.types import Registration

_CONSTANT = re.compile(rb"\b([A-Za-z_][A-Za-z0-9_]{0,80}) ?= ?[\"']([A-Z][A-Z0-9_]{1,80})[\"']")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_?")
_FLAG_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_OR = frozenset({b"||", b"??", b"or", b"?:"})
_IN_TEXT = re.compile(
    rb"(?:os\.environ|ENV|process\.env|import\.meta\.env|\$_SERVER)"
    rb"(?:\[\s*[\"']([A-Z][A-Z0-9_]{1,80})[\"']\s*\]|\.([A-Z][A-Z0-9_]{1,80})\b)"
)
_SIGNS = (b"os.environ[", b"ENV[", b"process.env", b"import.meta.env", b"_SERVER[")
_MAX_READS = 500


def read_python_option(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `add_argument("-x", "--xx", default=..., help=...)` and `@click.option(...)`."""
    names = [text for node in invocation.positional if (text := read_literal(node, context.source)) is not None]
    flags = [name for name in names if name.startswith("-")]
    dest = invocation.text_of("dest", "metavar")
    if not flags and (invocation.name in {"option", "Option"} or not (names or dest)):
        return
    label = ", ".join(flags) or (names[0] if names else dest or "")
    default = context.code_of(invocation.named.get("default"))
    if not default and invocation.text_of("action") == "store_true":
        default = "False"
    said = invocation.text_of("short_help", "help")
    yield context.make("flag", label, invocation.line, detail=default, text=said)


def read_typer_option(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `name: str = typer.Option("default", "--name", help=...)`, whose name may be the parameter's."""
    parameter = next((each for each in list_surroundings(invocation.node) if "parameter" in each.type), None)
    if parameter is None or parameter.type == "parameters":
        return
    named = parameter.child_by_field_name("name") or parameter.named_child(0)
    texts = [text for node in invocation.positional if (text := read_literal(node, context.source)) is not None]
    flags = [text for text in texts if text.startswith("-")]
    own = context.code_of(named).replace("_", "-")
    label = ", ".join(flags) or (f"--{own}" if invocation.name == "Option" else own)
    first = invocation.positional[0] if invocation.positional else invocation.named.get("default")
    value = parameter.child_by_field_name("value")
    is_annotated = value is not None and value.start_byte > invocation.node.end_byte
    default = context.code_of(value if is_annotated else first)
    said = invocation.text_of("help")
    yield context.make("flag", label, invocation.line, detail="" if default in {"...", *flags} else default, text=said)


def read_defined_flag(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `DEFINE_string("name", default, "help")` and `define("name", default=..., help=...)`."""
    name = invocation.text_at(0)
    if name is None or _FLAG_NAME.fullmatch(name) is None or not (invocation.positional[1:] or invocation.named):
        return
    default = invocation.named.get("default") or (invocation.positional[1] if len(invocation.positional) > 1 else None)
    said = invocation.text_of("help") or invocation.text_at(2)
    yield context.make("flag", f"--{name}", invocation.line, detail=context.code_of(default), text=said)


def read_script_option(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `.option('-p, --port <n>', 'help', '80')` of Commander and `.option('port', {...})` of Yargs."""
    name = invocation.text_at(0)
    if name is None:
        return
    if name.startswith("-"):
        rest = [node for node in invocation.positional[2:] if node.type not in {"arrow_function", "identifier"}]
        default = context.code_of(rest[-1]) if rest else ""
        yield context.make("flag", name, invocation.line, detail=default, text=invocation.text_at(1))
    elif len(invocation.positional) > 1 and invocation.positional[1].type == "object":
        members = read_object(invocation.positional[1], context.source)
        yield _make_object_option(name, members, invocation.line, context)


def read_script_options(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `.options({ port: { default: 80, describe: '...' } })` and `parseArgs({ options: {...} })`."""
    if not invocation.positional or invocation.positional[0].type != "object":
        return
    members = read_object(invocation.positional[0], context.source)
    if invocation.name == "parseArgs":
        members = read_object(members["options"], context.source) if "options" in members else {}
    for name, node in members.items():
        inner = read_object(node, context.source) if node.type == "object" else {}
        if inner and {"describe", "description", "default", "type", "alias", "short"} & set(inner):
            yield _make_object_option(name, inner, node.start_point[0] + 1, context)


def _make_object_option(name: str, members: Mapping[str, Node], line: int, context: FileContext) -> Registration:
    said = next((members[key] for key in ("describe", "description", "desc", "help") if key in members), None)
    short = next((members[key] for key in ("alias", "short") if key in members), None)
    letter = read_literal(short, context.source) if short is not None else None
    label = f"-{letter}, --{name}" if letter and len(letter) == 1 else f"--{name}"
    text = read_literal(said, context.source) if said is not None else ""
    return context.make("flag", label, line, detail=context.code_of(members.get("default")), text=text)


def read_go_flag(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `Flags().StringVarP(&x, "name", "n", "default", "help")` and its shorter forms."""
    values = list(invocation.positional)
    has_variable, has_letter = "Var" in invocation.name, invocation.name.endswith("P")
    values = values[1:] if has_variable else values
    if len(values) < 2 or (name := read_literal(values[0], context.source)) is None or not _FLAG_NAME.fullmatch(name):
        return
    letter = read_literal(values[1], context.source) if has_letter else ""
    said = read_literal(values[-1], context.source)
    place = 2 if has_letter else 1
    default = context.code_of(values[place]) if place < len(values) - 1 else ""
    label = f"-{letter}, --{name}" if letter else f"--{name}" if len(name) > 1 else f"-{name}"
    yield context.make("flag", label, invocation.line, detail=default, text=said)


def read_go_flag_literal(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `&cli.StringFlag{Name: "x", Usage: "...", Value: "...", EnvVars: ...}`."""
    name = invocation.text_of("Name")
    if name is None:
        return
    default = context.code_of(invocation.named.get("Value"))
    line = invocation.node.start_point[0] + 1
    yield context.make("flag", f"--{name}", line, detail=default, text=invocation.text_of("Usage"))


def read_clap_attribute(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `#[arg(long, short = 'x', help = "...")]` above a field of a Rust struct."""
    field = find_definition(invocation.node)
    own = read_definition_name(field, context.source)
    if field is None or field.type != "field_declaration" or "subcommand" in invocation.named:
        return
    if "hide" in invocation.named and context.code_of(invocation.named["hide"]) in {"hide", "true"}:
        return
    letter = _read_flag_word(invocation, "short", own[:1], context)
    word = _read_flag_word(invocation, "long", own.replace("_", "-"), context)
    label = ", ".join(part for part in (letter and f"-{letter}", word and f"--{word}") if part) or own
    default = next((node for key, node in invocation.named.items() if key.startswith("default_value")), None)
    above = read_comment_above(invocation.node.parent or invocation.node, context.source)
    said = invocation.text_of("help", "long_help", "about") or above
    yield context.make("flag", label, invocation.line, detail=context.code_of(default).strip('"'), text=said)
    if (variable := invocation.text_of("env")) is not None:
        yield context.make("environment", variable, invocation.line, text=said)


def _read_flag_word(invocation: Invocation, key: str, own: str, context: FileContext) -> str:
    """Return the name of a flag: the given word, else the field's own name; nothing if it has none."""
    if key not in invocation.named:
        return ""
    node = invocation.named[key]
    return read_literal(node, context.source) or own


def read_clap_call(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `Arg::new("x").long("x").short('x').help("...")`, from the words of the chain."""
    if not invocation.receiver.endswith("Arg") or (name := invocation.text_at(0)) is None:
        return
    said: dict[str, str] = {}
    for around in list_surroundings(invocation.node):
        if around.type not in {"field_expression", "call_expression"}:
            break
        function, arguments = around.child_by_field_name("function"), around.child_by_field_name("arguments")
        if function is not None and arguments is not None and arguments.named_child_count:
            key = context.code_of(function.child_by_field_name("field"))
            said[key] = " ".join(find_literals(arguments, context.source)) or context.code_of(arguments.named_child(0))
    label = ", ".join(
        part
        for part in (said.get("short", "") and f"-{said['short']}", said.get("long", "") and f"--{said['long']}")
        if part
    )
    yield context.make(
        "flag", label or name, invocation.line, detail=said.get("default_value", ""), text=said.get("help", "")
    )


def read_option_parser(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `opts.on("-p", "--port PORT", "help")` of Ruby's OptionParser."""
    texts = [text for node in invocation.positional if (text := read_literal(node, context.source)) is not None]
    flags = [text for text in texts if text.startswith("-")]
    if flags:
        said = [text for text in texts if not text.startswith("-")]
        yield context.make("flag", ", ".join(flags), invocation.line, text=said[0] if said else "")


def read_c_option(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read a C function that tests an option: `isoption(&text, 'n', "null-input", ...)`."""
    texts = [(node.type, read_literal(node, context.source) or "") for node in invocation.positional]
    letter = next((text for kind, text in texts if kind == "char_literal"), "")
    word = next((text for kind, text in texts if kind == "string_literal" and _FLAG_NAME.fullmatch(text)), "")
    if word:
        yield context.make("flag", f"-{letter}, --{word}" if letter else f"--{word}", invocation.line)


def read_c_table(table: Node, context: FileContext) -> Iterator[Registration]:
    """Read the rows of `struct option options[] = {{"name", required_argument, 0, 'n'}, ...}`."""
    declared = table.parent.parent if table.parent is not None else None
    if declared is None or "opt" not in context.code_of(declared).partition("=")[0].lower():
        return
    for row in table.named_children[:500]:
        if row.type != "initializer_list":
            continue
        word = next((text for child in row.named_children if (text := _read_string(child, context)) is not None), None)
        letters = [read_literal(child, context.source) for child in row.named_children if child.type == "char_literal"]
        if word and _FLAG_NAME.fullmatch(word):
            letter = f"-{letters[-1]}, " if letters and letters[-1] else ""
            detail = "takes a value" if "required_argument" in context.code_of(row) else ""
            yield context.make("flag", f"{letter}--{word}", row, detail=detail)


def _read_string(node: Node, context: FileContext) -> str | None:
    return read_literal(node, context.source) if node.type == "string_literal" else None


def read_java_option(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@Option(names = {"-p", "--port"}, description = "...", defaultValue = "80")` of picocli."""
    flags = invocation.texts_of("names", "name")
    if flags:
        said = " ".join(invocation.texts_of("description", "usage"))
        default = invocation.text_of("defaultValue") or ""
        yield context.make("flag", ", ".join(flags), invocation.line, detail=default, text=said)


def read_environment(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read a call that reads an environment variable: `os.getenv("X", "default")`, `env.bool("X")`, `getEnv("X")`."""
    name = invocation.text_at(0) or _read_constant(invocation, context)
    if name is None or _VARIABLE.fullmatch(name) is None or len(name) < 2:
        return
    given = invocation.named.get("default")
    if given is None and len(invocation.positional) > 1:
        given = invocation.positional[1]
    default = _read_default(given, invocation.node, context)
    yield context.make("environment", name, invocation.line, detail=default)


def _read_constant(invocation: Invocation, context: FileContext) -> str | None:
    """Return the text of a constant in the same file: `const EnvMode = "SHOP_MODE"`."""
    first = invocation.positional[0] if invocation.positional else None
    if first is None or first.type not in {"identifier", "constant", "name"}:
        return None
    if context.constants is None:  # read once: a file may ask for thousands of variables
        found = ((each[1].decode(), each[2].decode()) for each in _CONSTANT.finditer(context.source))
        context.constants = dict(found)
    return context.constants.get(context.code_of(first))


def _read_default(given: Node | None, node: Node, context: FileContext) -> str:
    """Read the default that is passed, or follows `or`."""
    if given is None:
        parent = node.parent
        sign = parent.child_by_field_name("operator") if parent is not None else None
        left = parent.child_by_field_name("left") if parent is not None else None
        if parent is None or sign is None or left != node or context.source[sign.start_byte : sign.end_byte] not in _OR:
            return ""
        given = parent.child_by_field_name("right")
    return "" if given is None or "function" in given.type or given.type == "lambda" else context.code_of(given)


def find_environment_reads(root: Node, context: FileContext) -> Iterator[Registration]:
    """Find the variables read by index or attribute: `os.environ["X"]`, `process.env.X`, `ENV["X"]`."""
    if not any(sign in context.source for sign in _SIGNS):
        return
    for count, found in enumerate(_IN_TEXT.finditer(context.source)):
        node = root.descendant_for_byte_range(found.start(), found.end())
        if count >= _MAX_READS:
            return
        if node is None or "comment" in node.type or "string" in node.type or _is_assigned(node):
            continue
        name = (found[1] or found[2]).decode()
        yield context.make("environment", name, node, detail=_read_default(None, node, context))


def _is_assigned(node: Node) -> bool:
    """Whether a variable is set here rather than read."""
    parent = node.parent
    return parent is not None and "assignment" in parent.type and parent.child_by_field_name("left") == node
