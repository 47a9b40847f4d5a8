"""Lookups in the code for one person: the parts that they may see, masked, a page at a time, at one commit."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field, create_model

from agent import NEXT, Arguments, CodeLookup, CodeSearch, FileText, Look, LookupResult, Offset, read_lines
from bot.surfaces.ask_events import SurfaceValue
from bot.surfaces.principals import Principal
from bot.surfaces.visible_code import VisibleCode, look_again
from indexer import IndexerError, IndexStatus, UnknownPath, UnknownRevision

MOST_RESOURCE_LINES = 2_000  # of a file that is read as a whole
SHORTEST_COMMIT = 7  # characters by which a commit is named
_MAX_WARNINGS = 5
_COMMIT = re.compile(r"[0-9a-f]{40,64}")

Repository = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="The repository's name in the list of repositories; optional if there is only one.",
    ),
]
At = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="A branch, a tag, a commit, or a pull request as #12, to read the code at; its newest commit "
        "without. The first time for each takes longer.",
    ),
]


class ListArguments(Arguments):
    """A part of the list of repositories."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    offset: Offset = 0


class ListedRepository(SurfaceValue):
    """A repository. `commit` is null before it is indexed; `warnings` say what is wrong with it."""

    repository: str
    commit: str | None = None
    branch: str | None = None
    indexed_at: Annotated[str | None, Field(description="When, in UTC.")] = None
    commits_behind: int | None = None
    files: Annotated[int, Field(ge=0)] = 0
    symbols: Annotated[int, Field(ge=0)] = 0
    warnings: tuple[str, ...] = ()


class RepositoryListing(SurfaceValue):
    """The repositories that may be asked about."""

    total: Annotated[int, Field(ge=0)]
    next: Annotated[int | None, Field(ge=0, description=NEXT)] = None
    repositories: tuple[ListedRepository, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A result in both of its forms."""

    result: LookupResult
    text: str


def add_place(arguments: type[Arguments]) -> type[Arguments]:
    """Return the arguments of a lookup with the choice of the code that it reads."""
    return create_model(
        arguments.__name__,
        __base__=arguments,
        __doc__=arguments.__doc__,
        repository=(Repository, None),
        at=(At, None),
    )


class CodeLookups(VisibleCode):
    """Looks things up for a person, in the code that they may see.

    All methods raise `UnknownRepository`, `LimitReached`, or an `IndexerError` whose text is the sentence to show.
    """

    @look_again
    async def look_up(self, principal: Principal, lookup: CodeLookup[Any, LookupResult], args: Any) -> Found:
        """Make any lookup; the arguments are those of `add_place`."""
        async with self.open_code(principal, args.repository, args.at) as code:
            look = Look(code, self.mask, is_wide=True)
            result = await lookup.look_up(args, look)
            return Found(result, f"{code.repository} at {code.commit.sha[:12]}\n{look.evidence().text}")

    async def read_at(self, principal: Principal, repository: str, commit: str, path: str) -> FileText:
        """Read a whole file, as far as one may be read at once, at a commit; `UnknownRevision` if that is gone."""
        async with self._open_commit(principal, repository, commit) as code:
            held = code.commit.sha
            entry = next((one for one in await code.files() if one.path == path), None)
            if entry is None:
                raise UnknownPath(f"There is no indexed file {path[:200]!r} in {repository} at {held}.")
            return await read_lines(Look(code, self.mask, is_wide=True), entry, [(1, MOST_RESOURCE_LINES)])

    @asynccontextmanager
    async def _open_commit(self, principal: Principal, repository: str, commit: str) -> AsyncIterator[CodeSearch]:
        """Hold a repository at a commit that a result has named."""
        async with self.open_code(principal, repository) as newest:
            held = newest.commit.sha
        gone = f"{repository} is not indexed at {commit[:40]!r} any more, but at {held}. Read that instead."
        if len(commit) >= SHORTEST_COMMIT and held.startswith(commit):
            yield newest
            return
        if not _COMMIT.fullmatch(commit):
            raise UnknownRevision(gone)
        try:
            code = await self.library.pin(repository, at=commit)
        except UnknownRevision as error:
            raise UnknownRevision(gone) from error
        yield code

    async def list_repositories(self, principal: Principal, args: ListArguments) -> RepositoryListing:
        """List the repositories that a person may ask about, and how far each is indexed."""
        await self.count(principal)
        visible, end = self.list_visible(principal), args.offset + args.limit
        page = visible[args.offset : end]
        return RepositoryListing(
            total=len(visible),
            next=end if end < len(visible) else None,
            repositories=await self._describe_all(page),
        )

    async def _describe_all(self, names: Sequence[str]) -> tuple[ListedRepository, ...]:
        """Describe repositories; one that cannot be read does not hide the others."""
        listed: list[ListedRepository] = []
        for name in names:
            try:
                listed.append(self._describe(name, await self.library.status(name)))
            except IndexerError as error:
                listed.append(ListedRepository(repository=name, warnings=(self.mask(str(error)),)))
        return tuple(listed)

    def _describe(self, name: str, status: IndexStatus) -> ListedRepository:
        """Describe the index of a repository, except its place on disk."""
        indexed = datetime.fromtimestamp(status.indexed_at, UTC) if status.indexed_at is not None else None
        return ListedRepository(
            repository=name,
            commit=status.commit,
            branch=status.branch,
            indexed_at=f"{indexed:%Y-%m-%dT%H:%M:%SZ}" if indexed else None,
            commits_behind=status.commits_behind,
            files=status.files,
            symbols=status.symbols,
            warnings=tuple(self.mask(warning) for warning in status.warnings[:_MAX_WARNINGS]),
        )
