"""From the bytes of files to masked text and what is in it; many files are parsed in processes of their own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import wait

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


def parse_source(source: Source) -> Outcome:
    """Decide on, decode, mask and parse one file."""
    entry, data = source
    reason = content_verdict(entry.path, data, entry.marks)
    text = decode(data) if reason is None else None
    if text is None:
        return entry, Unfit(reason=reason or "binary")
    text = redact(text)
    parsed = parse_file(entry.path, text)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return entry, Contents(packed=pack(text), lines=lines, parsed=parsed, bags=bags_of(entry.path, parsed))


def parse_sources(sources: Iterable[Source], *, count: int, processes: int | None = None) -> Iterator[Outcome]:
    """Parse `count` files in order, beside this process where they are many and there is a core to spare."""
    spare = min((os.cpu_count() or 1) - 1, _MOST_PROCESSES) if processes is None else processes
    if count < WORTH_PROCESSES or spare < 1:
        return map(parse_source, sources)
    return _in_processes(sources, spare)


def _in_processes(sources: Iterable[Source], processes: int) -> Iterator[Outcome]:
    batches = _batches(iter(sources))
    waiting: deque[tuple[Sequence[Source], Future[list[Outcome]]]] = deque()
    # A forked process would inherit the locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin) as pool:
        try:
            for batch in batches:
                waiting.append((batch, pool.submit(_parse_batch, batch)))
                if len(waiting) > processes * _AHEAD:
                    yield from _first(waiting)
            while waiting:
                yield from _first(waiting)
        except BrokenProcessPool:
            log.warning("A parsing process ended by itself; going on in this one.")
            left = chain.from_iterable(batch for batch, _ in waiting)
            yield from map(parse_source, chain(left, chain.from_iterable(batches)))


def _first(waiting: deque[tuple[Sequence[Source], Future[list[Outcome]]]]) -> list[Outcome]:
    """The outcome of the oldest batch, which waits on until there is one."""
    outcomes = waiting[0][1].result()
    waiting.popleft()
    return outcomes


def _batches(sources: Iterator[Source]) -> Iterator[Sequence[Source]]:
    while batch := tuple(islice(sources, _BATCH)):
        yield batch


def _parse_batch(batch: Sequence[Source]) -> list[Outcome]:
    return [parse_source(source) for source in batch]


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end with it even when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
