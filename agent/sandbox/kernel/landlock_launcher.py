"""A program of its own: gives up every right but those in its orders, becomes the command, and outlives what it starts.

python -I -S landlock_launcher.py DESCRIPTOR

The descriptor holds the orders, as `marshal` writes them. The first process stays outside the
rules, so that nothing within them can touch it; it ends everything that the command left, and ends
with citebot. It imports nothing but Python itself, and of that neither `json`, `typing`,
`contextlib` nor `signal`, which take as long as all the rest.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import stat
import struct
import sys
import time
import warnings  # noqa: F401 - `os.execvpe` imports it, when no file of Python can be read any more

TYPE_CHECKING = False  # as type checkers know it, without its module
if TYPE_CHECKING:
    import signal
    from types import FrameType
    from typing import Any, NoReturn
else:
    import _signal as signal

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
_SET_PDEATHSIG, _SET_SUBREAPER, _SET_NO_NEW_PRIVS, _SET_SECCOMP = 1, 36, 38, 22  # of prctl
_FILTER = 2
# The first version that guards truncation, moves between folders, devices, TCP, abstract sockets and signals.
_MIN_VERSION = 6
_ALL = (1 << 16) - 1  # rights on files, of which a file that is no folder has some
_READING = 0b1101  # execute, read files, list folders
_OF_FILES = 0b111 | 1 << 14 | 1 << 15
_BY_TCP, _SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
_NOT_STARTED = 125  # the launcher's exit code if it cannot obey
_C = ctypes.CDLL(None, use_errno=True)


class _Suppressing:
    """Suppresses errors, as `contextlib.suppress` does."""

    def __init__(self, kind: type[OSError]) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._kind)


class _Ended(Exception):
    """The command was cancelled, or its time is over."""


def main() -> int:
    """Carry out the orders; return the command's exit code, 128 plus the signal if one ended it."""
    with os.fdopen(int(sys.argv[1]), "rb") as source:
        orders: dict[str, Any] = marshal.loads(source.read())  # noqa: S302 - citebot wrote them
    status = orders["status"]
    os.set_inheritable(status, False)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    command = 0
    try:
        _prctl(_SET_PDEATHSIG, signal.SIGTERM)
        _prctl(_SET_SUBREAPER, 1)
        rules = _make_rules(orders["readable"], orders["writable"])
        os.write(status, b'{"child-pid": %d}' % os.getpid())
        if not _may_begin():
            return _NOT_STARTED
        signal.setitimer(signal.ITIMER_REAL, orders["seconds"])
        command = os.fork()
        if command == 0:
            _become_command(orders, rules)
        os.close(orders["report"])
        exit_code = _wait_for(command)
        os.write(status, b'{"exit-code": %d}' % exit_code)
    except OSError as error:
        _tell_error(status, error)
        return _NOT_STARTED
    except _Ended:
        return 128 + signal.SIGKILL
    else:
        return exit_code
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _end_descendants()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    # Told again before the end has begun, it would leave what it is about to end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise _Ended


def _tell_error(status: int, error: OSError) -> None:
    """Write an error as JSON, avoiding quotes and backslashes that would end it."""
    text = str(error).replace("\\", "/").replace('"', "'")
    os.write(status, b'{"error": "%s"}' % text.encode(errors="replace"))


def _may_begin() -> bool:
    """Wait for the starting line; the rest of the input is the command's."""
    while (letter := os.read(0, 1)) not in {b"", b"\n"}:
        pass
    return letter == b"\n"


def _make_rules(readable: list[str], writable: list[str]) -> int:
    """Return a descriptor of the rules; `OSError` if the kernel does not support them."""
    version = _call(_CREATE_RULESET, None, 0, 1)
    if version < _MIN_VERSION:
        raise OSError(f"Landlock of version {version}, not {_MIN_VERSION}")
    handled = struct.pack("=QQQ", _ALL, _BY_TCP, _SCOPES)
    rules = _call(_CREATE_RULESET, _make_buffer(handled), len(handled), 0)
    for path, wanted in [*((path, _READING) for path in readable), *((path, _ALL) for path in writable)]:
        with _Suppressing(FileNotFoundError):  # not every system has every folder
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rights = wanted & (_ALL if stat.S_ISDIR(os.fstat(place).st_mode) else _OF_FILES)
            _call(_ADD_RULE, rules, 1, _make_buffer(struct.pack("=Qi", rights, place)), 0)
            os.close(place)
    return rules


def _become_command(orders: dict[str, Any], rules: int) -> NoReturn:
    """Give up all rights, and become the command, without returning."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.setsid()
        os.set_inheritable(orders["report"], True)
        os.chdir(orders["folder"])
        _close_all_but(orders["report"], orders["status"], rules)
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"1000")  # the kernel ends the box first where the machine has no memory left
        user = orders["user"]
        processes = _count_tasks(os.geteuid() if user is None else user) + orders["processes"]
        for name, most in {**orders["limits"], "NPROC": processes}.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        if user is not None:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        _prctl(_SET_NO_NEW_PRIVS, 1)
        _call(_RESTRICT_SELF, rules, 0)
        program = orders["filter"]
        instructions = _make_buffer(program)
        described = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
        _prctl(_SET_SECCOMP, _FILTER, _make_buffer(described))
    except OSError as error:
        _tell_error(orders["status"], error)
        os._exit(_NOT_STARTED)
    try:
        os.execvpe(orders["argv"][0], orders["argv"], orders["variables"])  # noqa: S606 - there is no shell
    except OSError as error:
        os.write(2, f"{orders['argv'][0]}: {error.strerror}\n".encode(errors="replace"))
    os._exit(127)


def _close_all_but(*kept: int) -> None:
    """Close every descriptor that the command must not have; of the kept ones, it inherits only the report."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with _Suppressing(OSError):  # the listing itself is over
                os.close(int(name))


def _count_tasks(user: int) -> int:
    """Count the processes and threads of a user, whose limit covers all of them."""
    found = 0
    for name in os.listdir("/proc"):
        with _Suppressing(OSError):
            if name.isdecimal() and os.stat(f"/proc/{name}").st_uid == user:
                found += len(os.listdir(f"/proc/{name}/task"))
    return found


def _wait_for(command: int) -> int:
    """Wait for the command, and reap orphans meanwhile."""
    while True:
        ended, status = os.wait()
        if ended == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_descendants() -> None:
    """Kill and reap all descendants of the command."""
    while found := _list_descendants(os.getpid()):
        for process in found:
            with _Suppressing(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with _Suppressing(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _list_descendants(process: int) -> list[int]:
    found, waiting = [], [process]
    while waiting:
        with _Suppressing(OSError):  # it has ended
            folder = f"/proc/{waiting.pop()}/task"
            for task in os.listdir(folder):
                with open(f"{folder}/{task}/children", encoding="ascii") as children:
                    new = [int(child) for child in children.read().split()]
                found += new
                waiting += new
    return found


def _make_buffer(content: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(content, len(content))


def _call(number: int, *arguments: Any) -> int:
    words = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return _check(_C.syscall(ctypes.c_long(number), *words))


def _prctl(option: int, first: int, second: Any = 0) -> None:
    word = ctypes.c_ulong(second) if isinstance(second, int) else second
    _check(_C.prctl(option, ctypes.c_ulong(first), word, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    sys.exit(main())
