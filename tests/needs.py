"""Programs and rights that some tests need of the machine: `@pytest.mark.needs("postgres")`.

Where one is missing, all tests that need it are one skip, which says what is missing, for how many, and what to do.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

SERVER = os.environ.get("CITEBOT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432")
_OLDEST_PYTHON = (3, 11)


def name_params(names: Iterable[str]) -> list[ParameterSet]:
    """Return parameters of tests or fixtures; those that are called like something they need are marked so."""
    return [pytest.param(name, id=name, marks=mark_needs(name)) for name in names]


def mark_needs(*names: str) -> list[pytest.MarkDecorator]:
    """Return marks for those of the names that are something that tests need."""
    return [pytest.mark.needs(name) for name in names if name in _CHECKS]


def find_problem(need: str) -> str:
    """Return a sentence about something that is missing here and what to do about it; empty if it is there."""
    return _CHECKS[need]()


def _check_postgres() -> str:
    import psycopg

    try:
        psycopg.connect(f"{SERVER}/postgres", connect_timeout=3).close()
    except psycopg.OperationalError as error:
        return (
            f"no Postgres answers at {SERVER} ({' '.join(str(error).split())}): start one, or set CITEBOT_TEST_POSTGRES"
        )
    return ""


def _check_sandbox(mechanism: str) -> str:
    from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment, try_sandbox
    from indexer.subprocesses import start_confined_async

    kind = {"bubblewrap": Bubblewrap, "landlock": Landlock}[mechanism]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        trial = asyncio.run(try_sandbox(kind(start_confined_async, PythonEnvironment()), Path(folder)))
    return f"{mechanism} does not work: {trial.problem} {trial.advice}".strip() if trial.problem else ""


def _check_system_python() -> str:
    program = f"import sys; sys.exit(sys.version_info < {_OLDEST_PYTHON})"
    if (
        Path("/usr/bin/python3").is_file()
        and not subprocess.run(["/usr/bin/python3", "-c", program], check=False).returncode
    ):
        return ""
    return "there is no /usr/bin/python3 of at least 3.11: apt-get install python3"


def _check_mounts() -> str:
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if shutil.which("unshare") and not subprocess.run(command, capture_output=True, check=False).returncode:
        return ""
    return "no file system can be mounted: allow user name spaces"


def _check_program(name: str, package: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"there is no {name}: apt-get install {package}"


_CHECKS: Mapping[str, Callable[[], str]] = {
    "postgres": _check_postgres,
    "bubblewrap": lambda: _check_sandbox("bubblewrap"),
    "landlock": lambda: _check_sandbox("landlock"),
    "ctags": _check_program("ctags", "universal-ctags"),
    "chromium": _check_program("chromium", "chromium"),
    "systemd": _check_program("systemd-analyze", "systemd"),
    "mounts": _check_mounts,
    "system python": _check_system_python,
    "root": lambda: "only root can give files to other users: run the tests as root" if os.geteuid() else "",
    "unprivileged": lambda: "" if os.geteuid() else "root may read and write everything: run the tests as another user",
}
