"""Runs git against other machines: nobody is prompted, nothing foreign is run, and a token is seen by git alone.

The token goes through a pipe, to a credential helper that is asked for this one host. It is in no address, on no
command line, in no file and in no environment, and a host that is redirected to does not get it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import RepositoryError
from indexer.remotes.configured import RemoteRepository

# What others may have set for their own git: where it reads, what it runs, whom it asks, and what it logs.
_FOREIGN_VARIABLES = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_QUARANTINE_PATH", "GIT_TEMPLATE_DIR", "GIT_SSH", "GIT_PROXY_COMMAND",
    "GIT_PROTOCOL_FROM_USER", "SSH_ASKPASS", "GIT_TRACE", "GIT_TRACE_CURL", "GIT_TRACE_PACKET", "GIT_CURL_VERBOSE",
    "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF", "GIT_PREFIX",
)  # fmt: skip
_SSH = "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=3"
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_SSH_COMMAND": _SSH,
    "GIT_SSH_VARIANT": "ssh",
}
_CONFIG = (
    "credential.helper=", "credential.useHttpPath=false", "core.askPass=", f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false", "core.alternateRefsCommand=", "fetch.recurseSubmodules=false",
    "http.followRedirects=initial", "http.saveCookies=false", "http.emptyAuth=false",
    "gc.autoDetach=false", "maintenance.autoDetach=false", "transfer.bundleURI=false",
)  # fmt: skip
# A redirect may lead to what is as safe, or safer, and nowhere else.
_PROTOCOLS = {"https": "https", "http": "http:https", "ssh": "ssh", "file": "file"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long a host may take, in seconds: to name its branches, to send, and to send next to nothing."""

    listing: float = 60.0
    fetching: float = 3_600.0
    stalling: int = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """How a command ended."""

    status: int
    output: bytes
    complaint: str


class Transport:
    """Git in one bare repository, with the credentials of one remote."""

    def __init__(self, remote: RemoteRepository, git_dir: Path, limits: Limits) -> None:
        self._remote = remote
        self._git_dir = git_dir
        self._limits = limits

    async def run(self, *arguments: str, seconds: float, held: Sequence[int] = ()) -> Completed:
        """Run a command to its end; `TimeoutError` after `seconds`. Cancelled or late, all its processes are killed.

        It inherits the file descriptors in `held`, so a lock on one of them lasts as long as it does.
        """
        with self._token() as token:
            process = await self._start(self._line(arguments, token), (*held, *token))
            try:
                async with asyncio.timeout(seconds):
                    output, complaint = await process.communicate()
            finally:
                await _ended(process)
        return Completed(
            status=process.returncode or 0, output=output, complaint=complaint.decode("utf-8", "backslashreplace")
        )

    async def _start(self, line: list[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                pass_fds=descriptors,
            )
        except OSError as error:
            raise RepositoryError(f"git cannot be started: {error.strerror}. Install git, and try again.") from error

    @contextmanager
    def _token(self) -> Iterator[tuple[int, ...]]:
        """A pipe that holds what the credential helper answers, if there is a token: once, and then nothing."""
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

    def _line(self, arguments: Sequence[str], token: tuple[int, ...]) -> list[str]:
        unset = [word for name in _FOREIGN_VARIABLES for word in ("-u", name)]
        protocols = _PROTOCOLS[self._remote.address.scheme]
        variables = [f"{name}={value}" for name, value in _ENVIRONMENT.items()]
        settings = (*_CONFIG, *self._limit_config(), *(self._helper(each) for each in token))
        config = [word for setting in settings for word in ("-c", setting)]
        git = ["git", "--no-pager", "--no-replace-objects", f"--git-dir={self._git_dir}", *config]
        return ["env", *unset, *variables, f"GIT_ALLOW_PROTOCOL={protocols}", *git, *arguments]

    def _limit_config(self) -> tuple[str, ...]:
        return ("http.lowSpeedLimit=100", f"http.lowSpeedTime={self._limits.stalling}")

    def _helper(self, descriptor: int) -> str:
        address = self._remote.address
        scope = f"{address.scheme}://{address.authority}"
        # Without the test, storing and erasing would read it too; `cat` has no arguments that `ps` could show.
        reading = f'test "$1" = get && cat /dev/fd/{descriptor}'
        return f"credential.{scope}.helper=!f() {{ {reading}; }}; f"


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of a command, children included, and wait for it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
