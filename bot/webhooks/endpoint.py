"""The address that hosts post pushes to; strangers learn nothing from its answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from bot.bodies import BodyReader
from bot.clock import Clock
from bot.errors import SettingsError
from bot.rare_warnings import RareWarnings
from bot.webhooks.deliveries import SeenDeliveries
from bot.webhooks.pushes import FORM, find_repositories, is_ping, read_event, read_payload, read_pushes
from bot.webhooks.signatures import has_signature, verify_signature
from indexer.remotes.configured import RemoteRepository

if TYPE_CHECKING:
    from pydantic import SecretStr

log = logging.getLogger(__name__)

LARGEST = 5_000_000  # bytes; what a host tells of a push of many commits
TOTAL = 20_000_000
SECONDS = 10.0
_TYPES = frozenset({"application/json", FORM})

Handler = Callable[[web.Request], Awaitable[web.Response]]


class PushListener(Protocol):
    """Whoever wants to know of pushes; takes no time."""

    def __call__(self, repository: str, ref: str, commit: str | None = None) -> None:
        """Take note that a ref of a configured repository was pushed."""


def make_push_handler(
    remotes: Sequence[RemoteRepository], secrets: Sequence[SecretStr], notify: PushListener, clock: Clock
) -> Handler:
    """Make the handler of `POST` requests from hosts that share one of the secrets.

    It answers 200 to pings, 202 to pushes that were passed on or came before, 204 to what concerns nobody here, 401
    to whoever does not know the secret, 4xx to what cannot be read, and 503 where it gave way to others. A body
    whose headers prove nothing is not read at all. `SettingsError` if there is no secret.
    """
    texts = [secret.get_secret_value() for secret in secrets]
    if not texts or not all(texts):
        raise SettingsError("Webhooks need a secret that is not empty. Set one here and the same at the host.")
    bodies, deliveries = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL), SeenDeliveries()
    warnings = RareWarnings(log)

    async def answer(request: web.Request) -> web.Response:
        if not has_signature(request.headers, texts, now=clock.now()):
            return _refuse(warnings)
        body = await bodies.read(request)
        if isinstance(body, web.Response):
            return body
        if not verify_signature(request.headers, body, texts, now=clock.now()):
            return _refuse(warnings)
        return web.Response(status=_pass_on(request, body, remotes, notify, deliveries))

    return answer


def _refuse(warnings: RareWarnings) -> web.Response:
    warnings.warn("A webhook was refused: its signature is missing, wrong or too old.")
    return web.Response(status=401)


def _pass_on(
    request: web.Request,
    body: bytes,
    remotes: Sequence[RemoteRepository],
    notify: PushListener,
    deliveries: SeenDeliveries,
) -> int:
    """Tell of the pushes in a delivery that is authentic; return the status to answer with."""
    event = read_event(request.headers)
    if is_ping(event):
        return 200
    if request.content_type not in _TYPES:
        return 415
    payload = read_payload(body, request.content_type)
    if payload is None:
        return 400
    found = [(remote, push) for push in read_pushes(event, payload) for remote in find_repositories(push, remotes)]
    if not found:
        return 204
    if deliveries.is_new(request.headers, body):
        for remote, push in found:
            notify(remote.name, push.ref, push.commit)
    return 202
