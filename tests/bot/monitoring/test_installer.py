"""How a missing package is installed: as the environment that citebot runs in was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.main import run
from bot.monitoring.installer import describe_error, describe_installation
from tests.fakes.citebot import Citebot


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


def test_an_error_that_misses_no_package_is_told_as_it_is() -> None:
    assert describe_error(ValueError("what")) == "what"


def test_a_model_without_its_package_is_told_with_the_command(
    citebot: Citebot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_MODEL", "mistralai:large")

    asked, checked = citebot("ask", "who calls parse_date?"), citebot("doctor")

    for told in (asked.err, checked.out):
        assert "needs the package langchain-mistralai, which is not installed. Install it: " in told
        assert "install" in told.partition("Install it: ")[2]
    assert run(["status"]) == 0
