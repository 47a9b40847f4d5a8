"""Answers that only the asker can see, as for slash commands. Slack lets nobody change or find them."""

from __future__ import annotations

import logging
from dataclasses import replace
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.adapters.slack.client import SECONDS, SlackClient, is_local
from bot.adapters.slack.rendering import make_fallback_text, render_blocks
from bot.errors import EditRefused, PlatformUnreachable
from bot.messages import ONE_PERSON, MessageContent, MessageHandle, Place

_SLACK = "slack.com"

log = logging.getLogger(__name__)


def make_ephemeral_place(place: Place, user: str, *, response_url: str = "") -> Place:
    """Return a channel's private place for one person; a response URL takes five answers in half an hour."""
    return replace(place, thread=f"{ONE_PERSON}{user}", line=response_url)


def is_ephemeral(place: Place | MessageHandle) -> bool:
    """Whether only one person sees a message."""
    return place.thread.startswith(ONE_PERSON)


class SlackEphemeralMessages:
    """Sends private messages by the command's response URL as long as Slack accepts it, then as ephemeral messages.

    The URL is the line of the place and of each message, so that any process can answer.
    """

    def __init__(self, client: SlackClient) -> None:
        self._client = client

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Show a content to one person; return a handle that identifies but cannot change it.

        A mere status is not sent: it would stay above the answer, because Slack cannot replace it.
        """
        if content.text:
            await self.send(place, content)
        return place.make_handle(f"{ONE_PERSON}{nonce}", f"{place.thread} {place.line}".rstrip())

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Send a finished content as another message: the earlier one cannot be changed."""
        if not content.status:
            await self.send(handle, content)

    async def withdraw(self, handle: MessageHandle) -> None:  # noqa: ARG002 - nobody can
        """Refuse: nobody can delete such a message."""
        raise EditRefused("An ephemeral message cannot be withdrawn.")

    async def send(self, place: Place | MessageHandle, content: MessageContent) -> None:
        """Show a content to the person of the place."""
        user = place.thread.removeprefix(ONE_PERSON).partition(" ")[0]
        if not place.line or not await self._send_by_url(place.line, content):
            await self._client.send(
                lambda: self._client.web.chat_postEphemeral(
                    channel=place.channel,
                    user=user,
                    text=make_fallback_text(content.text or content.status),
                    blocks=render_blocks(content),
                )
            )

    def _is_of_slack(self, url: str) -> bool:
        """Whether an address is one of Slack's, or on the API's host."""
        try:
            asked, api = urlsplit(url), urlsplit(self._client.web.base_url)
        except ValueError:
            return False
        host = asked.hostname or ""
        if host == api.hostname:
            return asked.scheme == api.scheme
        return asked.scheme == "https" and (host == _SLACK or host.endswith(f".{_SLACK}"))

    async def _send_by_url(self, url: str, content: MessageContent) -> bool:
        """Answer by the response URL; False if it accepts no more, or is none of Slack's."""
        if not self._is_of_slack(url):
            log.warning("a response URL does not lead to Slack, and is not used")
            return False
        session = self._client.web.session
        hook = AsyncWebhookClient(url, timeout=int(SECONDS), session=session, retry_handlers=[])
        if is_local(url):
            hook.proxy = None
        try:
            answer = await hook.send(
                text=make_fallback_text(content.text or content.status),
                blocks=render_blocks(content),
                response_type="ephemeral",
                unfurl_links=False,
                unfurl_media=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise PlatformUnreachable(f"Slack does not answer ({type(error).__name__}).") from error
        if answer.status_code != 200:
            log.info("a response URL was refused with %s", answer.status_code)
        return answer.status_code == 200


class EphemeralStream:
    """Replaces a stream with a single reader: shows the answer when it is finished."""

    def __init__(self, ephemeral: SlackEphemeralMessages, handle: MessageHandle) -> None:
        self._ephemeral = ephemeral
        self._handle = handle

    @property
    def handle(self) -> MessageHandle:
        """The message."""
        return self._handle

    async def append(self, text: str, content: MessageContent) -> None:
        """Show nothing yet: shown text could not be taken back."""

    async def finish(self, text: str, content: MessageContent) -> None:  # noqa: ARG002 - the content holds all of the text
        """Show the answer, unless the stream is given up for edits."""
        if content != MessageContent():
            await self._ephemeral.send(self._handle, content)
