"""Turns git's error messages into errors whose sentence says what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

from indexer.errors import MissingObjects, NotARepository, RepositoryError, RepositoryTooLarge
from indexer.text.linear_patterns import compile_pattern

# Words of git's own messages, which are always in English here.
_DAMAGE = re.compile(
    r"missing|unable to (?:read|find)|(?:could not|cannot|failed to) (?:read|get|fetch)|bad (?:object|tree|blob)"
    r"|corrupt|inflate|not a tree|not a valid object",
    re.IGNORECASE,
)
_OWNED_PATH = compile_pattern(r"repository at '(.+)'")


def make_open_error(start: Path, complaint: str) -> RepositoryError:
    """Say why git opens no repository at a path."""
    if "dubious ownership" in complaint:
        match = _OWNED_PATH.search(complaint)
        place = match[1] if match else format_path(start)
        return RepositoryError(
            f"{place} belongs to another user, so git does not trust it. If you do, run: "
            f"git config --global --add safe.directory '{place}'"
        )
    if "not a git repository" in complaint.lower():
        return NotARepository(
            f"{format_path(start)} is not in a git repository. Give the path of one, or run git init there."
        )
    return RepositoryError(
        f"git cannot open {format_path(start)}: {_find_error_line(complaint)}. Check permissions and git's settings."
    )


def make_command_error(git_dir: Path, complaint: str) -> RepositoryError:
    """Say why a command failed in a repository that was opened."""
    if is_damage(complaint):
        return make_missing_object_error(_find_error_line(complaint), git_dir)
    return RepositoryError(
        f"git cannot read {format_path(git_dir)}: {_find_error_line(complaint)}. Run git fsck there."
    )


def make_too_large_error(git_dir: Path, what: str) -> RepositoryTooLarge:
    """Say that a repository is larger than any that people work in, perhaps made so to block its readers."""
    return RepositoryTooLarge(
        f"{format_path(git_dir)} is too large to be read: {what}. Look at what was committed last."
    )


def make_missing_object_error(what: str, place: Path) -> MissingObjects:
    """Say that an object is missing."""
    return MissingObjects(
        f"Objects are missing or damaged in {format_path(place)} ({what}). Run git fsck there; "
        "if it is a partial clone, git fetch --refetch --no-filter."
    )


def make_missing_file_error(path: str, place: Path) -> MissingObjects:
    """Say that the contents of a file to be indexed are missing."""
    return MissingObjects(
        f"The contents of {path} are missing in {format_path(place)}. Run git fsck there, or leave the file out with "
        "CITEBOT_EXCLUDE."
    )


def is_damage(complaint: str) -> bool:
    """Whether git complains of missing or damaged objects."""
    return bool(_DAMAGE.search(complaint))


def format_path(path: Path) -> str:
    """Format a path as text that can be printed and stored, whatever bytes it has."""
    return decode_output(os.fsencode(path))


def decode_output(data: bytes) -> str:
    """Decode what git printed; bytes that are not UTF-8 are written as `\\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def _find_error_line(complaint: str) -> str:
    """Find the line that says what ended the command, after any warnings."""
    lines = complaint.strip().splitlines()
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return re.sub(r"^(?:fatal|error): ", "", errors[0]).rstrip(".") if errors else "no reason given"
