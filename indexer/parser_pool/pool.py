"""A few parsers that are kept: started when there is something to parse, ended when there has long been nothing."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue

from indexer.errors import ParserUnavailable
from indexer.parser_pool.parse_limits import Limits
from indexer.parser_pool.parser_thread import AT_HAND, Job, Lane
from indexer.parser_pool.process import ParserProcess
from indexer.parser_pool.wire_format import ParsedContents, Request, SkippedFile

WORKER = "indexer.parser_pool.worker"
_MOST_PARSERS = 4  # the rest of the pipeline cannot keep more of them busy


class ParserPool:
    """Parses files beside this process; threads may share it. `module` is what a parser runs."""

    def __init__(self, *, processes: int | None = None, limits: Limits | None = None, module: str = WORKER) -> None:
        self._most = processes or max(1, min((os.cpu_count() or 1) - 1, _MOST_PARSERS))
        self._limits = limits or Limits()
        self._start_parser = partial(ParserProcess, module, self._limits)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lanes: list[Lane] = []
        self._unfinished = 0
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def ahead(self) -> int:
        """The number of files to hand over before waiting for the first, so that no parser runs dry."""
        return 2 * self._most * AT_HAND

    def submit(self, request: Request) -> Future[ParsedContents | SkippedFile]:
        """Have a file parsed; `ParserUnavailable`, here or from the future, where nothing can be."""
        job = Job(request)
        with self._lock:
            if self._is_closed:
                raise ParserUnavailable("The parsers have been closed.")
            self._unfinished += 1
            self._jobs.put(job)
            if len(self._lanes) < self._most and self._unfinished > AT_HAND * len(self._lanes):
                lane = Lane(self._jobs, self._start_parser, idle=self._limits.idle, retire=self._retire)
                self._lanes.append(lane)
                lane.start()
        job.future.add_done_callback(self._finish)
        return job.future

    def close(self) -> None:
        """End all parsers and cancel the jobs that are left."""
        with self._lock:
            self._is_closed = True
            lanes = list(self._lanes)
        for lane in lanes:
            self._jobs.put(None)
            lane.stop()
        for lane in lanes:
            lane.join()
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is not None:
                job.future.cancel()

    def _finish(self, _: Future[ParsedContents | SkippedFile]) -> None:
        with self._lock:
            self._unfinished -= 1

    def _retire(self, lane: Lane) -> bool:
        """Whether a lane may end: not if a job has come in the meantime that no other lane might take."""
        with self._lock:
            if not self._jobs.empty():
                return False
            self._lanes.remove(lane)
            return True
