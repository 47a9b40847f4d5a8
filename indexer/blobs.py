"""Reads the contents of git's blobs, many at a time, from one process that goes on running."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexer.complaints import format_path, make_missing_object_error
from indexer.errors import RepositoryError
from indexer.tree import GitRunner


class BlobReader:
    """A `git cat-file --batch` that is kept running, and started when it is first needed."""

    def __init__(self, git: GitRunner, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._process: Any = None
        self._lock = threading.Lock()

    def read(self, shas: Sequence[str]) -> list[bytes]:
        """Read a window of blobs; the requests must fit a pipe, as no reply is taken before all are sent."""
        with self._lock:
            process = self._process or self._git.start("cat-file", "--batch")
            self._process = process
            try:
                process.stdin.write("".join(f"{sha}\n" for sha in shas).encode())
                process.stdin.flush()
                return [self._reply(process, sha) for sha in shas]
            except OSError as error:
                self._stop()
                raise RepositoryError(f"git stopped while reading {format_path(self._git_dir)}. Try again.") from error
            except BaseException:
                # Replies may be left in the pipe, and would answer the next request.
                self._stop()
                raise

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _reply(self, process: Any, sha: str) -> bytes:
        header: list[bytes] = process.stdout.readline().split()
        if len(header) != 3:
            raise make_missing_object_error(sha, self._git_dir)
        size = int(header[2])
        data: bytes = process.stdout.read(size + 1)
        if len(data) != size + 1:
            raise make_missing_object_error(sha, self._git_dir)
        return data[:-1]

    def _stop(self) -> None:
        if self._process is not None:
            self._process._terminate()  # noqa: SLF001 - closes the pipes, ends the process and waits; there is no public name
            self._process = None
