"""From the bytes of files to masked text and what is in it; many files are parsed in processes of their own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait
from typing import Protocol

from indexer.assembly import bags_of
from indexer.chunker import parse_file
from indexer.decoding import decode
from indexer.models import ParsedFile
from indexer.packing import pack
from indexer.postings import Bag
from indexer.rules import content_verdict
from indexer.secrets import redact
from indexer.tree import TreeEntry

log = logging.getLogger(__name__)

WORTH_PROCESSES = 500  # files; below this a process takes longer to start than to be of use
_MOST_PROCESSES = 4  # the rest of the pipeline cannot keep more of them busy
_BATCH = 48  # files handed over at a time
_AHEAD = 8  # batches a process may have waiting


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """The text of a file, secrets masked and packed, what the parser found in it, and the tokens of its chunks."""

    packed: bytes
    lines: int
    parsed: ParsedFile
    bags: tuple[Bag, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfit:
    """Why the contents of a file are not indexed."""

    reason: str


Source = tuple[TreeEntry, bytes]
Outcome = tuple[TreeEntry, Contents | Unfit]


Waiting = deque[tuple[Sequence[Source], Future[list[Outcome]]]]


class Parse(Protocol):
    """Decides on, decodes, masks and parses one file; `plainly` without its grammar."""

    def __call__(self, source: Source, *, plainly: bool = False) -> Outcome:
        """Parse a file."""


def parse_source(source: Source, *, plainly: bool = False) -> Outcome:
    """Decide on, decode, mask and parse one file; `plainly` as a text of no language in particular."""
    entry, data = source
    reason = content_verdict(entry.path, data, entry.marks)
    text = decode(data) if reason is None else None
    if text is None:
        return entry, Unfit(reason=reason or "binary")
    text = redact(text)
    parsed = parse_file(entry.path, text, plainly=plainly)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return entry, Contents(packed=pack(text), lines=lines, parsed=parsed, bags=bags_of(entry.path, parsed))


def parse_sources(
    sources: Iterable[Source], *, count: int, processes: int | None = None, parse: Parse = parse_source
) -> Iterator[Outcome]:
    """Parse `count` files in order, beside this process where they are many and there is a core to spare."""
    spare = min((os.cpu_count() or 1) - 1, _MOST_PROCESSES) if processes is None else processes
    if count < WORTH_PROCESSES or spare < 1:
        return map(parse, sources)
    return _in_processes(sources, spare, parse)


def _in_processes(sources: Iterable[Source], processes: int, parse: Parse) -> Iterator[Outcome]:
    batches = _batches(iter(sources))
    while lost := (yield from _until_one_ends(batches, processes, parse)):
        log.warning("A parsing process ended by itself; the files that it had are parsed one by one.")
        yield from _one_by_one(lost, parse)


def _until_one_ends(
    batches: Iterator[Sequence[Source]], processes: int, parse: Parse
) -> Generator[Outcome, None, list[Source]]:
    """Parse until nothing is left, or a process ends by itself; return what was handed over and did not come back."""
    waiting: Waiting = deque()
    with _pool(processes) as pool:
        try:
            for batch in batches:
                waiting.append((batch, pool.submit(_parse_batch, parse, batch)))
                if len(waiting) > processes * _AHEAD:
                    yield from _first(waiting)
            while waiting:
                yield from _first(waiting)
        except BrokenProcessPool:
            return [source for batch, _ in waiting for source in batch]
    return []


def _one_by_one(sources: Iterable[Source], parse: Parse) -> Iterator[Outcome]:
    """Parse beside this process, which a file must not end; the one that ends another is not parsed, but kept."""
    left = deque(sources)
    while left:
        with _pool(1) as pool:
            try:
                while left:
                    yield pool.submit(parse, left[0]).result()
                    left.popleft()
            except BrokenProcessPool:
                source = left.popleft()
                log.warning("The parser crashed over %s; it is searched as plain text.", source[0].path)
                yield parse(source, plainly=True)


def _pool(processes: int) -> ProcessPoolExecutor:
    # A forked process would inherit the locks of threads that it does not have.
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)


def _first(waiting: Waiting) -> list[Outcome]:
    """The outcome of the oldest batch, which waits on until there is one."""
    outcomes = waiting[0][1].result()
    waiting.popleft()
    return outcomes


def _batches(sources: Iterator[Source]) -> Iterator[Sequence[Source]]:
    while batch := tuple(islice(sources, _BATCH)):
        yield batch


def _parse_batch(parse: Parse, batch: Sequence[Source]) -> list[Outcome]:
    return [parse(source) for source in batch]


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it even when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
