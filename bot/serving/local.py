"""Serves the page, or the demo workspace, at loopback to the person at this machine."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from agent import Database
from bot.access import AccessPolicy, ChannelTable
from bot.adapters.local.endpoint import LocalCore, LocalPages
from bot.adapters.local.listener import LocalListener
from bot.adapters.local.rendering import make_web_url
from bot.adapters.local.workspace import CHANNELS, GIT, PLATFORM, LocalPlatform, Person, Workspace
from bot.app import TeamApp
from bot.clock import Clock, SystemClock
from bot.conversations.dispatcher import Conversations
from bot.errors import SettingsError
from bot.http.server import LOOPBACK, make_application, run_http_server
from bot.repositories.refresh import LoggingDisplay
from bot.serving.platforms import Announce
from bot.serving.service import make_chat_policy, make_follower, make_living_edits, open_team_conversations
from bot.settings import RepositoryTable, Settings
from bot.storage.database import open_store
from bot.storage.rate_limits import QuestionLimits
from bot.surfaces.ask_events import CitedPlace
from bot.surfaces.team_surfaces import make_team_core
from bot.surfaces.web.cited_code import MEMORY, SECONDS, WORKER, CitedCode, CodeHighlighter
from bot.surfaces.web.request_guard import LoginLink, WebSessions
from bot.surfaces.web.web_surface import WebOptions, WebSurface, serve_team_page
from bot.tasks import run_in_background
from indexer import ConfinedWorker, IndexerError, ScratchCopy, locate_repository

FOLDER = "demo"  # in the data folder, with a folder for each repository
NOTES = "NOTES.md"  # the file that a push changes if nothing was cited
_RIGHTS = (f"{PLATFORM}:ann",)
log = logging.getLogger(__name__)
ADVICE = "Choose another --port (0 = any free port)."


async def serve_demo(settings: Settings, table: RepositoryTable, say: Announce, *, port: int) -> None:
    """Serve the workspace at loopback until cancelled; a printed link signs in once, then the next is printed."""
    if table.path is None:
        raise SettingsError("The demo needs a repository on this machine: give its path as --repo PATH.")
    place = await asyncio.to_thread(locate_repository, table.path)
    name = re.sub(r"[^\w.-]+", "-", place.name, flags=re.ASCII) or "repository"
    home = settings.home / FOLDER / f"{name}-{hashlib.sha256(str(place.root).encode()).hexdigest()[:8]}"
    clock, link = SystemClock(), LoginLink()
    worker = ConfinedWorker(WORKER, seconds=SECONDS, memory=MEMORY)
    highlighter = CodeHighlighter(worker.exchange)
    pages, application = LocalPages(link, WebSessions(clock), highlighter), make_application()
    pages.join(application.router)
    async with AsyncExitStack() as stack:
        stack.callback(worker.close)
        enter = stack.enter_async_context
        address = await enter(run_http_server(application, host=LOOPBACK, port=port, advice=ADVICE))
        copy = await ScratchCopy.open(place.root, home / "copy.git")
        settings = make_demo_settings(settings, table, home, copy.path, name)
        database = await enter(open_store(home, None))
        team = await enter(TeamApp.open(settings, copy.path, LoggingDisplay()))
        workspace = await enter(Workspace.open(home, clock))
        conversations = await enter(_open_conversations(settings, team, database, clock))
        await enter(conversations.open())
        await enter(conversations.connect_platform(PLATFORM, LocalPlatform(workspace)))
        deps = conversations.deps
        pages.open(
            LocalCore(
                workspace=workspace,
                listener=LocalListener(workspace, conversations, clock, deps.mask),
                code=CitedCode(deps.repositories, deps.mask, team.stock.library.refs),
                access=settings.access,
                push=DemoPushes(copy, workspace, partial(team.stock.watcher.notify, name)).push,
                repository=name,
            )
        )
        changed = asyncio.Event()
        edits = make_living_edits(conversations, settings.living, database, clock, changed)
        await enter(run_in_background(make_follower(team, database, clock, changed).run()))
        await enter(run_in_background(edits.run()))
        await enter(run_in_background(team.stock.watcher.run()))
        remark = f" Everything stays in {home}: delete that folder to start over."
        await _stay_open(say, link, address, remark)


def make_demo_settings(settings: Settings, table: RepositoryTable, home: Path, copy: Path, name: str) -> Settings:
    """Return settings for only the copy, in a separate data folder; one of the people has all rights."""
    copied = table.model_copy(
        update={"path": copy, "name": name, "branch": None, "branches": (), "web_url": make_web_url(name)}
    )
    return settings.model_copy(
        update={
            "home": home,
            "database_url": None,
            "segments_url": None,
            "repositories": (copied,),
            "access": AccessPolicy(reindex=_RIGHTS, run=_RIGHTS),
            "channels": {CHANNELS[1].id: ChannelTable(manners="every question")},
        }
    )


@asynccontextmanager
async def _open_conversations(
    settings: Settings, team: TeamApp, database: Database, clock: Clock
) -> AsyncIterator[Conversations]:
    """Open the conversations as a service does, but for its limits: the asker pays."""
    policy = make_chat_policy(settings, team, limits=QuestionLimits(per_minute=1_000, per_day=1_000_000))
    team.stock.library.describe_watch = team.stock.watcher.sentence
    async with open_team_conversations(team, policy, database, clock=clock) as conversations:
        yield conversations


async def _stay_open(say: Announce, link: LoginLink, address: str, remark: str = "") -> None:
    """Print the address that signs in once, then the next one, until cancelled."""
    link.announce = lambda: say(f"Signed in. To sign in again, open {address}/login?t={link.token}")
    say(f"Open {address}/login?t={link.token} in a browser on this machine.{remark} Ctrl-C stops the server.")
    gc.freeze()
    gc.enable()
    await asyncio.Event().wait()


class DemoPushes:
    """Pushes commits to the copy, as somebody would, and has them indexed."""

    def __init__(self, copy: ScratchCopy, workspace: Workspace, notify: Callable[[str, str], None]) -> None:
        self._copy = copy
        self._workspace = workspace
        self._notify = notify
        self._lock = asyncio.Lock()

    async def push(self, person: Person, place: CitedPlace | None) -> str:
        """Commit the removal of the cited lines, or a note if there are none; return any problem."""
        async with self._lock:
            try:
                file, content = await self._make_change(place)
                message = f"Shorten {file}" if file != NOTES else "Add a note"
                sha = await self._copy.commit(file, content, author=person.name, message=message)
            except IndexerError as error:
                return str(error)
        self._notify("HEAD", sha)
        said = f"{person.name} pushed `{sha[:7]}` to the copy: {message}"
        await self._workspace.add(CHANNELS[0].id, GIT, text=said)
        return ""

    async def _make_change(self, place: CitedPlace | None) -> tuple[str, bytes]:
        old = await self._copy.read(place.path) if place is not None else None
        lines = old.splitlines(keepends=True) if old is not None else []
        if place is None or len(lines) < place.last_line:
            notes = await self._copy.read(NOTES) or b""
            return NOTES, notes + b"Pushed from the demo.\n"
        return place.path, b"".join([*lines[: place.first_line - 1], *lines[place.last_line :]])


async def serve_local_page(settings: Settings, repository: Path, say: Announce, *, port: int) -> None:
    """Serve the page at loopback until cancelled; a printed link signs in once, and then the next one is printed."""
    link, clock = LoginLink(), SystemClock()
    surface, application = WebSurface(WebOptions(link=link)), make_application()
    surface.join(application.router)
    settings = settings.model_copy(update={"access": AccessPolicy(reindex=("*",), admins=("*",))})
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        address = await enter(run_http_server(application, host=LOOPBACK, port=port, advice=ADVICE))
        database = await enter(open_store(settings.home, settings.database_url))
        team = await enter(TeamApp.open(settings, repository, LoggingDisplay()))
        conversations = await enter(_open_conversations(settings, team, database, clock))
        core = make_team_core(settings, team, conversations)
        await enter(serve_team_page(surface, core, team, conversations))
        await enter(run_in_background(team.stock.watcher.run()))
        await _stay_open(say, link, address)
