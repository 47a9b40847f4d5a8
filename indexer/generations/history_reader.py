"""Reads the history of the code up to the commit of a generation: commits, releases, people, owners of files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from indexer.diffs.comparison import compare_commits
from indexer.errors import IndexerError, UnknownPath, UnknownRevision
from indexer.generations.generation_cache import GenerationCache
from indexer.git.code_owners import OWNERS_FILES, find_owners
from indexer.git.file_contents import read_file_at
from indexer.git.repository import Repository
from indexer.text.languages import detect_language
from indexer.types import (
    CodeOwners,
    CommitLog,
    Comparison,
    Contributors,
    DeployMark,
    Deployment,
    DiffQuery,
    FileHistory,
    LineOrigin,
    Location,
    LogQuery,
    NamedRef,
    Passage,
    Releases,
    Tag,
)

DeployMarks = Callable[[], Awaitable[Mapping[str, DeployMark]]]  # the marks of running commits, by environment


class HistoryReader:
    """The past of one commit; git runs in threads, and is given up after some seconds.

    `find_ref` looks up branches that were not fetched, and pull requests.
    """

    def __init__(
        self,
        repository: Repository,
        sha: str,
        contents: GenerationCache,
        find_ref: Callable[[str], Awaitable[NamedRef]] | None = None,
        read_marks: DeployMarks | None = None,
    ) -> None:
        self._read_marks = read_marks
        self._repository = repository
        self._sha = sha
        self._contents = contents
        self._find_ref = find_ref

    async def log(self, query: LogQuery) -> CommitLog:
        """List commits up to the pinned one; `UnknownRevision` if the query names an unknown ref."""
        known = {name: await self._find_end(name) for name in (query.after, query.until) if name}
        return await asyncio.to_thread(
            self._repository.commits.list_commits, self._sha, query, is_file=self._is_file(query.path), known=known
        )

    async def compare(self, query: DiffQuery) -> Comparison:
        """Compare two commits; `UnknownRevision` as above."""
        older = await self._find_end(query.after)
        newer = await self._find_end(query.until or "HEAD")
        if query.until.startswith(("#", "!")) and query.after.upper() == "HEAD":
            older = await asyncio.to_thread(self._find_merge_base, newer, older)
        return await asyncio.to_thread(compare_commits, self._repository, older, newer, query)

    async def releases(self, shas: Sequence[str]) -> Releases:
        """Find the first release of each commit, and the commits that each environment lacks."""
        by_name = await self._read_marks() if self._read_marks is not None else {}
        marks = [mark.ref for mark in by_name.values()]
        since = await asyncio.to_thread(self._repository.releases.find_first, shas, marks) if shas else {}
        waiting = [sha for sha in shas if sha not in (since or {})]
        find_branches = self._repository.releases.find_branches
        branches = await asyncio.to_thread(find_branches, waiting, marks, held=self._sha) if waiting else {}
        deployed = [await self._find_deployed(*item, shas, marks) for item in by_name.items()]
        return Releases(since=since, branches=branches, deployments=tuple(deployed))

    async def _find_deployed(
        self, name: str, mark: DeployMark, shas: Sequence[str], marks: Sequence[str]
    ) -> Deployment:
        releases = self._repository.releases
        if mark.problem:
            return Deployment(environment=name, written=mark.written, problem=mark.problem)
        try:
            if any(sign in mark.ref for sign in "*?["):
                tag = await asyncio.to_thread(releases.find_newest, mark.ref)
            else:  # deployments move: the host is asked before the clone
                found = await self._find_ref(mark.ref) if self._find_ref is not None else None
                tag = Tag(name=found.name, sha=found.commit, created_at=0) if found else await self._find_end(mark.ref)
        except IndexerError as error:
            return Deployment(environment=name, written=mark.written, problem=str(error))
        if tag is None:
            return Deployment(environment=name, written=mark.written, problem=f"No tag matches {mark.ref}.")
        return await asyncio.to_thread(
            releases.compare, tag, shas, self._sha, name=name, written=mark.written, marks=marks
        )

    async def _find_end(self, name: str) -> Tag:
        """Find one end of a range, in the repository or at its host."""
        try:
            return await asyncio.to_thread(self._repository.commits.find_name, self._sha, name)
        except UnknownRevision:
            if self._find_ref is None:
                raise
        found = await self._find_ref(name)
        return Tag(name=found.name, sha=found.commit, created_at=0)

    def _find_merge_base(self, pull: Tag, held: Tag) -> Tag:
        """Return the base of a pull request: after a merge, the branch that it was merged into."""
        if not self._repository.commits.is_in_history(pull.sha, held.sha):
            return held
        return replace(self._repository.commits.find_name(self._sha, f"{pull.sha}^"), name=f"{pull.name}^")

    async def read(self, location: Location) -> Passage:
        """Read lines of a file at the location's commit, clipped to its end, if the index rules allow it."""
        try:
            found = await self._find_end(location.commit)
        except UnknownRevision as error:
            missing = f"There is no commit {location.commit[:12]} here: it was force-pushed away or is in another fork."
            raise UnknownRevision(missing) from error
        return await asyncio.to_thread(self._read_now, replace(location, commit=found.sha))

    def _read_now(self, location: Location) -> Passage:
        path, commit = location.path, location.commit
        lines = read_file_at(self._repository, commit, path)
        if lines is None:
            raise UnknownPath(f"There is no {path} at {commit[:12]} that can be shown.")
        if location.start_line > len(lines):
            raise UnknownPath(
                f"{path} has {len(lines)} lines at {commit[:12]}; there is no line {location.start_line}."
            )
        shown = replace(location, end_line=min(location.end_line, len(lines)))
        text = "\n".join(lines[shown.start_line - 1 : shown.end_line])
        return Passage(location=shown, text=text, language=detect_language(path, text))

    def read_lines(self, path: str) -> Sequence[str] | None:
        """Return the lines of a file of the commit; None if it has no such file that may be shown."""
        return read_file_at(self._repository, self._sha, path)

    async def people(self, path: str = "") -> Contributors:
        """Count the authors of changes to a file, to a folder's contents, or to everything."""
        is_file = self._is_file(path)
        return await asyncio.to_thread(self._repository.commits.count_people, self._sha, path, is_file=is_file)

    async def origins(self, location: Location) -> Sequence[LineOrigin]:
        """Find the commits that last wrote some lines, by number of lines."""
        lines = [(location.start_line, location.end_line)]
        return await asyncio.to_thread(self._repository.commits.list_origins, self._sha, location.path, lines)

    async def find_former_paths(self, name: str) -> Sequence[str]:
        """Find the paths of removed files with a name, the last removed first; none if git takes too long."""
        return await asyncio.to_thread(self._repository.commits.find_removed, self._sha, name)

    async def owners(self, path: str) -> CodeOwners | None:
        """Find the owners of a path by the CODEOWNERS file of the commit."""
        return await asyncio.to_thread(self._find_owners_now, path)

    def _find_owners_now(self, path: str) -> CodeOwners | None:
        for name in OWNERS_FILES:
            if (file := self._contents.file(name)) is not None:
                return find_owners(file.text, path, file=name)
        return None

    def _is_file(self, path: str) -> bool:
        return bool(path) and self._contents.row(path) is not None

    def find_files_with(self, words: Sequence[str]) -> frozenset[str]:
        """Find the files of the commit in which any of the words appears whole, indexed or not.

        None are found if git takes too long.
        """
        return self._repository.find_files_with(self._sha, words)

    def list_uncommitted(self) -> tuple[str, ...]:
        """List the paths that differ in the working tree, if this commit is checked out."""
        return self._repository.working_tree.list_all_uncommitted(self._sha)

    def read_file_history(
        self, path: str, *, line: int, limit: int, make_unknown_path: Callable[[str], UnknownPath]
    ) -> FileHistory:
        """Read the commits that touched an indexed file, and the one that last wrote a line of it."""
        row = self._contents.row(path)
        if row is None:
            raise make_unknown_path(path)
        if line > row.entry.lines:
            raise UnknownPath(f"{path} has {row.entry.lines} lines at {self._sha[:12]}; there is no line {line}.")
        history = self._repository.history
        revisions, complete = history.log(self._sha, path, limit=limit)
        last = history.blame(self._sha, path, line) if line > 0 else None
        return FileHistory(
            path=path,
            revisions=tuple(revisions),
            complete=complete,
            line=line,
            last_changed=last,
            horizon=history.find_horizon(),
        )
