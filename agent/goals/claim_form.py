"""Checks the form of a claim's test in the sandbox, before it runs, and writes problems as JSON.

`claim_form.py DESCRIPTOR FILE` runs as a separate program, with a Python that may be older than citebot's, and imports
none of our modules. It exits with 1 unless the test has the form that can prove a claim: one call of the code, and an
assertion about its result.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import sys
from typing import Any

HOLDS, FAILS, CALL = "test_claim_holds", "test_claim_does_not_hold", "call"
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
    """The test does not have the form that can show a claim."""


def check_form(tree: ast.Module) -> None:
    """Raise `Formless` unless the tests make one call and assert only about its result."""
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
    _check_assertion(_read_assertion(functions[HOLDS]))


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
    """Whether a name leads to frames, to the trial itself or to Python's internals."""
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
    """Raise `Formless` if an assertion does more than inspect the result, such as replacing a value."""
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
        nodes = list(ast.walk(operand))
        calls = sum(isinstance(node, ast.Name) and node.id == CALL for node in nodes)
        if calls != 1 or any(isinstance(node, ast.BoolOp) for node in nodes):
            raise Formless(f"Each part of an assertion asserts something about one `{CALL}()`.")


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
    """List the operands of `and` and `or` at the top of an assertion."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _list_operands(test.operand)
    return list(test.values) if isinstance(test, ast.BoolOp) else [test]


def _read_assertion(function: ast.FunctionDef) -> ast.expr:
    """Return what a test asserts, with the call substituted for its result's name."""
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
    """Substitutes the call for the name of its result in a test."""

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


def find_fault(path: str) -> str:
    """Return why a test cannot show a claim; empty if it may."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - Pythons of any age
            source = file.read(LONGEST_SOURCE + 1)
        if len(source) > LONGEST_SOURCE:
            return "The test is too long."
        check_form(ast.parse(source, path))
    except Formless as error:
        return str(error)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"The test cannot be read, or is too long: {type(error).__name__}."
    return ""


def main() -> int:
    """Write the problems to the descriptor, and exit with 1 if there are any."""
    reason = find_fault(sys.argv[2])
    if reason:
        os.write(int(sys.argv[1]), json.dumps({"kind": "proof", "reason": reason}).encode() + b"\n")
    return int(bool(reason))


if __name__ == "__main__":
    sys.exit(main())
