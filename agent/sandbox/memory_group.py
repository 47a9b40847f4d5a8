"""The control group that limits the memory of a box, sockets included, if this machine lets citebot create one.

Three ways are tried at the start: a scope of the user's systemd, a group of cgroup v2 that was
delegated to citebot, and for root a subgroup of cgroup v1. Without one, the use of a box is checked
periodically, and it may have fewer processes and descriptors.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from agent.sandbox.sandbox import SandboxLimits, StartProgram

_GROUPS = Path("/sys/fs/cgroup")
_RUNTIME = Path("/run/user")  # with the bus of a user's systemd
_PROBED = 64 << 20  # bytes
_PROBE_SECONDS = 2.0
_TRIES, _PAUSE = 20, 0.05  # to remove a group whose last process is just ending
# The box enters the group before there is anything of it, and so do those who watch it.
_ENTER = 'echo 0 > "$1" && shift && exec "$@"'
_UNBOUNDED_DESCRIPTORS, _UNBOUNDED_PROCESSES = 256, 64  # of a process, and of a box that is in no group


@dataclass(frozen=True, kw_only=True, slots=True)
class Membership:
    """The group of one box: the command prefix that starts a program in it, and its folder if known."""

    prefix: Sequence[str] = ()
    folder: Path | None = None

    def is_exceeded(self) -> bool:
        """Whether the kernel has ended a process of the group for lack of memory."""
        if self.folder is None:
            return False
        for name in ("memory.events", "memory.oom_control"):  # of v2 and v1
            with suppress(OSError):
                words = (self.folder / name).read_text(encoding="ascii").split()
                return "oom_kill" in words and words[words.index("oom_kill") + 1] != "0"
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryGroup:
    """A way to limit memory: by `systemd`, or below a `parent` folder of cgroup `v2` or `v1`."""

    way: Literal["systemd", "v2", "v1"]
    parent: Path = _GROUPS

    @property
    def description(self) -> str:
        """A description for people."""
        return {
            "systemd": "a scope of the user's systemd",
            "v2": f"a delegated control group below {self.parent}",
            "v1": f"a control group of root below {self.parent}",
        }[self.way]

    @asynccontextmanager
    async def open(self, limits: SandboxLimits) -> AsyncIterator[Membership]:
        """Make a temporary group for one box."""
        if self.way == "systemd":
            runtime = f"XDG_RUNTIME_DIR={_RUNTIME / str(os.geteuid())}"
            run = ("systemd-run", "--user", "--scope", "--quiet", "--collect")
            bounds = ("-p", f"MemoryMax={limits.memory_bytes}", "-p", "MemorySwapMax=0")
            yield Membership(prefix=("env", runtime, *run, *bounds, "--", "env", "-u", "XDG_RUNTIME_DIR"))
            return
        group = await asyncio.to_thread(self._make, limits.memory_bytes)
        try:
            yield Membership(prefix=("sh", "-c", _ENTER, "sh", str(group / "cgroup.procs")), folder=group)
        finally:
            await _remove(group)

    def _make(self, most: int) -> Path:
        group = self.parent / f"citebot-{os.getpid()}-{os.urandom(4).hex()}"
        group.mkdir()
        try:
            if self.way == "v1":
                (group / "memory.limit_in_bytes").write_text(str(most), encoding="ascii")
                for more in ("memory.memsw.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"):
                    with suppress(OSError):  # there where the kernel counts swap, and buffers of TCP by themselves
                        (group / more).write_text(str(most), encoding="ascii")
            else:
                (group / "memory.max").write_text(str(most), encoding="ascii")
                with suppress(OSError):
                    (group / "memory.swap.max").write_text("0", encoding="ascii")
        except OSError:
            group.rmdir()
            raise
        return group


async def find_memory_group(start: StartProgram) -> MemoryGroup | None:
    """Find a way to limit memory on this machine, by trying; None if there is none."""
    for group in _list_candidates():
        with suppress(OSError, TimeoutError):
            async with group.open(SandboxLimits(memory_bytes=_PROBED)) as member:
                process = await start([*member.prefix, "true"])
                try:
                    async with asyncio.timeout(_PROBE_SECONDS):
                        if await process.wait() == 0:
                            return group
                finally:
                    if process.returncode is None:
                        process.kill()
                        await process.wait()
    return None


def tighten(limits: SandboxLimits, group: MemoryGroup | None) -> SandboxLimits:
    """Return the limits of a box: without a group, sockets and files in flight are limited by number."""
    if group is not None:
        return limits
    return replace(
        limits,
        descriptors=min(limits.descriptors, _UNBOUNDED_DESCRIPTORS),
        processes=min(limits.processes, _UNBOUNDED_PROCESSES),
    )


def _list_candidates() -> list[MemoryGroup]:
    found: list[MemoryGroup] = []
    if os.geteuid() and shutil.which("systemd-run") and (_RUNTIME / str(os.geteuid()) / "bus").exists():
        found.append(MemoryGroup(way="systemd"))
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return found
    for line in lines:
        _, kinds, own = line.split(":", 2)
        if not kinds:
            place = _GROUPS / own.lstrip("/")
            # Where processes are, the kernel hands no memory down; the group above may have been delegated as well.
            places = (place, place.parent) if os.geteuid() else (place,)
            found += [MemoryGroup(way="v2", parent=each) for each in places if _hands_memory_down(each)]
        elif "memory" in kinds.split(",") and os.geteuid() == 0:
            found.append(MemoryGroup(way="v1", parent=_GROUPS / "memory" / own.lstrip("/")))
    return found


def _hands_memory_down(folder: Path) -> bool:
    """Whether groups below a folder can be limited; delegated rights must be passed on first."""
    control = folder / "cgroup.subtree_control"
    try:
        if "memory" not in control.read_text(encoding="ascii").split():
            control.write_text("+memory", encoding="ascii")
        return os.access(folder, os.W_OK)
    except OSError:
        return False


async def _remove(group: Path) -> None:
    for _ in range(_TRIES):
        with suppress(OSError):
            await asyncio.to_thread(group.rmdir)
            return
        await asyncio.sleep(_PAUSE)
