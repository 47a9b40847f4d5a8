"""The tools that read the past of a repository: one lists commits, the other compares two."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from agent.history.commit_refs import describe_commit, format_day, make_commit_ref
from agent.history.comparison import (
    ADDED,
    FILE,
    REMOVED,
    compare_part,
    count_comparison,
    describe_comparison,
    make_comparison_refs,
)
from agent.ports import Deps
from agent.repositories.joined_code import CodeHome, list_homes
from agent.repositories.labels import label_ref
from agent.tools.tool import HISTORY, Tool, ToolEvidence, ToolReport
from indexer.types import CommitLog, LogQuery

MAX_COMMITS = 50
_MOST_WORDS = 8
_EARLIEST, _LATEST = date(1970, 1, 2), date(9999, 1, 1)
MAX_FILES = 40
_SAID = {REMOVED: "removed", ADDED: "added"}


def check_plain(text: str) -> str:
    """Refuse what no name, path or word holds, and what git would take for several patterns."""
    if any(ord(character) < 32 for character in text):
        raise ValueError("control characters and line breaks are not allowed here")
    return text.strip()


Plain = Annotated[str, Field(max_length=200), AfterValidator(check_plain)]


class LogArguments(BaseModel):
    """Which commits."""

    path: Annotated[str, Field(max_length=1000), AfterValidator(check_plain)] = Field(
        default="", description="A file or folder that they touched; it may be gone by now. Empty for all."
    )
    author: Plain = Field(default="", description="A part of the author's name, in any case.")
    message: Plain = Field(default="", description="Words that all stand in the message, in any case.")
    changed_text: Plain = Field(default="", description="Exact text that they added or removed.")
    since: date | None = Field(default=None, description="The first day, as YYYY-MM-DD.")
    until: date | None = Field(default=None, description="The last day, as YYYY-MM-DD.")
    from_ref: Plain = Field(default="", description="A tag, branch or commit that they come after.")
    to_ref: Plain = Field(default="", description="A tag, branch or commit up to which they are listed.")
    limit: int = Field(default=20, ge=1, le=MAX_COMMITS, description="How many, newest first.")


class ReadRepositoryLog(Tool[LogArguments]):
    """Lists commits of the whole repository."""

    name = "repository_log"
    description = (
        "List commits, newest first, by author, dates, path, words of the message, changed text, or between two tags, "
        "branches or commits, with the files that they touched."
    )
    arguments = LogArguments
    label = "Reading the log"
    argument_shown = "path"
    cost = HISTORY
    only_reads = True

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name what the commits are chosen by."""
        given = [f"{name} {value}" for name, value in args.items() if name in _CHOOSING and value]
        return ", ".join(given) or "newest commits"

    async def run(self, args: LogArguments, deps: Deps) -> ToolEvidence:
        """List the commits; people are named, their addresses are not."""
        report = ToolReport(deps)
        for home in list_homes(deps.code, args.path.removeprefix("./").strip("/")):
            if home.label:
                report.say(f"{home.repository}:")
            await self._list_commits(report, home, args)
        return report.evidence()

    async def _list_commits(self, report: ToolReport, home: CodeHome, args: LogArguments) -> None:
        log = await home.code.past.log(_make_query(args, home.path))
        report.say(_summarize(log))
        for one in log.revisions:
            ref = make_commit_ref(one)
            named = label_ref(ref, home.repository, home.label) if home.label else ref
            report.cite(named, describe_commit(one))
        if log.revisions and not log.complete and (log.total is None or log.total > len(log.revisions)):
            report.say(f"For older ones ask with until = {format_day(log.revisions[-1].committed_at)}.")


_CHOOSING = frozenset(LogArguments.model_fields) - {"limit"}


def _make_query(args: LogArguments, path: str) -> LogQuery:
    return LogQuery(
        path=path.removesuffix("/.") if path != "." else "",
        after=args.from_ref,
        until=args.to_ref,
        since=_to_seconds(args.since) if args.since else 0,
        before=_to_seconds(args.until + timedelta(days=1)) - 1 if args.until and args.until < _LATEST else 0,
        author=args.author,
        words=tuple(args.message.split()[:_MOST_WORDS]),
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
    shallow = " The history here is cut off: older commits were not fetched." if log.is_shallow else ""
    return " ".join([said, *filter(None, ends)]) + "." + shallow


class CompareArguments(BaseModel):
    """Which two, and where."""

    from_ref: Plain = Field(min_length=1, description="The older tag, branch or commit; #12 for a pull request.")
    to_ref: Plain = Field(default="", description="The newer one; empty for the commit that is read here.")
    path: Annotated[str, Field(max_length=1000), AfterValidator(check_plain)] = Field(
        default="", description="A file, a folder, or the name of a definition. Empty for all."
    )


class CompareRefs(Tool[CompareArguments]):
    """Shows what differs between two commits."""

    name = "compare_refs"
    description = (
        "Compare two tags, branches or commits: the files that differ, how many lines, and the most telling lines, "
        "removed ones at the older commit and added ones at the newer. repository_log has the commits between them."
    )
    arguments = CompareArguments
    label = "Comparing"
    argument_shown = "from_ref"
    cost = HISTORY
    only_reads = True
    is_repeatable = False

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name what is compared."""
        ends = " and ".join(str(args[name]) for name in ("from_ref", "to_ref") if args.get(name))
        return f"{ends} in {args['path']}" if args.get("path") else ends

    async def run(self, args: CompareArguments, deps: Deps) -> ToolEvidence:
        """List the files, then show lines while there is room."""
        report = ToolReport(deps)
        for home in list_homes(deps.code, args.path.removeprefix("./").strip("/")):
            if home.label:
                report.say(f"{home.repository}:")
            await _compare_home(report, home, args)
        return report.evidence()


async def _compare_home(report: ToolReport, home: CodeHome, args: CompareArguments) -> None:
    part = await compare_part(home.code, args.from_ref, args.to_ref, home.path)
    facts = describe_comparison(part, home.code.commit)
    counts = count_comparison(part.comparison)
    if facts.get("same"):
        report.say(f"{facts['after']} and {facts['until']} are the same commit.")
        return
    known = {name: said for name, said in facts.items() if said and not name.startswith("changed ")}
    report.say("; ".join(f"{name}: {said}" for name, said in {**known, **counts}.items()))
    refs = await make_comparison_refs(home.code, part)
    for ref in [ref for ref in refs if ref["kind"] == FILE][:MAX_FILES]:
        report.say(f"{ref['path']} {ref['doc']} {ref['signature']}".strip())
    if counts["files changed"] > MAX_FILES:
        report.say("More files differ; ask with a path.")
    for ref in refs:
        if ref["kind"] in _SAID:
            named = label_ref(ref, home.repository, home.label) if home.label else ref
            within = f" in {ref['symbol']}" if ref["symbol"] else ""
            report.show(named, ref["doc"], about=f"{_SAID[ref['kind']]}{within}")
