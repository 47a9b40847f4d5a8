"""The address that hosts post pushes to; strangers learn nothing from its answers."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from bot.clock import Clock
from bot.errors import SettingsError
from bot.http.bodies import BodyReader, read_media_type
from bot.http.server import Respond
from bot.http.throttled_warnings import RareWarnings
from bot.webhooks.pushes import FORM, find_repositories, is_ping, read_event, read_payload, read_pushes
from bot.webhooks.signatures import has_signature, verify_signature
from indexer import RemoteRepository

if TYPE_CHECKING:
    from pydantic import SecretStr


log = logging.getLogger(__name__)

LARGEST = 5_000_000  # bytes; what a host tells of a push of many commits
TOTAL = 20_000_000
SECONDS = 10.0
_TYPES = frozenset({"application/json", FORM})

_MOST = 4_096
# A delivery keeps its id when a host sends it again.
_IDENTITIES = (
    "webhook-id", "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Idempotency-Key",
    "X-Gitlab-Event-UUID", "X-Request-UUID", "X-Request-Id",
)  # fmt: skip


class PushListener(Protocol):
    """Receives pushes; returns at once."""

    def __call__(self, repository: str, ref: str, commit: str | None = None) -> None:
        """Take note that a ref of a configured repository was pushed."""


def make_push_handler(
    remotes: Sequence[RemoteRepository], secrets: Sequence[SecretStr], notify: PushListener, clock: Clock
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
    notify: PushListener,
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

    def __init__(self, most: int = _MOST) -> None:
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
