"""What git complains of, as errors whose sentence says what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

from indexer.errors import MissingObjects, NotARepository, RepositoryError, RepositoryTooLarge
from indexer.text.patterns import compile_pattern

# Words of git's own messages, in the language that GitPython makes it speak.
_DAMAGE = re.compile(
    r"missing|unable to (?:read|find)|(?:could not|cannot|failed to) (?:read|get|fetch)|bad (?:object|tree|blob)"
    r"|corrupt|inflate|not a tree|not a valid object",
    re.IGNORECASE,
)
_PLACE = compile_pattern(r"repository at '(.+)'")


def make_open_error(start: Path, complaint: str) -> RepositoryError:
    """Say why git opens no repository at a path."""
    if "dubious ownership" in complaint:
        found = _PLACE.search(complaint)
        place = found[1] if found else format_path(start)
        return RepositoryError(
            f"{place} belongs to another user, so git does not trust it. If you do, run: "
            f"git config --global --add safe.directory '{place}'"
        )
    if "not a git repository" in complaint.lower():
        return NotARepository(
            f"{format_path(start)} is not in a git repository. Give the path of one, or run git init there."
        )
    return RepositoryError(
        f"git cannot open {format_path(start)}: {_first_line(complaint)}. Check permissions and git's settings."
    )


def make_command_error(git_dir: Path, complaint: str) -> RepositoryError:
    """Say why a command failed in a repository that was opened."""
    if is_damage(complaint):
        return make_missing_object_error(_first_line(complaint), git_dir)
    return RepositoryError(f"git cannot read {format_path(git_dir)}: {_first_line(complaint)}. Run git fsck there.")


def too_much(git_dir: Path, what: str) -> RepositoryTooLarge:
    """Say that a repository is larger than anybody works in, as one is that was made to hold readers up."""
    return RepositoryTooLarge(
        f"{format_path(git_dir)} is too large to be read: {what}. Look at what was committed last."
    )


def make_missing_object_error(what: str, place: Path) -> MissingObjects:
    """Say that an object cannot be had."""
    return MissingObjects(
        f"Objects are missing or damaged in {format_path(place)} ({what}). Run git fsck there; "
        "if it is a partial clone, clone it again without --filter."
    )


def make_missing_file_error(path: str, place: Path) -> MissingObjects:
    """Say that the contents of a file that is to be indexed cannot be had."""
    return MissingObjects(
        f"The contents of {path} are missing in {format_path(place)}. Run git fsck there; if it is a partial clone, "
        "clone it again without --filter, or leave the file out with CITEBOT_EXCLUDE."
    )


def is_damage(complaint: str) -> bool:
    """Whether git complains of objects that are not there or not as they were written."""
    return bool(_DAMAGE.search(complaint))


def format_path(path: Path) -> str:
    """A path as text that can be printed and stored, whatever bytes it has."""
    return decode_output(os.fsencode(path))


def decode_output(data: bytes) -> str:
    """Decode what git printed; bytes that are no UTF-8 stand as `\\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def _first_line(complaint: str) -> str:
    """The line that says what ended the command, without the warnings before it."""
    lines = complaint.strip().splitlines()
    grave = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return re.sub(r"^(?:fatal|error): ", "", grave[0]).rstrip(".") if grave else "no reason given"
