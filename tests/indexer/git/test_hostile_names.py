"""Names that a tree of git can hold and no project needs: left out, counted, and never a way out of the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.git.safe_paths import is_safe_path
from indexer.index import CodeIndex
from tests.fakes.repositories import GitRepo

CONTENT = b"def planted():\n    return 1\n"
HOSTILE = (
    b"..", b".", b"../../etc/passwd", b"a/../../b.py", b"/etc/passwd", b"a//b.py", b".git", b".GIT", b".git/config",
    b"x/.Git/hooks/post-checkout", b"git~1", b"GIT~1/config", b".git ", b".git.", b".git::$INDEX_ALLOCATION",
    ".g\u200cit/config".encode(), b"..\\..\\evil.py", b"a\\..\\b.py", b".git\\config", b"C:\\Windows\\win.ini",
    b"c:/evil.py", b"C:evil.py", b"two\nlines.py", b"carriage\rreturn.py", b"\x1b[31mred.py", b"tab\there.py",
    b"\x7fdelete.py", "next\x85line.py".encode(), "line\u2028.py".encode(), "right\u202eyp.left".encode(),
    b"n" * 200_000, b"d/" * 10_000 + b"deep.py", b"...", b". .", b"%2e%2e", b"a/%2E./b.py", b"..%2f..%2fx", b"a%0Ab.py",
    b"..?", b".?x", b"a/..#b.py", b"x/..;/y.py", b"..%3Fx",
)  # fmt: skip
HARMLESS = (
    b"a.py", b"..a.py", b"a..py", b".gitignore", b"git/x.py", b"x.git/HEAD.py", b"caf\xe9.py", b"\xe9t\xe9/\xe9.py",
    "öl und ☕ .py".encode(), b"a b/#1?(x)&%2e%2e@.py", b"dev-disk\\x2dby.swap", "ملف.py".encode(), b"a:b.py"[2:],
    b"x/C:y.py", b"..a?b#c.py", b"#a#", b"a/?.py",
)  # fmt: skip


def test_hostile_names_are_not_safe_and_unusual_ones_are() -> None:
    safe = [name for name in (*HOSTILE, *HARMLESS) if is_safe_path(name.decode("utf-8", "backslashreplace"))]

    assert safe == [*HARMLESS]


async def skipped_and_paths(repo: GitRepo, home: Path) -> tuple[dict[str, int], list[str]]:
    """What an index counts as left out, and the paths it has."""
    index = await CodeIndex.open(repo.root, home=home)
    try:
        await index.refresh()
        entries = await (await index.pin()).files()
        return (await index.status()).skipped, [entry.path for entry in entries]
    finally:
        await index.aclose()


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "repo")
    repo.write("src/own.py", "def own():\n    return 1\n")
    repo.commit()
    return repo


@pytest.mark.exhaustive
async def test_many_deep_folders_that_are_pushed_do_not_outgrow_a_command_line(repo: GitRepo, tmp_path: Path) -> None:
    await skipped_and_paths(repo, tmp_path / "home")
    names = [f"top{number}/{'deep/' * 90}own.py" for number in range(200)]
    for name in names:
        repo.write(name, CONTENT)
    repo.commit()

    assert await skipped_and_paths(repo, tmp_path / "home") == ({}, sorted([*names, "src/own.py"]))


async def test_hostile_names_are_left_out_and_counted(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit_names(*HOSTILE, content=CONTENT)

    skipped, paths = await skipped_and_paths(repo, tmp_path / "home")

    assert (skipped, paths) == ({"unsafe path": len(HOSTILE)}, ["src/own.py"])


@pytest.mark.parametrize("folder", [b".git", b"\n"])
async def test_a_hostile_name_that_is_pushed_keeps_nothing_from_being_refreshed(
    folder: bytes, repo: GitRepo, tmp_path: Path
) -> None:
    assert await skipped_and_paths(repo, tmp_path / "home") == ({}, ["src/own.py"])

    repo.commit_names(b"evil.py", content=CONTENT, folder=folder)
    assert await skipped_and_paths(repo, tmp_path / "home") == ({"unsafe path": 1}, ["src/own.py"])

    repo.git("read-tree", "HEAD~1")
    repo.commit("clean again")
    assert await skipped_and_paths(repo, tmp_path / "home") == ({}, ["src/own.py"])


@given(st.text())
def test_what_is_safe_stays_below_its_folder_and_in_its_line(path: str) -> None:
    if not is_safe_path(path):
        return
    for written in (path, path.replace("\\", "/")):
        assert ".." not in written.split("/")
    assert not path.startswith("/")
    assert len(f"-{path}-".splitlines()) == 1
