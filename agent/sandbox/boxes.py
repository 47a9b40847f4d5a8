"""Linux sandboxes, bubblewrap or Landlock: a box is made for each command, and supervised until it has ended."""

from __future__ import annotations

import asyncio
import marshal
import os
import re
import secrets
import signal
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from agent.errors import SandboxUnavailable
from agent.sandbox.box_folders import BoxFolders, choose_folder, find_user, give_away, open_folders, remove_folder
from agent.sandbox.kernel import box_watch, landlock_launcher
from agent.sandbox.kernel.seccomp import build_filter, find_architecture
from agent.sandbox.memory_group import Membership, MemoryGroup, find_memory_group, tighten
from agent.sandbox.sandbox import Channel, Execution, Sandbox, SandboxCommand, SandboxLimits, StartProgram
from agent.sandbox.supervision import GRACE, BoxLaunch, BoxPipes, supervise

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_HOME_LINE = re.compile(r"home\s*=\s*(\S.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonEnvironment:
    """Folders of the host with a Python and the packages of the team's code; `programs` has its `python`."""

    folders: tuple[Path, ...] = ()
    programs: Path | None = None

    @classmethod
    def find(cls, root: Path | None) -> PythonEnvironment:
        """Find the parts of a virtual environment: itself and its base Python.

        Raises `SandboxUnavailable` if it is none, or if showing it would show much more.
        """
        if root is None:
            return cls()
        try:
            text = (root / "pyvenv.cfg").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SandboxUnavailable(
                f"{root}, which python below [sandbox] names, is no virtual environment: it has no pyvenv.cfg that can "
                f"be read. Make one with `python3 -m venv {root}`, and install what the tests need into it."
            ) from error
        homes = (match[1].strip() for line in text.splitlines() if (match := _HOME_LINE.fullmatch(line.strip())))
        bases = [Path(home).resolve().parent for home in homes]
        folders = (root.resolve(), *(base for base in bases if not base.is_relative_to("/usr")))
        for folder in folders:
            _check_folder(folder)
        return cls(folders=folders, programs=root.resolve() / "bin")


def _check_folder(folder: Path) -> None:
    if Path.home().is_relative_to(folder) or folder == Path("/") or folder.parent == Path("/"):
        raise SandboxUnavailable(
            f"The Python of [sandbox] lies in {folder}, and to show that to tests would show them much more. Make the "
            "environment in a folder of its own, from a Python that has one."
        )
    user = find_user()
    if user is not None and (shut := _find_shut(folder)):
        raise SandboxUnavailable(
            f"citebot is root, and hands tests over to user {user}, who cannot get to {folder}: {shut} is closed to "
            "others. Run citebot as an ordinary user, or make the environment elsewhere."
        )


def _find_shut(folder: Path) -> Path | None:
    """Return the first folder on a path that others may not enter."""
    return next((each for each in (*reversed(folder.parents), folder) if not each.stat().st_mode & 0o001), None)


def make_variables(
    python: PythonEnvironment, *, home: str, tmp: str, support: str, report: int, added: Mapping[str, str]
) -> dict[str, str]:
    """Make the variables of a command, inheriting none, with folders as the command sees them."""
    return {
        "PATH": os.pathsep.join([*([str(python.programs)] if python.programs else []), _SYSTEM_PATH]),
        "HOME": home,
        "TMPDIR": tmp,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SANDBOX_SUPPORT": support,
        "SANDBOX_REPORT": str(report),
        **added,
    }


def list_language_settings() -> list[str]:
    """List the folders that system languages need to start, such as Debian's Java settings."""
    return sorted(map(str, Path("/etc").glob("java*-openjdk")))


_WORK, _HOME, _TMP, _SUPPORT = "/work", "/home/sandbox", "/tmp", "/support"  # noqa: S108 - a folder of the box's own
# Files without which ordinary programs do not find their libraries, or the time; those of the system's own.
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_OWN_FILES: Mapping[str, bytes] = {
    "/etc/passwd": b"sandbox:x:1000:1000::/home/sandbox:/bin/sh\n",
    "/etc/group": b"sandbox:x:1000:\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}
# The first line on the input is not the command's: it says that the box may begin.
_WAIT_AND_BEGIN = 'read -r go && exec "$@"'
_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
    "/etc/ssl/openssl.cnf",  # without which node does not start
    *("/dev/urandom", "/dev/random", "/dev/zero"),
)


class BoxSandbox(ABC):
    """Runs each command in a new box, launched by a mechanism."""

    mechanism: ClassVar[str]

    def __init__(self, start: StartProgram, python: PythonEnvironment, group: MemoryGroup | None = None) -> None:
        self._start = start
        self._python = python
        self._group = group

    async def run(
        self,
        command: SandboxCommand,
        working_copy: Path,
        limits: SandboxLimits,
        *,
        say: Callable[[Channel, bytes], None] | None = None,
    ) -> Execution:
        """Run a command; see `Sandbox.run`."""
        limits = tighten(limits, self._group)
        joining = nullcontext(Membership()) if self._group is None else self._group.open(limits)
        async with open_folders(working_copy, command.support) as folders, joining as member:
            pipes = BoxPipes()
            pipes.pass_on(folders.held)
            launch = self._make_launch(command, folders, limits, pipes)
            launch = replace(launch, line=[*member.prefix, *launch.line])
            execution = await supervise(self._start, launch, command, limits, folders, say=say)
            return replace(execution, ending="memory", exit_code=None) if member.is_exceeded() else execution

    @abstractmethod
    def _make_launch(
        self, command: SandboxCommand, folders: BoxFolders, limits: SandboxLimits, pipes: BoxPipes
    ) -> BoxLaunch:
        """Describe how to start a command's box, and what ends it."""


class Bubblewrap(BoxSandbox):
    """Runs commands by bubblewrap, always as an ordinary user.

    Root in a box of bubblewrap would be the machine's root for much of `/proc`, so root switches to
    another user.
    """

    mechanism = "bubblewrap"

    def _make_launch(
        self, command: SandboxCommand, folders: BoxFolders, limits: SandboxLimits, pipes: BoxPipes
    ) -> BoxLaunch:
        filter_program = build_filter(find_architecture(), isolated=True)
        variables = make_variables(
            self._python, home=_HOME, tmp=_TMP, support=_SUPPORT, report=pipes.report_end, added=command.variables
        )
        options = [
            *_list_walls(),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *_list_mounts(self._python, folders),
            *(word for path, content in _OWN_FILES.items() for word in ("--ro-bind-data", pipes.keep(content), path)),
            *("--chdir", _WORK, "--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
            *("--seccomp", pipes.keep(filter_program), "--json-status-fd", str(pipes.status_end)),
        ]
        # In a file, as the arguments of the first process can be read in the box.
        arguments = pipes.keep(b"".join(os.fsencode(option) + b"\0" for option in options))
        line = [
            *(sys.executable, "-I", "-S", box_watch.__file__),
            *(str(pipes.lifeline_end), ",".join(map(str, pipes.withheld))),
            *_list_handing_over(),
            *("bwrap", "--args", arguments, "--", *_list_limits(limits), "sh", "-c", _WAIT_AND_BEGIN, "sh"),
        ]
        return BoxLaunch(line=[*line, *command.argv], pipes=pipes, signal=signal.SIGKILL)


def _list_walls() -> list[str]:
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"),
    ]


def _list_mounts(python: PythonEnvironment, folders: BoxFolders) -> list[str]:
    """List the mounts, in order."""
    words = ["--proc", "/proc", "--dev", "/dev", *_list_system()]
    system = (*_SYSTEM_FILES, *list_language_settings())
    words += [word for path in system for word in ("--ro-bind-try", path, path)]
    writable = {
        _WORK: folders.working_copy, _HOME: folders.home, _TMP: folders.tmp, "/dev/shm": folders.shared_memory,  # noqa: S108
    }  # fmt: skip
    words += [word for place, folder in writable.items() for word in ("--bind", str(folder), place)]
    # After the writable folders, as an environment may lie below one of the machine that has the same name.
    words += [word for folder in python.folders for word in ("--ro-bind", str(folder), str(folder))]
    return [*words, "--ro-bind", str(folders.support), _SUPPORT]


def _list_system() -> Iterator[str]:
    """Mount the system's programs and libraries read-only; links into /usr stay links."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _list_handing_over() -> list[str]:
    if (user := find_user()) is None:
        return []
    return [
        *("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"),
        *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"),
    ]


def _list_limits(limits: SandboxLimits) -> list[str]:
    """Set the limits of each process in the box, whose process count covers only its own."""
    return [
        "prlimit",
        f"--as={limits.address_bytes}",
        f"--cpu={limits.cpu_seconds}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        *(f"--nofile={limits.descriptors}", "--core=0", "--"),
        *("timeout", "-s", "KILL", str(limits.seconds + GRACE)),
    ]


class Landlock(BoxSandbox):
    """Runs commands by a launcher that gives up its rights before it becomes the command.

    The command still sees the existing files, and shares the machine's network and processes; so it
    is allowed no sockets, and nothing that names processes or changes the modes and times of files.
    """

    mechanism = "Landlock"

    def _make_launch(
        self, command: SandboxCommand, folders: BoxFolders, limits: SandboxLimits, pipes: BoxPipes
    ) -> BoxLaunch:
        filter_program = build_filter(find_architecture(), isolated=False)
        variables = make_variables(
            self._python,
            home=str(folders.home),
            tmp=str(folders.tmp),
            support=str(folders.support),
            report=pipes.report_end,
            added=command.variables,
        )
        orders = {
            "argv": list(command.argv),
            "variables": variables,
            "folder": str(folders.working_copy),
            "readable": [*_READABLE, *list_language_settings(), *map(str, self._python.folders), str(folders.support)],
            "writable": [*map(str, folders.writable), "/dev/null"],
            "limits": {
                "AS": limits.address_bytes,
                "CPU": limits.cpu_seconds,
                "FSIZE": limits.file_bytes,
                "NOFILE": limits.descriptors,
                "CORE": 0,
            },
            "processes": limits.processes,
            "seconds": limits.seconds + GRACE,
            "user": find_user(),
            "filter": filter_program,
            "status": pipes.status_end,
            "report": pipes.report_end,
        }
        orders_file = pipes.keep(marshal.dumps(orders))
        line = [sys.executable, "-I", "-S", landlock_launcher.__file__, orders_file]
        return BoxLaunch(line=line, pipes=pipes, signal=signal.SIGTERM)


_TIMEOUT_SECONDS = 10.0
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
# Problems, and their remedies.
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
    """A tried sandbox; `problem` is why it cannot be used (empty if it can), `advice` what to do.

    `group` limits its memory, if anything but periodic checks does.
    """

    sandbox: Sandbox
    group: MemoryGroup | None = None
    problem: str = ""
    advice: str = ""


async def try_sandboxes(start: StartProgram, *, home: Path, python: Path | None) -> Sequence[SandboxTrial]:
    """Try the sandboxes, the best one first, until one works, which is the last in the list.

    `home` is the data folder, `python` the operator's environment. Raises `SandboxUnavailable` if
    that cannot be used, or no working copy can be made.
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
    """Return the best sandbox that works here; `SandboxUnavailable` gives the reasons and what to do."""
    trials = await try_sandboxes(start, home=home, python=python)
    if not trials[-1].problem:
        return trials[-1].sandbox
    raise SandboxUnavailable(" ".join(f"{each.sandbox.mechanism}: {each.problem} {each.advice}" for each in trials))


async def _find_problem(sandbox: Sandbox, place: Path) -> str:
    """Return why a sandbox cannot be used; empty if it can."""
    with _open_trial_folder(place) as folder:
        command = SandboxCommand(argv=["sh", "-c", _ATTEMPT, "sh", str(folder)])
        try:
            result = await sandbox.run(command, folder / "tree", SandboxLimits(seconds=_TIMEOUT_SECONDS))
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
    """Create a folder with a working copy, and a file beside it that the sandbox must not read."""
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=place))
    try:
        folder.chmod(0o755)
        (folder / "canary").write_text(f"{secrets.token_hex(16)}\n", encoding="utf-8")
        (folder / "tree").mkdir(mode=0o700)
        give_away(folder / "tree")
        yield folder
    finally:
        remove_folder(folder)
