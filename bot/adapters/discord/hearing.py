"""What hearing needs of others: the conversations, and patience with a database that cannot be written just now."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bot.clock import Clock
from bot.errors import ChatError, InboxError, RateLimited, Unreachable
from bot.messages import IncomingMessage, MessageKey, Press

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # seconds between tries; Discord delivers nothing again

log = logging.getLogger(__name__)


class Conversations(Protocol):
    """The conversation core, as far as people can reach it from here. What raises was not stored."""

    async def receive(self, message: IncomingMessage) -> object:
        """Store a message and begin to answer it."""

    async def known_channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return where something was asked lately, the last one first."""

    async def edited(self, message: IncomingMessage) -> None:
        """Answer an edited question again."""

    async def deleted(self, key: MessageKey) -> None:
        """Withdraw the answer to a deleted question."""

    async def press(self, press: Press) -> str:
        """Do what a button says; return what to tell the person alone."""


async def heard(hear: Callable[[], Awaitable[object]], clock: Clock) -> bool:
    """Bring something to the conversations, again and again where that fails for now; False where it was lost."""
    for pause in (*PAUSES, 0.0):
        try:
            await hear()
        except (InboxError, RateLimited, Unreachable) as error:
            log.warning("something that was said waits to be stored: %s", error)
            if pause:
                await clock.sleep(pause)
        except ChatError as error:
            log.warning("something that was said cannot be heard: %s", error)
            return False
        else:
            return True
    log.error("something that was said was not stored, and is lost")
    return False
