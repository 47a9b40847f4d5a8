"""HTTP mode: signed requests to the app's request URL."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.deliveries import ACK_WITHIN, Delivery, Outcome

FORM = "application/x-www-form-urlencoded"


class HttpMode:
    """Posts to `url` what happens. Signatures bear the real time, which the app's verifier compares with its own."""

    def __init__(self, clock: Clock, signing_secret: str) -> None:
        self.url = ""
        self.signing_secret = signing_secret
        self.statuses: list[int] = []  # of every request, in order
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def attempt(self, delivery: Delivery, number: int, reason: str) -> tuple[str, Outcome]:
        """Post it and wait three seconds for a 2xx."""
        body, kind = _body(delivery)
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason} if number else {}
        request = asyncio.ensure_future(self._outcome(body, self.signed(body) | retry | {"Content-Type": kind}))
        alarm = asyncio.ensure_future(self._clock.sleep(ACK_WITHIN))
        try:
            await asyncio.wait({request, alarm}, return_when=asyncio.FIRST_COMPLETED)
            return self.url, request.result() if request.done() else Outcome(acked=False, reason="http_timeout")
        finally:
            alarm.cancel()
            request.cancel()

    def signed(self, body: str, *, secret: str | None = None, age: float = 0) -> dict[str, str]:
        """The headers that prove that a body comes from Slack, `age` seconds ago."""
        timestamp = str(int(time.time() - age))
        key = (self.signing_secret if secret is None else secret).encode()
        digest = hmac.new(key, f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}

    async def post(self, body: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], str]:
        """Send one request as it is; return status, headers and text."""
        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"User-Agent": "Slackbot 1.0"})
        async with self._session.post(self.url, data=body.encode(), headers=headers) as response:
            self.statuses.append(response.status)
            return response.status, response.headers, await response.text()

    async def close(self) -> None:
        """Close the client."""
        if self._session is not None:
            await self._session.close()

    async def _outcome(self, body: str, headers: Mapping[str, str]) -> Outcome:
        try:
            status, sent, text = await self.post(body, headers)
        except aiohttp.ClientError:
            return Outcome(acked=False, reason="connection_failed")
        if not 200 <= status < 300:
            return Outcome(acked=False, reason="http_error", final=sent.get("X-Slack-No-Retry") == "1")
        return Outcome(acked=True, answer=_answer(text, sent.get("Content-Type", "")))


def _body(delivery: Delivery) -> tuple[str, str]:
    payload: dict[str, Any] = delivery.payload
    if delivery.kind == "events_api":
        return json.dumps(payload), "application/json"
    return urlencode(payload if delivery.kind == "slash_commands" else {"payload": json.dumps(payload)}), FORM


def _answer(text: str, content_type: str) -> JSON:
    if not text:
        return {}
    if content_type.startswith("application/json"):
        found = json.loads(text)
        return found if isinstance(found, dict) else {}
    return {"text": text}
