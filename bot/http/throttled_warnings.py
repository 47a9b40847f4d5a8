"""Warnings that anybody can cause: once a minute at most, so that no stranger fills the log."""

from __future__ import annotations

import logging
import time

EVERY_SECONDS = 60.0


class RareWarnings:
    """Warns in a log, and says with the next warning how many were left out since the last one."""

    def __init__(self, log: logging.Logger, *, every: float = EVERY_SECONDS) -> None:
        self._log = log
        self._every = every
        self._last = -every
        self._left_out = 0

    def warn(self, message: str, *args: object) -> None:
        """Warn, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._last < self._every:
            self._left_out += 1
            return
        more = f" ({self._left_out} more like this since the last warning)" if self._left_out else ""
        self._last, self._left_out = now, 0
        self._log.warning(message + "%s", *args, more)
