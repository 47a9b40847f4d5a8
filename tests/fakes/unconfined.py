"""A sandbox that confines nothing, for commands that tests wrote themselves, and working copies of files in memory."""

from __future__ import annotations

import asyncio
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from agent.events import EventKind
from agent.goals.workspace import CommandRecord, EditedCopy, open_workspace
from agent.ports import Workspace
from agent.sandbox.patch import FileChange, FileVersion
from agent.sandbox.sandbox import BoundedOutput, Channel, Execution, SandboxCommand, SandboxLimits
from indexer.subprocesses import finish_start, kill_session

LEFT_BEHIND = {"__pycache__", ".pytest_cache"}


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


class FolderCopy:
    """Files of a commit in a folder."""

    def __init__(self, path: Path, files: Mapping[str, str]) -> None:
        self.path = path
        self._files = files
        for name, text in files.items():
            self._write(name, FileVersion(mode="100644", content=text.encode()))

    def _write(self, name: str, version: FileVersion) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if version.mode == "120000":
            place.symlink_to(version.content.decode())
            return
        place.write_bytes(version.content)
        place.chmod(0o755 if version.mode == "100755" else 0o644)

    async def read_changes(self) -> Sequence[FileChange]:
        old = {name: FileVersion(mode="100644", content=text.encode()) for name, text in self._files.items()}
        new = {
            str(place.relative_to(self.path)): _read(place)
            for place in self.path.rglob("*")
            if (place.is_file() or place.is_symlink()) and not LEFT_BEHIND & set(place.parts)
        }
        changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        return [FileChange(path=name.encode(), old=old.get(name), new=new.get(name)) for name in changed]

    async def write_changes(self, changes: Sequence[FileChange]) -> None:
        for change in changes:
            name = change.path.decode()
            (self.path / name).unlink(missing_ok=True)
            if change.new is not None:
                self._write(name, change.new)


def _read(place: Path) -> FileVersion:
    if place.is_symlink():
        return FileVersion(mode="120000", content=str(place.readlink()).encode())
    is_program = place.stat().st_mode & stat.S_IXUSR
    return FileVersion(mode="100755" if is_program else "100644", content=place.read_bytes())


class FolderCopies:
    """Copies of files in memory, each in a folder; `open_now` counts those that are there."""

    def __init__(self, files: Mapping[str, str], root: Path) -> None:
        self._files = files
        self._root = root
        self.open_now = 0

    def open(self, commit: str) -> AbstractAsyncContextManager[EditedCopy]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[EditedCopy]:
        folder = Path(tempfile.mkdtemp(dir=self._root))
        self.open_now += 1
        try:
            yield FolderCopy(folder, self._files)
        finally:
            self.open_now -= 1
            shutil.rmtree(folder)


@asynccontextmanager
async def open_unconfined(files: Mapping[str, str], root: Path) -> AsyncGenerator[Workspace]:
    """Open a workspace over files, without anybody who listens."""
    record = CommandRecord(_ignore, _keep)
    copies = FolderCopies(files, root)
    async with open_workspace(
        UnconfinedSandbox(), copies, record, commit="0" * 40, limits=SandboxLimits(seconds=20)
    ) as workspace:
        yield workspace


def _ignore(kind: EventKind, /, **payload: Any) -> None:
    """Listen to nothing."""


def _keep(text: str) -> str:
    """Mask nothing."""
    return text
