"""The fake itself: a loopback server over one world, and what a test asks of it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from aiohttp import web

from tests.fakes.discord.calls import Call
from tests.fakes.discord.channels import Channel
from tests.fakes.discord.checks import Rules
from tests.fakes.discord.commands import Commands
from tests.fakes.discord.faults import Faults
from tests.fakes.discord.gateway import Gateway
from tests.fakes.discord.gestures import Gestures
from tests.fakes.discord.intents import Portal
from tests.fakes.discord.interaction_api import InteractionApi
from tests.fakes.discord.interactions import Interactions
from tests.fakes.discord.limits import RateLimits
from tests.fakes.discord.message_api import MessageApi
from tests.fakes.discord.messages import Seen
from tests.fakes.discord.people import People
from tests.fakes.discord.places import Places
from tests.fakes.discord.places_api import PlacesApi
from tests.fakes.discord.posts import Posts
from tests.fakes.discord.requests import Endpoint
from tests.fakes.discord.rest import Rest
from tests.fakes.discord.thread_api import ThreadApi
from tests.fakes.discord.threads import Threads
from tests.fakes.discord.world import Event, World
from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.closing import close_server

T = TypeVar("T")
TOKEN = "fake.discord.token"
TYPING_SHOWS = 10.0


class FakeDiscord(Places, People, Gestures):
    """A Discord with one server; `api_url` and `gateway_url` are what a client needs. Use as async context manager."""

    token = TOKEN

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.changes = Changes()
        self.rules = Rules()
        self.portal = Portal()
        self.world = World(clock=self.clock, changes=self.changes, rules=self.rules, publish=self._publish)
        self.threads = Threads(self.world)
        self.posts = Posts(self.world)
        self.commands = Commands(self.world)
        self.interactions = Interactions(self.clock)
        self.limits = RateLimits(self.clock)
        self.faults = Faults(self.changes)
        self.rest = Rest(
            clock=self.clock,
            changes=self.changes,
            limits=self.limits,
            faults=self.faults,
            rules=self.rules,
            token=TOKEN,
        )
        self.gateway = Gateway(self.world, self.portal, lambda: self.rest.token, self.changes)
        self.guild_id = self.world.add_guild("home", self.world.add_user("owner")).id
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def api_url(self) -> str:
        """The base URL of the REST API, without a slash behind it."""
        return f"{self.url}/api/v10"

    @property
    def gateway_url(self) -> str:
        """The address of the gateway."""
        return self.gateway.url

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=10 * self.rules.most_file)
        app.router.add_get("/gateway", self.gateway.handle)
        app.router.add_get("/resume", self.gateway.handle)
        app.router.add_get("/attachments/{channel}/{attachment}/{name}", self._download)
        self.rest.serve(app, self._endpoints())
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = self.gateway.base_url = self.posts.base_url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.faults.clear()
        await self.gateway.close()
        if self._runner is not None:
            await close_server(self._runner)

    async def until(self, predicate: Callable[[], T], *, within: float = 60) -> T:
        """Wait until the predicate gives something true, looking again at each change; return what it gave."""
        try:
            return await self.changes.until(predicate, within)
        except TimeoutError as error:
            last = [f"{call.name} {call.code or call.status}" for call in self.calls[-8:]]
            message = f"still false after {within:g} s; the last calls: {', '.join(last) or 'none'}"
            raise TimeoutError(message) from error

    async def connected(self, count: int = 1) -> None:
        """Wait until the app has so many sessions with a connection."""
        await self.until(lambda: sum(each.connection is not None for each in self.gateway.sessions) >= count)

    def drop(self) -> None:
        """Break the gateway's connections; the app may resume its session."""
        self.gateway.drop()

    def invalidate_session(self, *, resumable: bool = False) -> None:
        """Declare the session invalid; unless resumable, the app has to IDENTIFY again."""
        self.gateway.invalidate(resumable=resumable)

    @property
    def calls(self) -> list[Call]:
        """Every REST call, oldest first."""
        return self.rest.calls

    def calls_of(self, name: str) -> list[Call]:
        """The calls of one name."""
        return [call for call in self.calls if call.name == name]

    def messages(self, channel: str) -> list[Seen]:
        """What everyone reads in a channel or thread, oldest first."""
        return [each.seen() for each in self.world.all(channel)]

    def answers(self, channel: str) -> list[Seen]:
        """What the bot wrote in a channel or thread."""
        return [each for each in self.messages(channel) if each.author == self.world.bot.id]

    def seen(self, message: str) -> Seen:
        """One message."""
        return self.world.find(message).seen()

    def thread(self, identity: str) -> Channel:
        """A thread or other channel with its name, members and state."""
        return self.world.channels[identity]

    def threads_in(self, channel: str) -> list[Channel]:
        """The threads of a channel or forum, oldest first."""
        return [each for each in self.world.channels.values() if each.is_thread and each.parent_id == channel]

    def is_typing(self, channel: str) -> bool:
        """Whether people see that the bot types."""
        since = self.world.typing.get(channel)
        return since is not None and self.clock.now() - since < TYPING_SHOWS

    def _publish(self, event: Event) -> None:
        self.gateway.publish(event)

    def _endpoints(self) -> list[Endpoint]:
        messages = MessageApi(self.world, self.portal, self.threads, self.posts)
        places = PlacesApi(self.world, self.threads, self.portal)
        threads = ThreadApi(self.world, self.threads)
        answers = InteractionApi(self.world, self.posts, self.interactions)
        parts = (places, messages, threads, self.commands, answers)
        return [endpoint for part in parts for endpoint in part.endpoints()]

    async def _download(self, request: web.Request) -> web.Response:
        content = self.world.uploads.get(request.match_info["attachment"])
        if content is None:
            return web.Response(status=404)
        return web.Response(body=content, content_type="application/octet-stream")
