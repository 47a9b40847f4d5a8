"""Starting programs: what of the environment they get, where they begin, and where they are looked for."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from signal import SIGKILL

import pytest

from indexer.git.repository import Repository
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.subprocesses import find_program, finish_start, kill_session, start_git_async
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS, wait_for, wait_for_end, wait_until

SECRETS = {
    "SLACK_BOT_TOKEN": "xoxb-secret-1",
    "SLACK_APP_TOKEN": "xapp-secret-2",
    "SLACK_SIGNING_SECRET": "secret-3",
    "DISCORD_BOT_TOKEN": "secret-4",
    "GOOGLE_API_KEY": "secret-5",
    "OPENAI_API_KEY": "secret-6",
    "AWS_SECRET_ACCESS_KEY": "secret-7",
    "CITEBOT_GITHUB_TOKEN": "secret-8",
    "GIT_CONFIG_PARAMETERS": "'http.extraHeader=secret-9'",
}
ALLOWED = {
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT", "GIT_ASKPASS",
    "SSH_ASKPASS_REQUIRE", "GIT_OPTIONAL_LOCKS", "GIT_NO_LAZY_FETCH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT",
    "GIT_ALLOW_PROTOCOL", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
}  # fmt: skip
ADDED_BY_OTHERS = {"PWD", "SHLVL", "_", "OLDPWD"}

# Stands before a program on the PATH: notes the environment and the folder it got, then becomes that program. A shell
# starts it, as the path of Python behind `#!` could have no blank in it; to Python the second line is a text.
SPY = """#!/bin/sh
"exec" "{python}" "-I" "$0" "$@"
import json, os, sys
with open({log!r}, "a") as log:
    print(json.dumps([sys.argv, dict(os.environ), os.getcwd()]), file=log)
{then}
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What every git and ssh was given, in an environment full of secrets."""
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    git = f'os.execv({shutil.which("git")!r}, ["git", *sys.argv[1:]])'
    ssh = 'os.execv("/bin/sh", ["sh", "-c", sys.argv[-1]])'
    for name, then in (("git", git), ("ssh", ssh)):
        (folder / name).write_text(SPY.format(python=sys.executable, log=str(log), then=then))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return log


def given(log: Path) -> list[tuple[list[str], dict[str, str], str]]:
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()]


def assert_harmless(log: Path) -> None:
    for line, environment, folder in given(log):
        others = set(environment) - ALLOWED - ADDED_BY_OTHERS
        # Git tells the ssh that it starts some more of itself.
        harmless = ("LC_", "GIT_SSL_") if Path(line[0]).name == "git" else ("LC_", "GIT_")
        assert [name for name in others if not name.startswith(harmless) and not name.lower().endswith("_proxy")] == []
        assert not [value for value in SECRETS.values() if value in json.dumps([line, environment])]
        assert folder != str(Path.cwd()), line


def test_git_in_a_repository_gets_no_secret(repository: GitRepo, log: Path) -> None:
    with Repository.open(repository.root) as opened:
        sha = opened.commit().sha
        assert [entry.path for entry in opened.files(sha).entries] == ["a.py"]
        list(opened.iter_blobs([opened.files(sha).entries[0].blob]))

    assert len(given(log)) > 5
    assert_harmless(log)
    assert {folder for _, _, folder in given(log)} == {"/"}


async def test_git_and_ssh_get_no_secret_when_a_repository_is_fetched(
    repository: GitRepo, log: Path, tmp_path: Path
) -> None:
    clone = RemoteClone(RemoteRepository(name="shop", url=f"git@git.example:{repository.root}"), tmp_path / "home")

    tip = await clone.newest()

    assert {Path(line[0]).name for line, _, _ in given(log)} == {"git", "ssh"}
    assert_harmless(log)
    assert tip.commit == repository.sha()


async def test_every_git_is_held_to_the_same_policy(
    repository: GitRepo, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs is the way to a host: which protocols, which ssh, whom to trust, and the credentials for it."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or "SSL" in name or "CURL" in name]:
        monkeypatch.delenv(name)
    for name in ("TZ", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "https_proxy", "GIT_SSL_CAINFO", "GIT_SSH", "GIT_EDITOR"):
        monkeypatch.setenv(name, "/there")

    with Repository.open(repository.root) as opened:
        opened.history.log(opened.commit().sha, "a.py", limit=1)
    local = given(log)
    await RemoteClone(
        RemoteRepository(name="shop", url=f"git@git.example:{repository.root}"), tmp_path / "home"
    ).newest()
    remote = [each for each in given(log)[len(local) :] if Path(each[0][0]).name == "git"]
    await (await start_git_async(["--version"])).communicate()
    alone = given(log)[-1:]

    policies = [policy_of(line) for line, _, _ in local + remote + alone]
    settings = policies[0][1]
    assert {"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "credential.helper="} <= set(settings)
    for options, found in policies:
        assert options == policies[0][0]
        assert found[: len(settings)] == settings
    to_a_host = {"GIT_ALLOW_PROTOCOL", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "SSH_AUTH_SOCK", "https_proxy"}
    for environment, added in (
        *((environment, set()) for _, environment, _ in local + alone),
        *((environment, to_a_host | {"GIT_SSL_CAINFO"}) for _, environment, _ in remote),
    ):
        differing = dict(environment.items() ^ local[0][1].items()).keys() - ADDED_BY_OTHERS
        assert differing == added


def policy_of(line: list[str]) -> tuple[list[str], list[str]]:
    """The options that a git was given before its settings, and the settings, in order."""
    first = line.index("-c") if "-c" in line else len(line)
    return line[1:first], [value for word, value in zip(line[first:], line[first + 1 :], strict=False) if word == "-c"]


def test_gitpython_starts_nothing_by_being_imported(repository: GitRepo, log: Path) -> None:
    program = "import pathlib, sys, indexer.git.repository as r; r.Repository.open(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-P", "-c", program, str(repository.root)], check=True, timeout=LIMIT_SECONDS)

    assert ["version"] not in [line[1:] for line, _, _ in given(log)]
    assert_harmless(log)


def test_a_program_that_is_nowhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(FileNotFoundError, match="git"):
        find_program("git")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repository = GitRepo(tmp_path / "shop")
    repository.write("a.py", "def a():\n    return 1\n")
    repository.commit()
    return repository


@pytest.mark.parametrize("steps", range(1, 8))
async def test_a_start_that_is_broken_off_leaves_no_child_and_does_not_wait_for_one(steps: int) -> None:
    reading, writing = os.pipe()
    start = asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 600; true", stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=[writing], start_new_session=True
    )
    starting = asyncio.create_task(finish_start(start))
    for _ in range(steps):
        await asyncio.sleep(0)
    starting.cancel()

    await wait_for_end(starting, "the end of the start")
    if not starting.cancelled():  # it was quicker
        await kill_session(await starting)
    os.close(writing)
    assert await asyncio.to_thread(os.read, reading, 1) == b""  # it ends once no process holds the other end
    os.close(reading)


async def test_a_program_that_nobody_reads_from_ends_when_it_is_killed() -> None:
    start = asyncio.create_subprocess_exec("yes", stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    process = await finish_start(start)
    assert process.stdout is not None
    await process.stdout.readexactly(1)
    await wait_until(lambda: process.stdout._paused, "the pipe holds what it can")  # type: ignore[union-attr]

    await wait_for(kill_session(process), "the end of the program")

    assert process.returncode == -SIGKILL
