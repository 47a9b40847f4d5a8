"""Commits of the whole repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from agent.evidence.refs import make_lines_ref
from agent.history.commit_refs import describe_commit, describe_shallow, format_day, make_commit_ref, name_horizon
from agent.lookups.lookup import ROOT_PATH, Arguments, CodeLookup, Look, Offset, Path, Plain, PlainText
from agent.lookups.read_file import find_indexed_file, name_similar
from agent.lookups.results import CommitListing, FoundCommit, HistoryResult
from agent.lookups.tool import HISTORY
from agent.repositories.joined_code import CodeHome, list_homes
from agent.repositories.labels import label_ref
from indexer.types import CommitLog, LogQuery, Revision

MAX_FILE_COMMITS = 200
_MAX_SUBJECT = 200


class HistoryArguments(Arguments):
    """A file, or one line of it."""

    path: Annotated[Path, Field(min_length=1, description=ROOT_PATH)]
    line: Annotated[int, Field(ge=0, le=10_000_000, description="A line to blame; 0 for the file alone.")] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class FileHistory(CodeLookup[HistoryArguments, HistoryResult]):
    """Finds who changed a file, when, and why."""

    name = "file_history"
    title = "History of a file"
    description = (
        "List the commits that changed a file, and with `line` the one that last wrote a line of it; repository_log "
        "has their messages."
    )
    arguments = HistoryArguments
    result = HistoryResult
    label = "Reading the history of"
    argument_shown = "path"
    cost = HISTORY

    async def find(self, args: HistoryArguments, look: Look) -> HistoryResult:
        """List commits up to the indexed one, newest first, with names but without email addresses."""
        entry = await find_indexed_file(look.code, args.path)
        wanted = min(args.offset + args.limit + 1, MAX_FILE_COMMITS)
        history = await look.code.history(entry.path, line=args.line, limit=wanted)
        page, last = look.take_page(history.revisions, args.limit, args.offset), history.last_changed
        look.head["is_total_exact"] = history.complete
        if not history.revisions:
            look.note("No history is known.")
        if history.horizon is not None:
            look.note(describe_shallow(name_horizon(history.horizon)))
        if last is not None:
            passage = await look.code.read(entry.path, history.line, history.line)
            look.show(make_lines_ref(passage.location, "lines", language=entry.language), passage.text)
            look.say(f"Line {history.line} was last changed by commit {last.sha[:12]}{'.' if last in page else ':'}")
            if last not in page:
                look.cite(make_commit_ref(last), describe_commit(last))
        if page:
            look.say(f"Commits that changed {entry.path}, newest first:")
        for revision in page:
            look.cite(make_commit_ref(revision), describe_commit(revision))
        return HistoryResult(
            **look.head,
            path=entry.path,
            commits=tuple(show_commit(one, look) for one in page),
            line=history.line,
            last_changed=show_commit(last, look) if last is not None else None,
        )


def show_commit(revision: Revision, look: Look) -> FoundCommit:
    """Describe a commit, with names but without email addresses."""
    return FoundCommit(
        commit=revision.sha,
        author=look.mask(revision.author)[:_MAX_SUBJECT],
        date=format_day(revision.committed_at),
        subject=look.mask(revision.subject)[:_MAX_SUBJECT],
    )


MAX_COMMITS = 50
_MAX_WORDS = 8
_EARLIEST, _LATEST = date(1970, 1, 2), date(9999, 1, 1)

PlainPath = Annotated[PlainText, StringConstraints(max_length=1000)]


def _read_day(value: object) -> object:
    """Read a day, and reject numbers."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError("write it as YYYY-MM-DD")
    return date.fromisoformat(value)


Day = Annotated[date, BeforeValidator(_read_day)]


class LogArguments(Arguments):
    """A choice of commits."""

    path: PlainPath = Field(
        default="", description="A file or folder that they touched; it may be gone by now. Empty for all."
    )
    author: Plain = Field(default="", description="A part of the author's name, in any case.")
    message: Plain = Field(default="", description="Words that the message must contain, in any case.")
    changed_text: Plain = Field(default="", description="Exact text that they added or removed.")
    since: Day | None = Field(default=None, description="The first day, as YYYY-MM-DD.")
    until: Day | None = Field(default=None, description="The last day, as YYYY-MM-DD.")
    from_ref: Plain = Field(default="", description="Only commits after this tag, branch or commit.")
    to_ref: Plain = Field(default="", description="Only commits up to this tag, branch or commit.")
    limit: int = Field(default=20, ge=1, le=MAX_COMMITS, description="How many, newest first.")


class RepositoryLog(CodeLookup[LogArguments, CommitListing]):
    """Lists commits of the whole repository."""

    name = "repository_log"
    title = "List commits"
    description = (
        "List commits, newest first, by author, dates, path, words of the message, changed text, or between two tags, "
        "branches or commits, with the files that they touched."
    )
    arguments = LogArguments
    result = CommitListing
    label = "Reading the log"
    argument_shown = "path"
    cost = HISTORY

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the criteria of the commits."""
        given = [f"{name} {value}" for name, value in args.items() if name in _CHOOSING and value]
        return ", ".join(given) or "newest commits"

    async def find(self, args: LogArguments, look: Look) -> CommitListing:
        """List the commits, with names but without email addresses."""
        commits: list[FoundCommit] = []
        for home in list_homes(look.code, args.path.removeprefix("./").strip("/")):
            if home.label:
                look.say(f"{home.repository}:")
            commits += await _list_commits(look, home, args)
        return CommitListing(**look.head, commits=tuple(commits))


async def _list_commits(look: Look, home: CodeHome, args: LogArguments) -> list[FoundCommit]:
    log = await home.code.past.log(_make_query(args, home.path))
    look.say(_summarize(log))
    if not log.revisions and home.path and (near := await name_similar(home.code, home.path)):
        look.say(near)
    for one in log.revisions:
        ref = make_commit_ref(one)
        look.cite(label_ref(ref, home.repository, home.label) if home.label else ref, describe_commit(one))
    if log.revisions and not log.complete and (log.total is None or log.total > len(log.revisions)):
        look.note(f"For older ones ask with until = {format_day(log.revisions[-1].committed_at)}.")
    look.head["total"] += log.total or len(log.revisions)
    look.head["is_total_exact"] = look.head.get("is_total_exact", True) and (log.complete or log.total is not None)
    return [show_commit(one, look) for one in log.revisions]


_CHOOSING = frozenset(LogArguments.model_fields) - {"limit"}


def _make_query(args: LogArguments, path: str) -> LogQuery:
    return LogQuery(
        path=path.removesuffix("/.") if path != "." else "",
        after=args.from_ref,
        until=args.to_ref,
        since=_to_seconds(args.since) if args.since else 0,
        before=_to_seconds(args.until + timedelta(days=1)) - 1 if args.until and args.until < _LATEST else 0,
        author=args.author,
        words=tuple(args.message.split()[:_MAX_WORDS]),
        text=args.changed_text,
        limit=args.limit,
    )


def _to_seconds(day: date) -> int:
    """Return when a day begins; git knows none before the epoch."""
    return int(datetime.combine(max(day, _EARLIEST), datetime.min.time(), UTC).timestamp())


def _summarize(log: CommitLog) -> str:
    shown = len(log.revisions)
    total = f" of {log.total:,}" if log.total is not None and log.total > shown else ""
    ends = [f"after {log.after.name}" if log.after else "", f"up to {log.until.name}" if log.until else ""]
    said = f"{shown}{total} commits, merges left out" if shown else "No commit fits"
    shallow = f" {describe_shallow(name_horizon(log.horizon))}" if log.horizon is not None else ""
    return " ".join([said, *filter(None, ends)]) + "." + shallow
