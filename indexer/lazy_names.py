"""Lazily imported names of a package, declared once for type checkers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def load_lazily(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, which loads its imports under `if TYPE_CHECKING`."""

    def load(name: str) -> Any:
        homes = {} if name.startswith("__") else list_lazy_names(package)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return load


@cache
def list_lazy_names(package: str) -> dict[str, str]:
    """Map the names that a package imports under `if TYPE_CHECKING` to their modules."""
    source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
    guarded = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    found = [node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in found for alias in node.names}
