"""Lookups for one person in the code that they may see: masked, a page at a time, at one commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

from pydantic import Field, create_model

from agent import NEXT, Arguments, CodeLookup, CodeMoved, CodeSearch, FileText, Look, LookupResult, Offset, read_lines
from bot.access import AccessPolicy
from bot.errors import UnknownRepository
from bot.storage.rate_limits import QuestionCounter
from bot.surfaces.ask_events import SurfaceValue
from bot.surfaces.principals import Principal
from indexer import IndexerError, IndexStatus, NotIndexed, UnknownPath, UnknownRevision

MAX_RESOURCE_LINES = 2_000  # of a file that is read as a whole
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
LONGEST_SHOWN = 80  # characters of what somebody has written
FIRST_INDEX_SECONDS = 45.0  # that a lookup waits for the first index of a repository; a client gives up after 60


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
    """The repositories that the person may ask about."""

    total: Annotated[int, Field(ge=0)]
    next: Annotated[int | None, Field(ge=0, description=NEXT)] = None
    repositories: tuple[ListedRepository, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A result in both of its forms."""

    result: LookupResult
    text: str


def add_place(arguments: type[Arguments]) -> type[Arguments]:
    """Return the arguments of a lookup, with the choice of repository and commit."""
    return create_model(
        arguments.__name__,
        __base__=arguments,
        __doc__=arguments.__doc__,
        repository=(Repository, None),
        at=(At, None),
    )


class LookupLibrary(Protocol):
    """The repositories that lookups read."""

    def list_names(self) -> Sequence[str]:
        """Name them all; the first is the default."""

    async def pin(self, repository: str | None = None, *, at: str = "") -> CodeSearch:
        """Hold a repository at its newest indexed commit, or `at` a branch, a tag, a commit or a pull request."""

    async def status(self, name: str) -> IndexStatus:
        """Describe the index of a repository."""


@dataclass(frozen=True, kw_only=True)
class CodeLookups:
    """Looks things up for a person, in the code open to them, counting each time if there is a counter.

    All methods raise `UnknownRepository`, `LimitReached`, or an `IndexerError` whose text is for
    people.
    """

    library: LookupLibrary
    access: AccessPolicy = field(default_factory=AccessPolicy)
    mask: Callable[[str], str] = str
    counter: QuestionCounter | None = None
    is_followed: bool = True  # a "no" waits for newer commits, and raises `CodeMoved` if they come

    def list_visible(self, principal: Principal) -> Sequence[str]:
        """Name the repositories that a person may ask about."""
        return self.access.list_visible(principal.write(), self.library.list_names())

    async def count(self, principal: Principal) -> None:
        """Count a lookup; `LimitReached` for one too many."""
        if self.counter is not None:
            await self.counter.count_lookup(principal.write())

    @asynccontextmanager
    async def open_code(
        self, principal: Principal, repository: str | None, at: str | None = None
    ) -> AsyncIterator[CodeSearch]:
        """Count a lookup, and hold the repository that it reads; `NotIndexed` if that takes too long at first.

        `at` names the ref, by default the newest commit; `UnknownRevision` if it does not exist.
        Whether the repository may be seen at all is decided before that. An `UnknownPath` has how
        much was read.
        """
        await self.count(principal)
        name = choose_visible(repository, self.list_visible(principal))
        try:
            async with asyncio.timeout(FIRST_INDEX_SECONDS):
                code = await (self.library.pin(name, at=at) if at else self.library.pin(name))
        except UnknownRevision as error:  # which names what there is, as somebody called it
            raise UnknownRevision(self.mask(str(error))) from error
        except TimeoutError:
            what = f"{name} at {self.mask(at[:LONGEST_SHOWN])}" if at else name
            sentence = f"{what} is being indexed for the first time. Try again in a minute."
            raise NotIndexed(sentence) from None
        if not self.is_followed:
            code.follow(None)
        try:
            yield code
        except UnknownPath as error:
            raise UnknownPath(str(error), await code.coverage(), code.commit.sha) from error

    async def look_up(self, principal: Principal, lookup: CodeLookup[Any, LookupResult], args: Any) -> Found:
        """Do any lookup; the arguments are those of `add_place`."""
        try:
            async with self.open_code(principal, args.repository, args.at) as code:
                look = Look(code, self.mask, is_wide=True)
                result = await lookup.look_up(args, look)
                return Found(result, f"{code.repository} at {code.commit.sha[:12]}\n{look.evidence().text}")
        except CodeMoved:  # it was about to say "no" of a commit while a newer one was indexed
            return await replace(self, is_followed=False, counter=None).look_up(principal, lookup, args)

    async def read_at(self, principal: Principal, repository: str, commit: str, path: str) -> FileText:
        """Read a whole file, up to the limit of one reading, at a commit; `UnknownRevision` if that is gone."""
        async with self._open_commit(principal, repository, commit) as code:
            held = code.commit.sha
            entry = next((one for one in await code.files() if one.path == path), None)
            if entry is None:
                raise UnknownPath(f"There is no indexed file {path[:200]!r} in {repository} at {held}.")
            return await read_lines(Look(code, self.mask, is_wide=True), entry, [(1, MAX_RESOURCE_LINES)])

    @asynccontextmanager
    async def _open_commit(self, principal: Principal, repository: str, commit: str) -> AsyncIterator[CodeSearch]:
        """Pin a repository at a commit from an earlier result."""
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
        """List the repositories that a person may ask about, and their indexed commits."""
        await self.count(principal)
        visible, end = self.list_visible(principal), args.offset + args.limit
        page = visible[args.offset : end]
        return RepositoryListing(
            total=len(visible),
            next=end if end < len(visible) else None,
            repositories=await self._describe_all(page),
        )

    async def _describe_all(self, names: Sequence[str]) -> tuple[ListedRepository, ...]:
        """Describe repositories; an unreadable one does not hide the others."""
        listed: list[ListedRepository] = []
        for name in names:
            try:
                listed.append(self._describe(name, await self.library.status(name)))
            except IndexerError as error:
                listed.append(ListedRepository(repository=name, warnings=(self.mask(str(error)),)))
        return tuple(listed)

    def _describe(self, name: str, status: IndexStatus) -> ListedRepository:
        """Describe the index of a repository, without its place on disk."""
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


def choose_visible(repository: str | None, visible: Sequence[str]) -> str:
    """Return the repository that a person means; where only one is visible to them, it need not be named."""
    if repository is None and len(visible) == 1:
        return visible[0]
    if repository is not None and repository in visible:
        return repository
    if not visible:
        raise UnknownRepository("There are no repositories that you may ask about.")
    names = ", ".join(visible)
    if repository is None:
        raise UnknownRepository(f"Which repository is meant? Name one: {names}.")
    raise UnknownRepository(f"There is no repository {repository[:80]!r} that you may ask about. There are: {names}.")
