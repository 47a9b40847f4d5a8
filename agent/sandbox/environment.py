"""The environment of a sandboxed command: programs, the operator's Python environment, and a few variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.errors import SandboxUnavailable
from agent.sandbox.box_folders import find_user

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_HOME_LINE = re.compile(r"home\s*=\s*(\S.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonEnvironment:
    """Folders of the host that hold a Python with the packages of the team's code; `programs` has its `python`."""

    folders: tuple[Path, ...] = ()
    programs: Path | None = None

    @classmethod
    def find(cls, root: Path | None) -> PythonEnvironment:
        """Find what a virtual environment consists of: itself and the Python that it was made from.

        Raises `SandboxUnavailable` where it is none, or where it cannot be shown without showing much more.
        """
        if root is None:
            return cls()
        try:
            text = (root / "pyvenv.cfg").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SandboxUnavailable(
                f"{root}, which python below [sandbox] names, is no virtual environment: it has no pyvenv.cfg that can "
                f"be read. Make one with `python3 -m venv {root}`, and install what the tests need into it."
            ) from error
        homes = (match[1].strip() for line in text.splitlines() if (match := _HOME_LINE.fullmatch(line.strip())))
        bases = [Path(home).resolve().parent for home in homes]
        folders = (root.resolve(), *(base for base in bases if not base.is_relative_to("/usr")))
        for folder in folders:
            _check_folder(folder)
        return cls(folders=folders, programs=root.resolve() / "bin")


def _check_folder(folder: Path) -> None:
    if Path.home().is_relative_to(folder) or folder == Path("/") or folder.parent == Path("/"):
        raise SandboxUnavailable(
            f"The Python of [sandbox] lies in {folder}, and to show that to tests would show them much more. Make the "
            "environment in a folder of its own, from a Python that has one."
        )
    user = find_user()
    if user is not None and (shut := _find_shut(folder)):
        raise SandboxUnavailable(
            f"citebot is root, and hands tests over to user {user}, who cannot get to {folder}: {shut} is closed to "
            "others. Run citebot as an ordinary user, or make the environment elsewhere."
        )


def _find_shut(folder: Path) -> Path | None:
    """Return the first folder on the way to one that others may not pass."""
    return next((each for each in (*reversed(folder.parents), folder) if not each.stat().st_mode & 0o001), None)


def make_variables(
    python: PythonEnvironment, *, home: str, tmp: str, support: str, report: int, added: Mapping[str, str]
) -> dict[str, str]:
    """Make the variables of a command; none is inherited. The folders are named as the command sees them."""
    return {
        "PATH": os.pathsep.join([*([str(python.programs)] if python.programs else []), _SYSTEM_PATH]),
        "HOME": home,
        "TMPDIR": tmp,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SANDBOX_SUPPORT": support,
        "SANDBOX_REPORT": str(report),
        **added,
    }


def list_language_settings() -> list[str]:
    """List the folders without which languages of the system do not start: where Debian keeps the settings of Java."""
    return sorted(map(str, Path("/etc").glob("java*-openjdk")))
