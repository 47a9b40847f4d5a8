"""Who reads a channel: whether people of other organisations do, asked of Slack and remembered for a while."""

from __future__ import annotations

import asyncio
import logging

from bot.adapters.slack.client import SlackClient
from bot.clock import Clock
from bot.errors import PlatformUnreachable, PostRefused

REMEMBERED = 600.0  # seconds
PATIENCE = 2.0  # Slack wants its acknowledgement within three seconds

log = logging.getLogger(__name__)


class SharedChannels:
    """Knows which channels are shared with other organisations. What cannot be found out counts as shared."""

    def __init__(self, calls: SlackClient, clock: Clock) -> None:
        self._calls = calls
        self._clock = clock
        self._known: dict[str, tuple[bool, float]] = {}

    async def is_shared(self, channel: str) -> bool:
        """Whether people from outside read a channel, or will soon; `PlatformUnreachable` where Slack does not say in time."""
        known = self._known.get(channel)
        if known is not None and self._clock.now() - known[1] < REMEMBERED:
            return known[0]
        shared = await self._ask(channel)
        self._known[channel] = shared, self._clock.now()
        return shared

    async def _ask(self, channel: str) -> bool:
        client = self._calls.client
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._calls.send(lambda: client.conversations_info(channel=channel))
        except TimeoutError as error:
            raise PlatformUnreachable("Slack does not say in time who reads the channel.") from error
        except PostRefused as error:
            log.warning("a channel counts as shared with others: %s", error)
            return True
        described = answer.get("channel") or {}
        outside = described.get("is_ext_shared", not described.get("is_im"))
        return bool(outside or described.get("is_pending_ext_shared"))
