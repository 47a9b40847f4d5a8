"""Answers that only the person who asked can see, as slash commands get them. Slack lets nobody change or find them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
from cachetools import LRUCache
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.adapters.slack.client import SECONDS, SlackClient, is_local
from bot.adapters.slack.rendering import make_fallback_text, render_blocks
from bot.clock import Clock
from bot.errors import EditRefused, PlatformUnreachable
from bot.messages import MessageContent, MessageHandle, Place

MARK = "@"  # before the person in `Place.thread`, and before the number of the answer in `MessageHandle.id`
_LIFETIME = 1_700.0  # seconds; Slack accepts answers for half an hour
_USES = 5
_KEPT = 200
_SLACK = "slack.com"

log = logging.getLogger(__name__)


@dataclass
class _ResponseUrl:
    url: str
    opened: float
    uses: int = 0


def make_ephemeral_place(place: Place, user: str) -> Place:
    """The place that only one person in a channel can read."""
    return Place(platform=place.platform, workspace=place.workspace, channel=place.channel, thread=f"{MARK}{user}")


def is_ephemeral(place: Place | MessageHandle) -> bool:
    """Whether only one person sees what is there."""
    return place.thread.startswith(MARK)


class SlackEphemeralMessages:
    """Sends them by the response URL of the command while that is valid, then as ephemeral messages."""

    def __init__(self, client: SlackClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._response_urls: LRUCache[tuple[str, str], _ResponseUrl] = LRUCache(_KEPT)

    def remember_response_url(self, channel: str, user: str, url: str) -> None:
        """Remember the URL that takes answers to a person in a channel, if it is one of Slack's."""
        if not self._is_of_slack(url):
            log.warning("a response URL does not lead to Slack, and is not used")
            return
        self._response_urls[channel, user] = _ResponseUrl(url, self._clock.now())

    async def post(self, place: Place, content: MessageContent, *, nonce: str) -> MessageHandle:
        """Show a content to one person; return a handle by which it can be followed, but not changed.

        What is only a status is not sent: it would stay above the answer, as Slack lets nobody replace it.
        """
        if content.text:
            await self.send(place, content)
        return MessageHandle(
            platform=place.platform,
            workspace=place.workspace,
            channel=place.channel,
            id=f"{MARK}{nonce}",
            thread=place.thread,
        )

    async def edit(self, handle: MessageHandle, content: MessageContent) -> None:
        """Send a finished content as another message: the earlier one cannot be changed."""
        if not content.status:
            await self.send(handle, content)

    async def withdraw(self, handle: MessageHandle) -> None:  # noqa: ARG002 - nobody can
        """Refuse: nobody can delete such a message."""
        raise EditRefused("A message that only one person sees cannot be withdrawn.")

    async def send(self, place: Place | MessageHandle, content: MessageContent) -> None:
        """Show a content to the person of the place."""
        user = place.thread.removeprefix(MARK)
        response_url = self._response_urls.get((place.channel, user))
        if response_url is None or not await self._send_by_url(response_url, content):
            await self._client.send(
                lambda: self._client.web.chat_postEphemeral(
                    channel=place.channel,
                    user=user,
                    text=make_fallback_text(content.text or content.status),
                    blocks=render_blocks(content),
                )
            )

    def _is_of_slack(self, url: str) -> bool:
        """Whether an address is one of Slack's, or on the host that the API is on."""
        try:
            asked, api = urlsplit(url), urlsplit(self._client.web.base_url)
        except ValueError:
            return False
        host = asked.hostname or ""
        if host == api.hostname:
            return asked.scheme == api.scheme
        return asked.scheme == "https" and (host == _SLACK or host.endswith(f".{_SLACK}"))

    async def _send_by_url(self, target: _ResponseUrl, content: MessageContent) -> bool:
        """Answer by the response URL; False where it accepts no more."""
        if target.uses >= _USES or self._clock.now() - target.opened > _LIFETIME:
            return False
        target.uses += 1
        session = self._client.web.session
        hook = AsyncWebhookClient(target.url, timeout=int(SECONDS), session=session, retry_handlers=[])
        if is_local(target.url):
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
    """Stands in for a stream where only one person reads: the answer is shown when it is finished."""

    def __init__(self, ephemeral: SlackEphemeralMessages, handle: MessageHandle) -> None:
        self._ephemeral = ephemeral
        self._handle = handle

    @property
    def handle(self) -> MessageHandle:
        """The message."""
        return self._handle

    async def append(self, text: str, content: MessageContent) -> None:
        """Show nothing of it: what was shown could not be taken back."""

    async def finish(self, text: str, content: MessageContent) -> None:  # noqa: ARG002 - the content holds all of the text
        """Show the answer, unless the stream is given up for edits."""
        if content != MessageContent():
            await self._ephemeral.send(self._handle, content)
