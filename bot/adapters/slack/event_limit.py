"""Remembers that Slack held events back: more than it delivers to one app within an hour."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bot.clock import Clock

APP_RATE_LIMITED = "app_rate_limited"
REMEMBERED = 3_600.0  # seconds
_SENTENCE = (
    "Slack held back events in {} minutes of the last hour, since there were more than it delivers to one app: "
    "mentions of that time may be unanswered. Take citebot out of channels that need it least, or message.channels and "
    "message.groups out of the manifest."
)

log = logging.getLogger(__name__)


class EventLimit:
    """What there is to say of the events that did not come; Slack tells of each minute in which it drops some."""

    def __init__(self, clock: Clock, count: Callable[[], None]) -> None:
        self._clock = clock
        self._count = count
        self._minutes: list[float] = []

    def note(self) -> None:
        """Take note of a minute whose events did not all come."""
        self._count()
        now = self._clock.now()
        if not self._minutes:
            log.warning("%s", _SENTENCE.format(1))
        recent = [at for at in self._minutes if now - at < REMEMBERED]
        self._minutes = [*recent[-59:], now]

    def remark(self) -> str:
        """Say it, for an hour after the last time; nothing where all events came."""
        now = self._clock.now()
        self._minutes = [at for at in self._minutes if now - at < REMEMBERED]
        return _SENTENCE.format(len(self._minutes)) if self._minutes else ""
