"""The code that a person may see: what they may not ask about is, to them, not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from agent import CodeMoved, CodeSearch
from bot.access import AccessPolicy
from bot.errors import UnknownRepository
from bot.storage.rate_limits import QuestionCounter
from bot.surfaces.principals import Principal
from indexer import IndexStatus, NotIndexed, UnknownPath, UnknownRevision

LONGEST_SHOWN = 80  # characters of what somebody has written
FIRST_INDEX_SECONDS = 45.0  # that a lookup waits for the first index of a repository; a client gives up after 60


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Visible = TypeVar("Visible", bound="VisibleCode")


class LookupLibrary(Protocol):
    """The repositories that lookups read."""

    def list_names(self) -> Sequence[str]:
        """Name them all; the first is the default."""

    async def pin(self, repository: str | None = None, *, at: str = "") -> CodeSearch:
        """Hold a repository at its newest indexed commit, or `at` a branch, a tag, a commit or a pull request."""

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed of a repository."""


@dataclass(frozen=True, kw_only=True)
class VisibleCode:
    """Opens code for people, each time counted where there is a counter."""

    library: LookupLibrary
    access: AccessPolicy = field(default_factory=AccessPolicy)
    mask: Callable[[str], str] = str
    counter: QuestionCounter | None = None
    is_followed: bool = True  # a "no" waits for newer commits, and raises `CodeMoved` if they come

    def list_visible(self, principal: Principal) -> Sequence[str]:
        """Name the repositories that a person may ask about."""
        return self.access.list_visible(principal.write(), self.library.list_names())

    def choose_repository(self, principal: Principal, repository: str | None) -> str:
        """Return the repository that is meant; where only one is visible, it need not be named."""
        visible = self.list_visible(principal)
        if repository is None and len(visible) == 1:
            return visible[0]
        if repository is not None and repository in visible:
            return repository
        raise UnknownRepository(explain_choice(repository, visible))

    async def count(self, principal: Principal) -> None:
        """Count a lookup; `LimitReached` for one too many."""
        if self.counter is not None:
            await self.counter.count_lookup(principal.write())

    @asynccontextmanager
    async def open_code(
        self, principal: Principal, repository: str | None, at: str | None = None
    ) -> AsyncIterator[CodeSearch]:
        """Count a lookup, and hold the repository that it reads; `NotIndexed` if that takes too long at first.

        `at` names what it is read at, its newest commit where it is empty; `UnknownRevision` if there is no such
        thing. Whether the repository may be seen at all is decided before that. An `UnknownPath` has
        how much was read.
        """
        await self.count(principal)
        name = self.choose_repository(principal, repository)
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


def look_again(
    lookup: Callable[Concatenate[Visible, Parameters], Awaitable[Result]],
) -> Callable[Concatenate[Visible, Parameters], Awaitable[Result]]:
    """Make a lookup once more where it was about to say "no" of a commit while a newer one was indexed."""

    @wraps(lookup)
    async def look(code: Visible, /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            return await lookup(code, *args, **options)
        except CodeMoved:
            return await lookup(replace(code, is_followed=False, counter=None), *args, **options)

    return look


def explain_choice(repository: str | None, visible: Sequence[str]) -> str:
    """Say which repositories there are for a person who named none of them; others are never mentioned."""
    if not visible:
        return "There are no repositories that you may ask about."
    names = ", ".join(visible)
    if repository is None:
        return f"Which repository is meant? Name one: {names}."
    return f"There is no repository {repository[:80]!r} that you may ask about. There are: {names}."
