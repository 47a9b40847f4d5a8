"""The address that hosts post pushes to; strangers learn nothing from its answers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from bot.clock import Clock
from bot.errors import SettingsError
from bot.http.bodies import BodyReader, read_media_type
from bot.http.server import Respond
from bot.http.throttled_warnings import RareWarnings
from bot.webhooks.pushes import FORM, find_repositories, is_ping, read_event, read_payload, read_pushes
from indexer import RemoteRepository

if TYPE_CHECKING:
    from pydantic import SecretStr

log = logging.getLogger(__name__)

STALE_SECONDS = 300.0  # between a signed time and ours

# Headers that hold the HMAC-SHA256 of the body in hexadecimal; the first that is there decides.
_HEXADECIMAL = (
    ("X-Forgejo-Signature", ""),
    ("X-Gitea-Signature", ""),
    ("X-Hub-Signature-256", "sha256="),  # GitHub
    ("X-Hub-Signature", "sha256="),  # Bitbucket; the `sha1=` that GitHub puts there is not believed
)
_DIGEST = re.compile("[0-9a-f]{64}")
_SIGNED, _SIGNED_ID, _SIGNED_AT = "webhook-signature", "webhook-id", "webhook-timestamp"  # GitLab
_TOKEN = "X-Gitlab-Token"  # noqa: S105 - the name of a header
_ENCODED = "whsec_"  # begins a secret that is a key in base64, and never sent itself


def has_signature(headers: Mapping[str, str], secrets: Sequence[str], *, now: float) -> bool:
    """Tell by the headers alone whether the body may turn out authentic: no other is worth reading."""
    if _SIGNED in headers:
        return _is_of_now(headers, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            given = headers[header]
            return given.startswith(prefix) and _DIGEST.fullmatch(given.removeprefix(prefix)) is not None
    return _has_token(headers, secrets)


def verify_signature(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], *, now: float) -> bool:
    """Return whether one of the secrets vouches for a body; the strongest proof that is given has to hold.

    `headers` ignore case. Without a secret nothing is authentic.
    """
    secrets = [secret for secret in secrets if secret]
    if _SIGNED in headers:
        return _is_signed(headers, body, secrets, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            digests = (hmac.new(_to_bytes(secret), body, hashlib.sha256).hexdigest() for secret in secrets)
            return _is_one_of(headers[header], [prefix + digest for digest in digests])
    return _has_token(headers, secrets)


def _has_token(headers: Mapping[str, str], secrets: Sequence[str]) -> bool:
    sent = [secret for secret in secrets if secret and not secret.startswith(_ENCODED)]
    return _TOKEN in headers and _is_one_of(headers[_TOKEN], sent)


def _is_of_now(headers: Mapping[str, str], now: float) -> bool:
    at = headers.get(_SIGNED_AT, "")
    return at.isascii() and at.isdecimal() and len(at) < 16 and abs(now - int(at)) <= STALE_SECONDS


def _is_signed(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: float) -> bool:
    """The signature covers the delivery's id and time; several may be given while secrets are exchanged."""
    identity, at = headers.get(_SIGNED_ID, ""), headers.get(_SIGNED_AT, "")
    if not identity or not _is_of_now(headers, now):
        return False
    signed = b".".join((_read_header(identity), at.encode(), body))
    digests = (hmac.new(_decode_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    expected = ["v1," + base64.b64encode(digest).decode() for digest in digests]
    return any([_is_one_of(given, expected) for given in headers[_SIGNED].split()[:8]])  # noqa: C419 - in constant time


def _is_one_of(given: str, expected: Sequence[str]) -> bool:
    """Compare with every one of them, so that the duration reveals nothing."""
    return any([hmac.compare_digest(_read_header(given), _to_bytes(each)) for each in expected])  # noqa: C419


def _decode_key(secret: str) -> bytes:
    if not secret.startswith(_ENCODED):
        return _to_bytes(secret)
    try:
        return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
    except binascii.Error:
        return _to_bytes(secret)


def _read_header(value: str) -> bytes:
    """Return a header as it was sent: the server decodes its bytes as Latin-1."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return _to_bytes(value)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


LARGEST = 5_000_000  # bytes; what a host tells of a push of many commits
TOTAL = 20_000_000
SECONDS = 10.0
_TYPES = frozenset({"application/json", FORM})

_MAX_DELIVERIES = 4_096
# A delivery keeps its id when a host sends it again.
_IDENTITIES = (
    "webhook-id", "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Idempotency-Key",
    "X-Gitlab-Event-UUID", "X-Request-UUID", "X-Request-Id",
)  # fmt: skip


def make_push_handler(
    remotes: Sequence[RemoteRepository],
    secrets: Sequence[SecretStr],
    notify: Callable[[str, str, str | None], None],
    clock: Clock,
) -> Respond:
    """Make the handler of `POST` requests from hosts that share one of the secrets.

    It answers 200 to pings, 202 to pushes that were passed on or came before, 204 to irrelevant events, 401 without
    proof of the secret, 4xx to malformed requests, and 503 if it gave way to others. A body whose headers prove nothing
    is not read at all. `SettingsError` if there is no secret.
    """
    texts = [secret.get_secret_value() for secret in secrets]
    if not texts or not all(texts):
        raise SettingsError("Webhooks need a secret that is not empty. Set one here and the same at the host.")
    bodies, deliveries = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL), SeenDeliveries()
    warnings = RareWarnings(log)

    async def answer(request: Request) -> Response:
        if not has_signature(request.headers, texts, now=clock.now()):
            return _refuse(warnings)
        body = await bodies.read(request)
        if not verify_signature(request.headers, body, texts, now=clock.now()):
            return _refuse(warnings)
        return Response(status_code=_handle_delivery(request, body, remotes, notify, deliveries))

    return answer


def _refuse(warnings: RareWarnings) -> Response:
    warnings.warn("A webhook was refused: its signature is missing, wrong or too old.")
    return Response(status_code=401)


def _handle_delivery(
    request: Request,
    body: bytes,
    remotes: Sequence[RemoteRepository],
    notify: Callable[[str, str, str | None], None],
    deliveries: SeenDeliveries,
) -> int:
    """Report the pushes in an authentic delivery; return the status to answer with."""
    event = read_event(request.headers)
    if is_ping(event):
        return 200
    kind = read_media_type(request.headers)
    if kind not in _TYPES:
        return 415
    payload = read_payload(body, kind)
    if payload is None:
        return 400
    found = [(remote, push) for push in read_pushes(event, payload) for remote in find_repositories(push, remotes)]
    if not found:
        return 204
    if deliveries.is_new(request.headers, body):
        for remote, push in found:
            notify(remote.name, push.ref, push.commit)
    return 202


class SeenDeliveries:
    """The last deliveries, by their ids and bodies together.

    A body alone is not enough: for a branch that is pushed back and forth, hosts send the same body again for a new
    push. Most ids are not signed, so anybody who obtained a delivery can send it under another one. That does no harm:
    the host's own state is indexed, never a delivery's claim, and however many arrive during a check, there is only one
    more check.
    """

    def __init__(self, most: int = _MAX_DELIVERIES) -> None:
        self._known: LRUCache[bytes, None] = LRUCache(most)

    def is_new(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Return whether a delivery came for the first time, and remember it; without an id it always did."""
        identity = next((f"{name} {headers[name]}" for name in _IDENTITIES if name in headers), None)
        if identity is None:
            return True
        key = hashlib.sha256(hashlib.sha256(body).digest() + identity.encode("utf-8", "surrogateescape")).digest()
        known = key in self._known
        self._known[key] = None
        return not known
