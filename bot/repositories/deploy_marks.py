"""Reads the marks of commits deployed in environments: refs, and the operator's files on the web."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from indexer import DeployMark

_TIMEOUT_SECONDS = 5.0
_FRESH_SECONDS = 60.0
_LARGEST = 4_096  # bytes of a file
_COMMIT = re.compile(rb"(?<![0-9a-zA-Z])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-zA-Z])")


class ConfiguredMarks:
    """The environments of one repository, by name, each with a branch, a tag, a pattern, or an address.

    The file at an address contains the id of one commit, with any text around it. It is read again
    after a minute. Redirects are not followed: only the operator chooses the destination of
    requests.
    """

    def __init__(self, environments: Mapping[str, str]) -> None:
        self._environments = environments
        self._read: dict[str, tuple[float, DeployMark]] = {}

    async def __call__(self) -> Mapping[str, DeployMark]:
        """Read the marks."""
        return {
            name: await self._read_file(written)
            if written.startswith(("https://", "http://"))
            else DeployMark(written=written, ref=written)
            for name, written in self._environments.items()
        }

    async def _read_file(self, address: str) -> DeployMark:
        read_at, mark = self._read.get(address, (0.0, None))
        if mark is None or time.monotonic() - read_at > _FRESH_SECONDS:
            mark = await _fetch_mark(address)
            self._read[address] = (time.monotonic(), mark)
        return mark


async def _fetch_mark(address: str) -> DeployMark:
    import httpx

    host = httpx.URL(address).host  # the path may be a secret
    try:
        async with (
            httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client,
            client.stream("GET", address) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                return DeployMark(written=host, problem=f"{host} answered with the status {answer.status_code}.")
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > _LARGEST:
                    return DeployMark(written=host, problem=f"The file at {host} is larger than 4 KB.")
    except (httpx.HTTPError, OSError) as error:
        return DeployMark(written=host, problem=f"{host} does not answer ({type(error).__name__}).")
    commits = set(_COMMIT.findall(bytes(body)))
    if len(commits) != 1:
        return DeployMark(written=host, problem=f"The file at {host} does not hold the id of one commit.")
    return DeployMark(written=host, ref=commits.pop().decode("ascii"))
