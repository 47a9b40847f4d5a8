"""One parser as its parent sees it: files go in, results come out in the same order, or it ends."""

from __future__ import annotations

import logging
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ormsgpack

from indexer.errors import ParserUnavailable
from indexer.parser_pool.wire_format import HEADER, LONGEST
from indexer.subprocesses import start_program
from indexer.types import PlainReason

log = logging.getLogger(__name__)

OUT_OF_MEMORY = 3  # the exit code of a parser that may take no more


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits in seconds and bytes; a file that exceeds one is read as plain text.

    `tree` is the CPU time for a syntax tree, `cpu` the CPU time after which the parser is killed,
    `wall` the longest wait for a reply, and `idle` the time that a parser waits for its next file.
    """

    tree: float = 3.0
    cpu: float = 6.0
    wall: float = 60.0
    memory: int = 1 << 30
    idle: float = 60.0


_READ_AT_ONCE = 1 << 20
_TAIL = 2_000  # bytes of what it complained of last
# Isolated, Python reads no variable and no folder of the user's; it is given the folders of citebot and its libraries.
_PROGRAM = "import importlib, sys; sys.path += sys.argv[2:4]; importlib.import_module(sys.argv[1]).main(sys.argv[4:])"


class ParserEnded(Exception):
    """A parser ended while it had a file; `reason` says why to read the file as plain text."""

    def __init__(self, reason: PlainReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ParserProcess:
    """A parser, used by one thread except for `kill`; it ends with this process in any case."""

    def __init__(self, module: str, limits: Limits) -> None:
        self._limits = limits
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._selector = selectors.DefaultSelector()
        with _open_lifeline() as (theirs, self._ours):
            self._process = self._start_process(module, theirs)
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("a parser has pipes")
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        try:
            self.receive()
        except ParserEnded as ended:
            self.close()
            raise ParserUnavailable(f"No parser can be started ({ended}). Install citebot again.") from ended

    def send(self, frame: bytes) -> None:
        """Send a file for parsing after those sent before."""
        if not self._outgoing:
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._outgoing += frame

    def receive(self) -> bytes:
        """Wait for the next reply; `ParserEnded` if the parser is gone."""
        deadline = time.monotonic() + self._limits.wall
        while (body := self._take_body()) is None:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                self.kill()
                raise ParserEnded("time", f"no reply in {self._limits.wall:g} seconds")
            for key, _ in ready:
                if key.fd == self._stdin:
                    self._write()
                elif data := os.read(self._stdout, _READ_AT_ONCE):
                    self._incoming += data
                else:
                    raise self._explain_end()
        return body

    def kill(self) -> None:
        """Kill the parser; another thread waiting for a reply gets `ParserEnded`."""
        self._process.kill()

    def close(self) -> None:
        """End the parser and free its resources."""
        self.kill()
        self._process.wait()
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        os.close(self._ours)

    def _start_process(self, module: str, lifeline: int) -> subprocess.Popen[bytes]:
        limits = (str(lifeline), str(self._limits.tree), str(self._limits.cpu), str(self._limits.memory))
        folders = (str(Path(__file__).resolve().parents[2]), str(Path(ormsgpack.__file__).resolve().parents[1]))
        line = [sys.executable, "-I", "-c", _PROGRAM, module, *folders, *limits]
        try:
            return start_program(line, pass_fds=[lifeline])
        except OSError as error:
            raise ParserUnavailable(f"No parser can be started ({error}). Make room for one, and try again.") from error

    def _take_body(self) -> bytes | None:
        if len(self._incoming) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._incoming)
        if length > LONGEST:
            self.kill()
            raise ParserEnded("crash", f"a reply of {length:,} bytes was announced")
        end = HEADER.size + length
        if len(self._incoming) < end:
            return None
        body = bytes(self._incoming[HEADER.size : end])
        del self._incoming[:end]
        return body

    def _write(self) -> None:
        try:
            written = os.write(self._stdin, self._outgoing[:_READ_AT_ONCE])
        except BrokenPipeError:
            written = len(self._outgoing)  # reading tells how it ended
        del self._outgoing[:written]
        if not self._outgoing:
            self._selector.unregister(self._stdin)

    def _explain_end(self) -> ParserEnded:
        """Explain why the parser ended, by its exit status and last words."""
        self.kill()  # it may have closed its output and gone on
        status = self._process.wait()
        complaint = self._read_complaint()
        if status in {-signal.SIGPROF, -signal.SIGXCPU}:
            return ParserEnded("time", f"it used up {self._limits.cpu:g} seconds of CPU time")
        if status == OUT_OF_MEMORY or "failed to allocate" in complaint:
            return ParserEnded("memory", f"it needed more than {self._limits.memory:,} bytes of memory")
        how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        return ParserEnded("crash", f"{how}: {complaint}" if complaint else how)

    def _read_complaint(self) -> str:
        if self._process.stderr is None:
            return ""
        os.set_blocking(self._process.stderr.fileno(), False)
        complaint = self._process.stderr.read() or b""
        return complaint[-_TAIL:].decode("utf-8", "backslashreplace").strip()


@contextmanager
def _open_lifeline() -> Iterator[tuple[int, int]]:
    """Open a pipe whose reading end goes to a parser; the writing end is open as long as this process lives."""
    theirs, ours = os.pipe()
    try:
        yield theirs, ours
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)


class ConfinedWorker:
    """Runs the `main` of a module in a separate process from the first request on, and restarts it.

    The module answers with `serve_requests`. Threads may share a worker.
    """

    def __init__(self, module: str, *, seconds: float, memory: int) -> None:
        self._module = module
        self._limits = Limits(tree=seconds, cpu=seconds, wall=4 * seconds, memory=memory)
        self._process: ParserProcess | None = None
        self._lock = threading.Lock()

    def exchange(self, body: bytes) -> bytes | None:
        """Return the reply to a request; None if none came in time, or none can come."""
        with self._lock:
            try:
                if self._process is None:
                    self._process = ParserProcess(self._module, self._limits)
                self._process.send(HEADER.pack(len(body)) + body)
                return self._process.receive()
            except (ParserEnded, ParserUnavailable) as error:
                log.warning("%s gave no answer: %s", self._module, error)
                self._end()
                return None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
