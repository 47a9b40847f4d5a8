"""Makes references to commits and people, and counts the files that commits touched most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agent.evidence.refs import make_lines_ref
from agent.state import EvidenceRef
from agent.text.escaping import format_code_span, to_one_line
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Location, Revision

UNNAMED_HORIZON = "yes"
_MAX_NAMED = 3
_NAMED_PATHS = 4
_BODY = 300  # characters of a message
_DEPTH = 2  # folders that name a part of the repository
_MIN_UPDATES = 2  # that are summed up; a single one is a line like others
_BOT = compile_pattern(
    r"(?i)(?P<name>dependabot(?:-preview)?|renovate(?:-bot)?|greenkeeper\w*|snyk-bot|pyup-bot|depfu|scala-steward)\b.*"
)
_UPDATE = compile_pattern(
    r"(?i)(?:\w{1,20}(?:\([^()]{1,40}\))?!?: ?)?(?:bump|update|upgrade|pin|lock file maintenance|\[security\])\b.*"
)


def make_commit_ref(revision: Revision, *, below: str = "") -> EvidenceRef:
    """Refer to a commit: its subject, date, author, main folder, and message."""
    at = Location(path="", start_line=0, end_line=0, commit=revision.sha)
    return make_lines_ref(
        at,
        "commit",
        symbol=revision.subject,
        doc=revision.body,
        signature=f"{format_day(revision.committed_at)}, {revision.author}",
        kind=find_area(revision.paths, below),
    )


def make_person_ref(name: str, newest: str, about: str) -> EvidenceRef:
    """Refer to somebody by their newest known commit."""
    at = Location(path="", start_line=0, end_line=0, commit=newest)
    return make_lines_ref(at, "entry", symbol=name, doc=about)


def describe_commit(revision: Revision) -> str:
    """Describe a commit: date, author, touched files, and the rest of its message."""
    more = len(revision.paths) - _NAMED_PATHS
    files = ", ".join(revision.paths[:_NAMED_PATHS]) + (f" and {more} more" if more > 0 else "")
    body = " ".join(revision.body.split())[:_BODY]
    said = f"{format_day(revision.committed_at)} by {revision.author}: {revision.subject}"
    return said + (f" [{files}]" if files else "") + (f" - {body}" if body else "")


def name_horizon(horizon: Revision) -> str:
    """Name the commit at which a shallow history ends."""
    return f"{horizon.sha[:8]} of {format_day(horizon.committed_at)}"


def describe_shallow(horizon: str) -> str:
    """Say where a shallow history ends, by the name above if there is one; empty for a whole history."""
    if not horizon:
        return ""
    what = "Older commits" if horizon == UNNAMED_HORIZON else f"Commits before {horizon}"
    return f"{what} were not fetched: the history here is shallow."


def format_day(seconds: int) -> str:
    """Write a time as a day."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def find_area(paths: Iterable[str], below: str = "") -> str:
    """Name the folder with most of some files, two levels below another one; empty for the top."""
    start = below.count("/") + 1 if below else 0
    areas = ("/".join(path.split("/")[:-1][: start + _DEPTH]) for path in paths)
    return max(Counter(areas).items(), key=lambda each: each[1], default=("", 0))[0]


def count_touched(revisions: Sequence[Revision], *, below: str = "") -> dict[str, int]:
    """Count commits by main folder and by touched file, the first few of each."""
    areas = Counter(find_area(one.paths, below) for one in revisions if one.paths)
    files = Counter(path for one in revisions for path in one.paths)
    named = {f"area {area}": count for area, count in areas.most_common(_MAX_NAMED) if area}
    return named | {f"file {path}": count for path, count in files.most_common(_MAX_NAMED) if count > 1}


def divide_commits(commits: Sequence[EvidenceRef]) -> tuple[list[EvidenceRef], list[EvidenceRef]]:
    """Separate the notable commits from bots' dependency updates; a single update is not a group."""
    updates = [ref for ref in commits if read_bot(ref) and _UPDATE.match(ref["symbol"])]
    if len(updates) < _MIN_UPDATES:
        return list(commits), []
    marks = set(map(id, updates))
    return [ref for ref in commits if id(ref) not in marks], updates


def read_bot(ref: EvidenceRef) -> str:
    """Return the name of the bot that made a commit, empty for a person."""
    found = _BOT.fullmatch(ref["signature"].partition(", ")[2].strip())
    return to_one_line(found["name"], longest=40).lower() if found is not None else ""


def describe_updates(updates: Sequence[EvidenceRef]) -> str:
    """Write the number of dependency updates, and the bots that made them."""
    names = Counter(map(read_bot, updates))
    by = " and ".join(format_code_span(name) for name, _ in names.most_common(2))
    return f"And {len(updates):,} dependency updates by {by}."
