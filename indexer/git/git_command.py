"""Git commands in one git directory, through GitPython."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from indexer.errors import RepositoryError, RepositoryTooLarge
from indexer.git.git_errors import (
    decode_output,
    format_path,
    make_command_error,
    make_open_error,
    make_too_large_error,
)
from indexer.subprocesses import read_output, start_git

_LONGEST = 300.0  # seconds that git may take; a tree can be made so that listing it never ends
_MOST_OUTPUT = 100_000_000  # bytes, enough to list a million files


class GitCommand:
    """Runs git in one git directory, shielded from the environment and from the repository's configuration."""

    def __init__(self, git_dir: Path, *options: str) -> None:
        self.git_dir = git_dir
        self._options = ("-C", str(git_dir), *options)

    @classmethod
    def discover(cls, start: Path) -> tuple[GitCommand, Path]:
        """Find the git directory and the root around a folder as git does, which refuses what other users own."""
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
            output, complaint = read_output(process, seconds=seconds or _LONGEST, most=_MOST_OUTPUT)
        except TimeoutError:
            if seconds is None:
                raise make_too_large_error(self.git_dir, f"git {arguments[0]} took {_LONGEST:g} seconds") from None
            return process.returncode, b"", ""
        except OverflowError:
            raise make_too_large_error(self.git_dir, f"git {arguments[0]} wrote {_MOST_OUTPUT:,} bytes") from None
        return process.returncode, output, decode_output(complaint).removesuffix("\n")


def _read_path(output: bytes) -> Path:
    return Path(os.fsdecode(output.removesuffix(b"\n")))
