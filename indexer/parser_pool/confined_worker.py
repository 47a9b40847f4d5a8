"""One process that answers requests about hostile text, one at a time, and that nobody waits for longer than agreed."""

from __future__ import annotations

import logging
import threading

from indexer.errors import ParserUnavailable
from indexer.parser_pool.process import Limits, ParserEnded, ParserProcess
from indexer.parser_pool.wire_format import HEADER

log = logging.getLogger(__name__)


class ConfinedWorker:
    """Runs the `main` of a module in a process of its own, from the first request on, and again where that has ended.

    The module answers with `serve_requests`. Threads may share a worker.
    """

    def __init__(self, module: str, *, seconds: float, memory: int) -> None:
        self._module = module
        self._limits = Limits(tree=seconds, cpu=seconds, wall=4 * seconds, memory=memory)
        self._process: ParserProcess | None = None
        self._lock = threading.Lock()

    def exchange(self, body: bytes) -> bytes | None:
        """Return the answer to a request; None if none came in time, or none can come."""
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
