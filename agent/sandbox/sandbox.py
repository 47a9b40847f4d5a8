"""The interface of the sandbox: commands, limits and results."""

from __future__ import annotations

from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

# Why a command ended: on its own, or because it took too long, wrote too much to its outputs, used too much memory, or
# left too many or too large files; "killed" by somebody else, such as the kernel where the machine has no memory left.
Ending = Literal["exited", "timeout", "output", "memory", "files", "killed"]
Channel = Literal["stdout", "stderr"]
_MEGABYTE = 1 << 20
_ENDINGS: Mapping[Ending, str] = {
    "timeout": "It took too long and was ended. A command cannot wait for input here: there is none.",
    "output": "It wrote too much and was ended.",
    "memory": "It took too much memory and was ended.",
    "files": "It left too many files, or files that are too large, and was ended.",
    "killed": "It was killed from outside.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxLimits:
    """The limits of one command.

    `address_bytes`, `cpu_seconds` and `descriptors` are of each process, `file_bytes` of each file;
    the others are of all together. Those of the working copy count among `disk_bytes` and `files`.
    Without a control group that limits the memory, there are fewer processes and descriptors.
    """

    seconds: float = 120.0
    cpu_seconds: int = 120
    address_bytes: int = 4096 * _MEGABYTE
    memory_bytes: int = 2048 * _MEGABYTE
    file_bytes: int = 128 * _MEGABYTE
    disk_bytes: int = 1024 * _MEGABYTE
    files: int = 100_000
    processes: int = 128
    descriptors: int = 1024
    output_bytes: int = 16 * _MEGABYTE  # written to one channel before the command is ended
    kept_bytes: int = 64 << 10  # of one channel, half of them from its beginning and half from its end


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxCommand:
    """A program with its arguments, started in the root of the working copy; no shell reads them.

    `support` are files that it may read and not change, below the folder that SANDBOX_SUPPORT names. `variables` are
    added to the few that every command has.
    """

    argv: Sequence[str]
    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)
    support: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundedOutput:
    """The beginning and the end of an output, with the number of bytes between them."""

    head: bytes = b""
    tail: bytes = b""
    omitted: int = 0

    @property
    def text(self) -> str:
        """The whole as text, with a line for the omitted part."""
        gap = f"\n[... {self.omitted:,} bytes left out ...]\n" if self.omitted else ""
        return self.head.decode(errors="replace") + gap + self.tail.decode(errors="replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class Execution:
    """The result of a command. `exit_code` is 128 and the number of the signal that ended it, None if citebot ended it.

    `report` is the output to the descriptor in SANDBOX_REPORT. All of it comes from the command
    itself: no test can be believed to tell the truth about itself.
    """

    ending: Ending
    exit_code: int | None
    stdout: BoundedOutput
    stderr: BoundedOutput
    report: bytes
    seconds: float

    def explain(self) -> str:
        """Describe how the command ended."""
        return _ENDINGS.get(self.ending, f"It ended with exit code {self.exit_code}.")


class Sandbox(Protocol):
    """Runs untrusted commands that can reach only a working copy."""

    @property
    def mechanism(self) -> str:
        """The confining mechanism, in a few words."""

    async def run(
        self,
        command: SandboxCommand,
        working_copy: Path,
        limits: SandboxLimits,
        *,
        say: Callable[[Channel, bytes], None] | None = None,
    ) -> Execution:
        """Run a command in a working copy that `WorkingCopy` made, and return when none of its processes is left.

        `say` gets every piece of output as it comes. Cancelling ends the command within two
        seconds. Raises `SandboxUnavailable` if it cannot be started; it is never started outside a
        sandbox.
        """


class StartProgram(Protocol):
    """Starts a program with pipes, in a separate session, with few variables."""

    async def __call__(self, line: Sequence[str], *, pass_fds: Sequence[int] = ()) -> Process:
        """Start the program of a command line; `OSError` if there is none."""
