"""Opens other refs of a repository named in questions, and the code at each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from indexer.errors import IndexerError, RemoteError, StorageError, UnknownRevision
from indexer.git.file_contents import read_file_at
from indexer.index import CodeIndex
from indexer.refs.side_generations import MAX_KEPT, SideGenerations
from indexer.remotes.ref_list import RefList, RefTable, fits_branch, list_pull_refs, make_pull_ref, parse_full_name
from indexer.types import ListedRefs, NamedRef, Progress, RefKind

if TYPE_CHECKING:
    from indexer.generations.reader import IndexReader
    from indexer.remotes.clone import RemoteClone
    from indexer.segments.publisher import Publisher

MAX_BRANCHES = 20  # that are kept beside the followed one

log = logging.getLogger(__name__)


class RepositoryRefs:
    """The branches, tags, commits and pull requests of a repository, each with its own generation.

    Names are looked up in the repository, or in the last listing of its host; only pull requests need a request to the
    host. `branches` are names, or patterns of names, whose newest commits are always indexed.
    """

    def __init__(
        self,
        index: CodeIndex,
        clone: RemoteClone | None = None,
        *,
        branches: Sequence[str] = (),
        most: int = MAX_KEPT,
    ) -> None:
        self._index = index
        self._clone = clone
        self._refs = RefList(index.repository.git)
        self._branches = tuple(branches)
        self._generations = SideGenerations(index, most=most)
        self._kept: tuple[NamedRef, ...] = ()
        self.problem = ""  # with the branches that are always indexed
        index.find_refs_by(self.bring)

    @property
    def page(self) -> str:
        """The address of the repository's page at its host; empty if unknown."""
        return self._index.web_url or ""

    async def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find the meaning of a name; None if the repository has nothing of that name and kind.

        Raises `RemoteError` if the host must be asked, but cannot be.
        """
        if kind == "pull request":
            return await self._find_pull(written)
        found = None
        if kind != "commit":
            table = await asyncio.to_thread(self._read_table)
            found = await asyncio.to_thread(table.find, written, kind)
        if found is None and kind in {None, "commit"}:
            found = await asyncio.to_thread(self._refs.find_commit, written)
        if found is None and kind == "commit" and self._clone is not None:
            commit = await self._clone.fetch_ref(written.strip().lower())
            found = NamedRef(kind="commit", name=commit[:12], commit=commit) if commit else None
        return None if found is None else await asyncio.to_thread(self._mark_followed, found)

    async def bring(self, written: str) -> NamedRef:
        """Resolve a name to a commit, and fetch the commit if it is missing.

        Raises `UnknownRevision`, with the nearest names, if the repository has no such ref.
        """
        kind: RefKind | None = "pull request" if written.strip().startswith(("#", "!")) else None
        found = await self.find(written, kind)
        if found is None:
            found = await self.find(written.strip().removeprefix("origin/"), kind)
        if found is None:
            raise UnknownRevision(describe_unknown(self._index.name, written, kind, await self.suggest(written)))
        return await self._bring(found)

    async def suggest(self, written: str) -> Sequence[str]:
        """Suggest the branches and tags with the most similar names."""
        table = await asyncio.to_thread(self._read_table)
        return await asyncio.to_thread(table.suggest, written)

    async def list_all(self) -> ListedRefs:
        """List the refs known without asking the host."""
        table = await asyncio.to_thread(self._read_table)
        head = await asyncio.to_thread(self._refs.find_head, self._index.ref)
        return ListedRefs(commits=table.commits, followed=head.rpartition("refs/heads/")[2])

    async def publish(
        self, written: str, publisher: Publisher, progress: Callable[[Progress], None] | None = None
    ) -> IndexReader:
        """Publish the code at a ref, given by its full name or as a commit or pull request; return it.

        Raises `UnknownRevision` if it does not exist.
        """
        name, kind = parse_full_name(written)
        ref = await self.find(name, kind)
        if ref is None:
            raise UnknownRevision(describe_unknown(self._index.name, name, kind, await self.suggest(name)))
        reader = await self.pin(ref, progress)
        index = self._generations.get_opened(reader.commit.sha)
        if index is None:
            raise AssertionError("what is read is open")
        await publisher.publish(index, beside=True)
        return reader

    async def has(self, ref: NamedRef) -> bool:
        """Whether the code at a ref can be read immediately."""
        return await self._generations.has(ref.commit)

    async def pin(self, ref: NamedRef, progress: Callable[[Progress], None] | None = None) -> IndexReader:
        """Pin the code at a ref, fetching and indexing it first if necessary.

        `progress` is called from a worker thread. Raises `UnknownRevision` if the ref is gone
        meanwhile.
        """
        here = await self._bring(ref)
        reader = await self._generations.pin(here, progress)
        try:
            await self._generations.sweep()
        except StorageError as error:  # an answer is not lost because something else cannot be deleted
            log.warning("%s: %s", self._index.name, error)
        return reader

    async def read_file(self, commit: str, path: str) -> Sequence[str] | None:
        """Read the lines of a file at a commit, masked; None if the commit or the file is missing."""
        if not await asyncio.to_thread(self._refs.has_commit, commit):
            return None
        return await asyncio.to_thread(read_file_at, self._index.repository, commit, path)

    async def refresh_kept(self) -> Sequence[NamedRef]:
        """Update the branches that are always indexed; return them.

        Raises the first `IndexerError` after trying all, which is the `problem` until this
        succeeds.
        """
        if not self._branches:
            return ()
        wanted = await asyncio.to_thread(self._list_kept)
        if wanted == self._kept and not self.problem and all([await self.has(ref) for ref in wanted]):
            return self._kept
        brought: list[NamedRef] = []
        errors: list[IndexerError] = []
        for ref in wanted:
            try:
                brought.append(await self._bring(ref))
            except IndexerError as error:
                errors.append(error)
        try:
            await self._generations.keep(brought)
        except IndexerError as error:
            errors.append(error)
        if errors:
            self.problem = f"Of the branches that are kept: {errors[0]}"
            raise errors[0]
        self.problem, self._kept = "", wanted
        return wanted

    async def list_kept(self) -> Sequence[NamedRef]:
        """List the branches that are always indexed, at their commits."""
        return await asyncio.to_thread(self._list_kept) if self._branches else ()

    async def sweep(self) -> None:
        """Delete the least recently used generations with their fetched objects."""
        kept = await self._generations.sweep()
        if self._clone is not None:
            await self._clone.forget_fetched(kept)

    async def aclose(self) -> None:
        """Close everything."""
        await self._generations.aclose()

    def _read_table(self) -> RefTable:
        own = self._refs.read().commits
        listed = self._clone.read_refs() if self._clone is not None else {}
        return RefTable({**own, **listed})

    def _mark_followed(self, ref: NamedRef) -> NamedRef:
        head = self._refs.find_head(self._index.ref)
        if ref.kind != "branch" or not head or head.rpartition("refs/heads/")[2] != ref.name:
            return ref
        return NamedRef(kind=ref.kind, name=ref.name, commit=ref.commit, full_name=ref.full_name, is_followed=True)

    def _list_kept(self) -> tuple[NamedRef, ...]:
        table = self._read_table()
        names = [name for name in table.list_branches() if fits_branch(name, self._branches)]
        found = [ref for name in names if (ref := table.find(name, "branch")) is not None]
        kept = [ref for ref in map(self._mark_followed, found) if not ref.is_followed]
        if len(kept) > MAX_BRANCHES:
            log.warning("%s: of %d branches, %d are kept", self._index.name, len(kept), MAX_BRANCHES)
        return tuple(kept[:MAX_BRANCHES])

    async def _find_pull(self, written: str) -> NamedRef | None:
        """Find a pull request at its host, else the commit that merged it."""
        merged = partial(asyncio.to_thread, self._refs.find_merged, written, self._index.ref)
        if self._clone is None:
            table = await asyncio.to_thread(self._read_table)
            return table.find(written, "pull request") or await merged()
        try:
            return await self._fetch_pull(self._clone, written) or await merged()
        except RemoteError:
            if (found := await merged()) is not None:
                return found
            raise

    async def _fetch_pull(self, clone: RemoteClone, written: str) -> NamedRef | None:
        digits = written.strip().lstrip("#!")
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
            return None
        for full_name in list_pull_refs(clone.remote.address, int(digits)):
            commit = await clone.fetch_ref(full_name)
            if commit is not None:
                return make_pull_ref(int(digits), full_name, commit)
        return None

    async def _bring(self, ref: NamedRef) -> NamedRef:
        """Fetch the commit of a ref; a branch that has moved since it was listed means the new one."""
        if await asyncio.to_thread(self._refs.has_commit, ref.commit):
            return ref
        fetched = await self._clone.fetch_ref(ref.full_name or ref.commit) if self._clone is not None else None
        if fetched is None:
            raise UnknownRevision(
                f"{self._index.name} has no {ref.name} any more. Name a branch or a tag that it has now."
            )
        return NamedRef(kind=ref.kind, name=ref.name, commit=fetched, full_name=ref.full_name)


def describe_unknown(repository: str, written: str, kind: RefKind | None, nearest: Sequence[str]) -> str:
    """Say that a repository lacks a name, and suggest similar ones."""
    if kind == "pull request":
        return (
            f"{repository} has no pull request {written[:80]} that can be read here: its host does not offer it, or it "
            "was not fetched. Name its branch instead."
        )
    known = f" The nearest names are {', '.join(nearest)}." if nearest else " There are no other branches or tags."
    return f"{repository} has no {kind or 'branch, tag or commit'} {written[:80]!r}.{known}"
