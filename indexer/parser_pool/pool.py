"""One thread with one parser: gives it files, passes on its replies, and restarts it."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue

from indexer.errors import ParserUnavailable
from indexer.parser_pool.process import Limits, ParserEnded, ParserProcess
from indexer.parser_pool.wire_format import (
    Failed,
    Malformed,
    ParsedContents,
    Reply,
    Request,
    SkippedFile,
    pack_request,
    unpack_reply,
)
from indexer.types import PlainReason

log = logging.getLogger(__name__)

AT_HAND = 8  # files that a parser is given before it has answered for the first of them
UNREADABLE = "unreadable"  # why a file is left out that not even as plain text can be read
_CLOSED = "The parsers were closed before everything was parsed. Try again."


@dataclass(slots=True)
class Job:
    """A file to be parsed, and the waiter for its result. `ends` counts the parsers that ended during it."""

    request: Request
    future: Future[ParsedContents | SkippedFile] = field(default_factory=Future)
    ends: int = 0


class Lane(threading.Thread):
    """Works on jobs until a None; before ending after `idle` seconds without jobs, it asks `retire`."""

    def __init__(
        self,
        jobs: SimpleQueue[Job | None],
        start_parser: Callable[[], ParserProcess],
        *,
        idle: float,
        retire: Callable[[Lane], bool],
    ) -> None:
        super().__init__(name="parser", daemon=True)
        self._jobs = jobs
        self._start_parser = start_parser
        self._idle = idle
        self._retire = retire
        self._parser: ParserProcess | None = None
        self._given: deque[Job] = deque()
        self._sent = 0  # of those given, to the parser that runs now
        self._is_stopped = False

    def stop(self) -> None:
        """Stop it immediately from another thread: its jobs fail."""
        self._is_stopped = True
        if (parser := self._parser) is not None:
            parser.kill()

    def run(self) -> None:
        """Work on jobs."""
        try:
            while self._take_jobs():
                try:
                    self._await_reply()
                except ParserUnavailable as error:
                    self._fail_jobs(error)
                except Exception:  # anyone who waits for this thread would wait for ever if it ended
                    log.exception("Parsing failed.")
                    self._fail_jobs(ParserUnavailable("Parsing failed; the log tells why. Try again."))
        finally:
            self._release_parser()

    def _take_jobs(self) -> bool:
        """Take some jobs, waiting for the first; False if no more will come."""
        while len(self._given) < AT_HAND:
            try:
                job = self._jobs.get_nowait() if self._given else self._jobs.get(timeout=self._idle)
            except Empty:
                if self._given or not self._retire(self):
                    break
                return False
            if job is None:
                self._fail_jobs(ParserUnavailable(_CLOSED))
                return False
            if job.future.set_running_or_notify_cancel():
                self._given.append(job)
        return True

    def _await_reply(self) -> None:
        """Wait for the next answer, or for the end of the parser."""
        if not self._given:
            return
        try:
            reply = self._exchange()
        except ParserEnded as ended:
            self._release_parser()
            if self._is_stopped:
                raise ParserUnavailable(_CLOSED) from ended
            self._blame_file(ended)
        else:
            job = self._given.popleft()
            self._sent -= 1
            if isinstance(reply, Failed):
                log.error("Parsing %s failed.\n%s", job.request.path, reply.traceback)
                self._keep_plain(job, "crash")
            else:
                job.future.set_result(reply)

    def _exchange(self) -> Reply:
        if self._parser is None:
            self._parser = self._start_parser()
        if self._is_stopped:  # while it was started
            raise ParserUnavailable(_CLOSED)
        for job in list(self._given)[self._sent :]:
            self._parser.send(pack_request(job.request))
            self._sent += 1
        try:
            return unpack_reply(self._parser.receive())
        except Malformed as error:
            raise ParserEnded("crash", f"its answer is malformed: {error}") from error

    def _blame_file(self, ended: ParserEnded) -> None:
        """Parse a file as plain text after its parser ended.

        If the parser did not run out of time, an earlier file or an outside cause may have ended it: a fresh parser
        tries the file once more.
        """
        job = self._given[0]
        job.ends += 1
        log.info("A parser ended over %s: %s", job.request.path, ended)
        if job.ends > 1 or ended.reason == "time":
            self._given.popleft()
            self._keep_plain(job, ended.reason)

    def _keep_plain(self, job: Job, reason: PlainReason) -> None:
        if job.request.plain is not None:
            job.future.set_result(SkippedFile(reason=UNREADABLE))
            return
        job.request = replace(job.request, plain=reason)
        self._given.append(job)

    def _fail_jobs(self, error: ParserUnavailable) -> None:
        self._release_parser()
        while self._given:
            self._given.popleft().future.set_exception(error)

    def _release_parser(self) -> None:
        self._sent = 0
        if self._parser is not None:
            self._parser.close()
            self._parser = None


WORKER = "indexer.parser_pool.worker"
_MAX_PARSERS = 4  # the rest of the pipeline cannot keep more of them busy


class ParserPool:
    """Parses files in other processes; threads may share it. `module` is the parser's program."""

    def __init__(self, *, processes: int | None = None, limits: Limits | None = None, module: str = WORKER) -> None:
        self._most = processes or max(1, min((os.cpu_count() or 1) - 1, _MAX_PARSERS))
        self._limits = limits or Limits()
        self._start_parser = partial(ParserProcess, module, self._limits)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lanes: list[Lane] = []
        self._unfinished = 0
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def ahead(self) -> int:
        """The number of files to submit before waiting for the first, so that no parser runs dry."""
        return 2 * self._most * AT_HAND

    def submit(self, request: Request) -> Future[ParsedContents | SkippedFile]:
        """Submit a file for parsing; `ParserUnavailable`, here or from the future, if no file can be parsed."""
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
        """Close all parsers and cancel the remaining jobs."""
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
        """Whether a lane may end: not if a job has arrived that no other lane might take."""
        with self._lock:
            if not self._jobs.empty():
                return False
            self._lanes.remove(lane)
            return True
