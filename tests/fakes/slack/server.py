"""The fake itself: a loopback server over one workspace, and what a test asks of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self, TypeVar

from aiohttp import web

from tests.fakes.loopback.changes import Changes
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.closing import close_server
from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.apps import Apps
from tests.fakes.slack.blocks import text_of
from tests.fakes.slack.calls import Call
from tests.fakes.slack.chat import Chat
from tests.fakes.slack.conversations import Conversations
from tests.fakes.slack.deliveries import Deliveries, Delivery
from tests.fakes.slack.events import SUBSCRIPTIONS, Events
from tests.fakes.slack.faults import Faults
from tests.fakes.slack.files import Files
from tests.fakes.slack.http_mode import HttpMode
from tests.fakes.slack.interactions import Responses, Tickets
from tests.fakes.slack.limits import RateLimits
from tests.fakes.slack.messages import Seen
from tests.fakes.slack.people import People
from tests.fakes.slack.scopes import Access
from tests.fakes.slack.socket_mode import SocketMode
from tests.fakes.slack.streams import StreamRules, Streams
from tests.fakes.slack.web_api import Method, WebApi
from tests.fakes.slack.workspace import BOT_USER, Workspace

T = TypeVar("T")
Mode = Literal["socket", "http"]
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"
MAX_UPLOAD = 50 * 1024 * 1024


class FakeSlack(People):
    """A Slack with one workspace. Use as an async context manager; `api_url` is what a client needs as base URL."""

    bot_user = BOT_USER

    def __init__(
        self, *, mode: Mode = "socket", clock: Clock | None = None, subscriptions: frozenset[str] = SUBSCRIPTIONS
    ) -> None:
        self.clock = clock or Clock()
        self.signing_secret = SIGNING_SECRET
        self.changes = Changes()
        self.socket = SocketMode(self.clock, self.changes)
        self.http = HttpMode(self.clock, self.signing_secret)
        transport = self.socket if mode == "socket" else self.http
        self.deliveries = Deliveries(self.clock, self.changes, transport)
        self.events = Events(set(subscriptions), self._deliver, self.clock.now)
        workspace = Workspace(clock=self.clock, changes=self.changes, publish=self.events.publish)
        self.tickets = Tickets()
        self.responses = Responses(workspace)
        super().__init__(workspace, self.deliveries, self.tickets, self.responses)
        self.limits = RateLimits(self.clock)
        self.faults = Faults(self.changes)
        self.access = Access(workspace)
        self.streaming = StreamRules()
        self.conversations = Conversations(workspace)
        self.files = Files(workspace, self.access)
        self._streams = Streams(workspace, self.streaming)
        self._api = WebApi(
            clock=self.clock,
            changes=self.changes,
            limits=self.limits,
            faults=self.faults,
            access=self.access,
            methods=self._methods(),
        )
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def api_url(self) -> str:
        """The base URL of the Web API, with its slash."""
        return f"{self.url}/api/"

    @property
    def bot_token(self) -> str:
        """The token that the Web API accepts."""
        return self.access.bot_token

    @property
    def app_token(self) -> str:
        """The token that opens Socket Mode."""
        return self.access.app_token

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=MAX_UPLOAD)
        app.router.add_route("*", "/api/{method}", self._api.handle)
        app.router.add_get("/link/", self.socket.handle)
        app.router.add_post("/upload/v1/{file}", self.files.receive)
        app.router.add_get("/files-pri/{file}/{name}", self.files.send)
        app.router.add_post("/response/{line}", self.responses.receive)
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.socket.base_url = self.files.base_url = self.responses.base_url = self.url
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.faults.clear()
        try:
            await self.deliveries.close()
        finally:
            await self.socket.close()
            await self.http.close()
            if self._runner is not None:
                await close_server(self._runner)

    async def until(self, predicate: Callable[[], T], *, within: float = 60) -> T:
        """Wait until the predicate gives something true, looking again at each change; return what it gave."""
        try:
            return await self.changes.until(predicate, within)
        except TimeoutError as error:
            last = [f"{call.method} {call.error or call.status}" for call in self.calls[-8:]]
            raise TimeoutError(
                f"still false after {within:g} s; the last calls: {', '.join(last) or 'none'}"
            ) from error

    async def connected(self, count: int = 1) -> None:
        """Wait until the app has so many Socket Mode connections."""
        await self.until(lambda: len(self.socket.connections) >= count)

    async def delivered(self) -> None:
        """Wait until everything sent so far is acknowledged or given up."""
        sent = list(self.deliveries.sent)
        await self.until(lambda: all(delivery.settled for delivery in sent))

    @property
    def calls(self) -> list[Call]:
        """Every Web API call, oldest first."""
        return self._api.calls

    def calls_of(self, method: str) -> list[Call]:
        """The calls of one method."""
        return [call for call in self.calls if call.method == method]

    def sent(self, event_type: str) -> list[Delivery]:
        """The deliveries of one type of event, command or interaction."""
        return [each for each in self.deliveries.sent if event_type in _names(each)]

    def answers(self, channel: str, thread_ts: str | None = None) -> list[Seen]:
        """What the bot wrote in a channel and its threads, or in one thread."""
        self._streams.sweep()
        mine = [each for each in self.workspace.all(channel) if each.user == BOT_USER]
        return [each.seen() for each in mine if thread_ts is None or each.root == thread_ts]

    def ephemeral(self, channel: str, user: str) -> list[Seen]:
        """What only one person sees in a channel."""
        found = [each for each in self.workspace.ephemerals if (each.channel, each.for_user) == (channel, user)]
        return [each.seen() for each in found]

    def home(self, user: str) -> str:
        """What a person reads in the Home tab; empty before the app has published it."""
        view = self.workspace.homes.get(user)
        return text_of(view["blocks"]) if view else ""

    def status(self, channel: str, thread_ts: str) -> str:
        """The status below a thread, until it is cleared."""
        return self.workspace.status(channel, thread_ts)

    def expire_streams(self) -> None:
        """Close all open streams now, as Slack does after five minutes."""
        for channel in self.workspace.channels:
            for message in self.workspace.all(channel):
                self._streams.expire(message)

    def serve_http(self, url: str) -> None:
        """Deliver to a request URL from now on."""
        self.http.url = url
        self.deliveries.transport = self.http

    async def verify_url(self) -> bool:
        """Check the request URL as Slack does when it is entered."""
        body = json.dumps({"type": "url_verification", "token": "legacy-token", "challenge": "a-challenge"})
        status, _, text = await self.http.post(body, self.http.signed(body) | {"Content-Type": "application/json"})
        return status == 200 and "a-challenge" in text

    async def forge(self, payload: JSON, *, secret: str | None = None, age: float = 0) -> int:
        """Post an event with a signature of another secret, or an old one; return the status."""
        body = json.dumps(payload)
        headers = self.http.signed(body, secret=secret, age=age) | {"Content-Type": "application/json"}
        status, _, _ = await self.http.post(body, headers)
        return status

    def _deliver(self, body: JSON) -> None:
        self.deliveries.send("events_api", body)

    def _methods(self) -> dict[str, Method]:
        chat, streams, talks = Chat(self.workspace), self._streams, self.conversations
        apps = Apps(self.workspace)
        return {
            "apps.connections.open": self.socket.open_connection,
            "assistant.threads.setStatus": apps.set_status,
            "assistant.threads.setSuggestedPrompts": apps.set_prompts,
            "auth.test": apps.auth_test,
            "chat.appendStream": streams.append,
            "chat.delete": chat.delete,
            "chat.postEphemeral": chat.post_ephemeral,
            "chat.postMessage": chat.post_message,
            "chat.startStream": streams.start,
            "chat.stopStream": streams.stop,
            "chat.update": chat.update,
            "conversations.info": talks.info,
            "conversations.replies": talks.replies,
            "files.completeUploadExternal": self.files.complete,
            "files.getUploadURLExternal": self.files.upload_url,
            "users.conversations": talks.memberships,
            "views.publish": apps.publish_home,
        }


def _names(delivery: Delivery) -> set[str]:
    payload = delivery.payload
    event = payload.get("event", {})
    found = {delivery.kind, payload.get("type"), payload.get("command"), event.get("type"), event.get("subtype")}
    return {name for name in found if name}
