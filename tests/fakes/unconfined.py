"""A sandbox that confines nothing, for commands that tests wrote themselves, and working copies of files in memory."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.patch import hash_blob
from agent.sandbox.sandbox import BoundedOutput, Channel, Execution, SandboxCommand, SandboxLimits
from agent.sandbox.working_copy import WorkingCopy
from indexer.subprocesses import finish_start, kill_session


class UnconfinedSandbox:
    """Runs commands as the test does itself; `running` are the processes that have not ended, `lines` all
    that were started."""

    mechanism = "none at all"

    def __init__(self, programs: Path | None = None) -> None:
        self._programs = [str(programs)] if programs is not None else []  # searched before all others
        self.running: set[int] = set()
        self.lines: list[str] = []
        self.started = asyncio.Event()

    async def run(
        self,
        command: SandboxCommand,
        working_copy: Path,
        limits: SandboxLimits,
        *,
        say: Callable[[Channel, bytes], None] | None = None,
    ) -> Execution:
        """Run a command in a folder."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as report:
            for name, content in command.support.items():
                (Path(folder) / name).write_bytes(content)
            environment = {
                "PATH": ":".join([*self._programs, str(Path(sys.executable).parent), "/usr/bin:/bin"]),
                "HOME": folder,
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "SANDBOX_SUPPORT": folder,
                "SANDBOX_REPORT": str(report.fileno()),
                **command.variables,
            }
            if shutil.which(command.argv[0], path=environment["PATH"]) is None:
                return Execution(ending="exited", exit_code=127, stdout=BoundedOutput(), stderr=BoundedOutput(),
                                 report=b"", seconds=0.0)  # fmt: skip
            process = await finish_start(asyncio.create_subprocess_exec(
                *command.argv, cwd=working_copy, env=environment, pass_fds=[report.fileno()], start_new_session=True,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            ))  # fmt: skip
            self.running.add(process.pid)
            self.lines.append(" ".join(command.argv))
            self.started.set()
            try:
                async with asyncio.timeout(limits.seconds):
                    out, err = await process.communicate(command.stdin)
            except TimeoutError:
                return Execution(ending="timeout", exit_code=None, stdout=BoundedOutput(), stderr=BoundedOutput(),
                                 report=b"", seconds=limits.seconds)  # fmt: skip
            finally:
                await kill_session(process)
                self.running.discard(process.pid)
            report.seek(0)
            code = process.returncode
            return Execution(
                ending="exited",
                exit_code=code if code is None or code >= 0 else 128 - code,
                stdout=_bound(out, limits.kept_bytes),
                stderr=_bound(err, limits.kept_bytes),
                report=report.read(),
                seconds=time.monotonic() - began,
            )


def _bound(data: bytes, most: int) -> BoundedOutput:
    half = most // 2
    if len(data) <= half:
        return BoundedOutput(head=data)
    tail = data[max(half, len(data) - half) :]
    return BoundedOutput(head=data[:half], tail=tail, omitted=len(data) - half - len(tail))


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryFile:
    """A file of a commit in memory."""

    mode: str
    sha: str
    size: int
    name: bytes


class MemoryObjects:
    """The objects of a repository whose commits all have the same files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._contents = {name: text.encode() for name, text in files.items()}
        self._names = {name: hash_blob(content, "0" * 40) for name, content in self._contents.items()}

    def list_tree(self, sha: str) -> Sequence[MemoryFile]:
        return [
            MemoryFile(mode="100644", sha=self._names[name], size=len(content), name=name.encode())
            for name, content in self._contents.items()
        ]

    def iter_blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        contents = {self._names[name]: content for name, content in self._contents.items()}
        return ((sha, contents[sha]) for sha in shas)


class FolderCopies:
    """Copies of files in memory, each in a folder; `open_now` counts those that are there."""

    def __init__(self, files: Mapping[str, str], root: Path) -> None:
        self._objects = MemoryObjects(files)
        self._root = root
        self.open_now = 0

    @asynccontextmanager
    async def open(self, repository: str = "", commit: str = "0" * 40) -> AsyncGenerator[WorkingCopy]:
        folder = Path(tempfile.mkdtemp(dir=self._root))
        self.open_now += 1
        try:
            copy = WorkingCopy(folder / "copy", self._objects, commit)
            copy.write()
            yield copy
        finally:
            self.open_now -= 1
            shutil.rmtree(folder)
