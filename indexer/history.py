"""What git's log and blame say of a file, as values: who changed it, when and why, never an address."""

from __future__ import annotations

from indexer.complaints import text
from indexer.models import Revision

# A commit as `git log` prints it: fields end with a NUL, commits with a record separator.
LOG_FORMAT = "%H%x00%an%x00%ct%x00%s%x1e"
NOBODY = "someone"
_UNCOMMITTED = "0" * 40


def read_log(output: bytes) -> list[Revision]:
    """Read what `git log` printed in the format above, newest first."""
    return [_revision(record.strip(b"\n")) for record in output.split(b"\x1e") if record.strip(b"\n")]


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
        author=person(text(facts.get(b"author", b""))),
        committed_at=_number(facts.get(b"committer-time", b"0")),
        subject=text(facts.get(b"summary", b"")),
    )


def person(name: str) -> str:
    """Keep a name as it is; of one that is an address, only what stands before it or before the @."""
    bare = name.partition("<")[0].strip()
    return " ".join(word.partition("@")[0] for word in bare.split() if not word.startswith("@")) or NOBODY


def _revision(record: bytes) -> Revision:
    sha, author, committed_at, subject = record.split(b"\0", 3)
    return Revision(
        sha=sha.decode("ascii", "replace"),
        author=person(text(author)),
        committed_at=_number(committed_at),
        subject=text(subject),
    )


def _number(digits: bytes) -> int:
    return int(digits) if digits.isdigit() else 0
