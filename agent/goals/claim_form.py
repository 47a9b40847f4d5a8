"""Checks the form of a claim's test in the sandbox, before it runs, and writes problems as JSON.

`claim_form.py DESCRIPTOR FILE CLAIM` runs as a separate program, with a Python that may be older than citebot's, and
imports none of our modules. It exits with 1 unless the test has the form that can prove a claim: one call of the code,
and an assertion about its result that matches the claim, with the claim's own values.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import re
import sys
from typing import Any

HOLDS, FAILS, CALL = "test_claim_holds", "test_claim_does_not_hold", "call"
LONGEST_CLAIM = 2_000  # characters
LONGEST_SOURCE = 20_000  # characters

STANDARD = frozenset(
    "asyncio base64 collections contextlib copy csv dataclasses datetime decimal enum fractions "
    "hashlib inspect io itertools json logging math os pathlib re shutil sqlite3 string subprocess sys tempfile "
    "textwrap time tomllib types typing urllib uuid zoneinfo __future__".split()
)
LIBRARIES = frozenset(
    "attrs click dateutil django fastapi flask httpx numpy pandas pydantic pytz sqlalchemy starlette typer yaml".split()
)
BANNED = frozenset(
    "setattr delattr getattr eval exec compile __import__ globals locals vars open input breakpoint super memoryview "
    "print classmethod staticmethod property".split()
)
MUTATORS = frozenset(
    "update setdefault append extend insert pop popitem remove clear add discard sort reverse appendleft patch".split()
)
DUNDERS = frozenset("__name__ __doc__ __version__ __class__ __all__ __cause__".split())
OF_MODULE = {
    "sys": {"executable", "maxsize", "version_info", "platform"},
    "os": {"environ", "path", "sep", "linesep", "getcwd"},
}
STATEMENTS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.Expr,
    ast.Return,
    ast.With,
    ast.Try,
    ast.For,
    ast.Pass,
)
ASSERTED = frozenset(
    "len sorted isinstance type set list tuple dict str repr any all abs round min max sum float int bool".split()
)
PRODUCERS = frozenset("get pop setdefault replace ljust rjust center zfill format join translate".split())
OWN = "_site_"  # the prefix of names that the trial gives to the test
OF_FRAMES = frozenset(
    "currentframe stack trace getinnerframes getouterframes f_back f_locals f_globals f_builtins gi_frame cr_frame "
    "ag_frame tb_frame update_wrapper wraps".split()
)
ASSERTION = (
    ast.Compare, ast.UnaryOp, ast.BoolOp, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.List,
    ast.Tuple, ast.Set, ast.Dict, ast.Slice, ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.expr_context,
    ast.cmpop, ast.unaryop, ast.boolop,
)  # fmt: skip
OPPOSITES = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In, ast.GtE: ast.Lt, ast.LtE: ast.Gt}


class Formless(Exception):
    """The test does not have the form by which a claim can be shown."""


def check_form(tree: ast.Module, claim: str) -> None:
    """Raise `Formless` unless the tests make one call, whose result is all that they assert something about."""
    functions: dict[str, ast.FunctionDef] = {}
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _check_import(node)
        elif isinstance(node, ast.FunctionDef) and node.name in {CALL, HOLDS, FAILS} and node.name not in functions:
            functions[node.name] = node
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise Formless(f"Beside imports there may be only `{CALL}`, `{HOLDS}` and `{FAILS}`.")
    if len(functions) != 3:
        raise Formless(f"There have to be the functions `{CALL}`, `{HOLDS}` and `{FAILS}`.")
    for function in functions.values():
        if function.decorator_list or ast.unparse(function.args):
            raise Formless("None of the functions takes arguments or has a decorator.")
    _check_call(functions[CALL], _list_imported(tree))
    _check_tests(functions[HOLDS], functions[FAILS])
    assertion = _read_assertion(functions[HOLDS])
    _check_assertion(assertion)
    Wording(claim, functions[CALL], assertion).check()


def _check_import(node: Any) -> None:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
    if isinstance(node, ast.ImportFrom) and any(_is_banned(one.name) for one in node.names):
        raise Formless(f"The test may not import that of `{node.module}`.")
    for name in names:
        top = name.partition(".")[0]
        is_known = top in STANDARD or top in LIBRARIES or _is_ours(top)
        if not is_known or (
            isinstance(node, ast.ImportFrom) and (node.level or any(one.name == "*" for one in node.names))
        ):
            raise Formless(f"The test may not import `{name}`.")
        if (
            top in OF_MODULE
            and isinstance(node, ast.ImportFrom)
            and not {one.name for one in node.names} <= OF_MODULE[top]
        ):
            raise Formless(f"The test may not import that of `{top}`.")


def _is_ours(top: str) -> bool:
    """Tell whether the repository has the module."""
    places = [os.path.join(folder, top) for folder in (".", "src", "lib")]  # noqa: PTH118 - Pythons of any age
    return any(os.path.exists(place) or os.path.exists(f"{place}.py") for place in places)  # noqa: PTH110


def _list_imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(one.asname or one.name).partition(".")[0] for one in node.names}
    return names


def _check_call(function: ast.FunctionDef, imported: set[str]) -> None:
    """Raise `Formless` if the call does more than set up values and call something."""
    for node in ast.walk(function):
        if node is function:
            continue
        if isinstance(node, ast.stmt) and not isinstance(node, STATEMENTS):
            raise Formless(f"`{CALL}` may not hold `{type(node).__name__}`: it makes one call and returns its result.")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _check_import(node)
        if isinstance(node, ast.Name) and (_is_banned(node.id) or node.id in BANNED):
            raise Formless(f"`{CALL}` may not use `{node.id}`.")
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            _check_access(node, imported)
        if isinstance(node, (ast.IfExp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            raise Formless(f"`{CALL}` may not hold `{type(node).__name__}`: it makes one call and returns its result.")
    if not any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function)):
        raise Formless(f"`{CALL}` has to return the result of the call.")


def _is_banned(name: str) -> bool:
    """Whether a name leads to frames, to the trial itself or to what Python keeps for itself."""
    is_own = name.startswith("__") and name not in {*DUNDERS, "__file__"}
    return is_own or name in OF_FRAMES or name.startswith(OWN)


def _check_access(node: Any, imported: set[str]) -> None:
    root = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    if not isinstance(node.ctx, ast.Load) and ast.unparse(node.value) != "os.environ":
        raise Formless(f"`{CALL}` may not change `{ast.unparse(node)}`.")
    if isinstance(node, ast.Attribute):
        if _is_banned(node.attr):
            raise Formless(f"`{CALL}` may not use `{node.attr}`.")
        if name in imported and node.attr in MUTATORS and ast.unparse(node.value) != "os.environ":
            raise Formless(f"`{CALL}` may not change `{ast.unparse(node.value)}`.")
        if isinstance(node.value, ast.Name) and node.attr not in OF_MODULE.get(name, {node.attr}):
            raise Formless(f"`{CALL}` may not use `{name}.{node.attr}`.")


def _check_tests(holds: ast.FunctionDef, fails: ast.FunctionDef) -> None:
    """Raise `Formless` unless one test asserts the opposite of the other."""
    one, other = _make_plain(_read_assertion(holds)), _make_plain(_read_assertion(fails))
    if one[0] != other[0] or one[1] == other[1]:
        raise Formless(f"`{FAILS}` has to assert exactly the opposite of `{HOLDS}`, about the same call.")


def _check_assertion(test: ast.expr) -> None:
    """Raise `Formless` if an assertion does more than look at the result, such as to put a value beside it."""
    bound = {node.id for node in ast.walk(test) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(test):
        if not isinstance(node, ASSERTION):
            raise Formless(f"An assertion may not hold `{type(node).__name__}`.")
        if isinstance(node, ast.Call):
            _check_look(node, bound)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict)) and _has_call(node):
            raise Formless(f"An assertion compares `{CALL}()` itself, not a list with it and other values.")
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and isinstance(node.elt, ast.Constant):
            raise Formless("An assertion may not put a value in place of the result's own.")
    for operand in _list_operands(test):
        if not _has_call(operand) or any(isinstance(node, ast.BoolOp) for node in ast.walk(operand)):
            raise Formless(f"Each part of an assertion asserts something about `{CALL}()`.")


def _check_look(node: ast.Call, bound: set[str]) -> None:
    name = ast.unparse(node.func)
    if isinstance(node.func, ast.Name) and (
        name not in {*ASSERTED, *bound, CALL} or (name in {"max", "min"} and len(node.args) > 1)
    ):
        raise Formless(f"An assertion may not call `{name}`.")
    if isinstance(node.func, ast.Attribute) and node.func.attr in PRODUCERS and (node.args or node.keywords):
        is_plain = node.func.attr == "get" and len(node.args) == 1
        if not is_plain:
            raise Formless(f"An assertion may not call `{node.func.attr}`: it looks at the result as it is.")


def _has_call(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == CALL for one in ast.walk(node))


def _list_operands(test: ast.expr) -> list[ast.expr]:
    """List what `and` and `or` join, at the top of an assertion alone."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _list_operands(test.operand)
    return list(test.values) if isinstance(test, ast.BoolOp) else [test]


def _read_assertion(function: ast.FunctionDef) -> ast.expr:
    """Return what a test asserts, with the call in place of a name for its result."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    name = ""
    if len(body) == 2 and isinstance(body[0], ast.Assign) and ast.unparse(body[0].value) == f"{CALL}()":
        name = body[0].targets[0].id if isinstance(body[0].targets[0], ast.Name) else ""
    last = body[-1] if len(body) == 1 + bool(name) else None
    if not isinstance(last, ast.Assert):
        raise Formless(f"Each test is one assertion about `{CALL}()`, such as `assert {CALL}() == 3`.")
    whole: ast.Expression = _Inlined(name).visit(ast.Expression(copy.deepcopy(last.test)))
    test = ast.fix_missing_locations(whole).body
    if f"{CALL}()" not in ast.unparse(test):
        raise Formless(f"Each test has to assert something about `{CALL}()`.")
    return test


class _Inlined(ast.NodeTransformer):
    """Puts the call in place of the name that a test gives to its result."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Call(func=ast.Name(CALL, ast.Load()), args=[], keywords=[]) if node.id == self._name else node


def _make_plain(test: ast.expr, *, is_true: bool = True) -> tuple[str, bool]:
    """Return an assertion without its negation, and whether it had none."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _make_plain(test.operand, is_true=not is_true)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in OPPOSITES:
        plain = ast.Compare(left=test.left, ops=[OPPOSITES[type(test.ops[0])]()], comparators=test.comparators)
        return ast.unparse(plain), not is_true
    return ast.unparse(test), is_true


def _is_negative(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return True
    return isinstance(test, ast.Compare) and any(isinstance(op, (ast.NotEq, ast.NotIn, ast.IsNot)) for op in test.ops)


# The content of the claim

_LITERAL = re.compile(
    r"\"([^\"\n]{1,80})\"|'([^'\n]{1,80})'|\b(\d{1,20}(?:\.\d{1,20})?)\b|\b(True|False|None)\b"
    r"|\b([A-Z]\w{0,60}(?:Error|Exception|Warning))\b"
)
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_CALLED = re.compile(r"(\b(?:as|than|like|unlike) `?)?\b([A-Za-z_][\w.]*)\(([^()\n]{0,200})\)")
_NEGATES = re.compile(
    r"\b(?:not?|never|none|nothing|neither|without|cannot|ignor\w+|differ\w*|unlike|exclud\w+|omit\w*|skip\w*|reject\w*"
    r"|refus\w*|remov\w+|drop\w*|strip\w*|no longer|fals\w+|empty|fail\w*|un\w{4,}|in(?:sensitive|dependent)\w*)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"(?:\b(?:does|do|did|is|are|was|were|will|can|could|should|would|must|may) not\b|n't\b|\bcannot\b|\bnever\b"
    r"|\bno longer\b)(?!\s*(?:chang|modif|mutat|alter|touch|los|drop|remov|strip|trim|affect|reset|round|convert|sort"
    r"|reorder|accept|allow|support|below|above|over|under|more|less|fewer))",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|where|unless|while|because|that|which|whose|once|until)\b", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:or|either|any|some|among|one of)\b", re.IGNORECASE)
_DEFAULT = re.compile(r"\b(?:defaults?|unset|initial\w*|out of the box|standard)\b", re.IGNORECASE)
_KEPT = re.compile(r"\b(?:unchanged|same|as is|as it is|keeps?|kept|leaves?|preserv\w+|round.?trip\w*|back|passes)\b")
_BOUND = re.compile(
    r"\b(?:more|less|greater|fewer|least|most|above|below|under|over|exceed\w*|up to|min\w*|max\w*|limit\w*|cap\w*"
    r"|clamp\w*|bound\w*|between|within|range\w*|never|always|positive|negative|larger|smaller|longer|shorter|higher"
    r"|lower|bigger|before|after|older|newer|earlier|later|(?:in|de)creas\w*|non-?empty|empty|any|some|sort\w*|ascend\w*"
    r"|descend\w*|order\w*)\b|[<>≤≥]",
    re.IGNORECASE,
)
_MEASURE = re.compile(
    r"(?P<denied>(?:\b(?:no|not|never|cannot)\b|n't\b)(?:\s+\w+)?\s+)?"
    r"(?:(?P<up>\b(?:more|greater|larger|longer|higher|bigger) than|\babove|\bover|\bexceed(?:s|ing)?)"
    r"|(?P<down>\b(?:less|fewer|smaller|shorter|lower) than|\bbelow|\bunder)"
    r"|(?P<least>\bat least)|(?P<most>\bat most|\bup to))\s+(?P<number>-?\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")
_SPELLED = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
_SPELLED.update(once="1", twice="2", empty="0", first="0")
_SIDES = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<="}  # of a comparison whose sides are changed round
_SIGNS = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
_CONVERSE = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}


class Wording:
    """The words of a claim, beside the call and the assertion that are to show it."""

    def __init__(self, claim: str, call: ast.FunctionDef, test: ast.expr) -> None:
        self._claim, self._call, self._test = claim, call, test
        self._bare = _CALLED.sub(r"\2", claim)  # without arguments
        self._said = ["".join(found) for found in _LITERAL.findall(self._bare)]
        self._is_negative = _is_negative(test)
        self._asserted = [] if isinstance(test, ast.Constant) else _list_constants(test)
        self._handed = [one for one in _list_constants(call) if not isinstance(one, bool)]

    def check(self) -> None:
        """Raise `Formless` unless the assertion says what the claim says."""
        self._check_values()
        self._check_negation()
        self._check_arguments()
        self._check_measures()
        self._check_source()
        self._check_default()

    def _check_values(self) -> None:
        """The claim's own values are asserted, and beside them no others, by which a weaker claim would hold."""
        written = ast.unparse(self._test)
        if not self._said:
            return
        if not any(_is_written(literal, written) for literal in self._said):
            said = " or ".join(self._said[:4])
            raise Formless(f"`{HOLDS}` asserts nothing about {said}, which the claim speaks of.")
        words = {*_WORDS.findall(self._claim), *_NUMBER.findall(self._claim)}
        words |= {_SPELLED[word.lower()] for word in words if word.lower() in _SPELLED}
        for one in self._asserted:
            parts = _WORDS.findall(str(one)) if isinstance(one, str) else _NUMBER.findall(str(one))
            if one not in {True, False, None} and not set(parts) <= words and str(one) not in words:
                raise Formless(f"`{HOLDS}` asserts {one!r}, of which the claim does not speak.")
        if not _CHOICE.search(self._claim) and self._chooses():
            raise Formless(f"`{HOLDS}` asserts one of several things, and the claim says which.")

    def _chooses(self) -> bool:
        """Whether one of several things is enough for the assertion, of which the claim does not name all."""
        if isinstance(self._test, ast.BoolOp) and isinstance(self._test.op, ast.Or):
            return True
        several = [one for one in ast.walk(self._test) if isinstance(one, ast.Tuple)]
        kinds = {
            ast.unparse(part).split(".")[-1]
            for one in several
            for part in one.elts
            if isinstance(part, (ast.Name, ast.Attribute))
        }
        return not kinds <= set(_WORDS.findall(self._claim))

    def _check_negation(self) -> None:
        if self._is_negative and not _NEGATES.search(self._claim):
            raise Formless(f"`{HOLDS}` has to assert what the claim says, not what it does not say.")
        main = _CONDITION.split(self._bare)[0]
        denied = _DENIES.search(main)
        if denied is None or self._is_negative:
            return
        after = ["".join(found) for found in _LITERAL.findall(_MEASURE.sub("", main[denied.end() :]))]
        if any(_is_written(literal, ast.unparse(self._test)) for literal in after):
            raise Formless(f"`{HOLDS}` has to assert what the claim says, which denies it: with `not`, or `!=`.")

    def _check_arguments(self) -> None:
        """Check that the test calls with the claim's values, never with others, and never by another name."""
        assigned = _list_assigned(self._call)
        calls = {id(node.func): node for node in ast.walk(self._call) if isinstance(node, ast.Call)}
        wanted: dict[str, list[tuple[str, Any]]] = {}
        for other, name, arguments in _CALLED.findall(self._claim):
            if (parsed := _parse_arguments(arguments)) is not None:
                wanted.setdefault(name.split(".")[-1], []).append((other, _write_arguments(parsed, {})))
        for name, said in wanted.items():
            same = [node for node in ast.walk(self._call) if getattr(node, "attr", getattr(node, "id", "")) == name]
            made = [_write_arguments(calls[id(one)], assigned) if id(one) in calls else None for one in same]
            allowed = [arguments for _, arguments in said]
            if same and not all(one in allowed for one in made):
                raise Formless(f"`{CALL}` may call `{name}` only as the claim does, and may not hand it on.")
            if same and not all(other or arguments in made for other, arguments in said):
                raise Formless(f"`{CALL}` has to call `{name}` as the claim does.")

    def _check_measures(self) -> None:
        """A claim of more or less is asserted as such, in the same direction, and no other claim is."""
        found = _list_comparisons(self._test)
        if found and not _BOUND.search(self._claim):
            raise Formless(f"`{HOLDS}` asserts a bound, and the claim says a value.")
        for match in _MEASURE.finditer(self._claim):
            sign = next(sign for name, sign in _MEASURES.items() if match[name])
            sign = _CONVERSE[sign] if match["denied"] else sign
            signs = [one for one, value in found if str(value) == match["number"]]
            if not signs and (match["least"] or match["most"]) and not match["denied"]:
                continue  # a limit is the value of something
            if float(match["number"]) in map(_make_number, self._asserted) and sign not in signs:
                raise Formless(f"`{HOLDS}` has to assert `{sign} {match['number']}`, as the claim does.")

    def _check_source(self) -> None:
        """Check that the asserted value comes from the code, not from the test itself."""
        if not isinstance(self._test, ast.Compare) or self._is_negative or _KEPT.search(self._claim):
            return
        values = [one.value for one in (self._test.left, *self._test.comparators) if isinstance(one, ast.Constant)]
        handed = [str(one) for one in self._handed]
        for value in map(str, values):
            spoken = len(re.findall(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", self._claim))
            if value in handed and value not in {"", "None"} and (spoken < 2 or _DEFAULT.search(self._claim)):
                raise Formless(f"`{CALL}` hands in {value} itself, so that it does not show where that comes from.")

    def _check_default(self) -> None:
        """Check that a claim about a default is tested without setting it."""
        if not _DEFAULT.search(self._claim):
            return
        names = {one.arg for node in ast.walk(self._call) if isinstance(node, ast.Call) for one in node.keywords}
        is_set = any(isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) for one in ast.walk(self._call))
        if is_set or names & set(_WORDS.findall(_CALLED.sub("", self._claim))):
            raise Formless(f"`{CALL}` sets what the claim says to be so by default.")


_MEASURES = {"up": ">", "down": "<", "least": ">=", "most": "<="}


def _list_constants(tree: ast.AST) -> list[Any]:
    """List the values written in a tree, except places in a list and docstrings."""
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            left_out |= {id(one) for one in ast.walk(node.slice)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in left_out]


def _is_written(literal: str, written: str) -> bool:
    """Whether a literal of the claim is in an assertion: a number on its own, a word within any text."""
    if _NUMBER.fullmatch(literal):
        return literal in _NUMBER.findall(written)
    return literal.strip() in written or repr(literal)[1:-1] in written


def _parse_arguments(text: str) -> Any:
    """Return a call with arguments that a claim writes; None unless all of them are values."""
    try:
        call: Any = ast.parse(f"f({text})", mode="eval").body
        for one in (*call.args, *(each.value for each in call.keywords)):
            ast.literal_eval(one)
    except (SyntaxError, ValueError, TypeError, AttributeError, MemoryError, RecursionError):
        return None
    return call if call.args or call.keywords else None


def _list_assigned(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """List the values of the names that are given one value, once."""
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if stored.count(node.targets[0].id) == 1
    }


def _write_arguments(call: ast.Call, assigned: dict[str, ast.expr]) -> tuple[list[str], list[tuple[str, str]]]:
    """Write the arguments of a call, with the values of names that the test has given them."""

    def write(node: ast.expr) -> str:
        return ast.unparse(assigned.get(node.id, node) if isinstance(node, ast.Name) else node)

    return [write(one) for one in call.args], sorted((one.arg or "", write(one.value)) for one in call.keywords)


def _list_comparisons(test: ast.expr) -> list[tuple[str, Any]]:
    """List with which sign the result is compared, as if it stood on the left, and with what."""
    found: list[tuple[str, Any]] = []
    for operand in _list_operands(test):
        is_true, node = True, operand
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            is_true, node = not is_true, node.operand
        if isinstance(test, ast.UnaryOp) and operand is not test and node is operand:
            is_true = False
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:]):  # noqa: B905 - Pythons of any age
            if type(op) in _SIGNS:
                sign = _SIGNS[type(op)] if _has_call(left) else _SIDES[type(op)]
                other = right if _has_call(left) else left
                value = _read_value(other)
                found.append((sign if is_true else _CONVERSE[sign], value))
    return found


def _read_value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _make_number(value: Any) -> Any:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def find_fault(path: str, claim: str) -> str:
    """Return why a test cannot show a claim; empty if it may."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - Pythons of any age
            source = file.read(LONGEST_SOURCE + 1)
        if len(source) > LONGEST_SOURCE:
            return "The test is too long."
        check_form(ast.parse(source, path), claim[:LONGEST_CLAIM])
    except Formless as error:
        return str(error)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"The test cannot be read, or is too long: {type(error).__name__}."
    return ""


def main() -> int:
    """Write what is wrong to the descriptor, and end with 1 where something is."""
    reason = find_fault(sys.argv[2], sys.argv[3])
    if reason:
        os.write(int(sys.argv[1]), json.dumps({"kind": "proof", "reason": reason}).encode() + b"\n")
    return int(bool(reason))


if __name__ == "__main__":
    sys.exit(main())
