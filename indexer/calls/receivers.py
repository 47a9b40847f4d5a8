"""Finds type hints for receivers in a file's text: their declared types, or their assigned values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from indexer.text.languages import Language, find_language_by_ending

_UNNAMED = Language(name="")  # says nothing of where types are written
_MADE_WITH = re.compile(r"^(?:(?:await|new|try|yield|not|ref|mut|dyn|impl|final|const|unsafe|\(\*)\b\s*|[&*!(]\s*)+")
_STEP = re.compile(r"(?P<name>[@$]?[A-Za-z_]\w*[?!]?(?=\W|$)|[@$]?[A-Za-z_]\w*)")
_JOINT = re.compile(r"\s*(?:\?\.|!\.|!!\.|\?->|\.|->|::)\s*(?=[A-Za-z_$@])")
_GENERIC = re.compile(r"(?:::)?<[\w\s,.<>\[\]&':?]*>(?=[\s({]|::|$)")
_LITERAL = re.compile(r"""[rbfuRBFU]{0,2}["'`]|\d|\[|\{|%[wi]""")
_MODIFIERS = re.compile(r"^(?:[&*?]|\.\.\.|'\w+\s|(?:mut|dyn|impl|const|readonly|final|in|out|ref)\s)+")
_TYPE_NAME = re.compile(r"[A-Za-z_][\w.:\\$]*")
_IN_BRACKETS = re.compile(r"\s*[\[<](.*)[\]>]\??\s*$", re.DOTALL)
_ANY_TYPE = re.compile(r"T[A-Z_]|_?T_?$")
# Code that people write stays below these; what is longer would take long to read, and says nothing here.
_LONGEST_LINE = 1000
_MAX_TYPE = 400
_PROMOTING = ("private", "protected", "public", "readonly")
_NOT_A_TYPE = frozenset(
    """as assert await break case catch class const continue def default defer del delete do elif else except export
    extends final finally fn for from func function global go goto if implements import in instanceof is lambda let
    match mut new nonlocal not or and package pass private protected pub public raise return static switch throw
    throws try type typeof use val var virtual when while with yield override readonly abstract async auto""".split()
)
# A value in one of these is of the type in its brackets.
_TRANSPARENT = frozenset(
    "Optional Final ClassVar Annotated Required Readonly Arc Rc Box Ref RefMut Cow Promise".split()
)
_EMPTY = frozenset({"None", "null", "undefined", "nil", "void"})
_UNKNOWN = frozenset("Any Self self static this object Object auto var val let dynamic any unknown mixed id T".split())


Kind = Literal["type", "value", "loop"]
_MEANINGS: dict[str, Kind] = {"loop": "loop", "value": "value", "context": "value"}  # of groups; others hold types


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeHint:
    """One line about a variable: its `type`, its `value`, or a `loop` that gives neither."""

    line: int
    kind: Kind
    text: str
    is_parameter: bool
    is_promoted: bool = False
    """Whether it is a parameter of a constructor that is a field too, by the word before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainStep:
    """One name in a chain such as `app.router.get()`."""

    name: str
    is_called: bool


def find_type_hints(name: str, text: str, suffix: str) -> Iterator[TypeHint]:
    """Find all type hints of a file for a variable or a field, in order; lines are numbered from 1."""
    pattern = _compile_hint_pattern(name, suffix)
    plain = name.rpartition(".")[2]
    number, start, end = 1, 0, -1
    while (at := text.find(plain, end + 1)) >= 0:
        number += text.count("\n", start, at)
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = end if end >= 0 else len(text)
        if end - start <= _LONGEST_LINE:
            line = text[start:end]
            yield from (clue for found in pattern.finditer(line) if (clue := _make_hint(number, line, found, name)))


def _make_hint(number: int, line: str, found: re.Match[str], name: str) -> TypeHint | None:
    kind = found.lastgroup
    text = found[kind].strip() if kind else ""
    if kind in {"after", "before"} and text.split("<")[0].split(".")[-1].split(" ")[0] in _NOT_A_TYPE:
        return None
    if kind == "value" and re.match(rf"{re.escape(name)}\b(?!\()", text):
        return None  # a keyword argument that passes the variable on
    meaning = _MEANINGS.get(kind or "", "type")
    before = line[: found.start()]
    return TypeHint(
        line=number,
        kind=meaning,
        text=text,
        is_parameter=meaning == "type" and "(" in before,
        is_promoted=before.rstrip().endswith(_PROMOTING),
    )


@lru_cache(maxsize=4096)
def _compile_hint_pattern(name: str, suffix: str) -> re.Pattern[str]:
    """Compile all ways in which a language gives a variable its type or value, on one line.

    Repetitions that could start again at every name are bounded, which keeps the search linear.
    """
    language = find_language_by_ending(suffix) or _UNNAMED
    start = rf"(?<![\w.$@]){re.escape(name)}"
    names_before, names_after = r"(?:\w+[\s,&(]{1,9}){0,4}", r"(?:[\s,]{1,9}\w+){0,4}[\s)]{0,9}"
    loop = rf"\bfor\b[\s(&]{{0,9}}{names_before}{re.escape(name)}\b{names_after}(?:\bin\b|\bof\b|:=)(?P<loop>)"
    forms = [loop]
    if language.type_place == "after":
        forms.append(rf"{start}[?!]?\s*:(?![:=])\s*(?P<name>[^\n]+)")
    if language.name == "go":
        forms.append(rf"{start}(?:\s*,\s*\w+){{0,20}}\s+(?P<after>[*.]*[A-Za-z_][\w.]*)(?=\s*(?:[,){{=`]|$|//))")
    if language.type_place == "before":
        forms.append(
            rf"(?<![\w.:\\])[:\\]{{0,2}}(?P<before>[A-Za-z_][\w.:\\]*(?:\s*<[^;(){{}}=]{{0,200}}>)?(?:\[\])?\??)"
            rf"[\s&*]+\$?{re.escape(name)}\s*(?=[=;,):]|$)"
        )
    if language.name == "python":
        forms.append(rf"\bwith\s+(?P<context>[^\n]{{1,200}}?)\s+as\s+{re.escape(name)}\b")
        forms.append(rf"\bexcept\s+(?P<error>[\w.]+)\s+as\s+{re.escape(name)}\b")
    forms.append(
        rf"(?:^|[;{{(]|\b(?:const|let|var|val|mut|if|for|switch|auto|static)\s)\s*{start}"
        rf"(?:\s*,\s*\w+)*\s*(?::=|=)(?![=>~])\s*(?P<value>[^\n]+)"
    )
    return re.compile("|".join(forms))


def split_chain(expression: str) -> tuple[ChainStep, ...]:
    """Return the names in a chain of accesses and calls, empty for anything else.

    Text that ends within brackets is read as if they were closed.
    """
    text = _MADE_WITH.sub("", expression.strip())
    found: list[ChainStep] = []
    at = 0
    while match := _STEP.match(text, at):
        at = match.end()
        at, is_called = _skip_brackets(text, at)
        found.append(ChainStep(name=match["name"].rstrip("?!"), is_called=is_called))
        joint = _JOINT.match(text, at)
        if joint is None:
            break
        at = joint.end()
    rest = text[at:].strip("?!;,:)}] \t\n")
    is_whole = not rest or rest.startswith(("#", "//", "/*", "as ", "{"))
    return tuple(found) if is_whole else ()


def _skip_brackets(text: str, at: int) -> tuple[int, bool]:
    """Find the end of the brackets after a name, and whether they make it a call (or a literal of that type)."""
    is_called = False
    generic = _GENERIC.match(text, at)
    if generic:
        at = generic.end()
    while at < len(text) and (text[at] in "([{" or text[at : at + 2] in {" {", "!("}):
        at += text[at] in " !"
        is_called = True
        at = _find_closing(text, at) + 1
    return min(at, len(text)), is_called


def _find_closing(text: str, at: int) -> int:
    """Find the closing bracket for the one at a position; the end of the text if there is none."""
    depth = 0
    for place in range(at, len(text)):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place
    return len(text)


def is_literal(expression: str) -> bool:
    """Whether an expression is text, a number or a collection, whose members are not the repository's."""
    return _LITERAL.match(expression.strip()) is not None


def parse_type_names(text: str) -> tuple[str, ...]:
    """Return the type names that a type expression allows, none if it is unclear.

    Optional and shared values count as the values in them; a collection counts as itself.
    """
    text = _cut_type(text).strip().strip("\"'`")
    if len(text) > _MAX_TYPE:
        return ()
    return tuple(name for part in _split_outside(text, "|") for name in _parse_alternative(part))


def _parse_alternative(part: str) -> tuple[str, ...]:
    """Return the names in one alternative of a type expression, or in its value."""
    bare = _MODIFIERS.sub("", part.strip()).strip().strip("\"'")
    name = _TYPE_NAME.match(bare)
    if name is None:
        return ()
    plain, rest = re.split(r"\.|::", name[0])[-1], bare[name.end() :]
    if plain in _EMPTY:
        return ()
    inner = _IN_BRACKETS.match(rest) if plain in _TRANSPARENT else None
    if inner:
        return parse_type_names(next(_split_outside(inner[1], ",")))
    return (f"{name[0]}[]" if rest.startswith("[]") else name[0],)


def is_any_type(name: str) -> bool:
    """Whether a type's name means any type: a generic's variable, or the top type."""
    return name in _UNKNOWN or len(name) == 1 or _ANY_TYPE.match(name) is not None


def _cut_type(text: str) -> str:
    """Return the type at the beginning of a text, up to the end of a parameter, field or variable."""
    depth = 0
    for place, sign in enumerate(text):
        if sign in "[<(":
            depth += 1
        elif sign == ">" and text[place - 1 : place] in {"-", "="}:
            continue  # an arrow
        elif sign in "]>)":
            if depth == 0:
                return text[:place]
            depth -= 1
        elif depth == 0 and sign in ",=;{#`":
            return text[:place]
    return text


def _split_outside(text: str, mark: str) -> Iterator[str]:
    """Split at marks outside brackets."""
    depth = start = 0
    for place, sign in enumerate(text):
        depth += (sign in "[<({") - (sign in "]>)}")
        if sign == mark and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def parse_result_type(name: str, signature: str, suffix: str) -> str:
    """Return the return type in a function's signature, empty without one."""
    signature = signature[:_MAX_TYPE]
    language = find_language_by_ending(suffix) or _UNNAMED
    if language.name in {"python", "rust", "swift"}:
        before_arrow, _, after_arrow = signature.rpartition("->")
        return after_arrow.partition(" where ")[0].strip() if before_arrow.rstrip().endswith(")") else ""
    if language.type_place == "before" and language.name != "php":
        before = re.search(rf"([\w.]+(?:<.*>)?(?:\[\])?\??)\s+{re.escape(name)}\s*[(<]", signature)
        return before[1] if before and before[1] not in _NOT_A_TYPE else ""
    opening = re.search(rf"\b{re.escape(name)}\s*(?:[\[<][^()]*[\]>])?\s*\(", signature)
    after = signature[_find_closing(signature, opening.end() - 1) + 1 :].strip() if opening else ""
    if language.name == "go":
        return next(_split_outside(after.strip("() "), ",")) if after else ""
    return after.removeprefix(":").strip() if after.startswith(":") else ""
