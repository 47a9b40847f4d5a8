"""Remembers which deliveries came, so that one that is sent again changes nothing."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping

_MOST = 4_096
# A delivery keeps its id when a host sends it again.
_IDENTITIES = (
    "webhook-id", "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Idempotency-Key",
    "X-Gitlab-Event-UUID", "X-Request-UUID", "X-Request-Id",
)  # fmt: skip


class Deliveries:
    """The last deliveries by id and by body: an id is mostly unsigned, and somebody else could change it."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Tell whether a delivery came for the first time, and remember it."""
        identity = next((f"{name} {headers[name]}" for name in _IDENTITIES if name in headers), None)
        keys = [hashlib.sha256(body).digest()]
        if identity is not None:
            keys.append(hashlib.sha256(identity.encode("utf-8", "surrogateescape")).digest())
        known = any(key in self._known for key in keys)
        for key in keys:
            self._known[key] = None
            self._known.move_to_end(key)
        while len(self._known) > 2 * self._most:
            self._known.popitem(last=False)
        return not known
