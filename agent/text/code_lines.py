"""Tells lines of code apart by their looks, and takes their common indentation away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os.path import commonprefix

_IMPORT = re.compile(r"\s*(?:import|from|use|require|include|#include|using|package|__all__)\b|.*=\s*require\(")


def is_import(line: str) -> bool:
    """Whether the line takes names from elsewhere, or lists those that others may take."""
    return bool(_IMPORT.match(line))


def dedent(lines: Sequence[str]) -> list[str]:
    """Take away the white space that all lines begin with; their number stays."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return list(lines)
    spaces = [line[: len(line) - len(line.lstrip())] for line in filled]
    shared = len(commonprefix(spaces))  # noqa: RUF071 - these are no paths
    return [line[shared:] if line.strip() else "" for line in lines]
