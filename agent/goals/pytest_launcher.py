"""Runs pytest in the sandbox and reports its progress, a JSON object per line.

`pytest_launcher.py DESCRIPTOR ARGUMENT...` runs as a separate program, with a Python that may be much older than
citebot's, and imports none of our modules. Its tests run in the same process and can forge its report, so the reader
compares it with the exit code, and with facts from outside the sandbox.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MISSING = 97  # the exit code if there is no pytest
MAX_CHARACTERS = 4000  # characters of a message or an output

try:
    import pytest
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    sys.exit(MISSING)


class Reporter:
    """A plugin of pytest that writes to a descriptor."""

    def __init__(self, descriptor: int, root: str) -> None:
        self._descriptor = descriptor
        self._root = root
        self._raised: dict[str, str] = {}

    def _write(self, kind: str, **fields: Any) -> None:
        data = json.dumps(dict(fields, kind=kind)).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        """Record the exceptions of a test before others report them."""
        if call.excinfo is not None:
            self._raised[item.nodeid] = type(call.excinfo.value).__name__

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Record which import failed."""
        raised = call.excinfo.value
        cause = raised.__cause__ or raised
        if isinstance(cause, ImportError) and cause.name:
            self._write("import", id=node.nodeid, name=cause.name, is_ours=self._is_ours(cause.name))

    def _is_ours(self, name: str) -> bool:
        """Whether the first part of a module's name is among the files of the repository."""
        top = name.partition(".")[0]
        places = [os.path.join(self._root, folder, top) for folder in ("", "src")]  # noqa: PTH118 - Pythons of any age
        return any(os.path.exists(place) or os.path.exists(place + ".py") for place in places)  # noqa: PTH110

    def pytest_collectreport(self, report: Any) -> None:
        """Report a file that could not be collected."""
        if report.failed:
            self._write("collect", id=report.nodeid, message=str(report.longrepr)[-MAX_CHARACTERS:])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Report a phase of a test: its call, or an error around it."""
        if report.when != "call" and report.outcome == "passed":
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        path, line = (crash.path, crash.lineno) if crash else (report.location[0], (report.location[1] or 0) + 1)
        message = crash.message if crash else str(report.longrepr or "")
        self._write(
            "test",
            id=report.nodeid,
            outcome="xfailed" if hasattr(report, "wasxfail") else report.outcome,
            path=os.path.relpath(path, self._root) if os.path.isabs(path) else path,  # noqa: PTH117
            line=line,
            message=message[:MAX_CHARACTERS],
            output="\n".join(f"{name}:\n{text}" for name, text in report.sections)[-MAX_CHARACTERS:],
            raised=self._raised.get(report.nodeid, ""),
        )

    def pytest_sessionfinish(self, exitstatus: Any) -> None:
        """Report the end of the session."""
        self._write("finish", code=int(exitstatus))


def main() -> int:
    """Run pytest as `python -m pytest` would, except a copy of pytest among the tested files."""
    root = os.getcwd()  # noqa: PTH109
    sys.path[0] = root
    if os.path.isdir(os.path.join(root, "src")):  # noqa: PTH112, PTH118
        sys.path.insert(1, os.path.join(root, "src"))  # noqa: PTH118
    code = pytest.main(sys.argv[2:], plugins=[Reporter(int(sys.argv[1]), root)])
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())
