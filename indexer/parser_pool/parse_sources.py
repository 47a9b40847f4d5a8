"""Files as a refresh has them parsed: many at a time, in order, and none a second time over which a parser failed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future

from indexer.git.objects import TreeEntry
from indexer.parser_pool.parser_thread import UNREADABLE
from indexer.parser_pool.plain_files import PLAIN_REASONS, PlainFiles, Reasons
from indexer.parser_pool.pool import ParserPool
from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile
from indexer.store.fingerprint import FORMAT
from indexer.types import PlainReason

log = logging.getLogger(__name__)

FileSource = tuple[TreeEntry, bytes]
ParseOutcome = tuple[TreeEntry, ParsedContents | SkippedFile]

_AS_TEXT = f"text {FORMAT}"  # stands for a grammar where a file cannot even be read as plain text


class Parsers:
    """The parsers of an index, shared or its own, and the files known to be too much for them."""

    def __init__(self, plain_files: PlainFiles, shared: ParserPool | None = None) -> None:
        self._plain_files = plain_files
        self._is_own = shared is None
        self._pool = shared or ParserPool()

    def close(self) -> None:
        """End the parsers, unless others use them."""
        if self._is_own:
            self._pool.close()

    def plain_reasons(self) -> Mapping[str, PlainReason]:
        """Return why contents are read as plain text, by their blob id."""
        known = self._plain_files.load()
        return {blob: reason for blob, grammars in known.items() for reason in grammars.values()}

    def parse(self, sources: Iterable[FileSource]) -> Iterator[ParseOutcome]:
        """Parse files, in their order; one that is too much for its parser is read as plain text, or left out."""
        known = self._plain_files.load()
        waiting: deque[tuple[TreeEntry, Future[ParsedContents | SkippedFile]]] = deque()
        try:
            for entry, data in sources:
                waiting.append((entry, self._submit_file(entry, data, known.get(entry.blob, {}))))
                if len(waiting) > self._pool.ahead:
                    yield self._take_first(waiting, known)
            while waiting:
                yield self._take_first(waiting, known)
        finally:
            for _, future in waiting:
                future.cancel()

    def _submit_file(self, entry: TreeEntry, data: bytes, known: Reasons) -> Future[ParsedContents | SkippedFile]:
        if _AS_TEXT not in known:
            return self._pool.submit(Request(path=entry.path, data=data, marks=entry.marks, known=known))
        left_out: Future[ParsedContents | SkippedFile] = Future()
        left_out.set_result(SkippedFile(reason=UNREADABLE))
        return left_out

    def _take_first(
        self, waiting: deque[tuple[TreeEntry, Future[ParsedContents | SkippedFile]]], known: Mapping[str, Reasons]
    ) -> ParseOutcome:
        entry, future = waiting.popleft()
        contents = future.result()
        self._note_outcome(entry, contents, known.get(entry.blob, {}))
        return entry, contents

    def _note_outcome(self, entry: TreeEntry, contents: ParsedContents | SkippedFile, known: Reasons) -> None:
        """Note what is new of a file that is too much, or no longer is."""
        if isinstance(contents, SkippedFile):
            if contents.reason == UNREADABLE and _AS_TEXT not in known:
                log.warning("%s is left out: it cannot be read even as plain text.", entry.path)
                self._plain_files.note(entry.blob, _AS_TEXT, "crash")
            return
        reason = contents.parsed.plain
        if reason is not None and contents.grammar not in known:
            log.warning("%s is searched as plain text: %s.", entry.path, PLAIN_REASONS[reason])
            self._plain_files.note(entry.blob, contents.grammar, reason)
        elif reason is None and contents.grammar:
            self._plain_files.forget(entry.blob, contents.grammar)
