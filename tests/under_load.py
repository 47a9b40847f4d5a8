"""Runs the tests beside eight busy loops: `python -m tests.under_load [ARGUMENT OF PYTEST ...]`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_LOOPS = 8


@contextmanager
def _keep_busy() -> Iterator[None]:
    """Run a busy loop beside what happens in the context."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            yield
        finally:
            loop.kill()


def main(arguments: list[str]) -> int:
    """Run the tests as `make test` does, and return the exit code of pytest."""
    with ExitStack() as stack:
        for _ in range(_LOOPS):
            stack.enter_context(_keep_busy())
        command = [sys.executable, "-m", "pytest", "--numprocesses=auto", "--dist=worksteal", *arguments]
        return subprocess.run(command, cwd=_ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
