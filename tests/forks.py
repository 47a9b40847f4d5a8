"""Processes forked from one that has imported what they need: `python -m tests.forks SOCKET`.

To start a Python with all of citebot takes seconds of the processor; to fork one, some milliseconds. Each request over
the socket is a line of JSON with four descriptors: standard input, output and error of the process, and a pipe that
takes its id and, at its end, its exit code. Before the first process that calls a function of a module, the server
imports the module and calls its `warm_up`, if it has one. It runs no thread of its own; at the end of its input it
kills what is left and ends.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parents[1]


@dataclass(kw_only=True)
class Fork:
    """A forked process, whose end is heard from its parent."""

    pid: int
    _end: io.FileIO
    _code: int | None = field(default=None, init=False)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock, init=False)

    def send(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Return how it ended: its exit code, or the negative number of a signal; nothing while it runs."""
        with self._one_at_a_time:
            if self._code is None and connection.wait([self._end.fileno()], 0):
                self._code = int(self._end.readline())
                self._end.close()
            return self._code

    def wait(self) -> int:
        """Wait for the end; a process that does not come to it is killed."""
        with suppress(ValueError):  # closed: another thread has heard of the end
            if not connection.wait([self._end.fileno()], LIMIT_SECONDS):
                self.send(signal.SIGKILL)
                raise TimeoutError(f"process {self.pid} did not end within {LIMIT_SECONDS} seconds")
        code = self.poll()
        assert code is not None
        return code

    async def end(self, number: int) -> int:
        """Send a signal, wait for the end and return how it ended."""
        self.send(number)
        return await asyncio.to_thread(self.wait)

    def kill(self) -> int:
        """Kill it, stopped or not, if it still runs."""
        self.send(signal.SIGKILL)
        return self.wait()


@dataclass(frozen=True, kw_only=True)
class Spoken:
    """A process whose output and errors are read while it runs."""

    fork: Fork
    out: IO[str]
    err: IO[str]

    def read_until(self, word: str) -> str:
        """Read what it says up to a line with a word."""
        said = ""
        for line in self.err:
            said += line
            if word in line:
                return said
        raise AssertionError(said)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a process wrote, and the code it ended with."""

    code: int
    out: str
    err: str


class ForkServer:
    """The server, as the tests have it."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._one_at_a_time = threading.Lock()

    def start(
        self,
        target: Callable[..., int | None],
        *arguments: Any,
        cwd: Path | str = ".",
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> Fork:
        """Start a process that calls a function of a module with arguments of JSON, in a session of its own.

        Descriptors that are not given are `/dev/null` for input, and otherwise those of the tests.
        """
        request = {
            "module": target.__module__,
            "name": target.__qualname__,
            "arguments": arguments,
            "cwd": str(Path(cwd).absolute()),
            "env": dict(os.environ if env is None else env),
        }
        reader, writer = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            streams = [nothing if stdin is None else stdin, 1 if stdout is None else stdout]
            streams += [2 if stderr is None else stderr, writer]
            line = json.dumps(request).encode() + b"\n"
            with self._one_at_a_time:
                sent = socket.send_fds(self._control, [line], streams)
                self._control.sendall(line[sent:])
        finally:
            os.close(nothing)
            os.close(writer)
        end = io.FileIO(reader)
        return Fork(pid=int(end.readline()), _end=end)

    @contextmanager
    def listening(self, target: Callable[..., int | None], *arguments: Any) -> Iterator[Spoken]:
        """Start a process and read what it says; kill it at the end of the context if it still runs."""
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        with os.fdopen(out, encoding="utf-8") as out_file, os.fdopen(err, encoding="utf-8") as err_file:
            try:
                fork = self.start(target, *arguments, stdout=its_out, stderr=its_err)
            finally:
                os.close(its_out)
                os.close(its_err)
            try:
                yield Spoken(fork=fork, out=out_file, err=err_file)
            finally:
                fork.kill()

    async def end_of(self, target: Callable[..., int | None], *arguments: Any, **options: Any) -> int:
        """Run a process to its end, and return how it ended."""
        fork = await asyncio.to_thread(self.start, target, *arguments, **options)
        return await asyncio.to_thread(fork.wait)

    def run(
        self,
        target: Callable[..., int | None],
        *arguments: Any,
        cwd: Path | str = ".",
        env: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run a process to its end."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            fork = self.start(target, *arguments, cwd=cwd, env=env, stdout=out.fileno(), stderr=err.fileno())
            code = fork.wait()
            out.seek(0)
            err.seek(0)
            return Ended(code=code, out=out.read(), err=err.read())


@contextmanager
def open_fork_server() -> Iterator[ForkServer]:
    """Start the server; fails at the end if a process has outlived its test."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.forks", str(theirs.fileno())]
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **single}, pass_fds=[theirs.fileno()], start_new_session=True
    ) as server:
        theirs.close()
        with ours:
            yield ForkServer(ours)
        left = server.wait(LIMIT_SECONDS)
    assert not left, f"{left} processes outlived their tests"


def import_all(*names: str) -> None:
    """Import modules, except for those of extras that are not installed."""
    for name in names:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)


# The server's side


def serve(control: socket.socket) -> int:
    """Fork for each request; return how many processes had to be killed at the end."""
    running: dict[int, int] = {}
    prepared: set[str] = set()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready = connection.wait([control, woken])
        if woken in ready:
            os.read(woken, 4096)
            _report_ends(running)
        if control in ready:
            line, descriptors = _receive(control)
            if not line:
                break
            request = json.loads(line)
            if request["module"] not in prepared:
                _prepare(request["module"])
                prepared.add(request["module"])
            pid = os.fork()
            if not pid:
                for other in (control.fileno(), woken, wake, descriptors[3], *running.values()):
                    os.close(other)
                _run(request, descriptors[:3])
            for descriptor in descriptors[:3]:
                os.close(descriptor)
            running[pid] = descriptors[3]
            os.write(running[pid], b"%d\n" % pid)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    return min(len(running), 255)


def _receive(control: socket.socket) -> tuple[bytes, Sequence[int]]:
    line, descriptors, _, _ = socket.recv_fds(control, 65_536, 4)
    while line and not line.endswith(b"\n"):
        line += control.recv(65_536)
    return line, descriptors


def _report_ends(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        end = running.pop(pid)
        with suppress(BrokenPipeError):  # nobody wants to know
            os.write(end, b"%d\n" % os.waitstatus_to_exitcode(status))
        os.close(end)


def _run(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Become a process as it would be if it had been started, and call the function."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(request["env"])
        tempfile.tempdir = None
        os.chdir(request["cwd"])
        function = getattr(importlib.import_module(request["module"]), request["name"])
        code = function(*request["arguments"]) or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - a forked process must not continue as its parent would
        traceback.print_exc()
    finally:
        with suppress(OSError):  # nobody reads any more
            sys.stdout.flush()
        os._exit(code)


def _prepare(name: str) -> None:
    """Import a module and warm it up; what is there is neither looked at nor copied in each process."""
    module = importlib.import_module(name)
    if hasattr(module, "warm_up"):
        module.warm_up()
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(LIMIT_SECONDS)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as to_tests:
        sys.exit(serve(to_tests))
