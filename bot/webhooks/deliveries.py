"""Remembers which deliveries came, so that a host that sends one again has nothing looked at again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from cachetools import LRUCache

_MOST = 4_096
# A delivery keeps its id when a host sends it again.
_IDENTITIES = (
    "webhook-id", "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Idempotency-Key",
    "X-Gitlab-Event-UUID", "X-Request-UUID", "X-Request-Id",
)  # fmt: skip


class SeenDeliveries:
    """The last deliveries, by their ids and bodies together.

    A body alone says too little: a branch that is pushed back and forth has hosts send the same one again, of a push
    that is new. Most ids are not signed, so that whoever has got hold of a delivery can send it under another one. That
    does no harm: what is indexed is what the host shows, never what a delivery says, and however many come while a
    repository is looked at, they have it looked at once more.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._known: LRUCache[bytes, None] = LRUCache(most)

    def is_new(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Tell whether a delivery came for the first time, and remember it; without an id it always did."""
        identity = next((f"{name} {headers[name]}" for name in _IDENTITIES if name in headers), None)
        if identity is None:
            return True
        key = hashlib.sha256(hashlib.sha256(body).digest() + identity.encode("utf-8", "surrogateescape")).digest()
        known = key in self._known
        self._known[key] = None
        return not known
