"""The composition root: the one place where the concrete parts are joined, opened in order and closed in reverse."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from agent.ports import CodeSearch, ModelSource
from bot.ports import Assistant, Index
from bot.settings import Settings


@dataclass(frozen=True, kw_only=True)
class App:
    """What is open while citebot runs. The assistant is opened by those who ask: looking things up needs none."""

    settings: Settings
    index: Index
    open_assistant: Callable[[], AbstractAsyncContextManager[Assistant]]

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, repository: Path) -> AsyncGenerator[Self]:
        """Open the index of the repository at (or around) a path."""
        # `--help` and a wrong option must not wait for numpy.
        from indexer.index import CodeIndex

        # Another provider's embedder finds its own key; Google's must not be sent to it.
        google = settings.embedder.startswith("google_genai:")
        async with AsyncExitStack() as stack:
            index = await CodeIndex.open(
                repository,
                home=settings.home,
                embedder=settings.embedder,
                include=settings.include,
                exclude=settings.exclude,
                fusion=settings.fusion,
                api_key=settings.google_api_key if google else None,
                base_url=settings.google_api_base_url if google else None,
            )
            stack.push_async_callback(index.aclose)
            yield cls(settings=settings, index=index, open_assistant=partial(_open_assistant, settings, index))


class OneRepository:
    """A library with a single repository in it."""

    def __init__(self, index: Index) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:  # noqa: ARG002 - there is only one
        """Hold the repository, whatever name it is asked for by."""
        return await self._index.pin()


@asynccontextmanager
async def _open_assistant(settings: Settings, index: Index) -> AsyncGenerator[Assistant]:
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
        yield Agent(
            OneRepository(index), saver, redact=redact, models=models, web=web, approval_calls=settings.approval_calls
        )


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
