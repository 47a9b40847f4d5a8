"""Normalises Python code: annotations, docstrings and comments are removed, so that they make no difference."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import dedent

_LONGEST = 20_000  # characters
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def drop_types(lines: Sequence[str]) -> str | None:
    """Write code without annotations, overloads, docstrings and comments; None for parts of statements."""
    text = dedent("\n".join(lines))
    if len(text) > _LONGEST:
        return None
    try:
        return ast.dump(_Untyped().visit(ast.parse(text)))
    except _UNREADABLE:
        return None


class _Untyped(ast.NodeTransformer):
    """Removes annotations and docstrings from definitions and assignments."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if any(ast.unparse(one).rpartition(".")[2] == "overload" for one in node.decorator_list):
            return None
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)  # as a docstring is
        return None if is_text else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if isinstance(node.value, ast.Constant) and node.value.value is None:
            node.value = None
        return self.generic_visit(node)
