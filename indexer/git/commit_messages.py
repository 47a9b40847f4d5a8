"""Reads commit messages with the files they touched: words that a search can find a file by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from indexer.git.git_command import GitCommand, decode_output
from indexer.git.history import GitHistory, read_subject
from indexer.secrets import redact_secrets
from indexer.types import CommitMessage

MOST_COMMITS = 6_000
MOST_FILES = 25  # of one commit; one that touches more is about none of them
_LONGEST_BODY = 4_000  # bytes; a commit may have megabytes
_TIMEOUT_SECONDS = 30.0
# As in `git log`: each field ends with a NUL, which no message can hold, and an empty one stands before each commit.
_FORMAT = "%x00%H%x00%s%x00%b%x00"
_TRAILER = re.compile(r"(?m)^[A-Z][\w-]*-by: .*$")  # sign-offs and reviewers say nothing about the code


def read_commit_messages(git: GitCommand, history: GitHistory, sha: str, *, since: str = "") -> list[CommitMessage]:
    """Read the newest commits from `sha` back to `since`, newest first, without merges.

    Commits that touch very many files are left out, and so are those whose parents were not fetched, because git lists
    all their files as changed. Returns none if git fails or takes too long.
    """
    options = ("--no-merges", f"--max-count={MOST_COMMITS}", f"--format={_FORMAT}", "--encoding=UTF-8", "-z")
    diff = ("--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--root")
    commits = f"{since}..{sha}" if since else sha
    output = git.try_run("log", *options, *diff, commits, "--", seconds=_TIMEOUT_SECONDS)
    severed = history.read_shallow_commits()
    return [message for commit, message in _read_log(output or b"") if commit not in severed and message.paths]


def _read_log(output: bytes) -> Iterator[tuple[str, CommitMessage]]:
    """Read the output of `git log` in the format above; commits of too many files have no paths."""
    fields = iter(output.split(b"\0")[1:])
    while sha := next(fields, b""):
        subject, body, _ = (next(fields, b"") for _ in range(3))
        paths = [decode_output(path.removeprefix(b"\n")) for path in takewhile(bool, fields)]
        yield (
            sha.decode("ascii", "replace"),
            CommitMessage(
                subject=read_subject(subject),
                body=_TRAILER.sub("", redact_secrets(decode_output(body[:_LONGEST_BODY]))),
                paths=tuple(paths) if len(paths) <= MOST_FILES else (),
            ),
        )
