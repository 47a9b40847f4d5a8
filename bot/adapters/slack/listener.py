"""Delivers people's actions in Slack to the conversations, and writes the Home tab when they open it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.access import AccessPolicy
from bot.adapters.inbound import EventsInFlight
from bot.adapters.slack.channels import PLATFORM, SharedChannels
from bot.adapters.slack.client import BotIdentity, SlackClient
from bot.adapters.slack.endpoint import APP_RATE_LIMITED, EventLimit
from bot.adapters.slack.ephemeral import SlackEphemeralMessages, make_ephemeral_place
from bot.adapters.slack.parsing import (
    ButtonPressed,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    PlatformEvent,
    parse_delivery,
)
from bot.adapters.slack.platform import SlackPlatform
from bot.adapters.slack.rendering import Block, to_mrkdwn
from bot.clock import Clock
from bot.conversations.commands import format_help
from bot.conversations.dispatcher import Conversations
from bot.errors import ChatError
from bot.messages import IncomingMessage, MessageContent, Place
from bot.ports import Repositories
from bot.questions.descriptions import describe_freshness
from indexer import IndexerError

# The events that are handled here; the manifest subscribes to these and no others.
EVENTS = frozenset({
    "agent_session_stopped", "app_home_opened", "app_mention", "message.channels", "message.groups", "message.im",
    "message.mpim", "pin_added", "pin_removed", "reaction_added", "reaction_removed",
})  # fmt: skip
_LAST_MOMENT = 5.0  # seconds in which deliveries can still be stored
_ANY = re.compile("")
log = logging.getLogger(__name__)
bolt_log = logging.getLogger(f"{__name__}.bolt")
MAX_SHOWN = 40
PROMPTS: Sequence[Mapping[str, str]] = (
    {"title": "Where is something done?", "message": "Where are settings read?"},
    {"title": "Who calls it?", "message": "Who calls the main entry point?"},
    {"title": "What is indexed?", "message": "status"},
    {"title": "What can I ask?", "message": "help"},
)
_ASK = "Mention me in a channel, or write to me here. Every claim links to the exact lines and commit it came from."


@dataclass(frozen=True, kw_only=True)
class EphemeralNotice:
    """A message for only one person."""

    place: Place
    text: str


class SlackListener:
    """Delivers people's actions in Slack to the conversations; the events of a channel keep their order."""

    def __init__(
        self,
        *,
        client: SlackClient,
        identity: BotIdentity,
        platform: SlackPlatform,
        ephemeral: SlackEphemeralMessages,
        channels: SharedChannels,
        conversations: Conversations,
        home: HomeTab,
        event_limit: EventLimit,
    ) -> None:
        self._client = client
        self._identity = identity
        self._platform = platform
        self._ephemeral = ephemeral
        self._channels = channels
        self._conversations = conversations
        self._home = home
        self._event_limit = event_limit
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._in_flight = EventsInFlight()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Finish the present deliveries when the context ends; Slack redelivers slow ones."""
        try:
            yield
        finally:
            if late := await self._in_flight.drain(_LAST_MOMENT):
                log.warning("%s deliveries were left to be delivered again", len(late))

    def app(self) -> AsyncApp:
        """Build the Bolt app, with a middleware that stores and catch-alls that acknowledge; it checks no signature."""
        own, token = self._identity, self._client.web.token

        async def authorize() -> AuthorizeResult:  # tells Bolt whose event it is, without a call for each
            return AuthorizeResult(
                enterprise_id=None, team_id=own.team, bot_token=token, bot_id=own.bot, bot_user_id=own.user
            )

        bolt_log.setLevel(logging.ERROR)  # Bolt warns about a token in the environment that it does not need
        app = AsyncApp(
            name="citebot",
            logger=bolt_log,
            authorize=authorize,
            attaching_conversation_kwargs_enabled=False,
        )
        bolt_log.setLevel(logging.WARNING)
        app.use(self._store)
        app.event("app_home_opened")(self._handle_home_opened)
        app.event("assistant_thread_started")(self._handle_thread_started)
        app.event(_ANY)(self._send_notices)
        for listen in (app.command, app.action, app.shortcut, app.view):
            listen(_ANY)(self._acknowledge)
        return app

    async def handle_delivery(self, body: Mapping[str, Any]) -> list[EphemeralNotice]:
        """Handle one delivery; return the notices to show. If it raises, nothing was stored."""
        notices: list[EphemeralNotice] = []
        for event in parse_delivery(body, self._identity):
            if self._is_not_for_us(event):
                continue
            if isinstance(event, ButtonPressed):
                notices += await self._press(event)
            else:
                await self._handle_event(event)
        return notices

    def _is_not_for_us(self, event: PlatformEvent) -> bool:
        """Whether people talk in a channel where citebot answers only mentions; then nothing is looked up."""
        if not isinstance(event, MessageReceived | MessageEdited) or event.message.kind != "overheard":
            return False
        return not self._conversations.overhears(event.message.place)

    async def _handle_event(self, event: MessageReceived | MessageEdited | MessageDeleted) -> None:
        # The events of a channel are handled in their order: what was deleted at once must not be answered, and who
        # has joined a thread decides what comes after.
        channel = event.key.channel if isinstance(event, MessageDeleted) else event.message.place.channel
        async with self._locks.setdefault(channel, asyncio.Lock()):
            match event:
                case MessageReceived():
                    message = await self._mark_external(event)
                    self._platform.remember_asker(message.place, message.author, event.team)
                    await self._conversations.receive(message)
                case MessageEdited():
                    await self._conversations.handle_edit(await self._mark_external(event))
                case MessageDeleted():
                    await self._conversations.handle_deletion(event.key)

    async def _press(self, event: ButtonPressed) -> list[EphemeralNotice]:
        press = event.press
        if not press.external:
            press = replace(press, external=await self._channels.is_shared(event.place.channel))
        text = await self._conversations.handle_press(press)
        private = make_ephemeral_place(event.place, press.author, response_url=event.response_url)
        return [EphemeralNotice(place=private, text=text)] if text else []

    async def _mark_external(self, event: MessageReceived | MessageEdited) -> IncomingMessage:
        """Find out whether outsiders can read a message; only its author reads a DM."""
        message = event.message
        if message.external or message.kind == "direct":
            return message
        shared = await self._channels.is_shared(message.place.channel, told=event.shared)
        return replace(message, external=shared)

    async def _store(self, body: dict[str, Any], context: Any, next_: Callable[[], Awaitable[Any]]) -> Any:
        if body.get("type") == APP_RATE_LIMITED:  # Bolt does not know this kind of delivery
            self._event_limit.note()
            return BoltResponse(status=200)
        with self._in_flight.track():
            context["notices"] = await self.handle_delivery(body)
            return await next_()

    async def _acknowledge(self, ack: Callable[[], Awaitable[Any]], context: Any) -> None:
        await ack()
        await self._send_notices(context)

    async def _handle_home_opened(self, event: dict[str, Any]) -> None:
        """Write the Home tab, or suggest questions in the messages tab."""
        with self._in_flight.track():
            if event.get("tab") == "messages":
                await self._suggest_questions(str(event.get("channel", "")))
            else:
                await self._publish_home(str(event.get("channel", "")), str(event.get("user", "")))

    async def _publish_home(self, channel: str, user: str) -> None:
        place = Place(platform=PLATFORM, workspace=self._identity.team, channel=channel)
        try:
            view = await self._home.view(place, user, external=await self._channels.is_shared(channel))
            await self._client.read(lambda: self._client.web.views_publish(user_id=user, view=dict(view)))
        except ChatError as error:
            log.warning("a Home tab was not written: %s", error)

    async def _handle_thread_started(self, event: dict[str, Any]) -> None:
        thread = event.get("assistant_thread") or {}
        with self._in_flight.track():
            await self._suggest_questions(str(thread.get("channel_id", "")), str(thread.get("thread_ts", "")))

    async def _suggest_questions(self, channel: str, thread: str = "") -> None:
        wanted: dict[str, Any] = {"channel_id": channel, "prompts": [dict(prompt) for prompt in PROMPTS]}
        wanted |= {"thread_ts": thread} if thread else {}
        try:
            await self._client.read(
                lambda: self._client.web.api_call("assistant.threads.setSuggestedPrompts", json=wanted)
            )
        except ChatError as error:
            log.info("no questions were suggested: %s", error)

    async def _send_notices(self, context: Any) -> None:
        with self._in_flight.track():
            for notice in context.get("notices") or ():
                try:
                    await self._ephemeral.send(notice.place, MessageContent(text=notice.text))
                except ChatError as error:
                    log.info("a notice was not shown: %s", error)


class HomeTab:
    """Writes the Home tab for one person: it lists the repositories that they may ask about in a DM."""

    def __init__(self, repositories: Repositories, access: AccessPolicy, clock: Clock) -> None:
        self._repositories = repositories
        self._access = access
        self._clock = clock

    async def view(self, place: Place, person: str, *, external: bool) -> Mapping[str, Any]:
        """Return the view."""
        asking = IncomingMessage(
            place=place, id="home", author=person, text="", kind="direct", sent_at=self._clock.now(), private=True
        )
        names = [] if external else self._access.list_visible(asking, self._repositories.list_names())
        lines = [await self._describe_repository(name) for name in names]
        shown = [_make_section(to_mrkdwn(line)) for line in lines[:MAX_SHOWN]]
        if len(lines) > MAX_SHOWN:
            shown.append(_make_section(f"… and {len(lines) - MAX_SHOWN} more; send me `repos`."))
        none = _make_section("There are no repositories that you may ask about.")
        blocks = [
            {"type": "header", "text": {"type": "plain_text", "text": "Repositories"}},
            *(shown or [none]),
            {"type": "divider"},
            _make_section(_ASK),
        ]
        return {"type": "home", "blocks": [*blocks, {"type": "markdown", "text": format_help(several=len(names) > 1)}]}

    async def _describe_repository(self, name: str) -> str:
        try:
            return describe_freshness(await self._repositories.status(name), self._clock.now())
        except IndexerError as error:
            return f"{name}: {error}"


def _make_section(words: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": words[:3000]}}
