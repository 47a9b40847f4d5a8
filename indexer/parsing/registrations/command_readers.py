"""Commands, background tasks, events and models, as registered with frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from indexer.parsing.registrations.file_context import FileContext
from indexer.parsing.registrations.invocations import (
    Invocation,
    find_definition,
    find_literals,
    list_surroundings,
    read_comment_above,
    read_definition_name,
    read_name,
)
from indexer.types import Registration, RegistrationKind

_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIGNAL_FILE = re.compile(r"(?:^|/)(?:signals|events)(?:/\w+)?\.py$")
_PREVIOUS_DESC = re.compile(r"desc\s+[\"']([^\"'\n]{1,300})[\"']\s*$")
_DESCRIPTION_KEYS = ("help", "description", "short_help", "Short", "Usage", "about", "desc")
_EVERYDAY_EVENTS = frozenset(
    """click dblclick change submit input focus blur load unload scroll resize hashchange popstate beforeunload
    DOMContentLoaded paste copy cut contextmenu select reset wheel show shown hide hidden animationend transitionend
    focusin focusout visibilitychange storage message data end close error finish drain readable pipe unpipe abort
    play pause ended toggle open online offline""".split()
)
_DERIVES = re.compile(r"\b(?:Subcommand|Queryable|Insertable|DeriveEntityModel)\b")


def read_decorated_command(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@click.command("name")`, `@app.command()` and `@bot.command(name=...)` above a function."""
    target = find_definition(invocation.node)
    own = read_definition_name(target, context.source)
    texts = [text for place in range(2) if (text := invocation.text_at(place)) is not None]
    name = invocation.text_of("name") or (texts[0] if texts else own.replace("_", "-"))
    if target is not None and name:
        said = invocation.text_of(*_DESCRIPTION_KEYS)
        yield context.make("command", name, invocation.line, text=said, handler=own)


def read_added_command(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `add_parser("name", help=...)`, `.command("name <file>", "help")` and `Command::new("name")`."""
    name = invocation.text_at(0)
    if name is None or not name or name.startswith("-"):
        return
    if invocation.name == "new" and not invocation.receiver.endswith(("Command", "App", "SubCommand")):
        return
    said = invocation.text_of(*_DESCRIPTION_KEYS) or invocation.text_at(1) or _read_chained(invocation, context)
    handler = invocation.positional[-1] if len(invocation.positional) > 1 else None
    named = (
        context.code_of(handler) if handler is not None and handler.type in {"identifier", "member_expression"} else ""
    )
    yield context.make("command", name, invocation.line, text=said, handler=named)


def _read_chained(invocation: Invocation, context: FileContext) -> str:
    """Return the text of `.description("...")` or `.about("...")` after a call."""
    for around in list_surroundings(invocation.node):
        if around.type not in {"member_expression", "field_expression", "call_expression"}:
            break
        function, arguments = around.child_by_field_name("function"), around.child_by_field_name("arguments")
        if function is None or arguments is None:
            continue
        if read_name(function, context.source) in {"description", "about", "summary", "setDescription"}:
            return next(find_literals(arguments, context.source), "")
    return ""


def read_discord_builder(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `new SlashCommandBuilder().setName("x").setDescription("...")`."""
    name = invocation.text_at(0)
    if name is not None and "SlashCommandBuilder" in invocation.receiver and "Option" not in invocation.receiver:
        yield context.make("command", f"/{name}", invocation.line, text=_read_chained(invocation, context))


def read_command_literal(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `&cobra.Command{Use: "serve", Short: "..."}` and `&cli.Command{Name: "serve", Usage: "..."}`."""
    use = invocation.text_of("Use", "Name")
    if use:
        handler = next((invocation.named[key] for key in ("RunE", "Run", "Action") if key in invocation.named), None)
        named = context.code_of(handler) if handler is not None and handler.type != "func_literal" else ""
        said = invocation.text_of("Short", "Usage", "Long")
        yield context.make("command", use, invocation.node, text=said, handler=named)


def read_java_command(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@Command(name = "x", description = "...")` of picocli."""
    name = invocation.text_of("name")
    if name:
        own = read_definition_name(find_definition(invocation.node), context.source)
        said = " ".join(invocation.texts_of("description"))
        yield context.make("command", name, invocation.line, text=said, handler=own)


def read_derive(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `#[derive(Subcommand)]` above an enum, whose variants are commands, and the derives of models."""
    target = find_definition(invocation.node)
    derived = set(_DERIVES.findall(context.code_of(invocation.node)))
    if target is None or not derived:
        return
    if "Subcommand" not in derived:
        yield context.make("model", read_definition_name(target, context.source), target, detail=min(derived))
        return
    body = target.child_by_field_name("body")
    for variant in body.named_children if body is not None else ():
        if variant.type == "enum_variant":
            name = _CASE.sub("-", read_definition_name(variant, context.source)).lower()
            yield context.make("command", name, variant, text=read_comment_above(variant, context.source))


def read_task(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read a decorator or an annotation that makes a function a background task."""
    own = read_definition_name(find_definition(invocation.node), context.source)
    if not own:
        return
    when = invocation.text_of("cron", "schedule", "run_every", "fixedRate", "fixedDelay", "queue") or ""
    name = invocation.text_of("name") or own
    if not when and invocation.name in {"Cron", "Scheduled", "Interval"}:
        when = invocation.text_at(0) or ", ".join(f"{key}={context.code_of(v)}" for key, v in invocation.named.items())
    yield context.make("task", name, invocation.line, detail=when, handler=own)


def read_scheduled_call(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `cron.schedule("* * * * *", job)`, `c.AddFunc("@daily", job)`, `agenda.define("name", job)`."""
    first = invocation.text_at(0)
    if first is None or len(invocation.positional) < 2:
        return
    handler = invocation.positional[1]
    named = "" if "function" in handler.type or "literal" in handler.type else context.code_of(handler)
    is_time = invocation.name in {"schedule", "AddFunc", "AddJob", "scheduleJob"}
    yield context.make("task", named or first, invocation.line, detail=first if is_time else "", handler=named)


def read_rake_task(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `task :name` in a Rakefile, with the `desc` above it."""
    if not (context.path.endswith(".rake") or context.path.rpartition("/")[2].lower() == "rakefile"):
        return
    texts = [text for node in invocation.positional[:1] for text in find_literals(node, context.source)]
    name = texts[0] if texts else next(iter(invocation.named), "")
    before = context.source[max(0, invocation.node.start_byte - 400) : invocation.node.start_byte]
    said = _PREVIOUS_DESC.search(before.decode("utf-8", "replace"))
    if name:
        label = ":".join([*_list_namespaces(invocation.node, context), name])
        yield context.make("command", f"rake {label}", invocation.line, text=said[1] if said else "")


def _list_namespaces(node: Node, context: FileContext) -> list[str]:
    """Return the names of the `namespace :x do` blocks around a task, outermost first."""
    around = [each for each in list_surroundings(node) if each.type == "call"]
    names = [
        next(find_literals(each.child_by_field_name("arguments") or each, context.source), "")
        for each in around
        if context.code_of(each.child_by_field_name("method")) == "namespace"
    ]
    return [name for name in reversed(names) if name]


def read_listener(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `emitter.on("x", f)` and `emitter.emit("x")`."""
    name = invocation.text_at(0)
    if name is None or not name or name.startswith(("-", "/")) or " " in name or _is_everyday(name):
        return
    is_sent = invocation.name in {"emit", "dispatchEvent", "publish", "trigger", "broadcast"}
    if not is_sent and len(invocation.positional) < 2 and not invocation.is_above:
        return
    handler = ""
    if not is_sent and len(invocation.positional) > 1:
        last = invocation.positional[1]
        handler = context.code_of(last) if last.type in {"identifier", "member_expression", "attribute"} else ""
    yield context.make("event", name, invocation.line, detail="emitted" if is_sent else "handled", handler=handler)


def _is_everyday(name: str) -> bool:
    """Whether an event is a browser's or a stream's, so that waiting for it says nothing about an application."""
    starts = ("mouse", "touch", "drag", "key", "pointer", "Arrow")
    return len(name) < 2 or name.partition(".")[0] in _EVERYDAY_EVENTS or name.startswith(starts)


def read_signal_use(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@receiver(post_save)`, `signal.connect(f)` and `@EventListener(X.class)`: the handlers of events."""
    own = read_definition_name(find_definition(invocation.node), context.source) if invocation.is_above else ""
    signal = invocation.named.get("signal") or invocation.named.get("topics") or invocation.named.get("queues")
    names = list(find_literals(signal, context.source)) if signal is not None else []
    if not names and signal is not None:
        names = [context.code_of(signal).rpartition(".")[2]]
    if not names and invocation.is_above and invocation.positional:
        names = list(find_literals(invocation.positional[0], context.source)) or [
            context.code_of(invocation.positional[0]).removesuffix(".class").rpartition(".")[2]
        ]
    if not names and invocation.is_above:
        names = [own]
    if not own and invocation.positional:
        own = context.code_of(invocation.positional[0])
    for name in names:
        yield context.make("event", name, invocation.line, detail="handled", handler=own)


def find_declared_signals(findings: list[Node], context: FileContext) -> Iterator[Registration]:
    """Find the signals declared by a module of signals: `saved = Signal()`."""
    if not _SIGNAL_FILE.search(context.path):
        return
    for name in findings:
        value = name.parent.child_by_field_name("right") if name.parent is not None else None
        called = context.code_of(value).partition("(")[0].rpartition(".")[2]
        if called in {"Signal", "object", "signal", "NamedSignal", "EventType"}:
            yield context.make("event", context.code_of(name), name, detail="declared")


def read_named_model(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `mongoose.model("User", schema)`, `sequelize.define("User", ...)`, `pgTable("users", ...)`."""
    name = invocation.text_at(0)
    if name and len(invocation.positional) > 1:
        source = f"{invocation.receiver}.{invocation.name}" if invocation.receiver.isidentifier() else invocation.name
        yield context.make("model", name, invocation.line, detail=source)


def read_annotated_model(invocation: Invocation, context: FileContext) -> Iterator[Registration]:
    """Read `@Entity` above a class."""
    own = read_definition_name(find_definition(invocation.node), context.source)
    if own:
        table = invocation.text_of("name", "collection") or invocation.text_at(0) or ""
        yield context.make("model", own, invocation.line, detail=f"@{invocation.name}" + (f" {table}" if table else ""))


def read_inherited(kind: RegistrationKind, base: Node, context: FileContext) -> Iterator[Registration]:
    """Read a class registered by its base class, such as a model."""
    for around in list_surroundings(base):
        name = around.child_by_field_name("name")
        if name is not None and around.type in _CLASS_NODES:
            yield context.make(
                kind, context.code_of(name), name, detail=context.code_of(base), handler=context.code_of(name)
            )
            return


_CLASS_NODES = frozenset(
    "class_definition class_declaration abstract_class_declaration class type_spec type_declaration".split()
)
