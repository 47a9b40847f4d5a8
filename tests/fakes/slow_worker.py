"""A worker that hands back what it is sent, or never answers."""

from __future__ import annotations

from collections.abc import Sequence

from indexer import serve_requests


def main(arguments: Sequence[str]) -> None:
    serve_requests(arguments, answer)


def answer(body: bytes) -> bytes:
    while body == b"loop":
        pass
    return body
