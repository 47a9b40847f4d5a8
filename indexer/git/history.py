"""The history of files from git's log and blame: who changed them, when and why, without addresses and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from indexer.git.git_command import GitCommand, decode_output
from indexer.git.safe_paths import is_safe_path
from indexer.secrets import redact_secrets
from indexer.types import CommitMessage, LineOrigin, Revision

# Five fields of a commit and then the names of its files, a NUL before and after each field, which no text can hold.
FORMAT = "%x00%H%x00%aN%x00%ct%x00%s%x00%b%x00"
_BRIEF = "%x00%H%x00%an%x00%ct%x00%s%x00%x00"  # without the message
_FIELDS = 6
# As in `git log`: each field ends with a NUL, which no message can hold, and an empty one stands before each commit.
_MESSAGES = "%x00%H%x00%s%x00%b%x00"
MAX_COMMITS = 6_000  # whose messages are read
MAX_FILES = 25  # of one commit; one that touches more is about none of them
_MAX_MESSAGE = 4_000  # bytes; a commit may have megabytes
_MESSAGES_SECONDS = 30.0
_TRAILER = re.compile(r"(?m)^[A-Z][\w-]*-by: .*$")  # sign-offs and reviewers say nothing about the code
NOBODY = "someone"
_ADDRESS = re.compile(r" ?<[^<>\s@]{1,100}@[^<>\s@]{1,200}>")
_MAX_BODY = 2_000  # characters of a message
_MAX_PATHS = 200  # of one commit
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
        """Return the newest commits up to `sha` that touched a file, also under former names, and whether
        these are all.

        None are returned if git fails or takes too long.
        """
        options = ("--follow", f"--max-count={limit + 1}", f"--format={_BRIEF}", "--encoding=UTF-8", "--no-patch")
        output = self._git.try_run("log", *options, sha, "--", path, seconds=_TIMEOUT_SECONDS)
        severed = self.read_shallow_commits()
        revisions = [each for each in read_commits(output or b"") if each.sha not in severed]
        return revisions[:limit], output is not None and len(revisions) <= limit and not severed

    def blame(self, sha: str, path: str, line: int) -> Revision | None:
        """Return the commit up to `sha` that last wrote a line of a file; None if unknown."""
        options = ("--porcelain", "--no-textconv", "--ignore-revs-file=", "--encoding=UTF-8", f"-L{line},{line}")
        output = self._git.try_run("blame", *options, sha, "--", path, seconds=_TIMEOUT_SECONDS)
        known = read_origins(output or b"")
        revision = known[0].revision if known else self._find_last_change(sha, path, line) if output is None else None
        return revision if revision is not None and revision.sha not in self.read_shallow_commits() else None

    def _find_last_change(self, sha: str, path: str, line: int) -> Revision | None:
        """Find a line's last author by its log, which takes several times as long as `git blame`.

        `git blame` fails if the configuration names an unreadable list of commits to ignore.
        """
        options = ("--max-count=1", f"--format={_BRIEF}", "--encoding=UTF-8", "--no-textconv", "--no-patch")
        output = self._git.try_run("log", *options, f"-L{line},{line}:{path}", sha, "--", seconds=_TIMEOUT_SECONDS)
        return next(read_commits(output or b""), None)

    def read_messages(self, sha: str, *, since: str = "") -> list[CommitMessage]:
        """Read the messages of the newest commits from `sha` back to `since`, newest first, without merges.

        Commits that touch very many files are left out, and so are those whose parents were not fetched, because git
        lists all their files as changed. Returns none if git fails or takes too long.
        """
        options = ("--no-merges", f"--max-count={MAX_COMMITS}", f"--format={_MESSAGES}", "--encoding=UTF-8", "-z")
        diff = ("--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--root")
        commits = f"{since}..{sha}" if since else sha
        output = self._git.try_run("log", *options, *diff, commits, "--", seconds=_MESSAGES_SECONDS)
        severed = self.read_shallow_commits()
        return [message for commit, message in _read_messages(output or b"") if commit not in severed and message.paths]

    def read_shallow_commits(self) -> frozenset[str]:
        """Return the commits of a shallow clone at which its history ends."""
        return frozenset(self._shallow.read_text(encoding="ascii").split()) if self._shallow.is_file() else frozenset()

    def find_horizon(self) -> Revision | None:
        """Return the newest commit whose parents were not fetched: history before it is incomplete."""
        severed = sorted(self.read_shallow_commits())[:_MAX_SEVERED]
        options = ("--no-walk", "--max-count=1", f"--format={_BRIEF}", "--encoding=UTF-8", "--no-patch")
        output = self._git.try_run("log", *options, *severed, "--", seconds=_TIMEOUT_SECONDS) if severed else None
        return next(read_commits(output or b""), None)

    @cached_property
    def _shallow(self) -> Path:
        """The file that lists shallow commits; worktrees share one."""
        return self._git_dir / decode_output(self._git.run("rev-parse", "--git-path", "shallow").removesuffix(b"\n"))


def read_commits(output: bytes) -> Iterator[Revision]:
    """Read what `git log` printed in the format above, newest first."""
    fields = output.split(b"\0")[1:]
    for at in range(0, len(fields) - _FIELDS + 1, _FIELDS):
        sha, author, committed_at, subject, body, names = fields[at : at + _FIELDS]
        yield Revision(
            sha=sha.decode("ascii", "replace"),
            author=format_person(decode_output(author)),
            committed_at=read_time(committed_at),
            subject=read_subject(subject),
            body=_ADDRESS.sub("", redact_secrets(decode_output(body[: 4 * _MAX_BODY])))[:_MAX_BODY].strip(),
            paths=tuple(_read_names(names)),
        )


def _read_names(names: bytes) -> Iterator[str]:
    """Read the names of files, a line each; one that git has to quote is no name that is shown anywhere."""
    for line in names.split(b"\n")[:_MAX_PATHS]:
        path = decode_output(line)
        if path and not path.startswith('"') and is_safe_path(path):
            yield path


@dataclass(kw_only=True, slots=True)
class _Facts:
    """The facts about a commit, which blame prints once, and the number of its lines."""

    author: str = ""
    committed_at: int = 0
    subject: str = ""
    lines: int = 0
    first_line: int = 0


def read_origins(output: bytes) -> list[LineOrigin]:
    """Read what `git blame --porcelain` printed for several lines, by commit."""
    found: dict[str, _Facts] = {}
    facts: _Facts | None = None
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            facts = None
            continue
        word, _, rest = line.partition(b" ")
        if facts is None:
            numbers = rest.split(b" ")
            if len(word) < 40 or len(numbers) < 2 or not numbers[1].isdigit():
                continue
            facts = found.setdefault(word.decode("ascii", "replace"), _Facts(first_line=int(numbers[1][:9])))
            facts.lines += 1
        elif word == b"author":
            facts.author = format_person(decode_output(rest))
        elif word == b"committer-time":
            facts.committed_at = read_time(rest)
        elif word == b"summary":
            facts.subject = read_subject(rest)
    return [
        LineOrigin(
            revision=Revision(sha=sha, author=one.author, committed_at=one.committed_at, subject=one.subject),
            lines=one.lines,
            first_line=one.first_line,
        )
        for sha, one in found.items()
        if sha.strip("0")
    ]


def _read_messages(output: bytes) -> Iterator[tuple[str, CommitMessage]]:
    """Read the output of `git log` in the format above; commits of too many files have no paths."""
    fields = iter(output.split(b"\0")[1:])
    while sha := next(fields, b""):
        subject, body, _ = (next(fields, b"") for _ in range(3))
        paths = [decode_output(path.removeprefix(b"\n")) for path in takewhile(bool, fields)]
        yield (
            sha.decode("ascii", "replace"),
            CommitMessage(
                subject=read_subject(subject),
                body=_TRAILER.sub("", redact_secrets(decode_output(body[:_MAX_MESSAGE]))),
                paths=tuple(paths) if len(paths) <= MAX_FILES else (),
            ),
        )


def format_person(name: str) -> str:
    """Format a name, secrets masked; of an email address only the name, or its part before the @, is kept."""
    bare = name.partition("<")[0].strip()
    name = " ".join(word.partition("@")[0] for word in redact_secrets(bare).split() if not word.startswith("@"))
    return name[:_LONGEST] or NOBODY


def read_subject(subject: bytes) -> str:
    """Read the first line of a commit message, secrets masked and cut to a sensible length."""
    return redact_secrets(decode_output(subject))[:_LONGEST]


def read_time(digits: bytes) -> int:
    """Read a time in seconds since the epoch; commits may claim any, but dates end with the year 9999."""
    return min(int(digits[:_DIGITS]), _LATEST) if digits.isdigit() else 0
