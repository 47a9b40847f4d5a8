"""The parser's side: reads files from its standard input and writes their contents, within limits that end it.

It ends with its parent process, even after a kill and in the middle of a file.
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
from dataclasses import replace
from functools import partial
from typing import BinaryIO, NoReturn

from indexer.git.file_contents import UnfitContents, read_contents
from indexer.parser_pool.process import OUT_OF_MEMORY
from indexer.parser_pool.wire_format import (
    HEADER,
    UNKNOWN_ENCODING,
    Failed,
    ParsedContents,
    Reply,
    Request,
    SkippedFile,
    pack_reply,
    unpack_request,
)
from indexer.parsing.containers import is_container
from indexer.parsing.ctags import Ctags, CtagsEnded
from indexer.parsing.file_parser import parse_file
from indexer.parsing.grammars import GRAMMARS, describe_version, prepare_bundled
from indexer.parsing.telling_paths import reduce_path
from indexer.text.decoding import find_encoding, pack
from indexer.text.languages import detect_language, find_language
from indexer.text.tokens import build_bags


def parse_source(request: Request, *, seconds: float, ctags: Ctags | None = None) -> ParsedContents | SkippedFile:
    """Select, decode, mask and parse one file, as plain text if parsing is known to fail.

    Only the part of its path that `reduce_path` keeps may matter: equal contents are not parsed
    again.
    """
    path = reduce_path(request.path)
    try:
        text = read_contents(path, request.data, request.marks, usual=request.usual)
    except UnfitContents as error:
        return SkippedFile(reason=str(error))
    language = detect_language(path, text)
    grammar = _name_reader(language, ctags) if request.known else ""
    is_tagged = ctags is not None and _is_tagged(language)
    parsed = parse_file(
        path,
        text,
        plain=request.plain or request.known.get(grammar),
        seconds=seconds,
        find_symbols=partial(ctags.find_symbols, language, seconds=seconds) if ctags and is_tagged else None,
    )
    encoding = find_encoding(request.data, declared=request.marks.encoding, usual=request.usual)
    if parsed.plain is None and encoding is None:
        parsed, grammar = replace(parsed, plain="encoding"), UNKNOWN_ENCODING
    return ParsedContents(
        packed=pack(text),
        lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
        parsed=parsed,
        bags=build_bags(parsed),
        grammar=grammar or (_name_reader(parsed.language, ctags) if parsed.plain else ""),
    )


def _is_tagged(language: str) -> bool:
    known = find_language(language)
    return known is not None and bool(known.ctags) and language not in GRAMMARS


def _name_reader(language: str, ctags: Ctags | None) -> str:
    """Name the reader of a language: a grammar or a program with its version, or the reader of a container."""
    grammar = GRAMMARS.get(language)
    if ctags is not None and _is_tagged(language):
        return f"ctags {ctags.version}"
    return (
        f"container-{language} 1"
        if grammar is None and is_container(language)
        else describe_version(grammar)
        if grammar
        else ""
    )


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
    """Answer the requests of a `ConfinedWorker` until they end or a limit is reached."""

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
        # The kernel enforces the limit, whatever the parser is doing.
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
    """End like a parser on such a file: only the next parser can start another ctags."""
    if ended.reason == "time":
        os.kill(os.getpid(), signal.SIGPROF)
    sys.stderr.write(str(ended))
    sys.stderr.flush()
    os._exit(OUT_OF_MEMORY if ended.reason == "memory" else 1)


def _send_frame(replies: BinaryIO, frame: bytes) -> None:
    replies.write(frame)
    replies.flush()


def _stop_with_parent(lifeline: int) -> None:
    """Make the kernel end this process when the other end of a pipe is closed; nobody writes to it."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    with suppress(BlockingIOError):
        os.read(lifeline, 1)
        os._exit(0)  # the parent is gone already
