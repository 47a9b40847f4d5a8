"""Commits by range, path, lines or text, their authors, and the last author of lines, within limits."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from indexer.errors import UnknownRevision
from indexer.git.git_command import GitCommand, decode_output
from indexer.git.history import FORMAT, GitHistory, format_person, read_commits, read_origins, read_time
from indexer.git.tags import TagList
from indexer.types import CommitLog, Contributor, Contributors, LineOrigin, LogQuery, Tag

_PEOPLE_FORMAT = "%H%x00%aN%x00%ct%x00"
_MAX_COMMITS = 50_000  # counted for people
_MAX_REMOVED = 3
_TIMEOUT_SECONDS = 10.0
_OPTIONS = ("--no-merges", "--encoding=UTF-8", "--no-textconv", "--no-ext-diff", "--no-show-signature")
_NEWEST = "newest"
_ANCESTOR = re.compile(r"(?P<name>[^~^]{1,200})(?:~(?P<steps>[0-9]{0,5})|(?P<carets>\^{1,20}))")  # as in HEAD~3
_HELD = "HEAD"  # to the one who asks, the commit that is read


class CommitQueries:
    """Asks git for commits and people.

    A commit whose parents were not fetched is omitted, because it looks as if it had written
    everything.
    """

    def __init__(self, git: GitCommand, history: GitHistory, tags: TagList) -> None:
        self._git = git
        self._history = history
        self._tags = tags

    def list_commits(
        self, sha: str, query: LogQuery, *, is_file: bool, known: Mapping[str, Tag] = MappingProxyType({})
    ) -> CommitLog:
        """List the commits of a query, up to `sha` or the query's end; may raise `UnknownRevision`.

        `known` are additional names that the query may use.
        """
        after, until = self._find_range(sha, query, known)
        revisions = f"{after.sha}..{until.sha if until else sha}" if after else until.sha if until else sha
        what = _describe_selection(query, is_file=is_file)
        limits = (f"--max-count={query.limit + 1}", *_describe_messages(query))
        paths = (query.path,) if query.path and query.lines is None else ()
        output = self._git.try_run(
            *_configure(sha),
            "log",
            *_OPTIONS,
            *limits,
            *what,
            f"--format={FORMAT}",
            revisions,
            "--",
            *paths,
            seconds=_TIMEOUT_SECONDS,
        )
        severed = self._history.read_shallow_commits()
        listed = [one for one in read_commits(output or b"") if one.sha not in severed]
        is_whole = output is not None and len(listed) <= query.limit
        # Git compares an author's address too, which nobody is to find out by trying.
        found = [one for one in listed if query.author.casefold() in one.author.casefold()]
        counts = not (query.lines or query.text or query.author) and output is not None
        total = len(found) if is_whole else self._count(revisions, query) if counts else None
        return CommitLog(
            revisions=tuple(found[: query.limit]),
            total=total,
            complete=is_whole and not severed,
            horizon=self._history.find_horizon() if severed else None,
            after=after,
            until=until,
        )

    def _find_range(self, sha: str, query: LogQuery, known: Mapping[str, Tag]) -> tuple[Tag | None, Tag | None]:
        if query.release:
            tag = self.find_name(sha, query.release)
            return self._tags.find_previous(tag), tag
        after = known.get(query.after) or self.find_name(sha, query.after) if query.after else None
        return after, known.get(query.until) or self.find_name(sha, query.until) if query.until else None

    def find_name(self, sha: str, name: str) -> Tag:
        """Resolve a name relative to a pinned commit, also as in `v1.0~3`; raises `UnknownRevision`."""
        if ancestor := _ANCESTOR.fullmatch(name):
            steps = len(ancestor["carets"] or "") or int(ancestor["steps"] or "1")
            return self._find_ancestor(self.find_name(sha, ancestor["name"]), steps, name)
        if name.upper() == _HELD:
            return Tag(name=_HELD, sha=sha, created_at=0)
        newest = next(iter(self._tags.list_releases(sha)), None) if name == _NEWEST else None
        return newest or self._tags.find(name)

    def _find_ancestor(self, start: Tag, steps: int, name: str) -> Tag:
        """Go back that many commits, from merges to their first parents."""
        revision = f"{start.sha}~{steps}^{{commit}}"
        output = self._git.try_run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", revision, seconds=_TIMEOUT_SECONDS
        )
        if not output:
            raise UnknownRevision(f"There is no commit {name!r}: fewer than {steps} come before {start.name}.")
        return Tag(name=name, sha=output.strip().decode("ascii"), created_at=0)

    def is_in_history(self, sha: str, of: str) -> bool:
        """Whether a commit is another one or its ancestor."""
        options = ("--is-ancestor", "--end-of-options", sha, of)
        return self._git.try_run("merge-base", *options, seconds=_TIMEOUT_SECONDS) is not None

    def find_removed(self, sha: str, name: str) -> tuple[str, ...]:
        """Find the paths of removed files with a name, the last removed first; none if git takes too long."""
        options = ("--diff-filter=D", "--no-renames", "--name-only", "-z", "--format=")
        output = self._git.try_run("log", *options, "--end-of-options", sha, "--", seconds=_TIMEOUT_SECONDS) or b""
        wanted = os.fsencode(name)
        paths = (path.lstrip(b"\n") for path in output.split(b"\0") if path.endswith(wanted))
        found = dict.fromkeys(path for path in paths if path.rpartition(b"/")[2] == wanted)
        return tuple(map(decode_output, islice(found, _MAX_REMOVED)))

    def _count(self, revisions: str, query: LogQuery) -> int | None:
        limits = _describe_messages(query)
        paths = (query.path,) if query.path else ()
        output = self._git.try_run(
            "rev-list", "--count", "--no-merges", *limits, revisions, "--", *paths, seconds=_TIMEOUT_SECONDS
        )
        return int(output) if output is not None else None

    def count_people(self, sha: str, path: str, *, is_file: bool) -> Contributors:
        """Count the authors of the commits up to `sha` that touched a path, and for a file, of its remaining lines."""
        follow = ("--follow", "--no-patch") if is_file else ()
        output = self._git.try_run(
            *_configure(sha), "log", *_OPTIONS, *follow, f"--max-count={_MAX_COMMITS}", f"--format={_PEOPLE_FORMAT}",
            sha, "--", *((path,) if path else ()), seconds=_TIMEOUT_SECONDS,
        )  # fmt: skip
        lines: Counter[str] = Counter()
        for origin in self.list_origins(sha, path, ()) if is_file else ():
            lines[origin.revision.author] += origin.lines
        severed = self._history.read_shallow_commits()
        people = list(_read_people(output or b"", lines, severed))
        commits = sum(one.commits for one in people)
        return Contributors(
            people=tuple(sorted(people, key=lambda one: (-one.lines, -one.commits, one.name))),
            commits=commits,
            lines=sum(lines.values()),
            complete=output is not None and commits < _MAX_COMMITS and not severed,
        )

    def list_origins(self, sha: str, path: str, lines: Sequence[tuple[int, int]]) -> tuple[LineOrigin, ...]:
        """Find the commits that last wrote some lines of a file, or all, by number of lines.

        There are none if git takes too long.
        """
        options = ("--porcelain", "--no-textconv", "--ignore-revs-file=", "--encoding=UTF-8", "-w")
        ranges = (f"-L{first},{last}" for first, last in lines)
        output = self._git.try_run(
            *_configure(sha), "blame", *options, *ranges, sha, "--", path, seconds=_TIMEOUT_SECONDS
        )
        severed = self._history.read_shallow_commits()
        known = [one for one in read_origins(output or b"") if one.revision.sha not in severed]
        return tuple(sorted(known, key=lambda one: (-one.lines, -one.revision.committed_at)))


def _read_people(output: bytes, lines: Counter[str], left_out: Collection[str]) -> Iterator[Contributor]:
    """Read the authors of a log, newest first, by name."""
    fields = iter(output.split(b"\0")[:-1])
    names: dict[bytes, str] = {}
    commits: dict[str, list[tuple[str, int]]] = {}
    for written, author, at in zip(fields, fields, fields, strict=False):
        sha = written.strip(b"\n").decode("ascii", "replace")
        if author not in names:
            names[author] = format_person(decode_output(author))
        if sha not in left_out:
            commits.setdefault(names[author], []).append((sha, read_time(at)))
    for name, own in commits.items():
        times = [at for _, at in own]
        yield Contributor(
            name=name, commits=len(own), first_at=min(times), last_at=max(times), newest=own[0][0], lines=lines[name]
        )


def _configure(sha: str) -> tuple[str, ...]:
    """Keep file names unescaped, and use only the mailmap of the commit."""
    settings = ("core.quotePath=false", "mailmap.file=", f"mailmap.blob={sha}:.mailmap")
    return tuple(word for setting in settings for word in ("-c", setting))


def _describe_selection(query: LogQuery, *, is_file: bool) -> tuple[str, ...]:
    """Write git's arguments for the selection: lines, a text, one file under all its names, or paths."""
    if query.lines is not None:
        return ("--no-patch", f"-L{query.lines[0]},{query.lines[1]}:{query.path}")
    text = (f"-S{query.text}",) if query.text else ()
    return (*text, *(("--follow",) if is_file else ()), "--name-only")


def _describe_messages(query: LogQuery) -> tuple[str, ...]:
    """Write git's arguments for dates, authors and messages; words are plain text, never options."""
    since = (f"--since={query.since}",) if query.since else ()
    before = (f"--until={query.before}",) if query.before else ()
    author = (f"--author={query.author}",) if query.author else ()
    words = tuple(f"--grep={word}" for word in query.words)
    plain = ("--all-match", "--fixed-strings", "--regexp-ignore-case") if author or words else ()
    return (*since, *before, *author, *words, *plain)
