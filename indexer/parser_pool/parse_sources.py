"""Parses files for a refresh: many at a time, in order, and never twice after a parser failed on one."""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import astuple
from operator import itemgetter

from cachetools import LRUCache

from indexer.git.objects import TreeEntry
from indexer.parser_pool.plain_files import PLAIN_REASONS, PlainFiles, Reasons
from indexer.parser_pool.pool import UNREADABLE, ParserPool
from indexer.parser_pool.wire_format import (
    HEADER,
    UNKNOWN_ENCODING,
    Failed,
    Malformed,
    ParsedContents,
    Request,
    SkippedFile,
    pack_reply,
    unpack_reply,
)
from indexer.parsing.telling_paths import reduce_path
from indexer.store.fingerprint import FORMAT
from indexer.store.kept_parses import KeptParses
from indexer.text.decoding import is_utf8
from indexer.types import PlainReason

log = logging.getLogger(__name__)

FileSource = tuple[TreeEntry, bytes]
Outcome = Future[ParsedContents | SkippedFile]
ParseOutcome = tuple[TreeEntry, ParsedContents | SkippedFile]

_RECENT = 16  # results available for equal contents, fewer where these are large
_MAX_BYTES = 4_000_000  # of files whose results are available, and of those that are being parsed
_AS_TEXT = f"text {FORMAT}"  # stands for a grammar where a file cannot even be read as plain text


class Parsers:
    """The parsers of an index, shared or its own, and the files known to overload them."""

    def __init__(self, plain_files: PlainFiles, shared: ParserPool | None = None) -> None:
        self._plain_files = plain_files
        self._is_own = shared is None
        self._pool = shared or ParserPool()

    def close(self) -> None:
        """End the parsers, unless others use them."""
        if self._is_own:
            self._pool.close()

    def map_plain_reasons(self) -> Mapping[str, PlainReason]:
        """Return the reasons for reading contents as plain text, by blob id."""
        known = self._plain_files.load()
        return {blob: reason for blob, grammars in known.items() for reason in grammars.values()}

    def parse(
        self,
        sources: Iterable[FileSource],
        kept: KeptParses | None = None,
        *,
        find_usual: Callable[[], str] = str,
    ) -> Iterator[ParseOutcome]:
        """Parse files, in order; a file that is too much for its parser is read as plain text, or left out.

        Equal contents are parsed once if their paths make no difference, and `kept` ones not at all. `find_usual`
        guesses the encoding of a file that is not UTF-8 from the others.
        """
        known = self._plain_files.load()
        recent: LRUCache[str, tuple[Outcome, int]] = LRUCache(_MAX_BYTES, itemgetter(1))
        waiting: deque[tuple[TreeEntry, str, Outcome]] = deque()
        ahead = 0  # bytes
        try:
            for entry, data in sources:
                key = make_parse_key(entry)
                future = recent[key][0] if key in recent else _read_kept(kept, key)
                new = key if future is None else ""
                future = future or self._submit_file(entry, data, known.get(entry.blob, {}), find_usual)
                recent[key] = future, max(entry.size, _MAX_BYTES // _RECENT)
                waiting.append((entry, new, future))
                ahead += entry.size
                while len(waiting) > self._pool.ahead or (ahead > _MAX_BYTES and len(waiting) > 1):
                    ahead -= waiting[0][0].size
                    yield self._take_first(waiting, known, kept)
            while waiting:
                yield self._take_first(waiting, known, kept)
        finally:
            for _, _, future in waiting:
                future.cancel()

    def _submit_file(self, entry: TreeEntry, data: bytes, known: Reasons, find_usual: Callable[[], str]) -> Outcome:
        if _AS_TEXT not in known:
            usual = "" if is_utf8(data) else find_usual()
            return self._pool.submit(Request(path=entry.path, data=data, marks=entry.marks, known=known, usual=usual))
        left_out: Outcome = Future()
        left_out.set_result(SkippedFile(reason=UNREADABLE))
        return left_out

    def _take_first(
        self,
        waiting: deque[tuple[TreeEntry, str, Outcome]],
        known: Mapping[str, Reasons],
        kept: KeptParses | None,
    ) -> ParseOutcome:
        entry, key, future = waiting.popleft()
        contents = future.result()
        if not key:  # not parsed for this file
            return entry, contents
        self._note_outcome(entry, contents, known.get(entry.blob, {}))
        if kept is not None and contents != SkippedFile(reason=UNREADABLE):
            kept.keep(key, pack_reply(contents)[HEADER.size :])
        return entry, contents

    def _note_outcome(self, entry: TreeEntry, contents: ParsedContents | SkippedFile, known: Reasons) -> None:
        """Record newly discovered problems of a file, or their absence."""
        if isinstance(contents, SkippedFile):
            if contents.reason == UNREADABLE and _AS_TEXT not in known:
                log.warning("%s is left out: it cannot be read even as plain text.", entry.path)
                self._plain_files.note(entry.blob, _AS_TEXT, "crash")
            return
        reason = contents.parsed.plain
        if reason != "encoding" and UNKNOWN_ENCODING in known:
            self._plain_files.forget(entry.blob, UNKNOWN_ENCODING)
        if reason is not None and contents.grammar not in known:
            log.warning("%s is not read as it should be: %s.", entry.path, PLAIN_REASONS[reason])
            self._plain_files.note(entry.blob, contents.grammar, reason)
        elif reason is None and contents.grammar:
            self._plain_files.forget(entry.blob, contents.grammar)


def make_parse_key(entry: TreeEntry) -> str:
    """Name all inputs of parsing."""
    given = repr((FORMAT, entry.blob, astuple(entry.marks), reduce_path(entry.path)))
    return hashlib.blake2b(given.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _read_kept(kept: KeptParses | None, key: str) -> Outcome | None:
    reply = kept.find(key) if kept is not None else None
    if reply is None:
        return None
    try:
        contents = unpack_reply(reply)
    except Malformed:
        return None
    if isinstance(contents, Failed):
        return None
    known: Outcome = Future()
    known.set_result(contents)
    return known
