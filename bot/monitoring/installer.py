"""How a package that is missing is installed where this citebot runs: with uv, uvx, pipx or pip."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_CACHES = ("archive-v", "environments-v", "builds-v")  # folders of uv in which environments last for one run


def describe_error(error: Exception) -> str:
    """Return what an error says, and how to install the package that it misses, if it misses one."""
    packages = getattr(error, "package", "")
    return f"{error} {describe_installation(packages)}" if packages else str(error)


def describe_installation(packages: str, prefix: Path | None = None) -> str:
    """Say how packages are installed into the environment at a prefix: this one's."""
    prefix = prefix if prefix is not None else Path(sys.prefix)
    if any(part.startswith(_CACHES) for part in prefix.parts) and "uv" in prefix.parts:
        options = " ".join(f"--with {package}" for package in packages.split())
        return f"Start citebot with it: uvx {options} ..."
    return f"Install it: {_choose_command(prefix)} {packages}"


def _choose_command(prefix: Path) -> str:
    python = shlex.quote(str(prefix / "bin" / "python"))
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(prefix.name)}"
    if _is_made_by_uv(prefix):
        return f"uv pip install --python {python}"
    return f"{python} -m pip install"


def _is_made_by_uv(prefix: Path) -> bool:
    """Whether uv made the environment, which then has no pip of its own."""
    if (prefix / "uv-receipt.toml").is_file():
        return True
    try:
        settings = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:  # Python itself, and no environment
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in settings.splitlines())
