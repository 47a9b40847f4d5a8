"""Finds where a pasted exception comes from: it is defined here, or a library's, or one of the language itself."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Sequence
from typing import Literal

from agent.evidence.definitions import TYPES
from agent.evidence.packages import find_declarations, normalize_library
from agent.evidence.refs import is_test_or_docs, make_definition_ref, make_lines_ref, sort_definitions
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.state import EvidenceRef, RetrievalRequest, to_location
from indexer.text.linear_patterns import Pattern, compile_pattern

HandledAs = Literal["raised", "caught", "imported", "named"]

MAX_PLACES = 12
_MAX_LINES = 200
_JAVASCRIPT = frozenset("AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError".split())
_RUBY = frozenset(
    """ArgumentError FrozenError IOError IndexError KeyError LoadError LocalJumpError NameError NoMethodError
    NotImplementedError RangeError RegexpError RuntimeError StandardError StopIteration SystemExit TypeError
    ZeroDivisionError""".split()
)
_PLATFORMS = ("java.", "javax.", "jdk.", "kotlin.", "scala.", "System.")
_ORDER: Sequence[HandledAs] = ("raised", "caught", "imported", "named")
_DOMAINS = frozenset({"ch", "co", "com", "de", "dev", "edu", "fr", "io", "jakarta", "me", "net", "org", "uk"})
_HANDLED: Sequence[tuple[HandledAs, Pattern]] = (
    (
        "imported",
        compile_pattern(r"^\s*(?:from\b|import\b|use\b|using\b|require\b|(?:const|let|var)\b.*\brequire\()"),
    ),
    ("raised", compile_pattern(r"\b(?:raise|throw|panic|reject)\b")),
    (
        "caught",
        compile_pattern(
            r"\b(?:except|catch|rescue|instanceof|isinstance|assertRaises|assertThrows|errors\.(?:Is|As))\b|raises\("
        ),
    ),
)
# The source of an imported name, in Python, Java and JavaScript.
_IMPORTS = (
    compile_pattern(r"from\s+([A-Za-z_][\w.]*)\s+import\b"),
    compile_pattern(r"import\s+(?:static\s+)?([a-z][\w.]*)\.[A-Z]"),
    compile_pattern(r"(?:import|const|let|var)\b[^\"']*(?:\brequire\(|\bfrom\s+)[\"']([^\"']+)[\"']"),
)


async def find_error_origin(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Find the definition of an exception; else the line that requires its library, and where it is handled here."""
    name, last = request["query"], request["query"].rpartition(".")[2]
    defined = [one for one in await code.definitions(last) if one.symbol.name == last and one.symbol.kind in TYPES]
    if defined:
        refs = [make_definition_ref(one) for one in sort_definitions(defined, ())[:1]]
        return Retrieved(refs=refs, totals={"definition": len(defined)})
    if is_of_platform(name):
        return Retrieved(refs=(), facts={"platform": name})
    places = await _find_places(code, last)
    library = read_library(name) or _read_imported_library(places)
    if not library or await _is_own(code, library):
        return Retrieved(refs=places, totals={"handled": len(places)})
    declared = await find_declarations(code, library)
    required = [make_lines_ref(site.location, "entry") for site in declared[:1]]
    return Retrieved(refs=[*required, *places], totals={"handled": len(places)}, facts={"library": library})


def is_of_platform(name: str) -> bool:
    """Whether an exception is one of a language itself, or of its standard library."""
    first, dot, _ = name.partition(".")
    if not dot:
        known = getattr(builtins, name, None)
        is_python = isinstance(known, type) and issubclass(known, BaseException)
        return is_python or name in _JAVASCRIPT or name in _RUBY
    return name.startswith(_PLATFORMS) or first in sys.stdlib_module_names or first == "builtins"


def read_library(name: str) -> str:
    """Return the library that a dotted name begins with (`jinja2`, `org.hibernate`); empty for a bare name."""
    parts = name.split(".")[:-1]
    if parts and parts[0] in _DOMAINS:
        return ".".join(parts[:2])
    return parts[0] if parts else ""


async def _find_places(code: CodeSearch, name: str) -> list[EvidenceRef]:
    """Find the lines of code that name an exception, each with what it does with it."""
    refs: list[EvidenceRef] = []
    for line in (await code.grep(rf"\b{re.escape(name)}\b", limit=_MAX_LINES)).lines:
        handled = _read_handling(line.text)
        if handled != "named" or not is_test_or_docs(line.location.path):
            refs.append(make_lines_ref(line.location, "mention", kind=handled, doc=line.text.strip()))
    # A line that only names it, such as a comment, is shown only if there is no other.
    refs = [ref for ref in refs if ref["kind"] != "named"] or refs
    refs.sort(key=lambda ref: (is_test_or_docs(ref["path"]), _ORDER.index(_read_handling(ref["doc"]))))
    for ref in refs[:MAX_PLACES]:
        around = await code.find_enclosing(to_location(ref))
        ref["symbol"] = around[-1].symbol.qualified_name if around else ""
    return refs[:MAX_PLACES]


def _read_handling(line: str) -> HandledAs:
    """Tell what a line does with an exception that it names."""
    return next((handled for handled, pattern in _HANDLED if pattern.search(line)), "named")


def _read_imported_library(places: Sequence[EvidenceRef]) -> str:
    """Return the library that an exception is imported from; empty if it is the project's own, or nobody says."""
    for ref in places:
        found = next((found for pattern in _IMPORTS if (found := pattern.match(ref["doc"])) is not None), None)
        if found is not None and not found[1].startswith("."):
            parts = found[1].split("/")
            scoped = "/".join(parts[:2]) if found[1].startswith("@") else parts[0]
            return read_library(f"{scoped}.") if "/" not in scoped else scoped
    return ""


async def _is_own(code: CodeSearch, library: str) -> bool:
    """Whether a dotted name begins with this repository, or a module of it."""
    if normalize_library(library) == normalize_library(code.repository):
        return True
    path = library.replace(".", "/")
    if any(folder == path or folder.endswith(f"/{path}") for folder in await code.folders()):
        return True
    code_files = (entry.path for entry in await code.files() if entry.source_type == "code")
    return any(file.rpartition("/")[2].partition(".")[0] == path for file in code_files)
