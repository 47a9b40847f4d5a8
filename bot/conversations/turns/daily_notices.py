"""Sentences that nobody has to read more than once a day."""

from __future__ import annotations

from cachetools import TTLCache

from bot.clock import Clock
from bot.messages import IncomingMessage

DAY_SECONDS = 86_400.0
_MOST_KNOWN = 10_000


class DailyNotices:
    """Remembers who was told today, in which channel."""

    def __init__(self, clock: Clock) -> None:
        self._told: TTLCache[tuple[str, str, str], bool] = TTLCache(_MOST_KNOWN, DAY_SECONDS, timer=clock.now)

    def is_due(self, message: IncomingMessage) -> bool:
        """Whether the author of a message gets a notice today; asking counts as giving it."""
        key = (message.place.platform, message.place.channel, message.author)
        if key in self._told:
            return False
        self._told[key] = True
        return True
