"""Finds the lines that register or call a definition by name, if the syntax shows no call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from agent.evidence.refs import make_lines_ref
from agent.ports import CodeSearch
from agent.state import EvidenceRef
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Definition, Location, Registration, RegistrationKind

_HANDLED: tuple[RegistrationKind, ...] = ("route", "command", "task", "event")
_MAX_DEFINITIONS = 5  # whose decorators are read
_MAX_ROUTES = 5  # whose URL names are followed
_MAX_TOLD = 5  # places in one sentence
_MAX_MENTIONS = 500  # lines
_MAX_LINES = 100  # that may follow a URL name
_ROUTE_LINES = 4
_DECORATOR_LINES = 8
_LONGEST_LINE = 1_000
_WORD = re.compile(r"[\w$]+")
_QUOTED = re.compile(r"[\"'`]([\w$./:#\\-]{1,200})[\"'`]")
_ENTRY = re.compile(r"=\s*([\w.]{1,200}:[\w.]{1,200})\s*(?:\[|$)")
_URL_NAME = re.compile(r"\bname\s*=\s*[\"']([\w:-]{1,100})[\"']")
_DECORATOR = re.compile(r"\s*(?:@|#\[|\[)")
# Decorators that change how a definition works, and hand it on to nobody.
_PLAIN_DECORATOR = compile_pattern(
    r"\s*(?:@|#\[|\[)(?:functools\.|typing\.|abc\.|contextlib\.|dataclasses\.|[A-Za-z0-9_]+\.(?:setter|getter|deleter)\b|"
    r"(?i:staticmethod|classmethod|property|abstractmethod|override|cached_property|lru_cache|cache|contextmanager|"
    r"asynccontextmanager|dataclass|wraps|overload|final|deprecated|suppresswarnings|nullable|nonnull|notnull|"
    r"safevarargs|functionalinterface|inline|derive|allow|must_use|cfg|doc|obsolete)\b)"
)
_PACKAGING = frozenset({"pyproject.toml", "setup.cfg", "setup.py", "entry_points.txt", "package.json", "composer.json"})
# Methods of task queues that call what they are asked of.
_QUEUED = (
    "delay|apply_async|si|signature|send_with_options|enqueue|perform_later|perform_now|perform_async|perform_in"
    "|perform_at|defer|defer_async|configure_task|kiq|dispatch|dispatchSync|dispatchAfterResponse"
)
_NOT_HANDED_ON = re.compile(
    r"\s*(?:import|from|#\s*include|(?:pub\s+)?use|using|export|require|package|def|class|function|fn|func)\b"
)
_BY_STRING = "named by a string"
_BY_VALUE = "passed as a value"


@dataclass(frozen=True, kw_only=True)
class NamedDefinition:
    """A name in a question, its definitions, and their modules, folders and classes."""

    plain: str
    owner: str
    definitions: tuple[Definition, ...]
    around: frozenset[str]

    @classmethod
    async def find(cls, code: CodeSearch, name: str) -> NamedDefinition:
        """Find the meaning of a name."""
        owner, _, plain = name.replace("::", ".").replace("#", ".").rpartition(".")
        definitions = tuple(await code.definitions(name))
        around = {part for one in definitions for part in _list_around(one)}
        return cls(
            plain=plain, owner=owner.rpartition(".")[2], definitions=definitions, around=frozenset(around | {owner})
        )

    def describe_use(self, path: str, line: str) -> str:
        """Describe how a line uses a name other than by a call; empty for a mere mention."""
        line = line[:_LONGEST_LINE]
        if queued := self._queue_call.search(line):
            return f"called through `.{queued[1]}`"
        if any(map(self._is_meant, _ENTRY.findall(line) if PurePosixPath(path).name in _PACKAGING else ())):
            return "registered as an entry point"
        if any(map(self._is_meant, _QUOTED.findall(line))):
            return "registered as an entry point" if PurePosixPath(path).name in _PACKAGING else _BY_STRING
        return _BY_VALUE if self._value.search(line) and not _NOT_HANDED_ON.match(line) else ""

    @cached_property
    def _queue_call(self) -> Pattern:
        """Return the name with a method of task queues."""
        return compile_pattern(rf"(?:^|[^\w$]){re.escape(self.plain)}\s?\.\s?({_QUEUED})\b")

    @cached_property
    def _value(self) -> Pattern:
        """Return the name's role as an argument, an entry of a list, or an assigned or returned value."""
        name = re.escape(self.plain)
        return compile_pattern(rf"(?:[(,=\[{{>]|:\s|return)\s?&?(?:[\w$]+(?:\.|::|->))*{name}\s?(?:[,)\]}};]|$)")

    def _is_meant(self, written: str) -> bool:
        """Whether a text is the qualified name, or a distinctive bare name."""
        *before, last = re.split(r"[./:#\\]+", written)
        if last != self.plain:
            return False
        return before[-1] in self.around if before else "_" in last.strip("_") or any(map(str.isupper, last[1:]))

    def is_handled_by(self, path: str, registration: Registration) -> bool:
        """Whether a registration names it as the handler: `views.home`, `users#show`, `Home.as_view()`."""
        handler = registration.handler.removesuffix("()").removesuffix(".as_view")
        words = _WORD.findall(handler)
        if not words or not (words[-1] == self.plain or ("(" in handler and self.plain in words)):
            return False
        if not self.owner or any(one.path == path for one in self.definitions):
            return True
        return len(words) > 1 and _fold(words[-2]) in _fold(self.owner)

    def is_defined_at(self, path: str, number: int, line: str) -> bool:
        """Whether a line contains the name because it defines it, below decorators or not."""
        return any(
            one.path == path
            and (
                one.symbol.start_line == number
                or (
                    one.symbol.start_line < number <= one.symbol.end_line
                    and " ".join(one.symbol.signature.partition("(")[0].split()) in " ".join(line.split())
                )
            )
            for one in self.definitions
        )


def _list_around(definition: Definition) -> Iterator[str]:
    path = PurePosixPath(definition.path)
    yield from (path.stem, path.parent.name, definition.symbol.parent.rpartition(".")[2])


def _fold(name: str) -> str:
    return name.replace("_", "").lower()


async def find_named_lines(code: CodeSearch, target: NamedDefinition) -> list[EvidenceRef]:
    """Find the lines of code that use a name other than by a call: as text, as a value, through a task queue."""
    found = (await code.grep(re.escape(target.plain), limit=_MAX_MENTIONS)).lines
    pages = {entry.path for entry in await code.files() if entry.source_type == "doc"}
    return [
        make_lines_ref(one.location, "mention", kind=kind)
        for one in found
        if one.location.path not in pages
        and not target.is_defined_at(one.location.path, one.location.start_line, one.text)
        and (kind := target.describe_use(one.location.path, one.text))
    ]


async def find_named_uses(code: CodeSearch, target: NamedDefinition) -> list[EvidenceRef]:
    """Find registrations of a definition under another name: routes, commands, tasks, decorators, URL names.

    `kind` names the kind of use.
    """
    sites = [one for one in await code.registrations(_HANDLED) if target.is_handled_by(one.path, one.registration)]
    refs = [make_lines_ref(one.location, "mention", kind=_describe(one.registration)) for one in sites]
    routes = [one.location for one in sites if one.registration.kind == "route"]
    decorators = [ref for one in target.definitions[:_MAX_DEFINITIONS] for ref in await _find_decorators(code, one)]
    links = [ref for location in routes[:_MAX_ROUTES] for ref in await _find_links(code, location)]
    return [*refs, *decorators, *links]


def _describe(registration: Registration) -> str:
    name = " ".join(registration.name.replace("`", "").split())
    return f"registered as the {'endpoint' if registration.kind == 'route' else registration.kind} `{name}`"


async def _find_decorators(code: CodeSearch, definition: Definition) -> list[EvidenceRef]:
    """Find the decorators of a definition that may register it, at the beginning of lines above it."""
    first = max(definition.symbol.start_line - _DECORATOR_LINES, 1)
    lines = (await code.read(definition.path, first, definition.symbol.start_line + _DECORATOR_LINES)).text.split("\n")
    start = definition.symbol.start_line - first
    above = list(_take_decorators(range(start - 1, -1, -1), lines))
    inside = list(_take_decorators(range(start, len(lines)), lines))
    numbers = [first + at for at in sorted([*above, *inside]) if not _PLAIN_DECORATOR.match(lines[at][:_LONGEST_LINE])]
    places = [Location(path=definition.path, start_line=number, end_line=number) for number in numbers]
    return [make_lines_ref(place, "mention", kind="a decorator that may register it") for place in places]


def _take_decorators(order: Iterable[int], lines: Sequence[str]) -> Iterator[int]:
    for at in order:
        if not _DECORATOR.match(lines[at]):
            return
        yield at


async def _find_links(code: CodeSearch, route: Location) -> list[EvidenceRef]:
    """Find the lines that link to a route by its name, as in Django."""
    text = (await code.read(route.path, route.start_line, route.start_line + _ROUTE_LINES)).text
    if (found := _URL_NAME.search(text)) is None:
        return []
    name = found[1]
    link = compile_pattern(
        rf"(?:reverse\w*|redirect|resolve_url|url_for|url)\b[\s(]{{1,5}}[\"'](?:[\w-]{{1,80}}:)*{re.escape(name)}[\"']"
    )
    lines = (await code.grep(re.escape(name), limit=_MAX_LINES)).lines
    kind = f"links to it by the URL name `{name}`"
    return [
        make_lines_ref(one.location, "mention", kind=kind) for one in lines if link.search(one.text[:_LONGEST_LINE])
    ]


async def describe_named_uses(code: CodeSearch, name: str) -> str:
    """Describe in one sentence the uses of a name other than calls; empty if there are none."""
    target = await NamedDefinition.find(code, name)
    uses = [*await find_named_uses(code, target), *await find_named_lines(code, target)]
    places = {f"{ref['path']}:{ref['start_line']}": ref["kind"] for ref in reversed(uses)}
    named = [f"{place} ({kind})" for place, kind in reversed(places.items())]
    more = f" and {len(named) - _MAX_TOLD} more" if len(named) > _MAX_TOLD else ""
    return f"It is used by its name in {', '.join(named[:_MAX_TOLD])}{more}." if named else ""
