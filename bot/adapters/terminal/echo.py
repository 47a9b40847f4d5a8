"""Turns the terminal's echo off while citebot starts or answers, so that typed keys do not end up in the output."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_FLAGS = 3  # the place of the local modes among what termios returns


@contextmanager
def set_echo(stream: TextIO | None = None, *, on: bool) -> Iterator[None]:
    """Echo typed input, or keep it for the next prompt, while the context is open; does nothing without a terminal."""
    stream = stream if stream is not None else sys.stdin
    try:
        before = termios.tcgetattr(stream.fileno())
    except (termios.error, OSError, ValueError):  # no terminal
        yield
        return
    modes = [*before]
    modes[_FLAGS] = modes[_FLAGS] | termios.ECHO if on else modes[_FLAGS] & ~termios.ECHO
    # At once, and with nothing thrown away that was typed before.
    termios.tcsetattr(stream.fileno(), termios.TCSANOW, modes)
    try:
        yield
    finally:
        termios.tcsetattr(stream.fileno(), termios.TCSANOW, before)
