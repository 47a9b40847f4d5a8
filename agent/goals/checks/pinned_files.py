"""Lists the files that configure a check, which are therefore taken as they are at the commit."""

from __future__ import annotations

from pathlib import PurePosixPath

_PYTEST = frozenset("conftest.py pytest.ini .pytest.ini tox.ini setup.cfg pyproject.toml pytest.toml".split())
# What Python loads by itself, or before what it is asked for.
_PYTHON = frozenset({"sitecustomize.py", "usercustomize.py"})
_ANALYSIS = frozenset(
    {"pyproject.toml", "setup.cfg", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", "pyrightconfig.json"}
)


def is_pytest_setting(path: str) -> bool:
    """Whether a file says which tests there are, or how they are run."""
    name = PurePosixPath(path).name
    return name in _PYTEST or name in _PYTHON or name.endswith(".pth")


def is_analysis_setting(path: str) -> bool:
    """Whether a file says what mypy, pyright or ruff look for."""
    return PurePosixPath(path).name in _ANALYSIS
