"""What hearing needs of others: the conversations, and patience with a database that cannot be written just now."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bot.clock import Clock
from bot.errors import ChatError, InboxError, PlatformUnreachable, RateLimited
from bot.messages import ButtonPress, IncomingMessage, MessageKey

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # seconds between tries; Discord delivers nothing again

log = logging.getLogger(__name__)


class MessageSink(Protocol):
    """The conversation core, as far as people can reach it from here. What raises was not stored."""

    async def receive(self, message: IncomingMessage) -> object:
        """Store a message and begin to answer it."""

    async def list_recent_channels(self, platform: str, workspace: str, *, most: int) -> Sequence[str]:
        """Return where something was asked lately, the last one first."""

    async def handle_edit(self, message: IncomingMessage) -> None:
        """Answer an edited question again."""

    async def handle_deletion(self, key: MessageKey) -> None:
        """Withdraw the answer to a deleted question."""

    async def handle_press(self, press: ButtonPress) -> str:
        """Do what a button says; return what to tell the person alone."""


async def deliver_with_retry(hear: Callable[[], Awaitable[object]], clock: Clock) -> bool:
    """Bring something to the conversations, again and again where that fails for now; False where it was lost."""
    for pause in (*PAUSES, 0.0):
        try:
            await hear()
        except (InboxError, RateLimited, PlatformUnreachable) as error:
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
