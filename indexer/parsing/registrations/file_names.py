"""Registrations in file names and build files: routes of Next.js, commands of Django and Scrapy, options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.parsing.registrations.file_context import FileContext
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration, Symbol

_SCRIPT = re.compile(r"(\S{1,80})\.(?:ts|tsx|js|jsx|mjs)")
_COMMAND = re.compile(r"(?:^|/)(management/)?commands/([A-Za-z]\w*)\.py$")
_METHODS = frozenset("GET POST PUT PATCH DELETE HEAD OPTIONS".split())
_HELP = compile_pattern(
    r"(?m)^(?: {4}|\t)help = \(?\s{0,20}(?:\"{3}\s{0,40}([^\"]{1,300})|\"([^\"\n]{1,300})|'([^'\n]{1,300}))"
)
_SHORT_DESC = compile_pattern(
    r"def short_desc\(self\)[^:\n]{0,60}:\s{1,40}return\s{0,4}\(?\s{0,40}(?:\"([^\"\n]{1,300})|'([^'\n]{1,300}))"
)
_PRISMA_MODEL = re.compile(r"^model\s+(\w+)\s*\{", re.MULTILINE)
_MAX_MODELS = 500


def find_named_routes(context: FileContext) -> Iterator[Registration]:
    """Find the routes of Next.js: exported functions, or the file itself, at its folder's path."""
    *folders, name = context.path.split("/")
    found = _SCRIPT.fullmatch(name)
    if found is None:
        return
    if found[1] == "route" and "app" in folders:
        parts = [part for part in folders[folders.index("app") + 1 :] if not part.startswith("(")]
        for symbol in _find_methods(context):
            label = f"{symbol.name} /{'/'.join(parts)}"
            yield context.make("route", label, symbol.start_line, text=symbol.doc)
    elif "pages/api/" in f"{'/'.join(folders)}/":
        parts = [*folders[folders.index("pages") + 1 :], *([found[1]] if found[1] != "index" else [])]
        yield context.make("route", f"ANY /{'/'.join(parts)}", 1)


def _find_methods(context: FileContext) -> list[Symbol]:
    found = {symbol.name: symbol for symbol in context.symbols if symbol.name in _METHODS and not symbol.parent}
    return list(found.values())


def find_named_commands(context: FileContext) -> Iterator[Registration]:
    """Find the command of a Python file in `commands/`, with its class's description."""
    found = _COMMAND.search(context.path)
    own = next((symbol for symbol in context.symbols if symbol.name == "Command" and symbol.kind == "class"), None)
    if found is None or own is None:
        return
    text = context.source.decode("utf-8", "replace")
    said = _HELP.search(text) or _SHORT_DESC.search(text)
    name = f"manage.py {found[2]}" if found[1] else found[2]
    text = next(filter(None, said.groups()), "").strip() if said else own.doc
    yield context.make("command", name, own.start_line, text=text, handler=own.qualified_name)


def find_prisma_models(context: FileContext) -> Iterator[Registration]:
    """Find the models of a Prisma schema."""
    if not context.path.endswith(".prisma"):
        return
    text = context.source.decode("utf-8", "replace")
    line, at = 1, 0
    for count, found in enumerate(_PRISMA_MODEL.finditer(text)):
        if count >= _MAX_MODELS:
            return
        line, at = line + text.count("\n", at, found.start()), found.start()
        yield context.make("model", found[1], line, detail="Prisma")


_MAX_OPTIONS = 500
_MAX_HELP = 300
_CMAKE = compile_pattern(
    r"(?mi)^[ \t]*(?:cmake_dependent_)?option\s*\(\s*(?P<name>\w+)\s+\"(?P<help>[^\"]{0,300})\""
    r"(?:\s+(?P<default>\"[^\"\n]{0,80}\"|[^\s)]{1,80}))?"
)
_CACHED = compile_pattern(
    r"(?mi)^[ \t]*set\s*\(\s*(?P<name>\w+)\s+(?P<default>\"[^\"\n]{0,80}\"|\S{1,80})\s+CACHE\s+"
    r"(?:STRING|BOOL|PATH|FILEPATH)\s+\"(?P<help>[^\"]{0,300})\""
)
_MESON = compile_pattern(r"(?m)^[ \t]*option\s*\(\s*'(?P<name>[\w-]+)'(?P<rest>[^)]{0,400})")
_MESON_VALUE = compile_pattern(r"\bvalue\s*:\s*('[^']{0,80}'|\[[^\]]{0,80}\]|\w{1,40})")
_MESON_HELP = compile_pattern(r"\bdescription\s*:\s*'([^']{0,300})'")
_AUTOCONF = compile_pattern(r"(?m)^[ \t]*AC_ARG_(?P<kind>ENABLE|WITH)\s*\(\s*\[?(?P<name>[\w-]+)\]?\s*,")
_AUTOCONF_HELP = compile_pattern(
    r"\s*\[?(?:AS|AC)_HELP_STRING\(\s*\[(--[\w-]{1,60})[^\]\n]{0,80}\]\s*,\s*\[([^\]]{0,200})"
)


def find_build_options(context: FileContext) -> Iterator[Registration]:
    """Find the options of a build file, with their defaults and descriptions."""
    name = context.path.rpartition("/")[2].lower()
    text = context.source.decode("utf-8", "replace")
    if name == "cmakelists.txt" or name.endswith(".cmake"):
        yield from _find_cmake_options(_CMAKE, text, context)
        yield from _find_cmake_options(_CACHED, text, context)
    elif name in {"meson_options.txt", "meson.options"}:
        yield from _find_meson_options(text, context)
    elif name in {"configure.ac", "configure.in"}:
        yield from _find_autoconf_options(text, context)


def _find_cmake_options(pattern: Pattern, text: str, context: FileContext) -> Iterator[Registration]:
    for found, line in _locate(pattern, text):
        said = f"cmake: {found['help']}"
        yield context.make("setting", found["name"], line, detail=found["default"] or "OFF", text=said)


def _find_meson_options(text: str, context: FileContext) -> Iterator[Registration]:
    for found, line in _locate(_MESON, text):
        value, said = _MESON_VALUE.search(found["rest"]), _MESON_HELP.search(found["rest"])
        text_of = f"meson: {said[1]}" if said is not None else "meson"
        yield context.make("setting", found["name"], line, detail=value[1] if value is not None else "", text=text_of)


def _find_autoconf_options(text: str, context: FileContext) -> Iterator[Registration]:
    for found, line in _locate(_AUTOCONF, text):
        said = _AUTOCONF_HELP.match(text[found.end() : found.end() + _MAX_HELP])
        flag = said[1] if said is not None else f"--{found['kind'].lower()}-{found['name']}"
        yield context.make("flag", flag, line, text=f"configure: {said[2]}" if said is not None else "configure")


def _locate(pattern: Pattern, text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the matches with their first line."""
    line, counted = 1, 0
    for count, found in enumerate(pattern.finditer(text)):
        if count >= _MAX_OPTIONS:
            return
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        yield found, line
