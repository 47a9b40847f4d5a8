"""The parser's side: reads files from its standard input and writes what is in them, within limits that end it.

It ends with the process that started it, even where that is killed, and while it is at work on a file.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import BinaryIO, NoReturn

from indexer.parser_pool.file_source import parse_source
from indexer.parser_pool.parse_limits import OUT_OF_MEMORY
from indexer.parser_pool.wire_format import (
    HEADER,
    Failed,
    ParsedContents,
    Reply,
    SkippedFile,
    pack_reply,
    unpack_request,
)
from indexer.parsing.ctags import Ctags, CtagsEnded
from indexer.parsing.grammars import prepare_bundled

READY = b"\0\0\0\0"  # the first frame, which is empty

Parse = Callable[..., ParsedContents | SkippedFile]


def main(arguments: Sequence[str], *, parse: Parse | None = None) -> None:
    """Serve: the arguments are the descriptor that closes with the parent, and limits."""
    prepare_bundled()
    with ExitStack() as stack:
        ctags = stack.enter_context(closing(started)) if parse is None and (started := Ctags.start()) else None
        made = parse or partial(parse_source, ctags=ctags)
        _serve_frames(arguments, lambda body, seconds: _make_reply(body, seconds, made))


def serve_requests(arguments: Sequence[str], answer: Callable[[bytes], bytes]) -> None:
    """Answer each request of a `ConfinedWorker`, until there are no more or a limit ends this."""

    def make_frame(body: bytes, _: float) -> bytes:
        reply = answer(body)
        return HEADER.pack(len(reply)) + reply

    _serve_frames(arguments, make_frame)


def _serve_frames(arguments: Sequence[str], answer: Callable[[bytes, float], bytes]) -> None:
    lifeline, tree, cpu, memory = arguments
    _stop_with_parent(int(lifeline))
    # Keep standard output for replies: what anything prints goes to standard error
    own = os.dup(1)
    os.dup2(2, 1)
    replies = os.fdopen(own, "wb")
    for kind, most in (
        (resource.RLIMIT_AS, int(memory)),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        with suppress(ValueError, OSError):  # macOS knows some of them by name only
            resource.setrlimit(kind, (most, most))
    _send_frame(replies, READY)
    while header := sys.stdin.buffer.read(HEADER.size):
        (length,) = HEADER.unpack(header)
        # What is spent beyond this is answered by the kernel, whatever the parser is doing.
        signal.setitimer(signal.ITIMER_PROF, float(cpu))
        _send_frame(replies, answer(sys.stdin.buffer.read(length), float(tree)))


def _make_reply(body: bytes, seconds: float, parse: Parse) -> bytes:
    try:
        request = unpack_request(body)
        try:
            reply: Reply = parse(request, seconds=seconds)
        except MemoryError:
            raise
        except CtagsEnded as ended:
            _end_over(ended)
        except Exception:  # noqa: BLE001 - one file must not keep the others from being parsed; the other side logs it
            reply = Failed(traceback=traceback.format_exc())
        return pack_reply(reply)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # nothing else is sure to work any more


def _end_over(ended: CtagsEnded) -> NoReturn:
    """End, as a parser does over such a file: another ctags cannot be started from here, but by the next parser."""
    if ended.reason == "time":
        os.kill(os.getpid(), signal.SIGPROF)
    sys.stderr.write(str(ended))
    sys.stderr.flush()
    os._exit(OUT_OF_MEMORY if ended.reason == "memory" else 1)


def _send_frame(replies: BinaryIO, frame: bytes) -> None:
    replies.write(frame)
    replies.flush()


def _stop_with_parent(lifeline: int) -> None:
    """Have the kernel end this process when the other end of a pipe is closed, which nobody writes to."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    with suppress(BlockingIOError):
        os.read(lifeline, 1)
        os._exit(0)  # the parent is gone already
