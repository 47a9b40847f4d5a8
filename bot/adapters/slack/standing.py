"""Looks whether Slack still takes the tokens: connections that are open stay so when a token is revoked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from bot.adapters.slack.client import SlackClient
from bot.adapters.slack.connections import check_app_token
from bot.clock import Clock
from bot.errors import ChatError, PlatformUnreachable, RateLimited

EVERY_SECONDS = 60.0

log = logging.getLogger(__name__)


class TokenMonitor:
    """What Slack thought of the tokens when it was last asked; `refusal` is empty where it takes them.

    A refusal is told and asked about again: whoever installs the app anew has citebot back without doing more.
    `is_connected` says whether Slack's events can come in; only where they cannot, `app_token` is in question.
    """

    def __init__(
        self, calls: SlackClient, app_token: str, is_connected: Callable[[], Awaitable[bool]], clock: Clock
    ) -> None:
        self.refusal = ""
        self._calls = calls
        self._app_token = app_token
        self._is_connected = is_connected
        self._clock = clock

    async def watch(self) -> None:
        """Ask again and again until this is cancelled."""
        while True:
            await self._clock.sleep(EVERY_SECONDS)
            try:
                await self._ask()
            except (RateLimited, PlatformUnreachable) as error:
                log.info("whether Slack takes the tokens was not found out: %s", error)
            except ChatError as error:
                self._note_refusal(str(error))
            else:
                self._note_refusal("")

    async def _ask(self) -> None:
        await self._calls.identity()
        if not await self._is_connected():
            await check_app_token(self._calls, self._app_token)

    def _note_refusal(self, refusal: str) -> None:
        if refusal and refusal != self.refusal:
            log.error("%s It is asked again every minute.", refusal)
        elif self.refusal and not refusal:
            log.warning("Slack accepts the tokens again.")
        self.refusal = refusal
