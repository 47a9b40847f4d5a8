"""Fails a run that leaves processes behind: everything that descends from it has ended when it ends."""

from __future__ import annotations

import ctypes
import sys

import psutil
import pytest

_PR_SET_CHILD_SUBREAPER = 36
_SECONDS = 10.0  # for those that are ending already


def pytest_configure(config: pytest.Config) -> None:
    """Become the parent of every descendant whose own parent ends, so that none leaves the family."""
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return
    _, left = psutil.wait_procs(_list_descendants(), timeout=_SECONDS)
    for process in left:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"A process has outlived the tests: {process}", red=True)
        process.kill()
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _list_descendants() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [process for process in found if process.as_dict(["status"])["status"] != psutil.STATUS_ZOMBIE]
