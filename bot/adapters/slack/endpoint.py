"""The endpoint that Slack posts to: a request proves its origin before any of it is parsed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from slack_bolt.adapter.starlette.async_handler import to_starlette_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.adapters.slack.parsing import FORM, is_well_formed, parse_body
from bot.clock import Clock, RareWarnings
from bot.http.requests import BodyReader, read_media_type
from bot.http.server import Respond

PATH = "/slack/events"
LARGEST = 2_000_000  # bytes; the longest message, with all that Slack says around it, is a quarter of it
TOTAL = 16_000_000
SECONDS = 3.0  # for that long Slack itself waits for an answer
STALE_SECONDS = 300  # between the time that is signed and ours
_SIGNED_AT, _SIGNATURE = "X-Slack-Request-Timestamp", "X-Slack-Signature"
_TYPES = frozenset({"application/json", FORM})
_HEXADECIMAL = frozenset("0123456789abcdef")

log = logging.getLogger(__name__)

APP_RATE_LIMITED = "app_rate_limited"
REMEMBERED = 3_600.0  # seconds
_SENTENCE = (
    "Slack held back events in {} minutes of the last hour, because an app gets a limited number: mentions from that "
    "time may be unanswered. Remove citebot from channels that need it least, or message.channels and "
    "message.groups out of the manifest."
)


def make_endpoint(app: AsyncApp, signing_secret: str, *, count_malformed: Callable[[], None]) -> Respond:
    """Make the handler of `POST` requests from Slack.

    It answers 401 without the right secret, and reads no body with invalid headers; 400 or 415 to
    signed requests that cannot be parsed; and Bolt's response to all others.
    """
    verifier, bodies = SignatureVerifier(signing_secret), BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL)
    warnings = RareWarnings(log)

    async def answer(request: Request) -> Response:
        if not _may_be_signed(request, now=verifier.clock.now()):
            return _refuse(warnings)
        body = await bodies.read(request)
        if not _is_signed(request, body, verifier):
            return _refuse(warnings)
        kind = read_media_type(request.headers)
        if kind not in _TYPES:
            raise HTTPException(415, "")
        delivery = parse_body(body.decode(), kind)
        if delivery is None or not is_well_formed(delivery):
            log.warning("a request that Slack has signed could not be read, and was refused")
            count_malformed()
            raise HTTPException(400, "")
        # In this mode Bolt checks no signatures.
        known = AsyncBoltRequest(mode="socket_mode", body=dict(delivery), headers=dict(request.headers))
        return to_starlette_response(await app.async_dispatch(known))

    return answer


def _refuse(warnings: RareWarnings) -> Response:
    warnings.warn("A request was refused: its signature is missing, wrong or too old. Check SLACK_SIGNING_SECRET.")
    return Response(status_code=401)


def _may_be_signed(request: Request, *, now: float) -> bool:
    """Whether the headers could belong to a signed body."""
    times, signatures = request.headers.getlist(_SIGNED_AT), request.headers.getlist(_SIGNATURE)
    if len(times) != 1 or len(signatures) != 1:
        return False
    (at,), (signature,) = times, signatures
    if not (at.isascii() and at.isdecimal() and len(at) < 13) or abs(now - int(at)) > STALE_SECONDS:
        return False
    return len(signature) == 67 and signature.startswith("v0=") and _HEXADECIMAL.issuperset(signature[3:])


def _is_signed(request: Request, body: bytes, verifier: SignatureVerifier) -> bool:
    try:
        return verifier.is_valid(body, request.headers[_SIGNED_AT], request.headers[_SIGNATURE])
    except UnicodeDecodeError:  # Slack writes UTF-8
        return False


class EventLimit:
    """Counts and reports the minutes in which Slack held back events."""

    def __init__(self, clock: Clock, count: Callable[[], None]) -> None:
        self._clock = clock
        self._count = count
        self._minutes: list[float] = []

    def note(self) -> None:
        """Count a minute with held-back events."""
        self._count()
        now = self._clock.now()
        if not self._minutes:
            log.warning("%s", _SENTENCE.format(1))
        recent = [at for at in self._minutes if now - at < REMEMBERED]
        self._minutes = [*recent[-59:], now]

    def remark(self) -> str:
        """Describe the events held back in the last hour; empty if there were none."""
        now = self._clock.now()
        self._minutes = [at for at in self._minutes if now - at < REMEMBERED]
        return _SENTENCE.format(len(self._minutes)) if self._minutes else ""
