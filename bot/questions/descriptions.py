"""Describes repositories and answers to people: how up to date the index is, and how an answer was found."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from agent import Answer
from bot.markdown.formatting import to_one_line
from bot.ports import Repositories
from bot.storage.turn_records import TurnRecord
from indexer import Drift, IndexerError, IndexStatus, NamedRef, Progress, RefreshReport

_MAX_FILES = 10
_MAX_IN_FULL = 2  # repositories of a freshness line

log = logging.getLogger(__name__)


def format_age(seconds: float) -> str:
    """Describe how long ago something was."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def describe_freshness(status: IndexStatus, now: float) -> str:
    """Describe in one line a repository's indexed commit, its age, and what is missing."""
    if status.commit is None or status.indexed_at is None:
        return f"{status.repository} is not indexed yet"
    branch = f" on {status.branch}" if status.branch else ""
    line = f"{status.repository} at {status.commit[:7]}{branch}, indexed {format_age(now - status.indexed_at)}"
    behind = status.commits_behind or 0
    line += f", {behind} commit{'s' if behind > 1 else ''} behind" if behind else ""
    return to_one_line(line + (f"; also {', '.join(status.branches)}" if status.branches else ""))


async def find_freshness(answer: Answer, repositories: Repositories, now: float, *, at: NamedRef | None = None) -> str:
    """Return the freshness line of an answer, with all its repositories, in less detail if they are many.

    A repository read `at` a ref is shown as such. A failure here never loses the answer.
    """
    if at is not None and answer.commit:
        return await _find_ref_line(answer, repositories, at)
    is_short = len(answer.read_at) > _MAX_IN_FULL
    lines = [
        await _find_freshness_of(name, commit, answer, repositories, now, is_short=is_short)
        for name, commit in answer.read_at.items()
        if name in repositories.list_names()
    ]
    first, *more = filter(None, lines) if any(lines) else ("",)
    return "; ".join([first, *(line.removeprefix("Read ") for line in more)])


async def _find_freshness_of(
    name: str, commit: str, answer: Answer, repositories: Repositories, now: float, *, is_short: bool
) -> str:
    here = [one for one in answer.citations if one.path and not one.is_elsewhere]
    own = [one for one in here if one.repository in {"", name}]
    try:
        status = await repositories.status(name)
        drift = await repositories.drift(name, commit, sorted({citation.path for citation in own}))
    except IndexerError as error:
        log.warning("an answer about %s has no freshness line: %s", name, error)
        return ""
    return describe_commit_read(name, commit, replace(status, indexed_at=None) if is_short else status, drift, now)


async def _find_ref_line(answer: Answer, repositories: Repositories, at: NamedRef) -> str:
    try:
        status = await repositories.status(answer.repository)
    except IndexerError as error:
        log.warning("an answer about %s has no freshness line: %s", answer.repository, error)
        return ""
    return describe_ref_read(answer.repository, answer.commit, at, status)


def describe_ref_read(repository: str, commit: str, at: NamedRef, status: IndexStatus) -> str:
    """Describe the ref of an answer that is not the newest commit of the followed branch."""
    place = f"commit {commit[:7]}" if at.kind == "commit" else f"{at.name}, commit {commit[:7]}"
    is_newest = commit == status.commit and not status.commits_behind
    branch = status.branch or "the followed branch"
    return to_one_line(f"Read {repository} at {place}, {'the' if is_newest else 'not the'} newest of {branch}")


def describe_commit_read(repository: str, commit: str, status: IndexStatus, drift: Drift, now: float) -> str:
    """Describe the commit of an answer, and the known changes since."""
    parts = [f"Read {repository} at {commit[:7]}"]
    if commit == status.commit and status.indexed_at is not None:
        parts[0] += f" ({status.branch})" * bool(status.branch) + f", indexed {format_age(now - status.indexed_at)}"
    if drift.behind:
        parts.append(f"{drift.behind:,} commit{'s' * (drift.behind != 1)} behind")
    if drift.changed:
        count = len(drift.changed)
        parts.append(f"{count} cited file{'s' * (count != 1)} changed since")
    if drift.uncommitted:
        count = len(drift.uncommitted)
        parts.append(
            f"uncommitted changes in {drift.uncommitted[0] if count == 1 else f'{count} cited files'} not read"
        )
    return to_one_line(" · ".join(parts))


def describe_status(status: IndexStatus, now: float) -> str:
    """Describe the index of a repository."""
    counts = f"{status.files:,} files, {status.chunks:,} chunks, {status.symbols:,} symbols"
    disk = f"{status.disk_bytes / 1e6:,.1f} MB; embedder {to_one_line(status.embedder)}"
    warnings = (to_one_line(warning) for warning in status.warnings)
    return "\n".join([f"{describe_freshness(status, now)}.", f"{counts}; {disk}.", *warnings])


def describe_progress(name: str, progress: Progress) -> str:
    """Describe the progress of indexing."""
    what = {"listing": "Listing files", "parsing": "Reading files", "embedding": "Embedding", "writing": "Writing"}
    line = f"Indexing {name}: {what.get(progress.stage, 'Finishing').lower()}"
    if progress.total <= 0:
        return to_one_line(f"{line} …")
    done = min(progress.done, progress.total)
    return to_one_line(f"{line}, {done:,} of {progress.total:,} ({100 * done // progress.total} %) …")


def describe_refresh(report: RefreshReport, name: str) -> str:
    """Describe the result of indexing."""
    warnings = "".join(f"\n{to_one_line(warning)}" for warning in report.warnings)
    if report.previous == report.commit and not report.changed and not report.removed:
        return f"`{name}` was up to date at {report.commit[:7]}.{warnings}"
    return (
        f"`{name}` is indexed at {report.commit[:7]}: {report.changed:,} files changed, {report.removed:,} removed, "
        f"in {report.seconds:.1f} seconds.{warnings}"
    )


def explain_answer(record: TurnRecord) -> str:
    """Explain how an answer was found."""
    lines = [
        f"- Route: {record.route}",
        f"- Repository: {_list_repositories(record)}",
        f"- Because: {_to_plain(record.why, ticks=True)}" * bool(record.why),
        f"- Files read: {_list_files(record.files)}",
        f"- Searched for: {', '.join(f'`{_to_plain(query)}`' for query in record.searched[:5])}"
        * bool(record.searched),
        f"- Tools: {', '.join(f'`{_to_plain(tool)}`' for tool in record.tools[:10])}" * bool(record.tools),
        f"- Model: {to_one_line(record.model or 'none')}",
        f"- Tokens: {record.input_tokens:,} read, {record.output_tokens:,} written, in {record.model_calls} calls",
        f"- Seconds: {record.seconds:.1f}",
        "- Guard: the message looked like an attack on me, so I did nothing but read" * record.watched,
        f"- Guard: {record.flagged} passages that were read give orders, and were not followed" * bool(record.flagged),
    ]
    return "\n".join(filter(None, lines))


def _list_repositories(record: TurnRecord) -> str:
    commits = record.commits or {record.repository: record.commit}
    named = [to_one_line(name) + f" at {commit[:7]}" * bool(commit) for name, commit in commits.items() if name]
    return ", ".join(named) or "none"


def _list_files(files: Sequence[str]) -> str:
    paths = ", ".join(f"`{_to_plain(path)}`" for path in files[:_MAX_FILES])
    more = len(files) - _MAX_FILES
    return (f"{paths} and {more} more" if more > 0 else paths) or "none"


def _to_plain(text: str, *, ticks: bool = False) -> str:
    line = to_one_line(text)
    return (line if ticks else line.replace("`", "'"))[:200]
