"""Keeps the settings of anyone who runs the tests out of them, and lends a repository that is indexed already."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bot.cli.main import run
from tests.fakes.citebot import Citebot, calling
from tests.fakes.repositories import GitRepo
from tests.fakes.shop import SHOP


def without_settings(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for name in [
        name
        for name in os.environ
        if name.startswith(("CITEBOT_", "DATABASE_", "DISCORD_", "GOOGLE_", "OTEL_", "SLACK_"))
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CITEBOT_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.with_name("config")))


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_settings(monkeypatch, tmp_path / "home")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> GitRepo:
    """A team's repository of one file; nothing may be written in it."""
    made = GitRepo(tmp_path_factory.mktemp("team") / "shop")
    made.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    made.commit("Sell things")
    return made


@pytest.fixture(scope="session")
def _indexed_shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The shop as a repository, and a data folder with its index."""
    root, home = tmp_path_factory.mktemp("shop"), tmp_path_factory.mktemp("indexed") / "home"
    repo = GitRepo(root)
    for path, text in SHOP.items():
        repo.write(path, text)
    repo.commit()
    repo.git("branch", "release-2.1")
    with pytest.MonkeyPatch.context() as monkeypatch:
        without_settings(monkeypatch, home)
        assert run(["index", str(root)]) == 0
    return root, home


@pytest.fixture
def home(_indexed_shop: tuple[Path, Path], tmp_path: Path) -> Path:
    """A data folder of the test's own, with the index of the shop."""
    shutil.copytree(_indexed_shop[1], tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def shop(_indexed_shop: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shop's repository, which questions are about unless they say otherwise; nothing may be written in it."""
    monkeypatch.setenv("CITEBOT_REPO", str(_indexed_shop[0]))
    return _indexed_shop[0]


@pytest.fixture
def citebot(capsys: pytest.CaptureFixture[str], shop: Path) -> Citebot:
    """The command line, on the shop."""
    return calling(capsys)
