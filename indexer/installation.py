"""Commands that install a missing package or extra with this citebot's installer: uv, uvx, pipx or pip.

The name `citebot` is never looked up on a package index, where it may belong to somebody else.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_PINS = "constraints.txt"
_CACHES = ("archive-v", "environments-v", "builds-v")  # folders of uv in which environments last for one run


def describe_error(error: Exception) -> str:
    """Return the text of an error, with the command to install a missing package, if that is the cause."""
    packages = getattr(error, "package", "")
    return f"{error} {describe_installation(packages)}" if packages else str(error)


def describe_installation(packages: str, prefix: Path | None = None) -> str:
    """Say how to install packages into the environment at a prefix: this one's."""
    prefix = prefix if prefix is not None else Path(sys.prefix)
    if _lasts_for_one_run(prefix):
        options = " ".join(f"--with {package}" for package in packages.split())
        return f"Start citebot with it: uvx {options} ..."
    if (prefix / "pipx_metadata.json").is_file():
        return f"Install it: pipx inject {shlex.quote(prefix.name)} {packages}"
    return f"Install it: {_choose_pip(prefix)} {packages}"


def describe_extra(extra: str, installed: Distribution | None = None, prefix: Path | None = None) -> str:
    """Say how to install an extra of citebot into the environment at a prefix, from citebot's checkout.

    Without a checkout, as in a container, name the packages of the extra.
    """
    from importlib.metadata import Distribution  # only an error needs it

    prefix = prefix if prefix is not None else Path(sys.prefix)
    if installed is None:  # of a checkout that is the current folder, what a build left there is found as well
        found = list(Distribution.discover(name="citebot"))
        installed = next((one for one in found if one.read_text("direct_url.json")), found[0] if found else None)
    checkout, options = _find_checkout(installed)
    if checkout is not None:
        return _describe_checkout(extra, checkout, options, prefix)
    wanted = [each.partition(";") for each in (installed and installed.requires) or ()]
    packages = [name.strip() for name, _, marker in wanted if f'extra == "{extra}"' in marker.replace("'", '"')]
    told = describe_installation(shlex.join(packages), prefix)
    return f"{told} (in a container, add this to its image: docs/deploy.md)"


def _find_checkout(installed: Distribution | None) -> tuple[Path | None, str]:
    """Return citebot's source checkout, if it still exists, and the option of an editable install."""
    if installed is None:  # run from its sources
        return Path(__file__).parents[1], "--editable "
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    checkout = Path(unquote(urlsplit(origin.get("url", "")).path))
    if "dir_info" not in origin or not (checkout / _PINS).is_file():
        return None, ""
    return checkout, "--editable " * bool(origin["dir_info"].get("editable"))


def _describe_checkout(extra: str, checkout: Path, options: str, prefix: Path) -> str:
    is_here = checkout.samefile(".")
    target = shlex.quote(f"{'.' if is_here else checkout}[{extra}]")
    pins = shlex.quote(_PINS if is_here else str(checkout / _PINS))
    if _lasts_for_one_run(prefix):
        return f"Start citebot with it: uvx --from {target} --constraints {pins} citebot ..."
    if (prefix / "pipx_metadata.json").is_file():
        arguments = shlex.quote(f"-c {shlex.quote(str(checkout / _PINS))}")  # pipx runs pip in a folder of its own
        return f"Install it: pipx install --force {options}--pip-args={arguments} {target}"
    if (prefix / "uv-receipt.toml").is_file():
        return f"Install it: uv tool install --force -c {pins} {options}{target}"
    if is_here and prefix.is_relative_to(checkout):
        prefix = prefix.relative_to(checkout)
    return f"Install it: {_choose_pip(prefix)} -c {pins} {options}{target}"


def _lasts_for_one_run(prefix: Path) -> bool:
    return any(part.startswith(_CACHES) for part in prefix.parts) and "uv" in prefix.parts


def _choose_pip(prefix: Path) -> str:
    python = shlex.quote(str(prefix / "bin" / "python"))
    return f"uv pip install --python {python}" if _is_made_by_uv(prefix) else f"{python} -m pip install"


def _is_made_by_uv(prefix: Path) -> bool:
    """Whether uv made the environment, which then has no pip."""
    if (prefix / "uv-receipt.toml").is_file():
        return True
    try:
        settings = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:  # Python itself, and no environment
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in settings.splitlines())
