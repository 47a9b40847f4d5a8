"""Ports that nobody listens at, for programs that must be told one before they start."""

from __future__ import annotations

import random
import socket

# Below those that systems hand out by themselves (32768 and up on Linux, 49152 on macOS): until the program listens,
# no connection of another test is given the same.
_CHOICE = range(20_000, 32_000)


def find_free_port() -> int:
    """Choose a port of the loopback that nobody listens at."""
    for port in random.sample(_CHOICE, 100):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise AssertionError("a hundred ports are taken")
