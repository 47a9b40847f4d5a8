"""Finds out which sandbox holds on this machine: by running something in it that tries to get out."""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agent.errors import SandboxUnavailable
from agent.sandbox.box_folders import choose_folder, give_away, remove_folder
from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment
from agent.sandbox.memory_group import MemoryGroup, find_memory_group
from agent.sandbox.sandbox import Sandbox, SandboxCommand, SandboxLimits, StartProgram

_SECONDS = 10.0
_HELD = "held"
# Says what it got hold of; `chmod` does nothing, and the status cannot be read, where only Landlock holds it.
_ATTEMPT = f"""
(read -r word < "$1/canary") 2>/dev/null && echo "a file of the machine can be read"
(: > "$1/planted") 2>/dev/null && echo "files of the machine can be written"
(: > /usr/planted) 2>/dev/null && echo "files of the system can be written"
: > mine || echo "the working copy cannot be written"
chmod 700 mine
if [ -x mine ] && ! grep -q "^Seccomp:.2" /proc/self/status; then echo "no filter of system calls is loaded"; fi
if [ -r /proc/net/dev ] && grep -v "^ *lo:" /proc/net/dev | grep -q ":"; then echo "there is a network"; fi
echo {_HELD}
"""
_INSTALL = "Install bubblewrap 0.8 or newer (Debian, Ubuntu: apt-get install bubblewrap)."
_PROFILE = (
    "The system keeps name spaces from ordinary users. On Ubuntu, load the AppArmor profile bwrap-userns-restrict of "
    "the package apparmor-profiles; in a container, allow the system calls clone, unshare, mount and pivot_root."
)
_KERNEL = "Landlock takes Linux 6.12 or newer, with landlock among the modules of its boot parameter lsm=."
# What is said where something is wrong, and what to do about it.
_ADVICE = (
    ("cannot be started", _INSTALL),
    ("failed to execute bwrap", _INSTALL),
    ("Unknown option", _INSTALL),
    ("max_*_namespaces", "Set the sysctl user.max_user_namespaces to more than 0."),
    ("mount proc", "The container masks /proc. Run it with --security-opt systempaths=unconfined."),
    ("No permissions to create", _PROFILE),
    ("uid map", _PROFILE),
    ("RTM_NEWADDR", _PROFILE),
    ("setresuid failed", "citebot is root without the rights of root. Run it as an ordinary user."),
    ("Landlock of version", _KERNEL),
    ("Function not implemented", _KERNEL),
    ("Operation not supported", _KERNEL),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxTrial:
    """A sandbox that was tried; `problem` is why it cannot be used, empty if it can, and `advice` what to do.

    `group` is what bounds its memory, where anything but a look from time to time does.
    """

    sandbox: Sandbox
    group: MemoryGroup | None = None
    problem: str = ""
    advice: str = ""


async def try_sandboxes(start: StartProgram, *, home: Path, python: Path | None) -> Sequence[SandboxTrial]:
    """Try the sandboxes, the best one first, until one holds; that one is the last in the list.

    `home` is the data folder, `python` the operator's environment. Raises `SandboxUnavailable` if that cannot
    be used, or no working copy be made.
    """
    if sys.platform != "linux":
        raise SandboxUnavailable("The sandbox works only on Linux. Run citebot there, or in a virtual machine.")
    environment = await asyncio.to_thread(PythonEnvironment.find, python)
    group = await find_memory_group(start)
    trials: list[SandboxTrial] = []
    for sandbox in (Bubblewrap(start, environment, group), Landlock(start, environment, group)):
        trials.append(replace(await try_sandbox(sandbox, choose_folder(home)), group=group))
        if not trials[-1].problem:
            break
    return trials


async def try_sandbox(sandbox: Sandbox, folder: Path) -> SandboxTrial:
    """Try one sandbox, with a working copy in a folder."""
    problem = await _find_problem(sandbox, folder)
    advice = next((advice for sign, advice in _ADVICE if sign in problem), "")
    return SandboxTrial(sandbox=sandbox, problem=problem, advice=advice)


async def find_sandbox(start: StartProgram, *, home: Path, python: Path | None) -> Sandbox:
    """Return the best sandbox that holds on this machine; `SandboxUnavailable` says why none does, and what to do."""
    trials = await try_sandboxes(start, home=home, python=python)
    if not trials[-1].problem:
        return trials[-1].sandbox
    raise SandboxUnavailable(" ".join(f"{each.sandbox.mechanism}: {each.problem} {each.advice}" for each in trials))


async def _find_problem(sandbox: Sandbox, place: Path) -> str:
    """Return why a sandbox cannot be used; empty if it can."""
    with _open_trial_folder(place) as folder:
        command = SandboxCommand(argv=["sh", "-c", _ATTEMPT, "sh", str(folder)])
        try:
            result = await sandbox.run(command, folder / "tree", SandboxLimits(seconds=_SECONDS))
        except SandboxUnavailable as error:
            return str(error)
    said = result.stdout.text.split("\n")[:-1]
    if said == [_HELD]:
        return ""
    if said[-1:] == [_HELD]:
        return f"It does not hold: {', '.join(said[:-1])}."
    return f"A trial did not finish ({result.ending}): {result.stderr.text.strip()[-300:]}"


@contextmanager
def _open_trial_folder(place: Path) -> Iterator[Path]:
    """Make a folder with a working copy, and with a file beside it that nobody in the sandbox may read."""
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=place))
    try:
        folder.chmod(0o755)
        (folder / "canary").write_text(f"{secrets.token_hex(16)}\n", encoding="utf-8")
        (folder / "tree").mkdir(mode=0o700)
        give_away(folder / "tree")
        yield folder
    finally:
        remove_folder(folder)
