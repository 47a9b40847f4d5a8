"""The composition root: the one place where the concrete parts are joined, opened in order and closed in reverse."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from agent.ports import CodeLibrary, CodeSearch, ModelSource
from bot.errors import SettingsError
from bot.freshness import Display
from bot.library import Library
from bot.ports import Answerer, Assistant, Index
from bot.settings import RepositoryTable, Settings

if TYPE_CHECKING:
    from agent.agent import Agent
    from indexer.index import CodeIndex


@dataclass(frozen=True, kw_only=True)
class App:
    """What is open while one person asks. The assistant is opened by those who ask: looking things up needs none."""

    settings: Settings
    index: Index
    open_assistant: Callable[[], AbstractAsyncContextManager[Assistant]]

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, repository: Path) -> AsyncGenerator[Self]:
        """Open the index of the repository at (or around) a path."""
        async with AsyncExitStack() as stack:
            index = await _open_index(settings, _only(settings, repository), stack)
            opening = partial(_open_agent, settings, OneRepository(index))
            yield cls(settings=settings, index=index, open_assistant=opening)


@dataclass(frozen=True, kw_only=True)
class Team:
    """What is open while a team asks: its repositories, who answers about them, and the hosts that may be linked to."""

    library: Library
    agent: Answerer
    hosts: frozenset[str]

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, repository: Path, display: Display) -> AsyncGenerator[Self]:
        """Open the repositories of the settings; where there are none, the one at (or around) a path."""
        async with (
            open_library(settings, repository, display) as (library, hosts),
            _open_agent(settings, library) as agent,
        ):
            yield cls(library=library, agent=agent, hosts=hosts)


@asynccontextmanager
async def open_library(
    settings: Settings, repository: Path, display: Display
) -> AsyncGenerator[tuple[Library, frozenset[str]]]:
    """Open the repositories of the settings, or the one at a path; yields them and the hosts they are at on the web."""
    async with AsyncExitStack() as stack:
        tables = settings.repositories or (_only(settings, repository),)
        indexes = [await _open_index(settings, table, stack) for table in tables]
        library = Library(_by_name(indexes), display)
        stack.push_async_callback(library.aclose)
        yield library, _hosts(settings, indexes)


class OneRepository:
    """A library with a single repository in it."""

    def __init__(self, index: Index) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:  # noqa: ARG002 - there is only one
        """Hold the repository, whatever name it is asked for by."""
        return await self._index.pin()


def _only(settings: Settings, path: Path) -> RepositoryTable:
    return RepositoryTable(path=path, include=settings.include, exclude=settings.exclude)


async def _open_index(settings: Settings, table: RepositoryTable, stack: AsyncExitStack) -> CodeIndex:
    # `--help` and a wrong option must not wait for numpy.
    from indexer.index import CodeIndex

    # Another provider's embedder finds its own key; Google's must not be sent to it.
    google = settings.embedder.startswith("google_genai:")
    index = await CodeIndex.open(
        table.path,
        home=settings.home,
        embedder=settings.embedder,
        include=table.include,
        exclude=table.exclude,
        fusion=settings.fusion,
        api_key=settings.google_api_key if google else None,
        base_url=settings.google_api_base_url if google else None,
        ref=table.branch,
        name=table.name,
        web_url=table.web_url,
    )
    stack.push_async_callback(index.aclose)
    return index


def _by_name(indexes: Sequence[CodeIndex]) -> dict[str, Index]:
    named: dict[str, Index] = {}
    for index in indexes:
        if index.name in named:
            raise SettingsError(f"Two repositories are called {index.name}. Give one of them another `name`.")
        named[index.name] = index
    return named


def _hosts(settings: Settings, indexes: Sequence[CodeIndex]) -> frozenset[str]:
    """The hosts of the repositories on the web, and those that the operator adds."""
    own = (urlsplit(index.web_url).hostname for index in indexes if index.web_url)
    return frozenset([*settings.link_hosts, *filter(None, own)])


@asynccontextmanager
async def _open_agent(settings: Settings, library: CodeLibrary) -> AsyncGenerator[Agent]:
    # Importing langgraph takes a second, which only a question is worth.
    from agent.agent import Agent
    from agent.checkpoints import open_saver
    from agent.searxng import SearxngSearch
    from indexer.secrets import redact

    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models(settings))
        saver = await stack.enter_async_context(open_saver(settings.home / "conversations.sqlite"))
        web = SearxngSearch(settings.web_search_url) if settings.web_search_url else None
        if web is not None:
            stack.push_async_callback(web.aclose)
        yield Agent(library, saver, redact=redact, models=models, web=web, approval_calls=settings.approval_calls)


def open_models(settings: Settings) -> AbstractAsyncContextManager[ModelSource]:
    """Open the chat models; each of them is built when it is first asked."""
    from agent.budget import Ceilings
    from agent.llm.metered import Patience
    from agent.models import open_models

    usual, whole = Patience(), settings.model_timeout
    return open_models(
        settings.model,
        small=settings.small_model,
        fallback=settings.fallback_model,
        google_api_key=settings.google_api_key,
        google_base_url=settings.google_api_base_url,
        ceilings=Ceilings(seconds=settings.max_seconds, tokens=settings.max_tokens, calls=settings.max_model_calls),
        patience=replace(usual, whole=whole, first=min(usual.first, whole), idle=min(usual.idle, whole)),
    )
