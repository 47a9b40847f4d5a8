"""The Bolt app: what Slack delivers is stored before it is acknowledged, and nothing is left unacknowledged."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from cachetools import LRUCache
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.adapters.inbound import MessageSink
from bot.adapters.slack.channels import SharedChannels
from bot.adapters.slack.client import BotIdentity, SlackClient
from bot.adapters.slack.endpoint import APP_RATE_LIMITED, EventLimit
from bot.adapters.slack.ephemeral import SlackEphemeralMessages, is_ephemeral, make_ephemeral_place
from bot.adapters.slack.home import PROMPTS, HomeTab
from bot.adapters.slack.parsing import (
    PLATFORM,
    ButtonPressed,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    parse_delivery,
)
from bot.adapters.slack.platform import SlackPlatform
from bot.errors import ChatError
from bot.messages import IncomingMessage, MessageContent, Place

# The events that are handled here; the manifest subscribes to these and no others.
EVENTS = frozenset({
    "agent_session_stopped", "app_home_opened", "app_mention", "message.channels", "message.groups", "message.im",
    "message.mpim", "reaction_added",
})  # fmt: skip
_MOST_EDITS = 1_000
_LAST_SECONDS = 5.0  # for what came in before the end
_ANY = re.compile("")

log = logging.getLogger(__name__)
bolt_log = logging.getLogger(f"{__name__}.bolt")


@dataclass(frozen=True, kw_only=True)
class EphemeralNotice:
    """Something to say to one person alone."""

    place: Place
    text: str


class SlackListener:
    """Takes in what people do in Slack, and brings it to the conversations."""

    def __init__(
        self,
        *,
        calls: SlackClient,
        identity: BotIdentity,
        platform: SlackPlatform,
        whispers: SlackEphemeralMessages,
        channels: SharedChannels,
        conversations: MessageSink,
        home: HomeTab,
        event_limit: EventLimit,
    ) -> None:
        self._calls = calls
        self._identity = identity
        self._platform = platform
        self._whispers = whispers
        self._channels = channels
        self._conversations = conversations
        self._home = home
        self._event_limit = event_limit
        self._edits: LRUCache[str, None] = LRUCache(_MOST_EDITS)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._at_work = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """At the end, let what came in be brought to its end: nothing of it may outlive the conversations."""
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._idle.wait()
            except TimeoutError:
                log.warning("%s deliveries were left to be delivered again", self._at_work)

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._at_work += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._idle.set()

    def app(self) -> AsyncApp:
        """Build the Bolt app, with a middleware that stores and catch-alls that acknowledge; it checks no signature."""
        bolt_log.setLevel(logging.ERROR)  # Bolt warns of a token in the environment that it does not need
        app = AsyncApp(
            name="citebot",
            logger=bolt_log,
            authorize=_authorizing(self._identity, self._calls.client.token),
            attaching_conversation_kwargs_enabled=False,
        )
        bolt_log.setLevel(logging.WARNING)
        app.use(self._store)
        app.event("app_home_opened")(self._handle_home_opened)
        app.event("assistant_thread_started")(self._handle_thread_started)
        app.event(_ANY)(self._tell)
        for listen in (app.command, app.action, app.shortcut, app.view):
            listen(_ANY)(self._acknowledge)
        return app

    async def take(self, body: Mapping[str, Any]) -> list[EphemeralNotice]:
        """Bring one delivery to the conversations; return what to say to people alone. What raises was not stored."""
        told: list[EphemeralNotice] = []
        for heard in parse_delivery(body, self._identity):
            if isinstance(heard, ButtonPressed):
                told += await self._press(heard)
            else:
                await self._hear(heard, str(body.get("event_id", "")))
        return told

    async def _hear(self, heard: MessageReceived | MessageEdited | MessageDeleted, event: str) -> None:
        # A channel is heard in the order in which things happen: what was deleted at once must not be answered, and who
        # has joined a thread decides what comes after.
        async with self._turns.setdefault(_channel_of(heard), asyncio.Lock()):
            match heard:
                case MessageReceived():
                    await self._ask(heard)
                case MessageEdited():
                    await self._edit(heard, event)
                case MessageDeleted():
                    await self._conversations.handle_deletion(heard.key)

    async def _ask(self, heard: MessageReceived) -> None:
        message = await self._mark_external(heard.message)
        self._platform.remember_asker(message.place, message.author, heard.team)
        if heard.answer_to:
            self._whispers.remember_response_url(message.place.channel, message.author, heard.answer_to)
        await self._conversations.receive(message)

    async def _edit(self, heard: MessageEdited, event: str) -> None:
        """Messages are known by the inbox; edits look alike, so that their deliveries are told apart here."""
        if event in self._edits:
            return
        await self._conversations.handle_edit(await self._mark_external(heard.message))
        self._edits[event] = None

    async def _press(self, heard: ButtonPressed) -> list[EphemeralNotice]:
        press = heard.press
        if not press.external:
            press = replace(press, external=await self._channels.is_shared(heard.place.channel))
        said = await self._conversations.handle_press(press)
        alone = heard.place if is_ephemeral(heard.place) else make_ephemeral_place(heard.place, press.author)
        if heard.answer_to:
            self._whispers.remember_response_url(alone.channel, press.author, heard.answer_to)
        return [EphemeralNotice(place=alone, text=said)] if said else []

    async def _mark_external(self, message: IncomingMessage) -> IncomingMessage:
        """Find out whether people from outside read along; a DM is read by its author only."""
        if message.external or message.kind == "direct":
            return message
        return replace(message, external=await self._channels.is_shared(message.place.channel))

    async def _store(self, body: dict[str, Any], context: Any, next_: Callable[[], Awaitable[Any]]) -> Any:
        if body.get("type") == APP_RATE_LIMITED:  # an event around no event, which Bolt does not know
            self._event_limit.note()
            return BoltResponse(status=200)
        with self._working():
            context["told"] = await self.take(body)
            return await next_()

    async def _acknowledge(self, ack: Callable[[], Awaitable[Any]], context: Any) -> None:
        await ack()
        await self._tell(context)

    async def _handle_home_opened(self, event: dict[str, Any]) -> None:
        """Write the Home tab, or suggest questions in the messages tab."""
        with self._working():
            if event.get("tab") == "messages":
                await self._suggest(str(event.get("channel", "")))
            else:
                await self._show_home(event)

    async def _show_home(self, event: dict[str, Any]) -> None:
        place = Place(platform=PLATFORM, workspace=self._identity.team, channel=str(event.get("channel", "")))
        try:
            external = await self._channels.is_shared(place.channel)
            person = str(event.get("user", ""))
            view = await self._home.view(place, person, external=external)
            await self._calls.read(lambda: self._calls.client.views_publish(user_id=person, view=dict(view)))
        except ChatError as error:
            log.warning("a Home tab was not written: %s", error)

    async def _handle_thread_started(self, event: dict[str, Any]) -> None:
        thread = event.get("assistant_thread") or {}
        with self._working():
            await self._suggest(str(thread.get("channel_id", "")), str(thread.get("thread_ts", "")))

    async def _suggest(self, channel: str, thread: str = "") -> None:
        wanted: dict[str, Any] = {"channel_id": channel, "prompts": [dict(each) for each in PROMPTS]}
        wanted |= {"thread_ts": thread} if thread else {}
        client = self._calls.client
        try:
            await self._calls.read(lambda: client.api_call("assistant.threads.setSuggestedPrompts", json=wanted))
        except ChatError as error:
            log.info("no questions were suggested: %s", error)

    async def _tell(self, context: Any) -> None:
        with self._working():
            for told in context.get("told") or ():
                try:
                    await self._whispers.send(told.place, MessageContent(text=told.text))
                except ChatError as error:
                    log.info("a person was not told: %s", error)


def _channel_of(heard: MessageReceived | MessageEdited | MessageDeleted) -> str:
    return heard.key.channel if isinstance(heard, MessageDeleted) else heard.message.place.channel


def _authorizing(own: BotIdentity, token: str | None) -> Callable[[], Awaitable[AuthorizeResult]]:
    """Answer Bolt's question whose event it is, without asking Slack for each."""

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None, team_id=own.team, bot_token=token, bot_id=own.bot, bot_user_id=own.user
        )

    return authorize
