"""Fetches changes: recent ones, since a version or day, between versions, in a release, in a file or folder."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Retrieved
from agent.history.commit_refs import (
    count_touched,
    describe_shallow,
    format_day,
    make_commit_ref,
    name_horizon,
)
from agent.history.comparison import (
    compare_part,
    count_comparison,
    describe_comparison,
    make_comparison_refs,
    make_end_refs,
)
from agent.history.history_target import HistoryTarget, find_target
from agent.history.people import describe_target
from agent.history.released import add_releases, fetch_shipped
from agent.ports import CodeSearch, SourceFiles
from agent.questions.asked_times import names_version, parse_period, read_release, read_times
from agent.questions.intents.model import IntentName, load_model
from agent.questions.terms import find_content_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.errors import UnknownRevision
from indexer.types import CommitLog, FileEntry, Location, LogQuery

_STEMS = ("changelog", "changes", "history", "news", "releases", "release-notes", "release_notes", "releasenotes")
_ENDINGS = frozenset({"", ".md", ".rst", ".txt", ".markdown", ".adoc", ".org"})
_FOLDERS = frozenset({"", "docs", "doc", "github", "documentation"})
_MAX_LINES = 20_000
_MAX_FILES = 3
_MAX_HEADING = 120
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}(?:\.\d{1,6}){1,3})(?![\w]*\.\d)", re.IGNORECASE)
_UNRELEASED = re.compile(r"\b(?:unreleased|upcoming|next|in development|development version|dev)\b", re.IGNORECASE)
_MARKED = re.compile(r"(?:#{1,4}|={1,4})\s+\S")
_UNDERLINES = frozenset("=-~^*+#")
_NUMBER = re.compile(r"\d{1,6}")
MAX_COMMITS = 300  # read
MAX_LISTED = 100  # kept for "more"
_LATELY = 30 * 86_400  # seconds before the newest commit
_MIN = 10
_SAYING_CHANGE = frozenset("between chang compar diff differ explain happen new".split())  # as stems
_OF_CHANGES: frozenset[IntentName] = frozenset({"changes", "comparison", "origin"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One version's part of a changelog; `version` is empty for unreleased changes."""

    version: str
    start_line: int
    end_line: int


async def find_section(code: SourceFiles, version: str = "", *, after: str = "") -> tuple[Location, str] | None:
    """Find the section of a version, or the newest one with content, and its version.

    With a version to come `after`, there may be none.
    """
    wanted, done = _read_numbers(version), _read_numbers(after)
    for entry in rank_changelogs(await code.files())[:_MAX_FILES]:
        lines = (await code.read(entry.path, 1, _MAX_LINES)).text.split("\n")
        for section in list_sections(lines):
            numbers = _read_numbers(section.version)
            if done and numbers == done:
                return None
            says_something = any(line.strip() for line in lines[section.start_line : section.end_line])
            if (numbers == wanted) if wanted else says_something:
                at = Location(path=entry.path, start_line=section.start_line, end_line=section.end_line)
                return at, section.version
    return None


def rank_changelogs(files: Sequence[FileEntry]) -> list[FileEntry]:
    """List possible changelogs, the one nearest to the top and with the commonest name first."""
    found = [
        (entry.path.count("/"), _STEMS.index(path.stem.lower()), entry.path, entry)
        for entry in files
        if (path := PurePosixPath(entry.path)).stem.lower() in _STEMS
        and path.suffix.lower() in _ENDINGS
        and path.parent.as_posix().removeprefix(".").lower() in _FOLDERS
    ]
    return [entry for *_, entry in sorted(found, key=lambda each: each[:3])]


def list_sections(lines: Sequence[str]) -> list[Section]:
    """List the sections of a changelog in order: from each heading with a version to the next."""
    starts = [(at, _read_version(lines[at])) for at in range(len(lines)) if _is_version_heading(lines, at)]
    ends = [*(at for at, _ in starts[1:]), len(lines)][: len(starts)]
    return [
        Section(version=version, start_line=at + 1, end_line=_cut_end(lines, at + 1, end))
        for (at, version), end in zip(starts, ends, strict=True)
    ]


def _is_version_heading(lines: Sequence[str], at: int) -> bool:
    line = lines[at][:_MAX_HEADING]
    if not line.strip() or line[0].isspace() or not (_VERSION.search(line) or _UNRELEASED.search(line)):
        return False
    after = lines[at + 1][:_MAX_HEADING] if at + 1 < len(lines) else ""
    if _MARKED.match(line) or (len(set(after.strip())) == 1 and after[0] in _UNDERLINES and len(after.strip()) > 2):
        return True
    # A line of its own that begins with the version, as plain text files have it.
    return bool(_VERSION.match(line)) and len(line.split()) <= 4


def _cut_end(lines: Sequence[str], first: int, end: int) -> int:
    """Drop blank lines at the end."""
    while end > first and not lines[end - 1].strip():
        end -= 1
    return end


def _read_version(line: str) -> str:
    found = _VERSION.search(line[:_MAX_HEADING])
    return found[1] if found else ""


def _read_numbers(version: str) -> tuple[int, ...]:
    """Read the numbers of a version, without zeros at the end."""
    found = _VERSION.search(version) or re.search(r"(\d{1,6})", version)
    numbers = [int(number) for number in _NUMBER.findall(found[1])] if found else []
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scope:
    """The limits of a question about changes, and their description."""

    query: LogQuery
    target: HistoryTarget
    said: str = ""
    is_lately: bool = False
    is_counted: bool = False


async def fetch_changes(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Fetch the commits of a question, and the changelog's section for a release.

    For two versions, branches or commits, add their differences. Each commit has its first release.
    """
    parts = request.get("parts", {})
    if asked := {name.removeprefix("shipped "): said for name, said in parts.items() if name.startswith("shipped ")}:
        return await fetch_shipped(code, asked)
    return await add_releases(code, await _fetch_commits(code, parts))


async def _fetch_commits(code: CodeSearch, parts: Mapping[str, str]) -> Retrieved:
    if (ends := _read_ends(parts)) is not None:
        return await _fetch_compared(code, ends, parts.get("target", ""))
    scope = await _read_scope(code, parts)
    if scope is None:
        return Retrieved(refs=())
    try:
        log = await code.past.log(scope.query)
    except UnknownRevision as error:
        if scope.query.release and (written := await find_section(code, scope.query.release)) is not None:
            facts = {"section": written[1], "untagged": scope.query.release}
            return Retrieved(refs=[make_lines_ref(written[0], "lines")], facts=facts)
        return await _fetch_newest(code, replace(scope.query, after="", until="", release=""), str(error))
    if not log.revisions and (scope.query.since or log.horizon is not None):
        return await _explain_none(code, scope)
    section = None if scope.target.path else await _find_changelog(code, scope.query, log)
    return _collect(scope, log, section)


async def _explain_none(code: CodeSearch, scope: _Scope) -> Retrieved:
    """Say that no commit matches, and fetch the newest ones, or the one where a shallow history ends."""
    newest = await code.past.log(replace(scope.query, since=0, limit=_MIN))
    horizon = newest.horizon
    revisions = newest.revisions or ((horizon,) if horizon is not None else ())
    problem = f"No commits of {scope.said} are known here." if scope.said else "No such commit is known here."
    if horizon is not None:
        problem = f"{problem} {describe_shallow(name_horizon(horizon))}"
    return Retrieved(
        refs=[make_commit_ref(one) for one in revisions], facts={**_describe(scope, newest), "problem": problem}
    )


async def _fetch_newest(code: CodeSearch, query: LogQuery, problem: str) -> Retrieved:
    """Fetch the newest commits because a problem prevents finding others."""
    newest = await code.past.log(replace(query, limit=_MIN))
    return Retrieved(refs=[make_commit_ref(one) for one in newest.revisions], facts={"problem": problem})


async def _fetch_compared(code: CodeSearch, ends: tuple[str, str], written: str) -> Retrieved:
    """Fetch the difference between two commits, and the commits behind it, in the requested part."""
    try:
        part = await compare_part(code, *ends, written)
    except UnknownRevision as error:
        if not any(map(names_version, ends)):  # these may be words like any others
            return Retrieved(refs=())
        return await _fetch_newest(code, LogQuery(), str(error))
    older, newer = part.comparison.older, part.comparison.newer
    one_path = part.paths[0] if len(part.paths) == 1 else ""
    lines = part.target.lines if newer.sha == code.commit.sha else None
    query = LogQuery(after=older.sha, until=newer.sha, path=one_path, lines=lines, limit=MAX_COMMITS)
    log = await code.past.log(query)
    if len(part.paths) > 1:
        log = _keep_below(log, part.paths)
    section = None
    if not written or not (part.paths or part.asked):
        named = replace(log, after=older, until=newer if ends[1] else None)
        section = await _find_changelog(code, query, named)
    found = _collect(_Scope(query=query, target=HistoryTarget(path=one_path, is_folder=not lines)), log, section)
    return Retrieved(
        refs=[*make_end_refs(part, code.commit), *found.refs, *await make_comparison_refs(code, part)],
        totals={**found.totals, **count_comparison(part.comparison)},
        facts={**found.facts, **describe_comparison(part, code.commit)},
    )


def _keep_below(log: CommitLog, paths: Sequence[str]) -> CommitLog:
    """Keep the commits that touched any of the paths."""
    prefixes = tuple(f"{path}/" for path in paths)
    kept = [one for one in log.revisions if any(f"{path}/".startswith(prefixes) for path in one.paths)]
    return replace(log, revisions=tuple(kept), total=len(kept) if log.complete else None)


def _collect(scope: _Scope, log: CommitLog, section: tuple[EvidenceRef, str] | None) -> Retrieved:
    below = scope.target.path if scope.target.is_folder else ""
    revisions = log.revisions
    if scope.is_lately:
        newest = max((one.committed_at for one in revisions), default=0)
        recent = [one for one in revisions if one.committed_at >= newest - _LATELY]
        revisions = tuple(recent if len(recent) >= _MIN else revisions[:_MIN])
    is_folder = scope.target.is_folder or not scope.target.path
    totals = {
        "commits": len(revisions) if scope.is_lately or scope.is_counted else log.total or len(revisions),
        "counted": len(revisions),
        **({"people": len({one.author for one in revisions})} if len(revisions) < MAX_COMMITS else {}),
        **(count_touched(revisions, below=below) if is_folder else {}),
    }
    refs = [make_commit_ref(one, below=below) for one in revisions[:MAX_LISTED]]
    facts = _describe(scope, log)
    if refs:
        facts |= {"newest": refs[0]["signature"][:10], "oldest": format_day(revisions[-1].committed_at)}
    if section is not None:
        refs, facts["section"] = [section[0], *refs], section[1]
    return Retrieved(refs=refs, totals=totals, facts=facts)


def _describe(scope: _Scope, log: CommitLog) -> dict[str, str]:
    """Describe the limits of the commits in words."""
    facts = {"said": scope.said, **describe_target(scope.target)}
    for name, tag in (("after", log.after), ("until", log.until)):
        if tag is not None:
            facts[name] = tag.name
            facts[f"{name} day"] = format_day(tag.created_at) if tag.created_at else ""
    if log.horizon is not None:
        facts["shallow"] = name_horizon(log.horizon)
    if scope.is_lately:
        facts["lately"] = "yes"
    return facts


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedComparison:
    """The two commits that a question compares, as named, and the scope; without `until`, with the pinned one."""

    after: str
    until: str
    target: str


def parse_comparison(question: str) -> AskedComparison | None:
    """Return the commits that a question compares; None for other questions."""
    times = read_times(question)
    ends = _read_ends(times.parts)
    if ends is None or load_model().rank(question)[0].name not in _OF_CHANGES:
        return None
    target = " ".join(term for term in find_content_terms(times.rest) if term not in _SAYING_CHANGE)
    return AskedComparison(after=ends[0], until=ends[1], target=target)


def _read_ends(parts: Mapping[str, str]) -> tuple[str, str] | None:
    """Read the two compared commits, the second empty for the pinned one; None for a single commit."""
    if parts.get("pending") or parts.get("release"):
        return None
    if parts.get("from") and parts.get("until"):
        after, until = (read_release(parts[name]) or _strip_quotes(parts[name]) for name in ("from", "until"))
        return after, until
    words = parts.get("since", "")
    if not words or parse_period(words, int(time.time())) is not None:
        return None
    return read_release(words) or _strip_quotes(words), ""


def _strip_quotes(written: str) -> str:
    return " ".join(written.split()).strip("`'\" ,").rstrip(".")


async def _read_scope(code: CodeSearch, parts: Mapping[str, str]) -> _Scope | None:
    """Read the parts of the question; None if its target does not exist."""
    query, said = LogQuery(limit=MAX_COMMITS), ""
    start, written = parts.get("since", ""), parts.get("target", "")
    release = read_release(parts.get("release", "")) or read_release(written)
    if release:
        return _Scope(query=replace(query, release=release), target=HistoryTarget())
    if parts.get("pending"):
        return _Scope(query=replace(query, after="newest"), target=HistoryTarget())
    if start or parts.get("period"):
        words = start or parts["period"]
        since = parse_period(words, int(time.time()))
        said = f"since {words}" if start else words
        query = replace(query, since=since) if since is not None else replace(query, after=read_release(words) or words)
    if count := min(int(parts.get("count", "0")), MAX_LISTED):
        query, said = replace(query, limit=count), "the newest commits" if count > 1 else "the newest commit"
    return await _add_target(
        code, _Scope(query=query, target=HistoryTarget(), said=said, is_counted=bool(count)), parts
    )


async def _add_target(code: CodeSearch, scope: _Scope, parts: Mapping[str, str]) -> _Scope | None:
    """Limit commits to the question's subject: a part of the code, else a person, else words of their messages."""
    written, words = parts.get("target", ""), tuple(parts.get("words", "").split())
    target = await find_target(code, written) if written else HistoryTarget()
    is_open = scope.query == LogQuery(limit=MAX_COMMITS)
    if target is None or target.is_guess:
        by = replace(scope.query, author=written)
        if (await code.past.log(replace(by, limit=1))).revisions:
            return replace(scope, query=by, said=f"{scope.said} by {written}".strip())
    if words and (target is None or target.is_guess or (is_open and not written)):
        said = f"{scope.said} with {' and '.join(words)} in the message".strip()
        return replace(scope, query=replace(scope.query, words=words, limit=_MIN), said=said)
    if target is None:
        return None
    query = replace(scope.query, path=target.path, lines=target.lines, text=target.text)
    return replace(scope, query=query, target=target, is_lately=is_open and not written)


async def _find_changelog(code: CodeSearch, query: LogQuery, log: CommitLog) -> tuple[EvidenceRef, str] | None:
    """Refer to the changelog's section of the named release, or its newest one after a release."""
    if not (query.release or query.after):
        return None
    version = log.until.name if log.until is not None else ""
    released = log.after.name if log.after is not None and not version else ""
    found = await find_section(code, version, after=released)
    if found is None:
        return None
    return make_lines_ref(found[0], "lines"), found[1] or "what is not released yet"
