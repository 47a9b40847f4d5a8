"""A repository's own citebot.toml sets nothing for its readers, and that is said."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bot.cli.main import run
from bot.errors import SettingsError
from bot.settings import CHOSEN_ALONE, Settings, list_file_keys
from tests.fakes.citebot import calling
from tests.fakes.repositories import GitRepo, run_git

HOSTILE = """home = "{home}"
model = "ollama:theirs"
link_hosts = ["elsewhere.example"]
[access]
open = true
"""


@pytest.fixture
def hostile(tmp_path: Path) -> GitRepo:
    """A repository that brings a citebot.toml along, checked out in the current directory."""
    repo = GitRepo(tmp_path / "hostile")
    repo.write("citebot.toml", HOSTILE.format(home=tmp_path / "theirs"))
    repo.write("deep/er/citebot.toml", HOSTILE.format(home=tmp_path / "theirs"))
    repo.write("a.py", "def first() -> None:\n    pass\n")
    repo.commit()
    return repo


@pytest.mark.parametrize("where", ["", "deep/er", ".git"])
def test_what_a_repository_brings_along_is_not_read_and_said_so(where: str, hostile: GitRepo) -> None:
    directory = hostile.root / where
    (directory / "citebot.toml").write_text('model = "ollama:theirs"\n', encoding="utf-8")

    settings = Settings.load({}, directory)

    assert (settings.model, settings.link_hosts, settings.access.open) == (None, (), True)
    assert f"{directory / 'citebot.toml'} is not read: it is in a repository" in settings.remark
    assert settings.remark.endswith(f"If it is yours, name it: CITEBOT_CONFIG={directory / 'citebot.toml'}")


def test_a_bare_repository_and_a_linked_worktree_are_repositories_too(hostile: GitRepo, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "--quiet", "--bare", str(hostile.root), "bare.git")
    hostile.git("worktree", "add", "--quiet", str(tmp_path / "tree"))
    (tmp_path / "link").symlink_to(tmp_path / "tree" / "deep")
    (tmp_path / "bare.git" / "citebot.toml").write_text('model = "ollama:theirs"\n', encoding="utf-8")

    for directory in (tmp_path / "bare.git", tmp_path / "tree", tmp_path / "link" / "er"):
        settings = Settings.load({}, directory)
        assert settings.model is None
        assert "is not read" in settings.remark


def test_a_question_asked_in_a_hostile_repository_is_answered_by_ones_own_settings(
    hostile: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(hostile.root)

    done = calling(capsys)("symbols", "first", "--json")

    assert done.code == 0
    assert done.err.count("is not read: it is in a repository") == 1
    assert not (tmp_path / "theirs").exists()
    assert (tmp_path / "home").is_dir()


def test_the_repositorys_file_is_read_where_it_is_named(hostile: GitRepo, tmp_path: Path) -> None:
    for named in (str(hostile.root / "citebot.toml"), "citebot.toml", str(hostile.root), "."):
        settings = Settings.load({"CITEBOT_CONFIG": named}, hostile.root)
        assert (settings.home, settings.model, settings.remark) == (tmp_path / "theirs", "ollama:theirs", "")


def test_the_users_own_file_counts_where_there_is_no_other(
    hostile: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own" / "citebot" / "citebot.toml"
    own.parent.mkdir(parents=True)
    own.write_text('model = "ollama:mine"\n[access]\nopen = false\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))

    assert Settings.load({}, tmp_path).model == "ollama:mine"
    beside = Settings.load({}, hostile.root)
    assert (beside.model, beside.access.open) == ("ollama:mine", False)
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    assert (Settings.load({}, tmp_path).fusion, Settings.load({}, tmp_path).model) == ("rrf", None)


def test_a_folder_that_is_named_may_hold_no_file(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    (tmp_path / "empty").mkdir()

    assert Settings.load({"CITEBOT_CONFIG": "empty"}, tmp_path).fusion == "score"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('home = "/tmp/x"', "home"),
        ('model = "ollama:x"', "model"),
        ('small_model = "ollama:x"', "small_model"),
        ('check_model = "ollama:x"', "check_model"),
        ('fallback_model = "ollama:x"', "fallback_model"),
        ('embedder = "ollama:x"', "embedder"),
        ('link_hosts = ["elsewhere.example"]', "link_hosts"),
        ('[guard]\nclassifier = "/tmp/model"', "guard"),
        ('web_host = "0.0.0.0"', "web_host"),
        ("[access]\nopen = true", "access"),
        ('[[repositories]]\nurl = "https://x.example/a"\ntoken_variable = "SECRET"', "token_variable"),
    ],
)
def test_a_file_that_is_merely_found_sets_neither_where_data_goes_nor_who_may_ask(
    text: str, key: str, tmp_path: Path
) -> None:
    file = tmp_path / "citebot.toml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        Settings.load({"SECRET": "s"}, tmp_path)

    assert str(caught.value) == (
        f"citebot.toml: {key} may not be set by a file that you did not name. "
        f"If it is yours, name it: CITEBOT_CONFIG={file}"
    )
    assert Settings.load({"SECRET": "s", "CITEBOT_CONFIG": str(file)}, tmp_path)


def test_a_directory_that_others_write_in_is_not_trusted(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    shared.chmod(0o1777)

    settings = Settings.load({}, shared)

    assert (settings.fusion, "everybody may write in this directory" in settings.remark) == ("score", True)


@pytest.mark.needs("root")
def test_a_directory_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    os.chown(tmp_path, 12_345, 12_345)

    settings = Settings.load({}, tmp_path)

    assert (settings.fusion, "the directory belongs to another user" in settings.remark) == ("score", True)


def test_a_file_that_others_write_to_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    (tmp_path / "citebot.toml").chmod(0o666)

    settings = Settings.load({}, tmp_path)

    assert (settings.fusion, "everybody may write to it" in settings.remark) == ("score", True)


@pytest.mark.needs("root")
def test_a_file_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "citebot.toml").write_text('fusion = "rrf"\n', encoding="utf-8")
    os.chown(tmp_path / "citebot.toml", 12_345, 12_345)

    settings = Settings.load({}, tmp_path)

    assert (settings.fusion, "it belongs to another user" in settings.remark) == ("score", True)


def test_what_may_not_be_set_is_what_could_be(tmp_path: Path) -> None:
    assert set(CHOSEN_ALONE) <= set(list_file_keys())
    example = (Path(__file__).parents[2] / "citebot.example.toml").read_text(encoding="utf-8")
    marked = [block for block in example.split("\n\n") if "named)" in block]
    assert [key for key in CHOSEN_ALONE if not any(re.search(rf"(?m)^\[*{key}\b", block) for block in marked)] == []


def test_doctor_names_a_file_that_is_not_read(
    hostile: GitRepo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(hostile.root)

    run(["doctor"])

    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    assert any("citebot.toml is not read: it is in a repository" in line for line in warnings)
