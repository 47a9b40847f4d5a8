"""The history of a file from git's log and blame: who changed it, when and why, without addresses and secrets."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from indexer.git.git_command import GitCommand, decode_output
from indexer.secrets import redact_secrets
from indexer.types import Revision

# A commit as `git log` prints it: four fields, each of which ends with a NUL, which no text in a commit can hold.
LOG_FORMAT = "%H%x00%an%x00%ct%x00%s%x00"
NOBODY = "someone"
_UNCOMMITTED = "0" * 40
_DIGITS = 18  # of a time; a commit may claim any, and Python refuses numbers with thousands of digits
_LATEST = 253_402_000_000  # seconds; some days before the end of the year 9999, the last that Python knows
_LONGEST = 500  # characters of a subject or a name; a commit may have megabytes of either
_MAX_SEVERED = 1_000  # commits that are named to git
_TIMEOUT_SECONDS = 10.0  # a log follows renames through every commit, of which there may be very many


class GitHistory:
    """The history of the files of a repository.

    A commit whose parents were not fetched is left out: it looks as if it had written everything.
    """

    def __init__(self, git: GitCommand, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir

    def log(self, sha: str, path: str, *, limit: int) -> tuple[list[Revision], bool]:
        """The newest commits up to `sha` that touched a file, under its former names too, and whether these are all.

        None are returned if git fails or takes too long.
        """
        options = ("--follow", f"--max-count={limit + 1}", f"--format={LOG_FORMAT}", "--encoding=UTF-8", "--no-patch")
        output = self._git.try_run("log", *options, sha, "--", path, seconds=_TIMEOUT_SECONDS)
        severed = self.read_shallow_commits()
        revisions = [each for each in read_log(output or b"") if each.sha not in severed]
        return revisions[:limit], output is not None and len(revisions) <= limit and not severed

    def blame(self, sha: str, path: str, line: int) -> Revision | None:
        """The commit up to `sha` that last wrote a line of a file; None if it is unknown."""
        options = ("--porcelain", "--no-textconv", "--ignore-revs-file=", "--encoding=UTF-8", f"-L{line},{line}")
        output = self._git.try_run("blame", *options, sha, "--", path, seconds=_TIMEOUT_SECONDS)
        revision = self._find_last_change(sha, path, line) if output is None else read_blame(output)
        return revision if revision is not None and revision.sha not in self.read_shallow_commits() else None

    def _find_last_change(self, sha: str, path: str, line: int) -> Revision | None:
        """Find who last wrote a line by its log, which takes several times as long as `git blame`.

        That fails where the configuration names a list of commits to ignore that it cannot read.
        """
        options = ("--max-count=1", f"--format={LOG_FORMAT}", "--encoding=UTF-8", "--no-textconv", "--no-patch")
        output = self._git.try_run("log", *options, f"-L{line},{line}:{path}", sha, "--", seconds=_TIMEOUT_SECONDS)
        return next(iter(read_log(output or b"")), None)

    def read_shallow_commits(self) -> frozenset[str]:
        """The commits of a shallow clone at which its history ends."""
        return frozenset(self._shallow.read_text(encoding="ascii").split()) if self._shallow.is_file() else frozenset()

    def find_horizon(self) -> Revision | None:
        """The newest commit whose parents were not fetched: history before it is incomplete."""
        severed = sorted(self.read_shallow_commits())[:_MAX_SEVERED]
        options = ("--no-walk", "--max-count=1", f"--format={LOG_FORMAT}", "--encoding=UTF-8", "--no-patch")
        output = self._git.try_run("log", *options, *severed, "--", seconds=_TIMEOUT_SECONDS) if severed else None
        return next(iter(read_log(output or b"")), None)

    @cached_property
    def _shallow(self) -> Path:
        """The file that lists them; worktrees share one."""
        return self._git_dir / decode_output(self._git.run("rev-parse", "--git-path", "shallow").removesuffix(b"\n"))


def read_log(output: bytes) -> list[Revision]:
    """Read what `git log` printed in the format above, newest first."""
    fields = iter(output.split(b"\0")[:-1])
    return [
        Revision(
            sha=sha.strip(b"\n").decode("ascii", "replace"),
            author=format_person(decode_output(author)),
            committed_at=read_time(committed_at),
            subject=read_subject(subject),
        )
        for sha, author, committed_at, subject in zip(fields, fields, fields, fields, strict=False)
    ]


def read_blame(output: bytes) -> Revision | None:
    """Read what `git blame --porcelain` printed for one line."""
    first, _, rest = output.partition(b"\n")
    sha = first.split(b" ")[0].decode("ascii", "replace")
    if len(sha) < len(_UNCOMMITTED) or sha == _UNCOMMITTED:
        return None
    header = rest.partition(b"\n\t")[0]
    facts = dict(line.partition(b" ")[::2] for line in header.split(b"\n"))
    return Revision(
        sha=sha,
        author=format_person(decode_output(facts.get(b"author", b""))),
        committed_at=read_time(facts.get(b"committer-time", b"0")),
        subject=read_subject(facts.get(b"summary", b"")),
    )


def format_person(name: str) -> str:
    """Format a name, secrets masked; of an address only what precedes it, or its part before the @, is kept."""
    bare = name.partition("<")[0].strip()
    name = " ".join(word.partition("@")[0] for word in redact_secrets(bare).split() if not word.startswith("@"))
    return name[:_LONGEST] or NOBODY


def read_subject(subject: bytes) -> str:
    """Read the first line of a commit message, secrets masked and cut to a sensible length."""
    return redact_secrets(decode_output(subject))[:_LONGEST]


def read_time(digits: bytes) -> int:
    """Read a time in seconds since the epoch; a commit may claim any, and dates end with the year 9999."""
    return min(int(digits[:_DIGITS]), _LATEST) if digits.isdigit() else 0
