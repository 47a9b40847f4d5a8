"""The core of the surfaces for the one person at this machine, with the same view as their terminal."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from bot.access import AccessPolicy
from bot.app import App, make_redactor, open_joint_assistant
from bot.errors import NotAllowed, SettingsError
from bot.messages import IncomingMessage
from bot.ports import RefSource, RepositoryIndex
from bot.questions.answer_run import AnswerQueue, QuestionDeps
from bot.repositories.choice_store import MAX_TOGETHER, AmbiguousRepository, RepositoryChoice
from bot.repositories.local_repositories import LocalRepositories
from bot.repositories.names import RepositoryProfile, find_named
from bot.repositories.ref_chooser import RefChooser
from bot.repositories.refresh import ProgressDisplay
from bot.settings import RepositoryTable, Settings
from bot.surfaces.code_lookups import CodeLookups
from bot.surfaces.principals import Tokens
from bot.surfaces.questions import Questions
from bot.surfaces.team_surfaces import SurfaceCore
from indexer import IndexerError

MAX_AT_ONCE = 2  # answers; the others wait

log = logging.getLogger(__name__)


class NamedRepositoryRouter:
    """Chooses the repositories that a question names, or the only one."""

    def __init__(self, names: Sequence[str]) -> None:
        self._profiles = dict.fromkeys(names, RepositoryProfile())

    def check(self, message: IncomingMessage) -> None:  # noqa: ARG002 - the port's
        """Raise `NotAllowed` if there is nothing to ask about."""
        if not self._profiles:
            raise NotAllowed("There is no repository to ask about.")

    async def choose(
        self,
        message: IncomingMessage,
        context: str,  # noqa: ARG002 - the port's
        **_: str,
    ) -> RepositoryChoice | AmbiguousRepository:
        """Decide by the question."""
        if message.about:
            return RepositoryChoice(repositories=message.about, why="its author chose it", question=message.text)
        named = find_named(message.text, self._profiles)
        names = named.repositories[:MAX_TOGETHER] or (tuple(self._profiles) if len(self._profiles) == 1 else ())
        if not names:
            return AmbiguousRepository(likeliest=tuple(self._profiles)[:MAX_TOGETHER], of=len(self._profiles))
        question = named.question if named.repositories else message.text
        return RepositoryChoice(repositories=tuple(names), why="the question is about it", question=question)


@asynccontextmanager
async def open_local_core(
    settings: Settings,
    tables: Sequence[RepositoryTable],
    display: ProgressDisplay,
    *,
    say: Callable[[str], None],
) -> AsyncGenerator[SurfaceCore]:
    """Open the core over some repositories; nothing is indexed before the first question."""
    async with AsyncExitStack() as stack:
        indexes, refs = await _open_indexes(settings, tables, stack, say)
        repositories = LocalRepositories(indexes, display, refs)
        stack.push_async_callback(repositories.close)
        access, mask = AccessPolicy(), make_redactor(settings)
        questions = Questions(
            QuestionDeps(
                open_agent=partial(open_joint_assistant, settings, indexes, refs),
                repositories=repositories,
                chooser=NamedRepositoryRouter(tuple(indexes)),
                queue=AnswerQueue(MAX_AT_ONCE),
                hosts=settings.link_hosts,
                deadline=settings.max_seconds + 30.0,
                mask=mask,
                prices=settings.prices,
                refs=RefChooser(refs),
                remembers=False,
            )
        )
        lookups = CodeLookups(library=repositories, access=access, mask=mask)
        yield SurfaceCore(lookups=lookups, questions=questions, tokens=Tokens(()), access=access)


async def _open_indexes(
    settings: Settings, tables: Sequence[RepositoryTable], stack: AsyncExitStack, say: Callable[[str], None]
) -> tuple[Mapping[str, RepositoryIndex], Mapping[str, RefSource]]:
    """Open the indexes by name, and their other refs; a failure of one does not affect the others."""
    indexes: dict[str, RepositoryIndex] = {}
    refs: dict[str, RefSource] = {}
    for table in tables:
        try:
            app = await stack.enter_async_context(App.open(settings, table, say=say))
            name = (await app.index.status()).repository
        except IndexerError as error:
            if len(tables) == 1:
                raise
            say(str(error))
            continue
        if name in indexes:
            raise SettingsError(f"Two repositories are called {name}. Give one of them another `name`.")
        indexes[name] = app.index
        refs |= app.refs
    if not indexes:
        raise SettingsError("None of the repositories can be opened.")
    return indexes, refs
