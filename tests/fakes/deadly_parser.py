"""A parser as any, except the files whose names say what is to become of it; `module` of a `ParserPool`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from indexer.parser_pool import worker
from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile
from indexer.parser_pool.worker import parse_source


def main(arguments: Sequence[str]) -> None:
    """Serve."""
    worker.main(arguments, parse=parse)


def parse(request: Request, *, seconds: float) -> ParsedContents | SkippedFile:
    """Do what the name of the file says, as long as it is read with its grammar, or whatever it is read as."""
    name, _, what = Path(request.path).stem.partition("-")
    if what and (name == "always" or request.plain is None):
        HAPPENINGS[what](request)
    return parse_source(request, seconds=seconds)


def _crash(_: Request) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _spin(_: Request) -> None:
    while True:
        sum(range(100_000))


def _sleep(_: Request) -> None:
    time.sleep(600)


def _eat(_: Request) -> None:
    bytearray(2**40)


def _fail(request: Request) -> None:
    raise LookupError(request.path)


def _shout(_: Request) -> None:
    os.write(1, b"\xff" * 10)  # standard output is not where replies go


def _die_once(request: Request) -> None:
    """Be killed from outside, while there is a file that the last line names."""
    mark = Path(request.data.decode().splitlines()[-1].removeprefix("# "))
    if mark.exists():
        mark.rename(mark.with_suffix(".done"))
        os.kill(os.getpid(), signal.SIGKILL)


HAPPENINGS = {
    "crash": _crash,
    "spin": _spin,
    "sleep": _sleep,
    "eat": _eat,
    "fail": _fail,
    "shout": _shout,
    "once": _die_once,
}
