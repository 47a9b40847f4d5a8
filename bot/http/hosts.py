"""Tells whether a request was meant for this server: a name that a stranger made lead here is not its own."""

from __future__ import annotations

import re
from collections.abc import Collection

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")


def is_own_host(host: str, hosts: Collection[str]) -> bool:
    """Whether a header `Host` names this machine or one of the hosts; those without a port may be asked for at any."""
    found = _HOST.fullmatch(host.lower())
    known = {each.lower() for each in hosts}
    return found is not None and (found["name"] in LOOPBACK or found[0] in known or found["name"] in known)
