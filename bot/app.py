"""The composition root: the one place where the concrete parts are joined, opened in order and closed in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from agent import AsyncEventBus, Classifier, CodeLibrary, CodeSearch, EventKind, ModelSource
from bot.clock import SystemClock
from bot.errors import SettingsError
from bot.ports import Answerer, Assistant, RepositoryIndex
from bot.repositories.cloned_index import ClonedIndex
from bot.repositories.library import RepositoryLibrary
from bot.repositories.names import RepositoryProfile
from bot.repositories.refresh import ProgressDisplay
from bot.repositories.status import RepositoryState, read_state
from bot.settings import GuardTable, RepositoryTable, Settings
from bot.storage.data_lock import hold_shared_lock
from indexer import IndexStatus

if TYPE_CHECKING:
    from agent import Agent, OnnxModel
    from indexer import CodeIndex, ParserPool, RemoteClone, RemoteRepository, Watcher

_SHORTEST = 4  # characters of a secret; to mask less would only make the text unreadable


def _keep_silent(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, kw_only=True)
class App:
    """What is open while one person asks. The assistant is opened by those who ask: looking things up needs none.

    There is one for a conversation, and a lighter one for a question that nobody goes on with.
    """

    settings: Settings
    index: RepositoryIndex
    open_assistant: Callable[[], AbstractAsyncContextManager[Assistant]]
    open_single: Callable[[], AbstractAsyncContextManager[Assistant]]

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, table: RepositoryTable, *, say: Callable[[str], None] = _keep_silent
    ) -> AsyncGenerator[Self]:
        """Open the index of a repository; one on another machine is fetched when it is asked about."""
        async with AsyncExitStack() as stack:
            stack.enter_context(await asyncio.to_thread(hold_shared_lock, settings.home))
            clone = _make_clone(settings, table)
            index: RepositoryIndex = await _open_index(settings, table, stack, clone)
            if clone is not None:
                index = ClonedIndex(index, clone, interval=settings.poll_seconds, say=say)
            library = SingleRepositoryLibrary(index)
            opening = partial(_open_agent, settings, library)
            single = (
                partial(opening, can_ask=False)
                if settings.has_model
                else partial(_open_single_agent, settings, library)
            )
            yield cls(settings=settings, index=index, open_assistant=opening, open_single=single)


@dataclass(frozen=True, kw_only=True)
class TeamRepositories:
    """The repositories of a team, with their watcher, their hosts, and what tells one from another."""

    library: RepositoryLibrary
    watcher: Watcher
    remotes: Sequence[RemoteRepository]
    hosts: frozenset[str]
    signs: Mapping[str, RepositoryProfile] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TeamApp:
    """What is open while a team asks: its repositories, and who answers about them. `events` has those of all runs."""

    stock: TeamRepositories
    agent: Answerer
    events: AsyncEventBus

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, repository: Path, display: ProgressDisplay) -> AsyncGenerator[Self]:
        """Open the repositories of the settings; if there are none, the one at (or around) a path."""
        async with (
            open_team_repositories(settings, repository, display) as stock,
            _open_agent(settings, stock.library) as agent,
        ):
            yield cls(stock=stock, agent=agent, events=agent.events)


@asynccontextmanager
async def open_team_repositories(
    settings: Settings, repository: Path, display: ProgressDisplay
) -> AsyncGenerator[TeamRepositories]:
    """Open the repositories of the settings, or the one at a path; nothing is fetched yet."""
    from indexer import LocalHead, ParserPool, Watcher, WatchIntervals, open_clones

    tables = settings.repositories or (make_path_table(settings, repository),)
    clones = open_clones([_make_remote(settings, table) for table in tables if table.url is not None], settings.home)
    waiting = iter(clones)
    async with AsyncExitStack() as stack:
        stack.enter_context(await asyncio.to_thread(hold_shared_lock, settings.home))
        pool = ParserPool()
        stack.push_async_callback(asyncio.to_thread, pool.close)
        indexes: list[CodeIndex] = []
        heads: list[LocalHead] = []
        for table in tables:
            clone = next(waiting) if table.url is not None else None
            index = await _open_index(settings, table, stack, clone, pool)
            indexes.append(index)
            if clone is None:
                heads.append(LocalHead(index.name, _get_path(table), branch=table.branch))
        library = RepositoryLibrary(_name_indexes(indexes), display, clones={clone.name: clone for clone in clones})
        stack.push_async_callback(library.aclose)
        watcher = Watcher(
            library, SystemClock(), polled=clones, local=heads, pace=WatchIntervals(poll=settings.poll_seconds)
        )
        remotes = [clone.remote for clone in clones]
        signs = {
            index.name: RepositoryProfile(page=index.web_url or "", channels=table.channels)
            for index, table in zip(indexes, tables, strict=True)
        }
        web = (urlsplit(index.web_url).hostname for index in indexes if index.web_url)
        hosts = frozenset([*settings.link_hosts, *filter(None, web)])
        yield TeamRepositories(library=library, watcher=watcher, remotes=remotes, hosts=hosts, signs=signs)


async def read_all_statuses(settings: Settings) -> Sequence[RepositoryState]:
    """Read the state of each repository of the settings; one that cannot be opened does not hide the others."""
    with await asyncio.to_thread(hold_shared_lock, settings.home):
        return [await _read_status(settings, table) for table in settings.repositories]


async def _read_status(settings: Settings, table: RepositoryTable) -> RepositoryState:
    clone = _make_clone(settings, table)

    async def read() -> IndexStatus:
        async with AsyncExitStack() as stack:
            return await (await _open_index(settings, table, stack, clone)).status()

    return await read_state(clone.name if clone is not None else table.name or _get_path(table).name, read)


class SingleRepositoryLibrary:
    """A library with a single repository in it."""

    def __init__(self, index: RepositoryIndex) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:  # noqa: ARG002 - there is only one
        """Hold the repository, whatever name it is asked for by."""
        return await self._index.pin()


class NamedLibrary:
    """A library of several repositories by their names."""

    def __init__(self, indexes: Mapping[str, RepositoryIndex]) -> None:
        self._indexes = indexes

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Hold a repository; None: the first."""
        return await self._indexes[repository or next(iter(self._indexes))].pin()


def open_joint_assistant(
    settings: Settings, indexes: Mapping[str, RepositoryIndex]
) -> AbstractAsyncContextManager[Assistant]:
    """Open what answers single questions about several repositories together."""
    opening = partial(_open_agent, can_ask=False) if settings.has_model else _open_single_agent
    return opening(settings, NamedLibrary(indexes))


def make_path_table(settings: Settings, path: Path) -> RepositoryTable:
    """Describe the repository at (or around) a path as citebot.toml would."""
    return RepositoryTable(path=path, include=settings.include, exclude=settings.exclude)


def name_remote(settings: Settings, table: RepositoryTable) -> str:
    """Return what a repository with a url is called."""
    return _make_remote(settings, table).name


def _make_clone(settings: Settings, table: RepositoryTable) -> RemoteClone | None:
    if table.url is None:
        return None
    from indexer import RemoteClone

    return RemoteClone(_make_remote(settings, table), settings.home)


def _make_remote(settings: Settings, table: RepositoryTable) -> RemoteRepository:
    from indexer import Address, RemoteRepository

    url = table.url or ""
    return RemoteRepository(
        name=table.name or Address.parse(url).path.rstrip("/").rpartition("/")[2].removesuffix(".git"),
        url=url,
        branch=table.branch,
        token=settings.tokens.get(table.token_variable or ""),
        user=table.user,
        web_url=table.web_url,
        depth=table.depth,
    )


def locate_repositories(settings: Settings) -> Sequence[Path]:
    """Return where the repositories of the settings are on this machine; a clone that was never fetched is left out."""
    from indexer import REPOSITORIES_FOLDER

    clones = [
        settings.home / REPOSITORIES_FOLDER / _make_remote(settings, each).folder_name
        for each in settings.repositories
        if each.url
    ]
    return [*(each.path for each in settings.repositories if each.path), *(path for path in clones if path.exists())]


def _get_path(table: RepositoryTable) -> Path:
    if table.path is None:
        raise AssertionError("a repository without a url has a path")
    return table.path


async def _open_index(
    settings: Settings,
    table: RepositoryTable,
    stack: AsyncExitStack,
    clone: RemoteClone | None = None,
    pool: ParserPool | None = None,
) -> CodeIndex:
    """Open the index of a repository; one on another machine is indexed in its clone, whose HEAD is the branch."""
    # `--help` and a wrong option must not wait for numpy.
    from indexer import CodeIndex

    if clone is not None:
        await clone.prepare()
    # Another provider's embedder finds its own key; Google's must not be sent to it.
    google = settings.embedder.startswith("google_genai:")
    index = await CodeIndex.open(
        _get_path(table) if clone is None else clone.path,
        home=settings.home,
        embedder=settings.embedder,
        include=table.include,
        exclude=table.exclude,
        fusion=settings.fusion,
        api_key=settings.google_api_key if google else None,
        base_url=settings.google_api_base_url if google else None,
        ref=(table.branch or "HEAD") if clone is None else "HEAD",
        name=table.name if clone is None else clone.name,
        web_url=table.web_url if clone is None else clone.remote.page,
        parser_pool=pool,
    )
    stack.push_async_callback(index.aclose)
    return index


def _name_indexes(indexes: Sequence[CodeIndex]) -> dict[str, RepositoryIndex]:
    named: dict[str, RepositoryIndex] = {}
    for index in indexes:
        if index.name in named:
            raise SettingsError(f"Two repositories are called {index.name}. Give one of them another `name`.")
        named[index.name] = index
    return named


@asynccontextmanager
async def _open_agent(settings: Settings, library: CodeLibrary, *, can_ask: bool = True) -> AsyncGenerator[Agent]:
    # Importing langgraph takes a second, which only a question is worth.
    from agent import Agent, SearxngSearch, open_saver
    from indexer import CachedRedactor

    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models(settings))
        saver = await stack.enter_async_context(open_saver(settings.home / "conversations.sqlite"))
        web = SearxngSearch(settings.web_search_url) if settings.web_search_url else None
        if web is not None:
            stack.push_async_callback(web.aclose)
        classifier = await stack.enter_async_context(_open_classifier(settings))
        yield Agent(
            library,
            saver,
            CachedRedactor(make_redactor(settings)),
            models=models,
            web=web,
            classifier=classifier,
            approval_calls=settings.approval_calls,
            can_ask=can_ask,
        )


@asynccontextmanager
async def _open_single_agent(settings: Settings, library: CodeLibrary) -> AsyncGenerator[Agent]:
    """Open what answers single questions from the code alone: nothing of that is stored."""
    from agent import Agent, open_memory_store
    from indexer import CachedRedactor

    async with open_memory_store() as store, _open_classifier(settings) as classifier:
        yield Agent(library, store, CachedRedactor(make_redactor(settings)), classifier=classifier)


@asynccontextmanager
async def _open_classifier(settings: Settings) -> AsyncGenerator[Classifier | None]:
    """Open the operator's classifier, which goes on loading in the background; None if there is none."""
    if settings.guard.classifier is None:
        yield None
        return
    from agent import BackgroundClassifier

    async with BackgroundClassifier.open(
        partial(load_classifier, settings.guard),
        threshold=settings.guard.classifier_threshold,
        deadline=settings.guard.classifier_ms / 1000,
    ) as classifier:
        yield classifier


def load_classifier(guard: GuardTable) -> OnnxModel:
    """Load the model of the operator's folder, which takes seconds; raises `ClassifierUnusable`."""
    from agent import OnnxModel

    if guard.classifier is None:
        raise AssertionError("only a classifier that is named is loaded")
    return OnnxModel.open(guard.classifier, guard.classifier_sha256)


def make_redactor(settings: Settings) -> Callable[[str], str]:
    """Return what takes secrets out of text: the configured ones as they are, all others by their forms."""
    configured = sorted((value for value in settings.secret_values() if len(value) >= _SHORTEST), key=len, reverse=True)

    def mask(text: str) -> str:
        from indexer import redact_secrets

        for value in configured:
            text = text.replace(value, "[REDACTED]")
        return redact_secrets(text)

    return mask


async def find_writer(settings: Settings) -> str:
    """Name the model that writes the answers; empty where none does."""
    async with open_models(settings) as models:
        main = models.for_turn(models.budget(), _ignore).main
        return main.name if main is not None else ""


def _ignore(kind: EventKind, /, **payload: Any) -> None:
    """Nobody follows what a look at the models does."""


def open_models(settings: Settings) -> AbstractAsyncContextManager[ModelSource]:
    """Open the chat models; each of them is built when it is first asked."""
    from agent import RetryPolicy, Sampling, TurnLimits, open_models

    usual, whole = RetryPolicy(), settings.model_timeout
    return open_models(
        settings.model,
        small=settings.small_model,
        fallback=settings.fallback_model,
        google_api_key=settings.google_api_key,
        google_base_url=settings.google_api_base_url,
        ceilings=TurnLimits(seconds=settings.max_seconds, tokens=settings.max_tokens, calls=settings.max_model_calls),
        answers=Sampling(temperature=settings.answer_temperature),
        forms=Sampling(temperature=settings.form_temperature, thinking=settings.form_thinking),
        retry=replace(usual, whole=whole, first=whole, idle=min(usual.idle, whole)),
    )
