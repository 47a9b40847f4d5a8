"""A real Chroma server on loopback, in a process of its own: `chroma run`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer.errors import VectorsUnavailable
from indexer.store.chroma_server import check_chroma_server
from tests.fakes.loopback.ports import find_free_port

PROGRAM = Path(sys.executable).with_name("chroma")
_START_SECONDS = 60.0


@contextmanager
def running_chroma(folder: Path, port: int | None = None) -> Iterator[str]:
    """Serve a folder, and give the address; skips where the installed package brings no server."""
    if not PROGRAM.is_file():
        pytest.skip(f"the installed chromadb brings no program {PROGRAM.name}")
    port = port or find_free_port()
    command = [str(PROGRAM), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_served(process, url)
        yield url
    finally:
        process.kill()
        process.wait(10)


def _wait_until_served(process: subprocess.Popen[bytes], url: str) -> None:
    began = time.monotonic()
    while True:
        try:
            check_chroma_server(url)
        except VectorsUnavailable:
            assert process.poll() is None, "the Chroma server has ended"
            assert time.monotonic() - began < _START_SECONDS, "the Chroma server does not begin to serve"
            time.sleep(0.05)  # a program that listens tells nobody
        else:
            return
