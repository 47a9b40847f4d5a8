"""A pyright that knows one mistake: `python pyright.py --outputjson FILE...` reports as pyright 1.1.414 does.

What it finds wrong is a function that promises a `str` and returns the result of an operator, and what is no Python.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def find_mistakes(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the mistakes of a file as pyright tells them: absolute paths, lines from 0."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError:  # told without a rule
        place = {"line": 0, "character": 4}
        message = 'Expected function name after "def"'
        yield {"file": str(path.resolve()), "severity": "error", "message": message,
               "range": {"start": place, "end": place}}  # fmt: skip
        return
    for function in ast.walk(tree):
        if not (isinstance(function, ast.FunctionDef) and ast.unparse(function.returns or ast.Pass()) == "str"):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp):
                yield {
                    "file": str(path.resolve()),
                    "severity": "error",
                    "message": 'Type "int" is not assignable to return type "str"\n  "int" is not assignable to "str"',
                    "range": {
                        "start": {"line": node.value.lineno - 1, "character": node.value.col_offset},
                        "end": {"line": node.value.lineno - 1, "character": node.value.end_col_offset},
                    },
                    "rule": "reportReturnType",
                }


def main() -> int:
    """Report on the files; 1 where there are mistakes."""
    _, option, *paths = sys.argv
    assert option == "--outputjson"
    found = [mistake for path in paths for mistake in find_mistakes(Path(path))]
    report = {
        "version": "1.1.414",
        "time": str(int(1000 * time.time())),
        "generalDiagnostics": found,
        "summary": {
            "filesAnalyzed": len(paths),
            "errorCount": len(found),
            "warningCount": 0,
            "informationCount": 0,
            "timeInSec": 0.1,
        },
    }
    sys.stdout.write(json.dumps(report, indent=4))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
