"""Git commands in one git directory, through GitPython."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from indexer.errors import MissingObjects, NotARepository, RepositoryError, RepositoryTooLarge
from indexer.subprocesses import read_output, start_git
from indexer.text.linear_patterns import compile_pattern

# Words of git's own messages, which are always in English here.
_DAMAGE = re.compile(
    r"missing|unable to (?:read|find)|(?:could not|cannot|failed to) (?:read|get|fetch)|bad (?:object|tree|blob)"
    r"|corrupt|inflate|not a tree|not a valid object",
    re.IGNORECASE,
)
_OWNED_PATH = compile_pattern(r"repository at '(.+)'")


def make_open_error(start: Path, complaint: str) -> RepositoryError:
    """Make the error for a path where git opens no repository."""
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
    """Make the error for a failed command in an open repository."""
    if is_damage(complaint):
        return make_missing_object_error(_find_error_line(complaint), git_dir)
    return RepositoryError(
        f"git cannot read {format_path(git_dir)}: {_find_error_line(complaint)}. Run git fsck there."
    )


def make_missing_git_error(error: OSError) -> RepositoryError:
    """Say that there is no git."""
    return RepositoryError(f"git cannot be started: {error.strerror}. Install git, and try again.")


def make_too_large_error(git_dir: Path, what: str) -> RepositoryTooLarge:
    """Make the error for a repository larger than any real one, perhaps made so to block its readers."""
    return RepositoryTooLarge(
        f"{format_path(git_dir)} is too large to be read: {what}. Look at what was committed last."
    )


def make_missing_object_error(what: str, place: Path) -> MissingObjects:
    """Make the error for a missing object."""
    return MissingObjects(
        f"Objects are missing or damaged in {format_path(place)} ({what}). Run git fsck there; "
        "if it is a partial clone, git fetch --refetch --no-filter."
    )


def make_missing_file_error(path: str, place: Path) -> MissingObjects:
    """Make the error for missing contents of a file to be indexed."""
    return MissingObjects(
        f"The contents of {path} are missing in {format_path(place)}. Run git fsck there, or leave the file out with "
        "CITEBOT_EXCLUDE."
    )


def is_damage(complaint: str) -> bool:
    """Whether git complains of missing or damaged objects."""
    return bool(_DAMAGE.search(complaint))


def format_path(path: Path) -> str:
    """Format a path as printable, storable text, whatever its bytes."""
    return decode_output(os.fsencode(path))


def decode_output(data: bytes) -> str:
    r"""Decode git's output; bytes that are not UTF-8 are written as `\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def _find_error_line(complaint: str) -> str:
    """Find the line with the cause of a failure, after any warnings."""
    lines = complaint.strip().splitlines()
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return re.sub(r"^(?:fatal|error): ", "", errors[0]).rstrip(".") if errors else "no reason given"


_LONGEST = 300.0  # seconds that git may take; a tree can be made so that listing it never ends
_MAX_OUTPUT = 100_000_000  # bytes, enough to list a million files


class GitCommand:
    """Runs git in one directory, shielded from the environment and from the repository's configuration."""

    def __init__(self, git_dir: Path, *options: str) -> None:
        self.git_dir = git_dir
        self._options = ("-C", str(git_dir), *options)

    @classmethod
    def discover(cls, start: Path) -> tuple[GitCommand, Path]:
        """Discover the git directory and the root around a folder like git, which refuses other users' folders."""
        search = cls(start)
        status, output, complaint = search._execute("rev-parse", "--absolute-git-dir")
        if status:
            raise make_open_error(start, complaint)
        git_dir = _read_path(output)
        top = search.try_run("rev-parse", "--show-toplevel")
        return cls(git_dir, f"--git-dir={git_dir}"), git_dir if top is None else _read_path(top)

    def run(self, *arguments: str) -> bytes:
        """Run a command and return its output; a failure raises `RepositoryError`."""
        status, output, complaint = self._execute(*arguments)
        if status:
            raise make_command_error(self.git_dir, complaint)
        return output

    def try_run(self, *arguments: str, seconds: float | None = None) -> bytes | None:
        """Run a command and return its output; None if it fails, takes too long or writes too much."""
        try:
            status, output, _ = self._execute(*arguments, seconds=seconds)
        except RepositoryTooLarge:
            return None
        return None if status else output

    def start(self, *arguments: str) -> Any:
        """Start a command and communicate with it through pipes."""
        try:
            return start_git([*self._options, *arguments])
        except OSError as error:
            raise RepositoryError(
                f"git cannot be started in {format_path(self.git_dir)}: {error}. Install git, and try again."
            ) from error

    def _execute(self, *arguments: str, seconds: float | None = None) -> tuple[int, bytes, str]:
        command = self.start(*arguments)  # kept in a variable: it ends its process when it is collected
        process = command.proc
        try:
            output, complaint = read_output(process, seconds=seconds or _LONGEST, most=_MAX_OUTPUT)
        except TimeoutError:
            if seconds is None:
                raise make_too_large_error(self.git_dir, f"git {arguments[0]} took {_LONGEST:g} seconds") from None
            return process.returncode, b"", ""
        except OverflowError:
            raise make_too_large_error(self.git_dir, f"git {arguments[0]} wrote {_MAX_OUTPUT:,} bytes") from None
        return process.returncode, output, decode_output(complaint).removesuffix("\n")


def _read_path(output: bytes) -> Path:
    return Path(os.fsdecode(output.removesuffix(b"\n")))
