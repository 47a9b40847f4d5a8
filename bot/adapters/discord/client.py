"""The client of Discord: its intents, addresses, gateway connection, and event handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec

import discord
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import Route
from discord.state import ConnectionState

from bot.adapters.discord.connection import AWAY_ERRORS, ReconnectBackoff
from bot.adapters.discord.interactions import InteractionHandler
from bot.adapters.discord.listener import DiscordListener
from bot.adapters.file_downloads import refuse_redirects
from bot.adapters.inbound import EventsInFlight
from bot.monitoring.observer import CountLoss, ignore_loss

P = ParamSpec("P")

LONGEST_WAIT = 30.0  # seconds that discord.py itself waits for a limit; the send budget decides about longer ones
HANDSHAKE = 60.0  # seconds within which a connection to the gateway must be made
ESSENTIAL = frozenset({"READY", "RESUMED"})  # a session that begins with less is none
LAST_MOMENT = 2.0  # seconds in which events can still be stored; the next process looks for what was missed

log = logging.getLogger(__name__)


def track_events(
    handle: Callable[Concatenate[GatewayClient, P], Awaitable[None]],
) -> Callable[Concatenate[GatewayClient, P], Coroutine[Any, Any, None]]:
    """Track which events a client is handling: discord.py keeps that to itself."""

    @wraps(handle)
    async def handle_and_track(client: GatewayClient, /, *args: P.args, **kwargs: P.kwargs) -> None:
        with client.in_flight.track():
            await handle(client, *args, **kwargs)

    return handle_and_track


class GatewayClient(discord.Client):
    """Passes events on to the listener and the interaction handler; it caches no messages and no members."""

    def __init__(self, *, message_content: bool, settle_seconds: float, identify_pause: float) -> None:
        # Otherwise every log would begin with warnings about voice, which is not used.
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False
        super().__init__(
            intents=make_intents(message_content=message_content),
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            guild_ready_timeout=settle_seconds,
            max_ratelimit_timeout=LONGEST_WAIT,
            http_trace=refuse_redirects(),
        )
        self.count_loss: CountLoss = ignore_loss
        self.listener: DiscordListener | None = None
        self.interactions: InteractionHandler | None = None
        self.in_flight = EventsInFlight()
        self.in_session = asyncio.Event()  # events arrive
        self._identify_pause = identify_pause

    def _get_state(self, **options: Any) -> ConnectionState[Any]:
        """Skip an event that discord.py cannot parse: it would end the connection, and the process with it."""
        state = super()._get_state(**options)
        state.parsers.update(
            {
                event: partial(self._parse_or_skip, event, parse)
                for event, parse in state.parsers.items()
                if event not in ESSENTIAL
            }
        )
        return state

    def _parse_or_skip(self, event: str, parse: Callable[[Any], None], data: Any) -> None:
        try:
            parse(data)
        except Exception as error:  # a parser's errors on unexpected events are undocumented
            kind, details = type(error).__name__, log.isEnabledFor(logging.DEBUG)
            log.warning("an event could not be read, and was skipped: %s (%s)", event, kind, exc_info=details)
            self.count_loss("malformed")

    async def connect(self, *, reconnect: bool = True) -> None:  # noqa: ARG002 - it always reconnects
        """Receive events, and resume broken connections: as discord.py does, with other pauses and log lines.

        Raises the obstacle to the first connection, and the gateway's reason for closing one for good.
        """
        pauses = ReconnectBackoff()
        options: dict[str, Any] = {"initial": True, "shard_id": self.shard_id}
        while not self.is_closed():
            try:
                self.ws = await asyncio.wait_for(DiscordWebSocket.from_client(self, **options), HANDSHAKE)
                options["initial"] = False
                while True:
                    await self.ws.poll_event()
            except ReconnectWebSocket as error:
                self.dispatch("disconnect")
                options |= self._make_resume_options(error, resume=error.resume)
                if error.resume:
                    options["gateway"] = self.ws.gateway
            except (*AWAY_ERRORS, discord.ConnectionClosed) as error:
                self.dispatch("disconnect")
                if self.is_closed():
                    return
                await self._raise_if_final(error)
                options |= self._make_resume_options(error, resume=True)
                pause = pauses.delay()
                away = "the gateway of Discord is away (%s); next try in %.1f seconds"
                log.warning(away, type(error).__name__, pause)
                await asyncio.sleep(pause)

    def _make_resume_options(self, error: Exception, *, resume: bool) -> dict[str, Any]:
        """Return where to resume; a session that never began cannot be resumed."""
        if self.ws is None:
            raise error
        return {"sequence": self.ws.sequence, "session": self.ws.session_id, "resume": resume}

    async def _raise_if_final(self, error: Exception) -> None:
        """Raise an error that a retry would not change."""
        if not isinstance(error, discord.ConnectionClosed) or error.code == 1000:
            return
        if error.code == 4014:
            raise discord.PrivilegedIntentsRequired(error.shard_id) from None
        await self.close()
        raise error

    async def finish(self) -> None:
        """Accept no more events, and finish the pending ones; abandon one that takes too long."""
        self.listener = self.interactions = None
        late = await self.in_flight.drain(LAST_MOMENT)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def close(self) -> None:
        """Close for good; discord.py itself would still wait for the list of servers, and then fail."""
        waiting = self._connection._ready_task  # noqa: SLF001 - it has no other name
        if waiting is not None:
            waiting.cancel()
        await super().close()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002
        """Wait before restarting a session: Discord allows one in five seconds."""
        if not initial:
            await asyncio.sleep(self._identify_pause)

    @track_events
    async def on_connect(self) -> None:
        """Note a new session."""
        self.in_session.set()
        if self.listener is not None:
            self.listener.on_ready()

    @track_events
    async def on_ready(self) -> None:
        """Note that the servers are known."""
        if self.listener is not None:
            await self.listener.read_missed_direct()

    @track_events
    async def on_guild_available(self, guild: discord.Guild) -> None:
        """Note an available server, new or returning."""
        if self.listener is not None:
            await self.listener.read_missed_in(guild)

    @track_events
    async def on_resumed(self) -> None:
        """Note a resumed session."""
        self.in_session.set()
        if self.listener is not None:
            self.listener.on_resumed()

    @track_events
    async def on_disconnect(self) -> None:
        """Note a lost gateway connection."""
        self.in_session.clear()
        if self.listener is not None:
            self.listener.on_connection_lost()

    @track_events
    async def on_message(self, message: discord.Message) -> None:
        """Handle a new message."""
        if self.listener is not None:
            await self.listener.on_message(message)

    @track_events
    async def on_raw_message_edit(self, payload: discord.RawMessageUpdateEvent) -> None:
        """Handle an edited message."""
        if self.listener is not None:
            await self.listener.on_edit(payload.message)

    @track_events
    async def on_raw_message_delete(self, payload: discord.RawMessageDeleteEvent) -> None:
        """Handle a deleted message."""
        if self.listener is not None:
            await self.listener.on_deletion(payload.channel_id, (payload.message_id,))

    @track_events
    async def on_raw_bulk_message_delete(self, payload: discord.RawBulkMessageDeleteEvent) -> None:
        """Handle many deleted messages."""
        if self.listener is not None:
            await self.listener.on_deletion(payload.channel_id, sorted(payload.message_ids))

    @track_events
    async def on_raw_reaction_add(self, payload: discord.RawReactionActionEvent) -> None:
        """Handle a reaction."""
        if self.listener is not None:
            await self.listener.on_reaction(payload)

    @track_events
    async def on_raw_reaction_remove(self, payload: discord.RawReactionActionEvent) -> None:
        """Handle a removed reaction."""
        await self.on_raw_reaction_add(payload)

    @track_events
    async def on_raw_thread_delete(self, payload: discord.RawThreadDeleteEvent) -> None:
        """Handle a deleted thread."""
        if self.listener is not None:
            self.listener.on_thread_deletion(payload.thread_id)

    @track_events
    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Handle a used command or button."""
        if self.interactions is not None:
            await self.interactions.handle(interaction)

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Log an internal error."""
        # discord.py calls this where it has caught the exception.
        log.error("an event was not handled: %s", event_method, exc_info=True)  # noqa: LOG014


def make_intents(*, message_content: bool) -> discord.Intents:
    """Return the required intents; only the text of messages without a mention needs a switch in the portal."""
    wanted = discord.Intents.none()
    wanted.guilds = wanted.guild_messages = wanted.dm_messages = True
    wanted.guild_reactions = wanted.dm_reactions = True
    wanted.message_content = message_content
    return wanted


@contextmanager
def override_api_url(api_url: str, gateway_url: str) -> Iterator[None]:
    """Make discord.py use other addresses, which hold for all clients. Empty means Discord's own."""
    before = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    if api_url:
        Route.BASE = api_url.rstrip("/")
    if gateway_url:
        DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway_url)
    try:
        yield
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = before
