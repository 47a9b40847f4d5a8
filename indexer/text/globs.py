"""Globs of people and models, in the language of `.gitignore`: all of them are compiled here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import re2

from indexer.errors import BadPattern

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LONGEST = 1_000  # characters


def compile_globs(globs: Sequence[str]) -> GitIgnoreSpec:
    """Compile globs; `BadPattern` names the first invalid one."""
    from pathspec import GitIgnoreSpec  # takes its time to import, and few commands need it

    for glob in globs:
        _check_glob(glob, GitIgnoreSpec)
    try:
        return GitIgnoreSpec.from_lines(globs)
    except re2.error as error:
        raise BadPattern(f"{len(globs)} globs are more than can be matched at once.") from error


def _check_glob(glob: str, spec: type[GitIgnoreSpec]) -> None:
    if len(glob) > _LONGEST:
        raise BadPattern(f"{glob[:40]!r}... cannot be read as a glob: it is longer than {_LONGEST} characters.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a `[` within brackets, which a later Python reads otherwise
            spec.from_lines([glob])
    except (ValueError, FutureWarning, re.error, re2.error) as error:  # pathspec lets those of its engines through
        raise BadPattern(
            f"{glob!r} cannot be read as a glob. Write it as in .gitignore, such as **/*.sql or docs/."
        ) from error
