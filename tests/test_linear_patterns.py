"""No pattern over text from outside can take long: each is RE2's, or cannot be slow by its shape, or says why not."""

from __future__ import annotations

import ast
import gc
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
import re2

from indexer.parsing.registrations.messaging import _SET
from indexer.text.linear_patterns import Pattern
from tests.ambiguity import Mode, find_slowness
from tests.test_architecture import ROOT, imports, name_of, parsed, sources

CALLS = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"}
FLAGS_AT = {"compile": 1, "sub": 4, "subn": 4, "split": 3}  # which argument; the third of the others

# What may be slow by its shape and is not: by file and name (or source), what bounds its input, and where.
ALLOWED = {
    ("agent/questions/mentions.py", "_LINK"): "replace_links() cuts the text",
    ("agent/guard/approval.py", "_TAKEN_BACK"): "no decision is longer than LONGEST_DECISION",
    ("agent/answers/answer_parts.py", "_RULES"): "plain_sentence() cuts the sentence to 1,000 characters",
    **{
        ("agent/questions/intents/placeholders.py", name): "mask_question() cuts the text to 2,000 characters"
        for name in ("_QUOTED", "_PATH", "_CODE", "_SHAPES")
    },
    **{
        ("agent/questions/pasted_errors.py", name): "a line without its spaces is cut to 1,000 characters before"
        for name in ("_PREFIX", "_PARTS")
    },
    ("agent/guard/injection/normalization.py", "_LONG_RUN"): "one character and itself again: the group has no choice",
    ("bot/repositories/names.py", "_END"): "named() cuts the text to 4,000 characters",
    ("bot/repositories/names.py", "self._name"): "named(), only_named() and hinted() cut the text to 4,000 characters",
    ("bot/repositories/names.py", "f'{labelled}|{phrase}'"): "named() cuts the text to 4,000 characters",
    ("bot/repositories/names.py", "pattern"): "named() cuts the text to 4,000 characters",
    ("bot/repositories/names.py", "f'{_OPEN}{self._name}{_CLOSE}'"): "named() cuts the text to 4,000 characters",
    (
        "indexer/git/gitattributes.py",
        "_CLASS",
    ): "_tokens() looks no further than the last closing bracket, so that each "
    "opening one is closed, and what has matched is not read again",
    (
        "indexer/calls/receivers.py",
        "_JOINT",
    ): "steps() ends where it does not match, and goes on behind it where it does",
    ("indexer/calls/receivers.py", "_GENERIC"): "steps() goes on behind it, and ends soon where it does not match",
    ("indexer/calls/receivers.py", "'|'.join(forms)"): "find_type_hints() reads lines of up to 1,000 characters",
    (
        "indexer/calls/receivers.py",
        "f'([\\\\w.]+(?:<.*>)?(?:\\\\[\\\\])?\\\\??)\\\\s+{re.escape(name)}\\\\s*[(<]'",
    ): "result_type() cuts the signature to 400 characters",
    (
        "indexer/calls/receivers.py",
        "f'\\\\b{re.escape(name)}\\\\s*(?:[\\\\[<][^()]*[\\\\]>])?\\\\s*\\\\('",
    ): "result_type() cuts the signature to 400 characters",
    ("indexer/text/languages.py", "_SHEBANG"): "_by_shebang() cuts the line to 200 characters",
    ("indexer/git/file_selection.py", "_MARKED"): "_signed_by_generator() looks at the first 2,000 bytes",
    (
        "indexer/git/file_selection.py",
        "_SECRET_FORMS",
    ): "fnmatch makes each star but the last an atomic group, which is tried once",
    ("indexer/secrets/secret_rules.py", "pattern"): "what a rule allows is looked for in the beginning of one value",
    ("indexer/text/decoding.py", "_AT_TOP"): "_find_declarations() cuts the file to 2,048 bytes",
    ("indexer/text/notebooks.py", "_TOKEN"): "read_notebook() has had the text read as JSON: each string is closed",
    ("indexer/text/notebooks.py", "_COLON"): "_find_sources() matches it once behind each string",
    ("indexer/text/notebooks.py", "_ITEM"): "_read_strings() goes on behind it, and ends where it does not match",
    (
        "indexer/parsing/registrations/sql_statements.py",
        "_WORD",
    ): "what begins matches, each repetition keeps what it has, and a name that does not end has read 130 characters",
    ("indexer/parsing/registrations/rules.py", "pattern"): "what a call is made on is cut to 80 characters",
    ("indexer/parsing/outline.py", "_COMMENT_IN_HEAD"): "_signature() cuts the head of a definition to 1,200 bytes",
    ("indexer/parsing/outline.py", "_SIGNATURE_TAIL"): "_signature() cuts the line to 300 characters",
}
# What only a call can know of a pattern, as it may be.
EXAMPLES: dict[tuple[str, str], Callable[[], Iterable[str]]] = {
    ("agent/questions/terms.py", "f'{noun}\\\\b'"): lambda: [r"command\b"],
    ("agent/evidence/lookups.py", "f'(?<!\\\\w){re.escape(name)}(?!\\\\w)'"): lambda: [r"(?<!\w)send(?!\w)"],
    ("agent/questions/follow_ups.py", "f'\\\\b{noun}\\\\b(?:\\\\s+in)?\\\\s*`|, {noun} in\\\\b'"): lambda: [
        r"\bcaller\b(?:\s+in)?\s*`|, caller in\b"
    ],
    ("agent/questions/literals.py", "f'(?<![\\\\w-]){re.escape(text)}(?![\\\\w-])'"): lambda: [
        r"(?<![\w-])\-\-dry\-run(?![\w-])"
    ],
    (
        "indexer/parsing/registrations/messaging.py",
        "_SET.replace('NAME', re.escape(code.rpartition('.')[2])).encode()",
    ): lambda: [_SET.replace("NAME", "TOPIC")],
    ("indexer/parsing/docstrings.py", "f'#(?=[\\\\s#:]|$){others}'"): lambda: [r"#(?=[\s#:]|$)|//|\-\-"],
    ("bot/adapters/slack/rendering.py", "f'<@{re.escape(user)}[|>]'"): lambda: ["<@U1[|>]"],
    ("indexer/calls/receivers.py", "f'{re.escape(name)}\\\\b(?!\\\\()'"): lambda: [r"value\b(?!\()"],
}
MAX_STEPS = 100_000  # of a compiled pattern: to make twice as many takes some 80 ms, at the first question of a process
# Functions that compile what a module has when it is imported, where it is found.
AT_IMPORT = {
    ("agent/questions/intent.py", "f'(?:{pattern})[\\\\s?.!,:)(]{{0,8}}'"),
    ("indexer/git/file_selection.py", "'|'.join(map(translate, patterns))"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """A pattern of `re` in the code; `text` is None if only a call knows it."""

    name: str
    text: str | None
    flags: int
    mode: Mode


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", ["agent", "bot", "indexer"])
def test_no_pattern_of_a_module_can_be_slow(package: str) -> None:
    slow = [
        f"{name_of(path)}: {use.name} can be {slowness}: {use.text}"
        for path in sources()
        if name_of(path).startswith(f"{package}/")
        for use in uses(path)
        if use.text is not None and (name_of(path), use.name) not in ALLOWED
        if (slowness := find_slowness(use.text, use.flags, use.mode))
    ]

    assert slow == [], "write it so that it is linear, or with indexer.text.linear_patterns.compile_pattern()"


@pytest.mark.exhaustive
def test_patterns_that_are_made_while_running_are_known_and_linear() -> None:
    made = {(name_of(path), use.name) for path in sources() for use in uses(path) if use.text is None}
    slow = [pattern for examples in EXAMPLES.values() for pattern in examples() if find_slowness(pattern)]

    assert made - ALLOWED.keys() - AT_IMPORT == EXAMPLES.keys()
    assert slow == []


@pytest.mark.exhaustive
def test_no_reason_outlives_its_pattern() -> None:
    allowed = {key: [use for use in uses(ROOT / key[0]) if use.name == key[1]] for key in ALLOWED}
    outlived = [
        key
        for key, found in allowed.items()
        if not any(use.text is None or find_slowness(use.text, use.flags, use.mode) for use in found)
    ]

    assert outlived == []


@pytest.mark.exhaustive
def test_every_pattern_that_waits_for_its_first_use_can_be_compiled() -> None:
    for path in sources():
        if "indexer.text.linear_patterns.compile_pattern" in imports(path):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    gc.unfreeze()  # what a server of another test has frozen would not be listed
    patterns = [each for each in gc.get_objects() if type(each) is Pattern]

    assert len(patterns) > 50
    assert [each.pattern for each in patterns if not is_valid(each)] == []
    assert [each.pattern for each in patterns if each._program.programsize > MAX_STEPS] == [], "slow to compile"


def is_valid(pattern: Pattern) -> bool:
    try:
        pattern.search("")
    except (re2.error, ValueError):
        return False
    return True


def test_patterns_are_made_where_these_tests_look_for_them() -> None:
    hidden = [
        f"{name_of(path)} takes {name} from re"
        for path in sources()
        for name in imports(path)
        if name.startswith("re.") and name not in {"re.Match", "re.Pattern"}
    ]

    assert hidden == []


def uses(path: Path) -> Iterator[Use]:
    """Every pattern of `re` in a module: of its calls, and of its values when it is imported."""
    module = importlib.import_module(name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    known: set[str] = set()
    for call in calls_of_re(parsed(path)):
        use = use_of(call, parsed(path), module)
        known.add(use.text or "")
        yield use
    for name, value in vars(module).items():
        for pattern in patterns_in(value):
            text = text_of(pattern.pattern)
            if text not in known:
                mode = mode_of("compile", name, parsed(path))
                yield Use(name=name, text=text, flags=pattern.flags & ~re.UNICODE, mode=mode)


def calls_of_re(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            is_of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            yield from [node] if is_of_re else []


def use_of(call: ast.Call, tree: ast.Module, module: ModuleType) -> Use:
    assert isinstance(call.func, ast.Attribute)
    method = call.func.attr
    source = ast.unparse(call.args[0])
    place = FLAGS_AT.get(method, 2)
    given = [each.value for each in call.keywords if each.arg == "flags"] + call.args[place : place + 1]
    try:
        text = text_of(eval(source, dict(vars(module))))
    except NameError:
        text = None
    name = name_of_value(call, tree)
    return Use(
        name=name if name and text is not None else source,
        text=text,
        flags=int(eval(ast.unparse(given[0]), dict(vars(module)))) if given else 0,
        mode=mode_of(method, name, tree),
    )


def text_of(pattern: str | bytes) -> str:
    return pattern if isinstance(pattern, str) else pattern.decode("latin-1")


def name_of_value(call: ast.Call, tree: ast.Module) -> str:
    """The name of the module's value that a call makes, alone or among others."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if targets and any(each is call for each in ast.walk(node)):
            return ast.unparse(targets[0])
    return ""


def mode_of(method: str, name: str, tree: ast.Module) -> Mode:
    """How a pattern is used. A search starts over at each place, and a match at a given place is one of many."""
    if method != "compile":
        return cast("Mode", method) if method in {"match", "fullmatch"} else "search"
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    methods = {
        node.func.attr if len(node.args) == 1 else "search"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.value in loads
    }
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.value in loads]
    read = [node for node in loads if isinstance(node.ctx, ast.Load)]
    if not methods or len(called) < len(read) or not methods <= {"match", "fullmatch"}:
        return "search"
    return "match" if "match" in methods else "fullmatch"


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    """The patterns that a value of a module is, or has in it."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from patterns_in(each)
