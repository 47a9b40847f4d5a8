"""A Python environment as an operator prepares it for goal runs: the system's Python, and the pytest of the tests."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import LIMIT_SECONDS

_SYSTEM = Path("/usr/bin/python3")
_PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
_OLDEST = (3, 10)


@contextmanager
def prepared_python() -> Iterator[Path]:
    """Make an environment that every user of the machine can read; skips if there is no Python to make it of."""
    version = _find_version()
    if version < _OLDEST:
        pytest.skip(f"{_SYSTEM} is not there, or older than {'.'.join(map(str, _OLDEST))}")
    folder = Path(tempfile.mkdtemp(prefix="citebot-python-", dir="/var/tmp"))  # the sandbox has a /tmp of its own
    try:
        packages = folder / "lib" / f"python{version[0]}.{version[1]}" / "site-packages"
        for name in _PACKAGES:
            found = importlib.util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            if found.submodule_search_locations is None:
                shutil.copy(found.origin, packages)
            else:
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(Path(found.origin).parent, packages / name, ignore=ignored)
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(_SYSTEM)
        (folder / "pyvenv.cfg").write_text(f"home = {_SYSTEM.parent}\ninclude-system-site-packages = false\n")
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        yield folder
    finally:
        shutil.rmtree(folder)


def _find_version() -> tuple[int, ...]:
    program = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [_SYSTEM, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
        )
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(map(int, done.stdout.split()))
