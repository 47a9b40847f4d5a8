"""A missing package or extra is installed as the environment that citebot runs in was made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from urllib.parse import quote

import pytest

from indexer.installation import describe_error, describe_extra, describe_installation


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"pyvenv.cfg": "home = /usr/bin\n"}, "Install it: {prefix}/bin/python -m pip install p"),
        ({"pyvenv.cfg": "home = /usr/bin\nuv = 0.9.1\n"}, "Install it: uv pip install --python {prefix}/bin/python p"),
        ({"uv-receipt.toml": ""}, "Install it: uv pip install --python {prefix}/bin/python p"),
        ({"pipx_metadata.json": "{}", "pyvenv.cfg": ""}, "Install it: pipx inject citebot p"),
        ({}, "Install it: {prefix}/bin/python -m pip install p"),
    ],
    ids=["pip", "uv or make with uv", "uv tool", "pipx", "no environment"],
)
def test_the_installer_is_the_one_that_made_the_environment(files: dict[str, str], told: str, tmp_path: Path) -> None:
    prefix = tmp_path / "citebot"
    prefix.mkdir()
    for name, text in files.items():
        (prefix / name).write_text(text, encoding="utf-8")

    assert describe_installation("p", prefix) == told.format(prefix=prefix)


def test_under_uvx_the_package_goes_into_the_command_that_starts_citebot() -> None:
    prefix = Path("/home/ann/.cache/uv/archive-v0/Zx81")

    assert describe_installation("a b", prefix) == "Start citebot with it: uvx --with a --with b ..."


EDITABLE = {"url": "file://{checkout}", "dir_info": {"editable": True}}
COPIED = {"url": "file://{checkout}", "dir_info": {}}
WHEEL = {"url": "file:///src/wheels/citebot-0.1.0-py3-none-any.whl", "archive_info": {}}


@pytest.mark.parametrize(
    ("origin", "prefix", "marker", "command"),
    [
        (EDITABLE, ".venv", "pyvenv.cfg", ".venv/bin/python -m pip install -c constraints.txt --editable '.[mcp]'"),
        (COPIED, "/opt/bot", "", "/opt/bot/bin/python -m pip install -c constraints.txt '.[mcp]'"),
        (COPIED, "tool", "uv-receipt.toml", "uv tool install --force -c constraints.txt '.[mcp]'"),
        (
            EDITABLE, "tool", "pipx_metadata.json",
            "pipx install --force --editable --pip-args='-c {checkout}/constraints.txt' '.[mcp]'",
        ),
        (COPIED, "/uv/archive-v0/Zx", "", "uvx --from '.[mcp]' --constraints constraints.txt citebot ..."),
        (WHEEL, "/opt/bot", "", "/opt/bot/bin/python -m pip install 'mcp<3,>=2.3' (in a container, "),
    ],
    ids=["make", "pip", "uv tool", "pipx", "uvx", "container"],
)  # fmt: skip
def test_an_extra_is_installed_from_the_checkout_citebot_came_from(
    origin: Mapping[str, object],
    prefix: str,
    marker: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = make_installation(tmp_path, origin)
    monkeypatch.chdir(tmp_path)
    if marker:
        (tmp_path / prefix).mkdir()
        (tmp_path / prefix / marker).touch()

    told = describe_extra("mcp", installed, tmp_path / prefix).partition(": ")[2]

    assert told.startswith(command.format(checkout=tmp_path))


def test_elsewhere_than_in_the_checkout_the_command_has_whole_paths(tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"

    told = describe_extra("mcp", make_installation(checkout, EDITABLE), checkout / ".venv")

    python, *_, pins, option, target = shlex.split(told.removeprefix("Install it: "))
    assert (python, pins) == (f"{checkout}/.venv/bin/python", f"{checkout}/constraints.txt")
    assert (option, target) == ("--editable", f"{checkout}[mcp]")


def test_a_checkout_that_is_gone_is_not_named(tmp_path: Path) -> None:
    installed = make_installation(tmp_path, EDITABLE)
    (tmp_path / "constraints.txt").unlink()

    assert " -m pip install 'mcp<3,>=2.3' " in describe_extra("mcp", installed, tmp_path)


def make_installation(checkout: Path, origin: Mapping[str, object]) -> Distribution:
    """Make a checkout, and the metadata of a citebot that was installed as the origin says."""
    metadata = checkout / "citebot-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (checkout / "constraints.txt").touch()
    (metadata / "METADATA").write_text(
        "Name: citebot\nVersion: 0.1.0\nRequires-Dist: rich>=14\n"
        'Requires-Dist: mcp<3,>=2.3; extra == "mcp"\nRequires-Dist: obstore<1; extra == "cluster"\n',
        encoding="utf-8",
    )
    address = str(origin["url"]).replace("{checkout}", quote(str(checkout)))
    (metadata / "direct_url.json").write_text(json.dumps({**origin, "url": address}), encoding="utf-8")
    return PathDistribution(metadata)


def test_an_error_that_misses_no_package_is_told_as_it_is() -> None:
    assert describe_error(ValueError("what")) == "what"
