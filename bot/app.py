"""The composition root: the only place that creates the parts, opens them in order and closes them in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from bot.clock import SystemClock
from bot.errors import SettingsError
from bot.jobs.local_refreshes import LocalRefreshJobs
from bot.repositories.cloned_index import ClonedIndex
from bot.repositories.deploy_marks import ConfiguredMarks
from bot.repositories.names import RepositoryProfile, split_pinned_name
from bot.repositories.status import RepositoryState, read_state
from bot.settings import DUCKDUCKGO, GuardTable, RepositoryTable, Settings
from bot.storage.data_folder_access import hold_shared_lock
from indexer import IndexStatus, NamedRef

if TYPE_CHECKING:
    from agent import (
        Agent,
        AsyncEventBus,
        Classifier,
        CodeLibrary,
        CodeSearch,
        DuckDuckGoSearch,
        EventKind,
        ModelSource,
        OnnxModel,
        SandboxTrial,
        SearxngSearch,
        WorkingCopy,
    )
    from bot.ports import Answerer, GoalRuns, RefreshJobs, RefSource, RepositoryIndex
    from bot.repositories.library import RepositoryLibrary
    from bot.repositories.refresh import ProgressDisplay
    from bot.repositories.segments import SharedSegments
    from indexer import CodeIndex, ParserPool, Push, RemoteClone, RemoteRepository, RepositoryRefs, SharedIndex, Watcher

_MIN_CHARACTERS = 4  # characters of a secret; to mask less would only make the text unreadable


def _keep_silent(_: str) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class App:
    """The open parts while one person asks. Questions open the assistant; lookups do without it.

    A conversation has one, and a single question a lighter one.
    """

    settings: Settings
    index: RepositoryIndex
    refs: Mapping[str, RefSource] = field(default_factory=dict)
    open_assistant: Callable[[], AbstractAsyncContextManager[Answerer]]
    open_single: Callable[[], AbstractAsyncContextManager[Answerer]]
    open_goals: Callable[[], AbstractAsyncContextManager[GoalRuns]]

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings, table: RepositoryTable, *, say: Callable[[str], None] = _keep_silent
    ) -> AsyncGenerator[Self]:
        """Open the index of a repository; a remote one is fetched when somebody asks about it."""
        async with AsyncExitStack() as stack:
            stack.enter_context(await asyncio.to_thread(hold_shared_lock, settings.home))
            clone = _make_clone(settings, table)
            own = await _open_index(settings, table, stack, clone)
            refs = _open_refs(own, clone, table, stack)
            index: RepositoryIndex = own
            if clone is not None:
                index = ClonedIndex(index, clone, interval=settings.poll_seconds, say=say)
            library = NamedLibrary({own.name: index}, {own.name: refs})
            opening = partial(_open_agent, settings, library)
            single = (
                partial(opening, can_ask=False)
                if settings.has_model
                else partial(_open_single_agent, settings, library)
            )

            async def read_status(_: str) -> IndexStatus:
                return await index.status()

            goals = partial(_open_goals, settings, read_status, library)
            yield cls(
                settings=settings,
                index=index,
                refs={own.name: refs},
                open_assistant=opening,
                open_single=single,
                open_goals=goals,
            )


def load_answering() -> None:
    """Import the modules for answering; opening an assistant does it as well, while somebody waits."""
    from agent import Agent, build_graph, open_conversations, open_models  # noqa: F401

    build_graph().compile()


@dataclass(frozen=True, kw_only=True)
class TeamRepositories:
    """The repositories of a team, with their watcher, their hosts, and their names.

    If a process indexes for others and also answers, `built` is its own indexes. It answers from published indexes,
    which may come from another process.
    """

    library: RepositoryLibrary
    watcher: Watcher
    remotes: Sequence[RemoteRepository]
    hosts: frozenset[str]
    signs: Mapping[str, RepositoryProfile] = field(default_factory=dict)
    built: RepositoryLibrary | None = None

    async def sweep(self) -> Sequence[str]:
        """Delete unused parts of each index; return the problems of those that cannot be swept."""
        return [*await self.library.sweep(), *(await self.built.sweep() if self.built is not None else ())]


@dataclass(frozen=True, kw_only=True)
class TeamApp:
    """The open parts while a team asks: its repositories and the answerer. `events` has the events of all runs."""

    stock: TeamRepositories
    agent: Answerer
    events: AsyncEventBus
    open_goals: Callable[[], AbstractAsyncContextManager[GoalRuns]]

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings,
        repository: Path,
        display: ProgressDisplay,
        *,
        refreshes: RefreshJobs | None = None,
        segments: SharedSegments | None = None,
        indexes: bool = True,
        answers: bool = True,
    ) -> AsyncGenerator[Self]:
        """Open the repositories of the settings; if there are none, the one at (or around) a path.

        With `refreshes`, processes share the work of indexing; this one participates if it
        `indexes`.
        """
        opening = open_team_repositories(
            settings, repository, display, refreshes=refreshes, segments=segments, indexes=indexes, answers=answers
        )
        async with opening as stock, _open_agent(settings, stock.library) as agent:
            goals = partial(_open_goals, settings, stock.library.status, stock.library, events=agent.events)
            yield cls(stock=stock, agent=agent, events=agent.events, open_goals=goals)


@asynccontextmanager
async def open_team_repositories(
    settings: Settings,
    repository: Path,
    display: ProgressDisplay,
    *,
    refreshes: RefreshJobs | None = None,
    segments: SharedSegments | None = None,
    indexes: bool = True,
    answers: bool = True,
) -> AsyncGenerator[TeamRepositories]:
    """Open the repositories of the settings, or the one at a path; nothing is fetched yet.

    With `segments`, an indexing process publishes its builds, and an answering one serves published indexes.
    """
    from bot.repositories.library import RepositoryLibrary
    from indexer import LocalHead, ParserPool, Watcher, WatchIntervals, open_clones

    tables = settings.repositories or (make_path_table(settings, repository),)
    clones = open_clones([_make_remote(settings, table) for table in tables if table.url is not None], settings.home)
    waiting = iter(clones)
    async with AsyncExitStack() as stack:
        stack.enter_context(await asyncio.to_thread(hold_shared_lock, settings.home))
        if segments is not None and not indexes:
            jobs = refreshes or LocalRefreshJobs()
            serving = _serve_published(settings, tables, segments, display=display, jobs=jobs)
            yield await stack.enter_async_context(serving)
            return
        pool = ParserPool()
        stack.push_async_callback(asyncio.to_thread, pool.close)
        opened: list[CodeIndex] = []
        heads: list[LocalHead] = []
        refs: dict[str, RepositoryRefs] = {}
        for table in tables:
            clone = next(waiting) if table.url is not None else None
            index = await _open_index(settings, table, stack, clone, pool)
            opened.append(index)
            refs[index.name] = _open_refs(index, clone, table, stack)
            if clone is None:
                heads.append(LocalHead(index.name, _get_path(table), branch=table.branch))
        jobs, built = refreshes or LocalRefreshJobs(), _name_indexes(opened, segments)
        library = RepositoryLibrary(
            built, display, jobs, clones={clone.name: clone for clone in clones} if indexes else {}, refs=refs,
            sharing=segments.publish_refs(refs) if segments is not None else None,
        )  # fmt: skip
        if indexes:
            # A request on another machine has fetched nothing here.
            work = library.index_now if refreshes is None else library.fetch_and_index
            await stack.enter_async_context(jobs.work_on_refreshes(work))
        watcher = Watcher(
            library, SystemClock(), polled=clones, local=heads, pace=WatchIntervals(poll=settings.poll_seconds)
        )
        library.follow(watcher.settle)
        if segments is not None and answers:
            named = [table.model_copy(update={"name": name}) for table, name in zip(tables, built, strict=True)]
            serving = _serve_published(settings, named, segments, display=display, jobs=jobs)
            yield replace(await stack.enter_async_context(serving), watcher=watcher, built=library)
            return
        pages = {index.name: index.web_url for index in opened}
        yield _make_stock(settings, tables, library, watcher, pages)


@asynccontextmanager
async def _serve_published(
    settings: Settings,
    tables: Sequence[RepositoryTable],
    segments: SharedSegments,
    *,
    display: ProgressDisplay,
    jobs: RefreshJobs,
) -> AsyncGenerator[TeamRepositories]:
    """Open the published repositories: neither they nor their clones need to be here."""
    from bot.repositories.library import RepositoryLibrary
    from indexer import ReadingParts, Watcher

    google = settings.embedder.startswith("google_genai:")  # its key must not be sent to another provider
    parts = await asyncio.to_thread(
        ReadingParts.open,
        embedder=settings.embedder,
        fusion=settings.fusion,
        api_key=settings.google_api_key if google else None,
        base_url=settings.google_api_base_url if google else None,
    )
    shared: dict[str, SharedIndex] = {}
    refs: dict[str, RefSource] = {}
    for table in tables:
        remote = _make_remote(settings, table) if table.url is not None else None
        name = remote.name if remote is not None else table.name
        if name is None:
            raise SettingsError(f"{table.path} needs a `name` in citebot.toml to be served.")
        page = remote.page if remote is not None else table.web_url
        named = replace(parts, name=name, web_url=page, read_marks=ConfiguredMarks(table.environments))
        shared[name] = segments.open_index(named)
        refs[name] = segments.open_refs(named, shared[name], jobs)
    library = RepositoryLibrary(shared, display, jobs, refs=refs)
    pages = {name: index.web_url for name, index in shared.items()}
    async with segments.follow(shared):
        yield _make_stock(settings, tables, library, Watcher(library, SystemClock()), pages)


def _make_stock(
    settings: Settings,
    tables: Sequence[RepositoryTable],
    library: RepositoryLibrary,
    watcher: Watcher,
    pages: Mapping[str, str | None],
) -> TeamRepositories:
    signs = {
        name: RepositoryProfile(page=page or "", channels=table.channels)
        for (name, page), table in zip(pages.items(), tables, strict=True)
    }
    web = (urlsplit(page).hostname for page in pages.values() if page)
    return TeamRepositories(
        library=library,
        watcher=watcher,
        remotes=[_make_remote(settings, table) for table in tables if table.url is not None],
        hosts=frozenset([*settings.link_hosts, *filter(None, web)]),
        signs=signs,
    )


def open_code_push(path: Path, older: str, newer: str) -> Push | None:
    """Open the difference between two commits of the repository at a path; None if one of them is missing."""
    from indexer import open_push

    return open_push(path, older, newer)


async def read_all_statuses(settings: Settings) -> Sequence[RepositoryState]:
    """Read the state of each configured repository; an unreadable one does not hide the others."""
    with await asyncio.to_thread(hold_shared_lock, settings.home):
        return [await _read_status(settings, table) for table in settings.repositories]


async def _read_status(settings: Settings, table: RepositoryTable) -> RepositoryState:
    clone = _make_clone(settings, table)

    async def read() -> IndexStatus:
        async with AsyncExitStack() as stack:
            return await (await _open_index(settings, table, stack, clone)).status()

    return await read_state(clone.name if clone is not None else table.name or _get_path(table).name, read)


class NamedLibrary:
    """A library of repositories by name; a single one answers to any name."""

    def __init__(self, indexes: Mapping[str, RepositoryIndex], refs: Mapping[str, RefSource] | None = None) -> None:
        self._indexes = indexes
        self._refs = refs or {}

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Pin a repository, at the commit in its name, if any; None: the first."""
        first, *others = self._indexes
        name, commit = split_pinned_name(repository or first)
        name = name if others else first
        if commit and name in self._refs:
            return await self._refs[name].pin(NamedRef(kind="commit", name=commit[:12], commit=commit))
        return await self._indexes[name].pin()


def open_joint_assistant(
    settings: Settings, indexes: Mapping[str, RepositoryIndex], refs: Mapping[str, RefSource] | None = None
) -> AbstractAsyncContextManager[Answerer]:
    """Open the assistant for single questions about several repositories together, or about one of them at
    any commit.
    """
    opening = partial(_open_agent, can_ask=False) if settings.has_model else _open_single_agent
    return opening(settings, NamedLibrary(indexes, refs))


@asynccontextmanager
async def open_replaying(
    settings: Settings,
    indexes: Mapping[str, RepositoryIndex],
    refs: Mapping[str, RefSource],
    *,
    models: ModelSource | None,
    asked_at: float,
) -> AsyncGenerator[Agent]:
    """Open an agent that replays an answer, as of the time of its question, without storage or web search."""
    from agent import Agent, open_conversations
    from indexer import CachedRedactor

    with TemporaryDirectory(prefix="citebot-replay-") as folder:
        async with open_conversations(Path(folder) / "conversations.sqlite") as saver:
            yield Agent(
                NamedLibrary(indexes, refs), saver, CachedRedactor(make_redactor(settings)), models=models,
                approval_calls=settings.approval_calls, clock=lambda: asked_at,
            )  # fmt: skip


def make_path_table(settings: Settings, path: Path) -> RepositoryTable:
    """Describe the repository around a path in the form of citebot.toml."""
    return RepositoryTable(
        path=path, include=settings.include, exclude=settings.exclude, large_files=settings.large_files
    )


def name_remote(settings: Settings, table: RepositoryTable) -> str:
    """Return the name of a repository with a url."""
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
        branches=table.branches,
    )


def locate_repositories(settings: Settings) -> Sequence[Path]:
    """Return the local paths of the configured repositories, without clones that were never fetched."""
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
    """Open the index of a repository; a remote one is indexed in its clone, at the HEAD of the branch."""
    # `--help` and a wrong option must not wait for numpy.
    from indexer import CodeIndex, IndexLimits

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
        large=table.large_files,
        fusion=settings.fusion,
        api_key=settings.google_api_key if google else None,
        base_url=settings.google_api_base_url if google else None,
        ref=(table.branch or "HEAD") if clone is None else "HEAD",
        name=table.name if clone is None else clone.name,
        web_url=table.web_url if clone is None else clone.remote.page,
        parser_pool=pool,
        chroma_url=settings.chroma_url,
        limits=IndexLimits(
            files=settings.max_index_files,
            bytes=settings.max_index_megabytes * 1_000_000,
            chunks=settings.max_index_chunks,
        ),
    )
    stack.push_async_callback(index.aclose)
    return index


def _name_indexes(
    indexes: Sequence[CodeIndex], segments: SharedSegments | None = None
) -> Mapping[str, RepositoryIndex]:
    """Name the indexes; with segments, each is published after a refresh."""
    from indexer import PublishedIndex

    named: dict[str, RepositoryIndex] = {}
    for index in indexes:
        if index.name in named:
            raise SettingsError(f"Two repositories are called {index.name}. Give one of them another `name`.")
        named[index.name] = index if segments is None else PublishedIndex(index, segments.open_publisher())
    return named


def _open_refs(
    index: CodeIndex, clone: RemoteClone | None, table: RepositoryTable, stack: AsyncExitStack
) -> RepositoryRefs:
    """Open the refs of an index: other branches, tags, commits and pull requests."""
    from indexer import RepositoryRefs

    refs = RepositoryRefs(index, clone, branches=table.branches)
    index.read_deployed_by(ConfiguredMarks(table.environments))
    stack.push_async_callback(refs.aclose)
    return refs


@asynccontextmanager
async def _open_agent(settings: Settings, library: CodeLibrary, *, can_ask: bool = True) -> AsyncGenerator[Agent]:
    # Importing langgraph takes a second, which only a question is worth.
    from agent import Agent, open_conversations
    from indexer import CachedRedactor

    async with AsyncExitStack() as stack:
        models = await stack.enter_async_context(open_models(settings))
        saver = await stack.enter_async_context(
            open_conversations(settings.home / "conversations.sqlite", settings.database_url)
        )
        web = _choose_web_search(settings.web_search_url)
        if web is not None:
            stack.push_async_callback(web.aclose)
        classifier = await stack.enter_async_context(_open_classifier(settings))
        agent = Agent(
            library,
            saver,
            CachedRedactor(make_redactor(settings)),
            models=models,
            web=web,
            classifier=classifier,
            approval_calls=settings.approval_calls,
            can_ask=can_ask,
        )
        await stack.enter_async_context(_trace_runs(settings, agent.events))
        yield agent


def _trace_runs(settings: Settings, events: AsyncEventBus) -> AbstractAsyncContextManager[None]:
    """Send traces of a bus's runs, if the settings name a collector."""
    from bot.tracing import export_traces

    def compute_dollars(call: Mapping[str, Any]) -> float | None:
        price = settings.prices.get(str(call["model"]))
        return price.compute_dollars(call) if price is not None else None

    return export_traces(
        events,
        endpoint=settings.otlp_endpoint,
        headers=settings.otlp_headers.get_secret_value() if settings.otlp_headers else "",
        service=settings.otel_service,
        price=compute_dollars,
        mask=make_redactor(settings) if settings.trace_content in {"true", "span_only", "span_and_event"} else None,
    )


def _choose_web_search(url: str | None) -> SearxngSearch | DuckDuckGoSearch | None:
    from agent import DuckDuckGoSearch, SearxngSearch

    if url == DUCKDUCKGO:
        return DuckDuckGoSearch()
    return SearxngSearch(url) if url else None


@asynccontextmanager
async def _open_goals(
    settings: Settings,
    read_status: Callable[[str], Awaitable[IndexStatus]],
    library: CodeLibrary,
    *,
    events: AsyncEventBus | None = None,
) -> AsyncGenerator[GoalRuns]:
    """Open goal runs for the repositories of a library; raises `SandboxUnavailable` if nothing can be run.

    Runs are stored with the conversations, so that any process can continue them.
    """
    from agent import AsyncEventBus, GoalAgent, GoalRegistry, find_sandbox, make_goal_tools, open_conversations
    from indexer import CachedRedactor, start_confined_async

    async with AsyncExitStack() as stack:
        if events is None:
            events = AsyncEventBus()
            await stack.enter_async_context(_trace_runs(settings, events))
        sandbox = await find_sandbox(start_confined_async, home=settings.home, python=settings.sandbox.python)
        models = await stack.enter_async_context(open_models(settings))
        saver = await stack.enter_async_context(
            open_conversations(settings.home / "conversations.sqlite", settings.database_url)
        )
        yield GoalAgent(
            library,
            saver,
            CachedRedactor(make_redactor(settings)),
            sandbox=sandbox,
            open_copy=partial(_open_copy, read_status, settings.home),
            goals=GoalRegistry().make,
            tools=make_goal_tools(),
            models=models,
            events=events,
        )


@asynccontextmanager
async def _open_copy(
    read_status: Callable[[str], Awaitable[IndexStatus]], home: Path, repository: str, commit: str
) -> AsyncGenerator[WorkingCopy]:
    """Make a working copy of a repository, from the present place of its objects."""
    from agent import open_copy
    from indexer import open_objects

    path = Path((await read_status(repository)).path)
    with await asyncio.to_thread(open_objects, path) as objects:
        async with open_copy(objects, home, commit) as copy:
            yield copy


@asynccontextmanager
async def _open_single_agent(settings: Settings, library: CodeLibrary) -> AsyncGenerator[Agent]:
    """Open an agent for single questions without a model, which stores nothing."""
    from agent import Agent, open_memory_store
    from indexer import CachedRedactor

    async with open_memory_store() as store, _open_classifier(settings) as classifier:
        agent = Agent(library, store, CachedRedactor(make_redactor(settings)), classifier=classifier)
        async with _trace_runs(settings, agent.events):
            yield agent


@asynccontextmanager
async def _open_classifier(settings: Settings) -> AsyncGenerator[Classifier | None]:
    """Open the operator's classifier, which keeps loading in the background; None without one."""
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


async def examine_sandboxes(settings: Settings) -> Sequence[SandboxTrial]:
    """Try the sandboxes of this machine, best first, until one works; raises `SandboxUnavailable`."""
    from agent import try_sandboxes
    from indexer import start_confined_async

    return await try_sandboxes(start_confined_async, home=settings.home, python=settings.sandbox.python)


def make_redactor(settings: Settings) -> Callable[[str], str]:
    """Return a redactor that masks the configured secrets and every known secret format."""
    configured = sorted(
        (value for value in settings.list_secret_values() if len(value) >= _MIN_CHARACTERS), key=len, reverse=True
    )

    def mask(text: str) -> str:
        from indexer import redact_secrets

        for value in configured:
            text = text.replace(value, "[REDACTED]")
        return redact_secrets(text)

    return mask


def name_versions(settings: Settings) -> Mapping[str, str]:
    """Name everything else that an answer depends on, besides commit and models: the same name gives the same
    answer.
    """
    from indexer import name_formats

    masks = sum(len(value) >= _MIN_CHARACTERS for value in settings.list_secret_values())
    return {
        "version": version("citebot"),
        **name_formats(),
        "configured masks": str(masks),
        "embedder": settings.embedder,
        "fusion": settings.fusion,
    }


async def find_writer(settings: Settings) -> str:
    """Name the model that writes the answers; empty if none does."""
    async with open_models(settings) as models:
        main = models.make_turn_models(models.budget(), _ignore).main
        return main.name if main is not None else ""


async def list_local_models(settings: Settings) -> Sequence[str]:
    """List local models that could write answers; none if a model, or no model at all, is chosen."""
    from agent import list_ollama_models

    return await list_ollama_models(settings.ollama_host) if settings.model is None and not settings.has_model else []


def _ignore(kind: EventKind, /, **payload: Any) -> None:
    """Discard the events while models are examined."""


def open_models(settings: Settings) -> AbstractAsyncContextManager[ModelSource]:
    """Open the chat models, each built at its first call."""
    from agent import RetryPolicy, Sampling, TurnLimits, open_models

    usual, whole = RetryPolicy(), settings.model_timeout
    return open_models(
        settings.model,
        small=settings.small_model,
        check=settings.check_model,
        fallback=settings.fallback_model,
        google_api_key=settings.google_api_key,
        google_base_url=settings.google_api_base_url,
        ollama_host=settings.ollama_host,
        ceilings=TurnLimits(
            seconds=settings.max_seconds,
            tokens=settings.max_tokens,
            calls=settings.max_model_calls,
            iterations=settings.max_iterations,
            executor_steps=settings.max_executor_steps,
        ),
        answers=Sampling(temperature=settings.answer_temperature),
        forms=Sampling(temperature=settings.form_temperature, thinking=settings.form_thinking),
        retry=replace(usual, whole=whole, first=whole, idle=min(usual.idle, whole)),
    )
