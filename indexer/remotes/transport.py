"""Runs git against other machines: without prompts, without running foreign programs, and with a token only git sees.

The token goes through a pipe to a credential helper that is limited to this one host. It is in no address, command
line, file or environment variable, and a host that git is redirected to does not get it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import RepositoryError
from indexer.git.git_command import make_missing_git_error
from indexer.remotes.remote_repository import RemoteRepository
from indexer.subprocesses import kill_session, start_git_async

# Settings for writing and for hosts; those of every git are added where it is started.
_CONFIG = (
    "credential.useHttpPath=false", "core.sharedRepository=umask", "fetch.recurseSubmodules=false",
    "http.followRedirects=initial", "http.saveCookies=false", "http.emptyAuth=false",
    "gc.autoDetach=false", "maintenance.autoDetach=false", "transfer.bundleURI=false",
)  # fmt: skip
# A redirect may lead only to a protocol that is at least as safe.
_PROTOCOLS = {"https": "https", "http": "http:https", "ssh": "ssh", "file": "file"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchLimits:
    """The limits of a host, in seconds: to list its branches, to send everything, and to send almost nothing.

    `saying` is how many bytes of output git may write; a million branches take some 60 MB.
    """

    listing: float = 60.0
    fetching: float = 3_600.0
    stalling: int = 60
    saying: int = 100_000_000


class AnswerTooLong(RepositoryError):
    """A command wrote more output than is allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletedCommand:
    """The end of a command."""

    status: int
    output: bytes
    complaint: str


class Transport:
    """Git in one bare repository, with the credentials of one remote."""

    def __init__(self, remote: RemoteRepository, git_dir: Path, limits: FetchLimits) -> None:
        self._remote = remote
        self._git_dir = git_dir.absolute()
        self._limits = limits

    async def run(self, *arguments: str, seconds: float, pass_fds: Sequence[int] = ()) -> CompletedCommand:
        """Run a command to its end; `TimeoutError` after `seconds`, `AnswerTooLong` if it writes too much.

        In both cases, and on cancellation, all its processes are killed. It inherits the file
        descriptors in `pass_fds`, so a lock on one of them lasts as long as the command.
        """
        with self._open_token_pipe() as token:
            protocols = _PROTOCOLS[self._remote.address.scheme]
            command, descriptors = self._make_command(arguments, token), (*pass_fds, *token)
            try:
                process = await start_git_async(command, protocols=protocols, pass_fds=descriptors)
            except OSError as error:
                raise make_missing_git_error(error) from error
            reads = [asyncio.create_task(self._read_stream(pipe)) for pipe in (process.stdout, process.stderr)]
            try:
                async with asyncio.timeout(seconds):
                    output, complaint = await asyncio.gather(*reads)
                    await process.wait()
            finally:
                for read in reads:
                    read.cancel()
                await asyncio.wait(reads)
                await kill_session(process)
        return CompletedCommand(
            status=process.returncode or 0, output=output, complaint=complaint.decode("utf-8", "backslashreplace")
        )

    async def _read_stream(self, stream: asyncio.StreamReader | None) -> bytes:
        output = bytearray()
        while stream is not None and (part := await stream.read(65_536)):
            output += part
            if len(output) > self._limits.saying:
                raise AnswerTooLong(f"git wrote more than {self._limits.saying:,} bytes and was stopped.")
        return bytes(output)

    @contextmanager
    def _open_token_pipe(self) -> Iterator[tuple[int, ...]]:
        """Open a pipe with the credential helper's answer, if there is a token; it can be read once."""
        if self._remote.sign_in is None:
            yield ()
            return
        user, token = self._remote.sign_in
        reading, writing = os.pipe()
        try:
            try:
                os.set_blocking(writing, False)  # a token is short enough for an empty pipe
                os.write(writing, f"username={user}\npassword={token}\n".encode())
            finally:
                os.close(writing)
            yield (reading,)
        finally:
            os.close(reading)

    def _make_command(self, arguments: Sequence[str], token: tuple[int, ...]) -> list[str]:
        speed = ("http.lowSpeedLimit=100", f"http.lowSpeedTime={self._limits.stalling}")
        settings = (*_CONFIG, *speed, *map(self._make_credential_helper, token))
        config = [word for setting in settings for word in ("-c", setting)]
        return [f"--git-dir={self._git_dir}", *config, *arguments]

    def _make_credential_helper(self, descriptor: int) -> str:
        address = self._remote.address
        scope = f"{address.scheme}://{address.authority}"
        # Without the test, `store` and `erase` would read it too; `ps` shows the arguments of `cat`, not the token.
        reading = f'test "$1" = get && cat /dev/fd/{descriptor}'
        return f"credential.{scope}.helper=!f() {{ {reading}; }}; f"
