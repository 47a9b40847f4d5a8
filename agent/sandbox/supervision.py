"""Starts a box, follows its work, and ends it: when it is done, at a limit, or when it is cancelled.

A box begins to work only after a line on its standard input tells it to. Until then it waits, and
where citebot dies it finds its input closed and ends: no box is left that nothing would end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent.errors import SandboxUnavailable
from agent.sandbox.box_folders import BoxFolders, exceeds
from agent.sandbox.sandbox import BoundedOutput, Channel, Ending, Execution, SandboxCommand, SandboxLimits, StartProgram

_PROCESSES = Path("/proc")
_MACHINE = Path("/proc/meminfo")
_SPARED = 16  # a box is ended where less than this part of the machine's memory is left
_BLOCK = 512  # bytes of a block as `stat` counts them
SOCKET_BYTES = 212_992  # what waits in one at most, where nobody changes the size of its buffer
_REMOVED = b" (deleted)"

FileKey = tuple[int, int]  # device and number


def measure_memory(process: int) -> int:
    """Return the resident bytes of a process and its descendants, and the kernel's possible memory for their sockets.

    Memory that they share counts for each of them, a socket once.
    """
    pages, sockets = 0, set[str]()
    for folder in _walk_processes(process):
        with suppress(OSError):  # it has ended
            pages += int((folder / "statm").read_text(encoding="ascii").split()[1])
            sockets |= _list_sockets(folder)
    return pages * os.sysconf("SC_PAGE_SIZE") + len(sockets) * SOCKET_BYTES


def read_available() -> tuple[int, int]:
    """Return the machine's available and total memory in bytes."""
    lines = _MACHINE.read_text(encoding="ascii").splitlines()
    facts = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
    return facts["MemAvailable"], facts["MemTotal"]


def _list_sockets(folder: Path) -> set[str]:
    found = set[str]()
    for entry in (folder / "fd").iterdir():
        with suppress(OSError):  # it was closed
            if (target := str(entry.readlink())).startswith("socket:"):
                found.add(target)
    return found


def measure_removed_files(process: int) -> int:
    """Return the bytes of removed files that a process or its descendants still hold open or mapped.

    They occupy the disk as long as anybody holds them, but no walk through folders finds them.
    """
    sizes: dict[FileKey, int] = {}
    for folder in _walk_processes(process):
        with suppress(OSError):
            sizes |= _list_mapped(folder)
            sizes |= _list_open(folder)
    return sum(sizes.values())


def _list_open(folder: Path) -> dict[FileKey, int]:
    found: dict[FileKey, int] = {}
    for entry in (folder / "fd").iterdir():
        with suppress(OSError):  # it was closed
            status = entry.stat()
            if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                found[status.st_dev, status.st_ino] = _BLOCK * status.st_blocks
    return found


def _list_mapped(folder: Path) -> dict[FileKey, int]:
    """List mapped files with the mapped bytes: of a file that is not open, more cannot be seen."""
    found: dict[FileKey, int] = {}
    for line in (folder / "maps").read_bytes().splitlines():
        if line.endswith(_REMOVED):
            place, _, _, device, number, *_ = line.split()
            start, _, end = place.partition(b"-")
            major, _, minor = device.partition(b":")
            key = os.makedev(int(major, 16), int(minor, 16)), int(number)
            found[key] = found.get(key, 0) + int(end, 16) - int(start, 16)
    return found


def _walk_processes(process: int) -> Iterator[Path]:
    """Yield the /proc folders of a process and all its descendants."""
    waiting, seen = [process], {process}
    while waiting:
        folder = _PROCESSES / str(waiting.pop())
        yield folder
        with suppress(OSError):  # it has ended
            for task in (folder / "task").iterdir():
                children = {int(child) for child in (task / "children").read_text(encoding="ascii").split()}
                waiting += children - seen
                seen |= children


GRACE = 5  # seconds after its limit in which a box ends itself, if citebot has not done it
_GO = b"go\n"
_STARTING = 20.0  # seconds until a box says which process it is; the machine may be busy
_ENDING = 1.5  # seconds until a box that was told to end is killed from outside
_LOOKING = 0.2  # seconds between two looks at what a box uses
_AT_ONCE = 1 << 16  # bytes
_MAX_REPORT = 8 << 20  # bytes

Say = Callable[[Channel, bytes], None]


class BoxPipes:
    """The pipes on which a box tells of itself, and the files that it is given; it inherits nothing else.

    Only the command has the report. `withheld` stays with the supervisor of the box and is not passed on; status and
    lifeline are sockets, as a pipe can be opened again by anyone who sees the process that has it.
    """

    def __init__(self) -> None:
        self.status, self.status_end = _open_sockets()
        self.report, self.report_end = os.pipe()
        self.lifeline_end, self.lifeline = _open_sockets()  # ends when citebot does
        # With a reader of its own, a box does not break off in the middle of telling its status when citebot dies.
        self.withheld = [os.dup(self.status)]
        self.inherited = [self.status_end, self.report_end, self.lifeline_end, *self.withheld]

    def keep(self, content: bytes) -> str:
        """Return a descriptor from which the box can read a content."""
        file = os.memfd_create("citebot")
        self.inherited.append(file)
        with os.fdopen(os.dup(file), "wb") as target:
            target.write(content)
        os.lseek(file, 0, os.SEEK_SET)
        return str(file)

    def pass_on(self, descriptor: int) -> None:
        """Let supervisors of the box hold one of our descriptors as long as anything of it exists."""
        self.withheld.append(os.dup(descriptor))
        self.inherited.append(self.withheld[-1])

    def close_inherited(self) -> None:
        """Close our copies of the box's descriptors, because a pipe ends only when nobody holds its end."""
        for descriptor in self.inherited:
            os.close(descriptor)
        self.inherited.clear()


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxLaunch:
    """The start and the end of a box.

    On its status pipe it writes JSON objects: `child-pid`, its first process, then the command's
    `exit-code`, or the `error` that kept it from starting. `signal` ends the box when that process
    gets it.
    """

    line: Sequence[str]
    pipes: BoxPipes
    signal: signal.Signals


async def supervise(
    start: StartProgram,
    launch: BoxLaunch,
    command: SandboxCommand,
    limits: SandboxLimits,
    folders: BoxFolders,
    *,
    say: Say | None = None,
) -> Execution:
    """Run a command in a box, and return when none of its processes is left."""
    began = time.monotonic()
    pipes = launch.pipes
    async with _open_pipe(pipes.status) as status, _open_pipe(pipes.report) as report:
        opening = asyncio.ensure_future(_open_box(start, launch, status, limits, folders))
        try:
            # Never broken off halfway: to kill bubblewrap before it has told its first process would leave that one
            # behind, waiting for ever.
            box = await asyncio.shield(opening)
            await box.follow(command.stdin, report, say)
            told = await status.read()
        finally:
            await asyncio.shield(_settle(opening))
            os.close(pipes.lifeline)
    return await box.report(_read_status(told), seconds=time.monotonic() - began)


async def _open_box(
    start: StartProgram, launch: BoxLaunch, status: asyncio.StreamReader, limits: SandboxLimits, folders: BoxFolders
) -> _Box:
    try:
        process = await start(launch.line, pass_fds=launch.pipes.inherited)
    except OSError as error:
        raise SandboxUnavailable(f"{launch.line[0]} cannot be started ({error.strerror}). Install it.") from error
    finally:
        launch.pipes.close_inherited()
    box = _Box(process, launch.signal, limits, folders)
    try:
        await box.find_first(status)
    except SandboxUnavailable:
        await box.settle()
        raise
    return box


async def _settle(opening: asyncio.Future[_Box]) -> None:
    """End an open or opening box; one that could not be opened has ended already."""
    await asyncio.wait([opening])
    if not opening.exception():
        await opening.result().settle()


class _Box:
    """A started box."""

    def __init__(self, process: Process, ending: signal.Signals, limits: SandboxLimits, folders: BoxFolders) -> None:
        self._process = process
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self._stdout = cast("asyncio.StreamReader", process.stdout)
        self._stderr = cast("asyncio.StreamReader", process.stderr)
        self._signal = ending
        self._limits = limits
        self._folders = folders
        self._first = 0  # the process of which all others in the box descend
        self._handle = -1  # a descriptor of it: its number may come to mean another process
        self._ending: Ending | None = None
        self._outputs = {"stdout": BoundedBuffer(limits.kept_bytes), "stderr": BoundedBuffer(limits.kept_bytes)}
        self._report = bytearray()
        available, total = read_available()
        self._spared = min(available // 2, total // _SPARED)  # less where the machine was short of memory before

    async def find_first(self, status: asyncio.StreamReader) -> None:
        """Find the first process; `SandboxUnavailable` if there is none."""
        try:
            async with asyncio.timeout(_STARTING):
                told = _read_status(await status.readuntil(b"}"))
            self._first = int(str(told["child-pid"]))
            self._handle = os.pidfd_open(self._first)
        except (asyncio.IncompleteReadError, TimeoutError, ProcessLookupError, KeyError) as error:
            raise SandboxUnavailable(await self._explain()) from error

    async def follow(self, stdin: bytes, report: asyncio.StreamReader, say: Say | None) -> None:
        """Start the box's command, read its output until it ends, and end it at a limit."""
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._feed(_GO + stdin))
                group.create_task(self._pump(self._stdout, "stdout", say))
                group.create_task(self._pump(self._stderr, "stderr", say))
                group.create_task(self._collect(report))
                group.create_task(self._process.wait())
        finally:
            watching.cancel()

    async def settle(self) -> None:
        """Make sure that nothing of the box is left."""
        self._stdin.close()
        self._end("killed" if self._process.returncode is None else None)
        # Unread output is drained: asyncio reports the end of a process only after that of its pipes.
        try:
            async with asyncio.timeout(_ENDING):
                await self._process.communicate()
        except TimeoutError:
            self._process.kill()
            await self._process.communicate()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    async def report(self, told: dict[str, object], *, seconds: float) -> Execution:
        """Report the result; `SandboxUnavailable` if the command never started."""
        exit_code = told.get("exit-code")
        if exit_code is None and self._ending is None and (error := told.get("error") or self._find_complaint()):
            raise SandboxUnavailable(str(error))
        if self._ending is None and await asyncio.to_thread(self._holds_too_much):
            self._ending = "files"
        by_itself = self._ending is None and isinstance(exit_code, int)
        return Execution(
            ending="exited" if by_itself else self._ending or "killed",
            exit_code=exit_code if by_itself and isinstance(exit_code, int) else None,
            stdout=self._outputs["stdout"].read(),
            stderr=self._outputs["stderr"].read(),
            report=bytes(self._report),
            seconds=seconds,
        )

    def _end(self, reason: Ending | None) -> None:
        """End everything in the box; report the first reason."""
        self._ending = self._ending or reason
        if reason is not None and self._handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, self._signal)

    async def _feed(self, stdin: bytes) -> None:
        with suppress(ConnectionError):  # a command need not read its input
            self._stdin.write(stdin)
            await self._stdin.drain()
            self._stdin.close()
            await self._stdin.wait_closed()

    async def _pump(self, reader: asyncio.StreamReader, channel: Channel, say: Say | None) -> None:
        buffer = self._outputs[channel]
        while data := await reader.read(_AT_ONCE):
            buffer.append(data)
            if say is not None and self._ending is None:
                say(channel, data)
            if buffer.size > self._limits.output_bytes:
                self._end("output")

    async def _collect(self, report: asyncio.StreamReader) -> None:
        while data := await report.read(_AT_ONCE):
            if len(self._report) + len(data) > _MAX_REPORT:
                self._end("output")
            else:
                self._report += data

    async def _watch(self) -> None:
        """End the box at the first exceeded limit; checking its files may be slow, checking memory is not."""
        looks = (self._look("memory", self._takes_too_much), self._look("files", self._holds_too_much))
        await asyncio.gather(*looks, self._time_out())

    async def _time_out(self) -> None:
        await asyncio.sleep(self._limits.seconds)
        self._end("timeout")

    async def _look(self, reason: Ending, is_exceeded: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(_LOOKING)
            if await asyncio.to_thread(is_exceeded):
                return self._end(reason)

    def _takes_too_much(self) -> bool:
        """Whether the box takes too much memory, or the machine has hardly any left.

        Some of the kernel's memory for a box, such as its locks and sockets that nobody has
        accepted, counts nowhere.
        """
        return measure_memory(self._first) > self._limits.memory_bytes or read_available()[0] < self._spared

    def _holds_too_much(self) -> bool:
        hidden = measure_removed_files(self._first) if self._handle >= 0 else 0
        most = self._limits.disk_bytes - hidden
        return most < 0 or exceeds(self._folders.writable, most_bytes=most, most_files=self._limits.files)

    async def _explain(self) -> str:
        """Return the error messages about a box that could not be made."""
        self._stdin.close()
        try:
            async with asyncio.timeout(_ENDING):
                said = await self._stderr.read(_AT_ONCE)
        except TimeoutError:
            said = b""
        return said.decode(errors="replace").strip() or "The sandbox does not start, and does not say why."

    def _find_complaint(self) -> str:
        """Find bubblewrap's error message about an unfinished box."""
        said = self._outputs["stderr"].read().text.strip()
        return said if said.startswith("bwrap: ") else ""


def _read_status(text: bytes) -> dict[str, object]:
    """Read the JSON objects that a box wrote consecutively into one."""
    found: dict[str, object] = {}
    decoder, rest = json.JSONDecoder(), text.decode(errors="replace").strip()
    while rest:
        part, end = decoder.raw_decode(rest)
        found |= part
        rest = rest[end:].lstrip()
    return found


def _open_sockets() -> tuple[int, int]:
    one, two = socket.socketpair()
    return one.detach(), two.detach()


@asynccontextmanager
async def _open_pipe(descriptor: int) -> AsyncGenerator[asyncio.StreamReader]:
    """Read from a pipe; its descriptor is closed in the end."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        yield reader
    finally:
        transport.close()


class BoundedBuffer:
    """Takes an output piece by piece and keeps at most `most` bytes, half from each end."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0  # bytes that were taken

    def append(self, data: bytes) -> None:
        """Take the next piece."""
        self.size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half:  # not at every piece: to shorten a buffer copies what is left
            del self._tail[: -self._half]

    def read(self) -> BoundedOutput:
        """Return the kept output."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._half) :])
        return BoundedOutput(head=bytes(self._head), tail=tail, omitted=self.size - len(self._head) - len(tail))
