"""The adapter's Web API: one session, no hidden retries, refusals as chat errors."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.adapters.file_downloads import refuse_redirects
from bot.adapters.slack import api_errors
from bot.clock import Clock
from bot.errors import ChatError, PlatformUnreachable, RateLimited

API_URL = "https://slack.com/api/"
SECONDS = 20.0  # a call that takes longer has no answer
READ_TRIES = 3
LONGEST_WAIT = 30.0  # seconds that a read waits where Slack asks it to

Fields = Mapping[str, Any]


RefusalMeaning = Callable[
    [str, str, str], ChatError
]  # the error for a refusal's name, the method and the scope that it needs


@dataclass(frozen=True, kw_only=True, slots=True)
class BotIdentity:
    """The owner of the bot token; `enterprise` is the Grid whose workspaces all count as inside, if any."""

    team: str
    enterprise: str = ""
    user: str
    bot: str
    name: str = ""
    workspace: str = ""
    scopes: frozenset[str] = frozenset()


class SlackClient:
    """Calls methods of the Web API; raises only `ChatError`s."""

    def __init__(self, web: AsyncWebClient, clock: Clock) -> None:
        self.web = web
        self._clock = clock

    async def send(
        self, call: Callable[[], Awaitable[Any]], meaning: RefusalMeaning = api_errors.map_post_error
    ) -> Fields:
        """Make a call once: the caller decides about retries."""
        return (await _call_slack(call, meaning)).data  # type: ignore[no-any-return]

    async def read(
        self, call: Callable[[], Awaitable[Any]], meaning: RefusalMeaning = api_errors.map_post_error
    ) -> Fields:
        """Make a read-only call, with a few retries if Slack asks to wait or does not answer."""
        for tries_left in reversed(range(READ_TRIES)):
            try:
                return await self.send(call, meaning)
            except (RateLimited, PlatformUnreachable) as error:
                wait = error.retry_after if isinstance(error, RateLimited) else 1.0
                if tries_left == 0 or wait > LONGEST_WAIT:
                    raise
                await self._clock.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def identity(self, meaning: RefusalMeaning = api_errors.map_bot_token_error) -> BotIdentity:
        """Ask Slack for the token's owner and scopes."""
        answer = await _call_slack(self.web.auth_test, meaning)
        scopes = str(answer.headers.get("X-OAuth-Scopes", ""))
        return BotIdentity(
            team=answer["team_id"],
            enterprise=answer.get("enterprise_id") or "",
            user=answer["user_id"],
            bot=answer.get("bot_id", ""),
            name=answer.get("user", ""),
            workspace=answer.get("team", ""),
            scopes=frozenset(filter(None, (scope.strip() for scope in scopes.split(",")))),
        )


@asynccontextmanager
async def open_client(token: str, clock: Clock, *, base_url: str = API_URL) -> AsyncIterator[SlackClient]:
    """Open a session for a bot token; an address on this machine is never reached through a proxy."""
    timeout, traces = aiohttp.ClientTimeout(total=SECONDS), [refuse_redirects()]
    async with aiohttp.ClientSession(timeout=timeout, trace_configs=traces) as session:
        web = AsyncWebClient(token=token, base_url=base_url, session=session, retry_handlers=[])
        if is_local(base_url):
            web.proxy = None
        yield SlackClient(web, clock)


def is_local(url: str) -> bool:
    """Whether an address leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _call_slack(call: Callable[[], Awaitable[Any]], meaning: RefusalMeaning) -> Any:
    try:
        return await call()
    except SlackApiError as error:
        raise _map_error(error, meaning) from error
    except (TimeoutError, aiohttp.ClientError, SlackClientError, OSError) as error:
        raise PlatformUnreachable(f"Slack does not answer ({type(error).__name__}).") from error


def _map_error(error: SlackApiError, meaning: RefusalMeaning) -> ChatError:
    response = error.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0))
    data = getattr(response, "data", None)
    fields: Fields = data if isinstance(data, dict) else {}
    name = str(fields.get("error", ""))
    method = str(getattr(response, "api_url", "")).rsplit("/", 1)[-1] or "a call"
    if status == 429 or name in {"ratelimited", "rate_limited"}:
        return api_errors.parse_retry_after(response.headers.get("Retry-After"))
    if not name or status >= 500:
        return PlatformUnreachable(f"Slack answered {method} with the status {status}.")
    return meaning(name, method, str(fields.get("needed", "")))
