"""Serves the page to the person at this machine: no chat, no strangers, and everything that their terminal shows."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

from bot.access import AccessPolicy
from bot.app import TeamApp
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.http.server import LOOPBACK, make_application, run_http_server
from bot.repositories.library import WatchedRepositories
from bot.repositories.refresh import LoggingDisplay
from bot.serving.platforms import Announce
from bot.serving.service import make_chat_policy
from bot.settings import Settings
from bot.storage.database import open_store
from bot.storage.rate_limits import QuestionLimits
from bot.surfaces.team_surfaces import make_team_core
from bot.surfaces.web.request_guard import LoginLink
from bot.surfaces.web.web_surface import WebOptions, WebSurface, serve_team_page
from bot.tasks import run_in_background

ADVICE = "Choose another --port (0 = any free port)."


async def serve_local_page(settings: Settings, repository: Path, say: Announce, *, port: int) -> None:
    """Serve the page at loopback until cancelled; a printed link signs in once, and then the next one is printed."""
    link, clock = LoginLink(), SystemClock()
    surface, application = WebSurface(WebOptions(link=link)), make_application()
    surface.join(application.router)
    settings = settings.model_copy(update={"access": AccessPolicy(reindex=("*",), admins=("*",))})
    limits = QuestionLimits(per_minute=1_000, per_day=1_000_000)  # the asker pays
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        address = await enter(run_http_server(application, host=LOOPBACK, port=port, advice=ADVICE))
        database = await enter(open_store(settings.home, settings.database_url))
        team = await enter(TeamApp.open(settings, repository, LoggingDisplay()))
        repositories = WatchedRepositories(team.stock.library, team.stock.watcher.sentence)
        policy = make_chat_policy(settings, team, limits=limits)
        conversations = await enter(
            open_conversations(team.agent, repositories, store=nullcontext(database), policy=policy, clock=clock)
        )
        core = make_team_core(settings, team, conversations)
        await enter(serve_team_page(surface, core, team, conversations))
        await enter(run_in_background(team.stock.watcher.run()))
        link.announce = lambda: say(f"Signed in. To sign in again, open {address}/login?t={link.token}")
        say(f"Open {address}/login?t={link.token} in a browser on this machine. Ctrl-C stops the server.")
        gc.freeze()
        gc.enable()
        await asyncio.Event().wait()
