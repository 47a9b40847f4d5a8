"""Finds definitions with the universal-ctags program, in languages without a grammar."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from typing import Any

from indexer.subprocesses import start_program
from indexer.text.languages import find_language
from indexer.types import PlainReason, Symbol, SymbolKind

_PROGRAMS = ("ctags", "ctags-universal", "universal-ctags")
# Contents come through its input; the sandbox, where it was built with one, allows it nothing but that.
_MODES = ("--_interactive=sandbox", "--_interactive")
_OPTIONS = ("--options=NONE", "--quiet", "--fields=+neKSz", "--sort=no")
_START_SECONDS = 10.0
_WALL = 8  # seconds that are waited for each second of CPU time
_MEMORY = 1 << 29
_MAX_BYTES = 8_000_000  # of the tags of one file
_MAX_SYMBOLS = 20_000
_LONGEST = 300  # characters of a name or a signature
_READ_AT_ONCE = 1 << 16
_SEPARATORS = re.compile(r"[.:#]+")  # `shop::web` of Puppet, `shop#Add` of Vim, `TUser.Next` of Pascal
_KINDS: Mapping[str, SymbolKind] = {
    **dict.fromkeys("function procedure subprogram subroutine func task program paragraph".split(), "function"),
    **dict.fromkeys("method constructor".split(), "method"),
    **dict.fromkeys("class entity architecture definition".split(), "class"),
    **dict.fromkeys("interface protocol".split(), "interface"),
    **dict.fromkeys("struct union record group".split(), "struct"),
    **dict.fromkeys("enum".split(), "enum"),
    **dict.fromkeys("namespace module package node".split(), "module"),
    **dict.fromkeys("type typedef alias subtype".split(), "type"),
    **dict.fromkeys("macro template define command".split(), "macro"),
    **dict.fromkeys("constant const variable custom label unknown data".split(), "constant"),
}  # fmt: skip


class CtagsEnded(Exception):
    """The program ended during a file; `reason` says why to read that as plain text."""

    def __init__(self, reason: PlainReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Ctags:
    """A running, confined universal-ctags that reads one file after the other."""

    def __init__(self, process: subprocess.Popen[bytes], version: str) -> None:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("the program has pipes")
        self.version = version
        self._process = process
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        self._read = bytearray()
        self._seconds = 0.0

    @classmethod
    def start(cls) -> Ctags | None:
        """Start the program; None if it is not installed, is another ctags, or cannot be confined here."""
        if not hasattr(resource, "prlimit"):
            return None
        for program in _PROGRAMS:
            for mode in _MODES:
                try:
                    process = start_program([program, *_OPTIONS, mode])
                except OSError:
                    break
                started = cls(process, "")
                with suppress(CtagsEnded, ValueError, OSError):
                    started._confine()
                    greeting = started._read_object(time.monotonic() + _START_SECONDS)
                    if greeting.get("name") == "Universal Ctags":
                        started.version = str(greeting.get("version", ""))[:40]
                        return started
                started.close()
        return None

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def find_symbols(self, language: str, text: str, *, seconds: float) -> tuple[Symbol, ...]:
        """Return the definitions of a file; raises `CtagsEnded` if the program ended."""
        known = find_language(language)
        if known is None or not known.ctags:
            return ()
        source = text.encode("utf-8", "replace")
        request = {"command": "generate-tags", "filename": known.ctags, "size": len(source)}
        self._renew_time(seconds)
        deadline = time.monotonic() + _WALL * seconds
        self._write(json.dumps(request).encode() + b"\n" + source, deadline)
        found = list(self._read_symbols(text.split("\n"), deadline))
        return tuple(sorted(found, key=lambda symbol: symbol.start_line))

    def _confine(self) -> None:
        limits = {
            resource.RLIMIT_AS: _MEMORY,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_NPROC: 0,
        }
        for kind, most in limits.items():
            resource.prlimit(self._process.pid, kind, (most, most))
        self._renew_time(_START_SECONDS)

    def _renew_time(self, seconds: float) -> None:
        """Extend its limit of CPU time, after which the kernel ends it."""
        self._seconds = seconds
        with suppress(OSError):  # it has ended, which the answer tells
            spent = time.clock_gettime((~self._process.pid << 3) | 2)  # the kernel's name for the clock of a process
            limit = int(spent + seconds) + 1
            resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))

    def _write(self, data: bytes, deadline: float) -> None:
        left = memoryview(data)
        while left:
            _, ready, _ = select.select([], [self._stdin], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._explain_end(is_late=True)
            try:
                left = left[os.write(self._stdin, left[: select.PIPE_BUF]) :]
            except OSError as error:
                raise self._explain_end() from error

    def _read_symbols(self, lines: Sequence[str], deadline: float) -> Iterator[Symbol]:
        size = count = 0
        while (tag := self._read_object(deadline)).get("_type") != "completed":
            size += tag["size"]
            if size > _MAX_BYTES:
                raise CtagsEnded("memory", f"its tags are more than {_MAX_BYTES:,} bytes")
            symbol = _make_symbol(tag, lines)
            if symbol is not None and count < _MAX_SYMBOLS:
                count += 1
                yield symbol

    def _read_object(self, deadline: float) -> dict[str, Any]:
        """Read the next line, an object, with its size."""
        while (end := self._read.find(b"\n")) < 0:
            ready, _, _ = select.select([self._stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._stdout, _READ_AT_ONCE) if ready else b""
            if not data or len(self._read) > _MAX_BYTES:
                raise self._explain_end(is_late=not ready)
            self._read += data
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CtagsEnded("crash", "its answer is malformed") from error
        return {**found, "size": len(line)} if isinstance(found, dict) else {"size": len(line)}

    def _explain_end(self, *, is_late: bool = False) -> CtagsEnded:
        self._process.kill()
        status = self._process.wait()
        if is_late or status == -signal.SIGXCPU:
            return CtagsEnded("time", f"ctags needed more than {self._seconds:g} seconds")
        return CtagsEnded("crash", f"ctags ended with {status}")


def _make_symbol(tag: Mapping[str, Any], lines: Sequence[str]) -> Symbol | None:
    name, line, kind = tag.get("name"), tag.get("line"), _KINDS.get(str(tag.get("kind", "")))
    if kind is None or not isinstance(name, str) or not isinstance(line, int) or not 1 <= line <= len(lines):
        return None
    end, scope = tag.get("end"), str(tag.get("scope", ""))
    *around, name = [part for part in _SEPARATORS.split((name.split() or [""])[0][:_LONGEST]) if part] or [""]
    parts = [*(part for part in _SEPARATORS.split(scope[:_LONGEST].strip()) if part), *around, name]
    return (
        Symbol(
            name=name,
            qualified_name=".".join(parts),
            kind=kind,
            signature=" ".join(lines[line - 1].split())[:_LONGEST],
            doc="",
            start_line=line,
            end_line=min(max(line, end), len(lines)) if isinstance(end, int) else line,
        )
        if name
        else None
    )


@cache
def find_ctags_version() -> str:
    """Return the version of this machine's universal-ctags; empty if there is none."""
    started = Ctags.start()
    if started is None:
        return ""
    with closing(started):
        return started.version
