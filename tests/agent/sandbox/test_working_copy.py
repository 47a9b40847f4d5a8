"""A commit is laid out from its objects, and what became of it comes back as a patch that git takes."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.errors import SandboxUnavailable, WorkingCopyError
from agent.sandbox import working_copy
from agent.sandbox.box_folders import find_user, open_folders
from agent.sandbox.working_copy import WorkingCopy
from indexer.git.repository import Repository
from tests.fakes.repositories import GitRepo

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def origin(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "origin")
    repo.write("calc.py", CODE)
    repo.write("docs/with space/é.md", "one\r\ntwo\r\n")
    repo.write(b"latin-\xe9.txt", b"caf\xe9\n")
    repo.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    repo.write("data.bin", bytes(range(256)) * 40)
    repo.write("last", "no newline")
    repo.write("empty")
    repo.link("link", "calc.py")
    repo.link("out", "/etc/passwd")
    repo.commit()
    return repo


@pytest.fixture
def copy(origin: GitRepo, tmp_path: Path) -> Iterator[WorkingCopy]:
    with Repository.open(origin.root) as repository:
        made = WorkingCopy(tmp_path / "copy", repository, origin.sha())
        made.write()
        yield made


def apply_patch(origin: GitRepo, patch: bytes) -> None:
    """Apply a patch as a person would."""
    command = ["git", "apply", "--index", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=origin.root, input=patch, check=True, capture_output=True)


def tree_of(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every file of a folder but git's own: what it is, and what it holds."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file() and ".git" not in path.relative_to(folder).parts:
            found[name] = ("program" if path.stat().st_mode & 0o100 else "file", path.read_bytes())
    return found


def test_a_working_copy_has_the_bytes_of_the_commit_and_nothing_of_git(origin: GitRepo, copy: WorkingCopy) -> None:
    assert tree_of(copy.tree) == tree_of(origin.root)
    assert not (copy.tree / ".git").exists()
    assert copy.diff() == b""


def test_attributes_and_filters_of_the_repository_change_nothing(origin: GitRepo, tmp_path: Path) -> None:
    origin.git("config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat")
    origin.write(".gitattributes", "* filter=evil export-subst\nlast export-ignore\ncalc.py eol=crlf\n")
    commit = origin.commit()
    with Repository.open(origin.root) as repository:
        copy = WorkingCopy(tmp_path / "copy", repository, commit)
        copy.write()

    assert (copy.tree / "calc.py").read_text() == CODE
    assert (copy.tree / "last").exists()
    assert not (tmp_path / "ran").exists()


def test_every_kind_of_change_comes_back_as_a_patch_that_git_applies(origin: GitRepo, copy: WorkingCopy) -> None:
    tree = copy.tree
    (tree / "calc.py").write_text(CODE.replace("a + b", "b + a").replace("a - b\n", "a - b"))
    (tree / "docs/with space/é.md").write_bytes(b"one\r\nthree\r\n")
    (tree / os.fsdecode(b"latin-\xe9.txt")).write_bytes(b"th\xe9\n")
    (tree / "run.sh").chmod(0o644)
    (tree / "data.bin").write_bytes(bytes(range(255, -1, -1)) * 33)
    (tree / "last").write_text("no newline\nat all")
    (tree / "empty").unlink()
    (tree / "link").unlink()
    (tree / "link").write_text("a file now\n")
    (tree / "out").unlink()
    (tree / "out").symlink_to("elsewhere")
    (tree / "new folder").mkdir()
    (tree / 'new folder/a "quoted"\tname\\').write_text("x\n")
    (tree / "new.bin").write_bytes(b"\0" * 1000)
    (tree / "new.sh").write_text("exit 0\n")
    (tree / "new.sh").chmod(0o755)
    (tree / "new-empty").touch()

    apply_patch(origin, copy.diff())

    assert tree_of(origin.root) == tree_of(tree)


def test_a_hostile_patch_reaches_nothing_but_the_files_of_the_repository(
    origin: GitRepo, copy: WorkingCopy, tmp_path: Path
) -> None:
    tree, outside = copy.tree, tmp_path / "outside"
    outside.mkdir()
    for folder in (".git/hooks", ".GIT/hooks", "docs/.git/hooks"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
        (tree / folder / "post-checkout").write_text("#!/bin/sh\n")
        (tree / folder / "post-checkout").chmod(0o755)
    (tree / "run.sh").chmod(0o4755)
    (tree / "away").symlink_to(outside)
    (tree / "up").symlink_to("../../outside")
    (tree / "name\n--- a\x1b[2J").write_text("x\n")
    before = sorted((origin.root / ".git").rglob("*"))

    patch = copy.diff()
    apply_patch(origin, patch)

    assert b"post-checkout" not in patch
    assert b"\x1b" not in patch
    assert set(re.findall(rb"mode (\d+)", patch)) == {b"100644", b"120000"}
    assert sorted(path for path in (origin.root / ".git").rglob("*") if "objects" not in path.parts) == [
        path for path in before if "objects" not in path.parts
    ]
    assert list(outside.iterdir()) == []


def test_changes_far_apart_are_hunks_of_their_own(origin: GitRepo, tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(100)]
    origin.write("long.txt", "".join(lines))
    commit = origin.commit()
    with Repository.open(origin.root) as repository:
        copy = WorkingCopy(tmp_path / "copy", repository, commit)
        copy.write()
        lines[3:4] = []
        lines[50] = "changed\n"
        lines[54] = "changed too\n"
        lines.append("added\n")
        (copy.tree / "long.txt").write_text("".join(lines))
        patch = copy.diff()

    assert [line for line in patch.decode().splitlines() if line.startswith("@@")] == [
        "@@ -1,7 +1,6 @@",
        "@@ -49,11 +48,11 @@",
        "@@ -98,3 +97,4 @@",
    ]
    apply_patch(origin, patch)
    assert (origin.root / "long.txt").read_text() == "".join(lines)


def test_a_file_that_became_a_folder_and_a_folder_that_became_a_file(origin: GitRepo, copy: WorkingCopy) -> None:
    (copy.tree / "last").unlink()
    (copy.tree / "last").mkdir()
    (copy.tree / "last" / "inner").write_text("x\n")
    (copy.tree / "docs/with space/é.md").unlink()
    (copy.tree / "docs/with space").rmdir()
    (copy.tree / "docs").rmdir()
    (copy.tree / "docs").write_text("a file\n")

    apply_patch(origin, copy.diff())

    assert tree_of(origin.root) == tree_of(copy.tree)


def test_what_tools_leave_behind_is_no_change(copy: WorkingCopy) -> None:
    for name in ("__pycache__/calc.pyc", ".pytest_cache/v/last", "sub/.git/config", ".GIT/hooks/pre-commit"):
        (copy.tree / name).parent.mkdir(parents=True)
        (copy.tree / name).write_text("x")
    os.mkfifo(copy.tree / "pipe")

    assert copy.diff() == b""


def test_a_returned_copy_is_read_without_running_its_git(
    copy: WorkingCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, ran = GitRepo(tmp_path / "inner"), tmp_path / "ran"
    inner.git("config", "core.fsmonitor", f"touch {ran}; false")
    (inner.root / ".git").rename(copy.tree / ".git")
    for name, value in (("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", "*")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    subprocess.run(["git", "status"], cwd=copy.tree, check=True, capture_output=True)
    assert ran.exists(), "git does run it"
    ran.unlink()

    assert copy.diff() == b""
    assert not ran.exists()


def test_a_link_is_read_as_a_link_wherever_it_leads(copy: WorkingCopy, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("hidden words\n")
    (copy.tree / "stolen").symlink_to(tmp_path / "secret/key")
    (copy.tree / "folder").symlink_to(tmp_path / "secret")

    patch = copy.diff()

    assert b"hidden words" not in patch
    assert patch.count(b"new file mode 120000") == 2


@pytest.mark.parametrize("name", [b"..", b".git", b".GIT", b"."])
def test_names_that_no_file_may_have_are_left_out(origin: GitRepo, tmp_path: Path, name: bytes) -> None:
    commit = origin.commit_names(b"config", content=b"[core]\n", folder=name)
    with Repository.open(origin.root) as repository:
        copy = WorkingCopy(tmp_path / "copy", repository, commit)

        assert copy.write() == (os.fsdecode(name) + "/config",)
        assert copy.diff() == b""
    assert not (tmp_path / "copy" / "config").exists()


def test_nothing_is_written_through_a_link_of_the_commit(origin: GitRepo, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    origin.link("trap", str(tmp_path / "outside"))
    origin.commit()
    commit = origin.commit_names(b"inner", content=b"x", folder=b"trap")
    with Repository.open(origin.root) as repository:
        WorkingCopy(tmp_path / "copy", repository, commit).write()

    assert list((tmp_path / "outside").iterdir()) == []


def test_a_submodule_is_left_out_and_no_change(origin: GitRepo, tmp_path: Path) -> None:
    other = GitRepo(tmp_path / "other")
    other.write("x.py", "x = 1\n")
    other.commit()
    origin.submodule("lib", other)
    commit = origin.commit()
    with Repository.open(origin.root) as repository:
        copy = WorkingCopy(tmp_path / "copy", repository, commit)

        assert copy.write() == ("lib",)
        assert copy.diff() == b""


def test_a_copy_that_was_written_before_is_gone_on_with(origin: GitRepo, copy: WorkingCopy, tmp_path: Path) -> None:
    (copy.tree / "calc.py").write_text("# new\n")
    with Repository.open(origin.root) as repository:
        again = WorkingCopy(tmp_path / "copy", repository, origin.sha())

        assert again.diff() == copy.diff() != b""


@pytest.mark.parametrize(("limit", "said"), [("_MAX_BYTES", "MB in all"), ("_MAX_FILES", "files of")])
def test_a_commit_that_is_too_large_is_refused_before_anything_is_written(
    origin: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    monkeypatch.setattr(working_copy, limit, 5)
    with Repository.open(origin.root) as repository, pytest.raises(WorkingCopyError, match=said):
        WorkingCopy(tmp_path / "copy", repository, origin.sha()).write()

    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(("error", "advice"), [(errno.ENOSPC, "Make room there"), (errno.EIO, "")])
def test_a_full_disk_is_told_with_what_to_do(
    origin: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, advice: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(WorkingCopy, "_write_files", refuse)
    with Repository.open(origin.root) as repository, pytest.raises(WorkingCopyError, match=os.strerror(error)) as told:
        WorkingCopy(tmp_path / "copy", repository, origin.sha()).write()

    assert advice in str(told.value)
    assert ("Make room" in str(told.value)) is bool(advice)


async def test_without_room_for_the_folders_of_a_command_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(SandboxUnavailable, match=r"No space left on device.*Make room there"):
        async with open_folders(tmp_path / "tree", {}):
            pass


def test_changes_that_are_too_large_are_refused(copy: WorkingCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_copy, "_MAX_CHANGED", 1000)
    (copy.tree / "large").write_bytes(b"x" * 1001)

    with pytest.raises(WorkingCopyError, match="too much for a patch"):
        copy.diff()


def test_folders_without_end_are_refused_and_removed(copy: WorkingCopy, tmp_path: Path) -> None:
    folder = os.open(copy.tree, os.O_RDONLY)
    for _ in range(450):  # deeper than a path can be long
        os.mkdir("d" * 9, dir_fd=folder)
        inner = os.open("d" * 9, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)

    with pytest.raises(WorkingCopyError, match="too deeply"):
        copy.diff()
    copy.remove()
    assert not (tmp_path / "copy").exists()


def test_folders_and_files_without_rights_are_read_and_removed(copy: WorkingCopy, tmp_path: Path) -> None:
    (copy.tree / "shut").mkdir()
    (copy.tree / "shut" / "in").write_text("x\n")
    (copy.tree / "shut" / "in").chmod(0)
    (copy.tree / "shut").chmod(0)

    assert b"+++ b/shut/in\n@@ -0,0 +1,1 @@\n+x\n" in copy.diff()
    assert (copy.tree / "shut").stat().st_mode & 0o777 == 0
    copy.remove()
    assert not (tmp_path / "copy").exists()


def test_a_working_copy_belongs_to_whom_commands_run_as_alone(copy: WorkingCopy) -> None:
    for path in (copy.tree, *copy.tree.rglob("*")):
        assert path.lstat().st_uid == (find_user() or os.geteuid())
    assert copy.tree.stat().st_mode & 0o777 == 0o700


def change_everything(tree: Path) -> None:
    """Change files in every way that a copy can be changed."""
    (tree / "calc.py").write_text("changed\n")
    (tree / "data.bin").write_bytes(b"\0\1")
    (tree / "run.sh").chmod(0o644)
    (tree / "empty").unlink()
    (tree / "empty").mkdir()
    (tree / "empty" / "file").write_text("in a folder now")
    (tree / "docs/with space/é.md").unlink()
    (tree / "docs/with space").rmdir()
    (tree / "docs/with space").write_text("a file now")
    (tree / "link").unlink()
    (tree / "link").symlink_to("last")
    (tree / "new/deep").mkdir(parents=True)
    (tree / "new/deep/file").write_text("new")


def test_changes_that_were_read_are_made_again_in_a_fresh_copy(
    origin: GitRepo, copy: WorkingCopy, tmp_path: Path
) -> None:
    change_everything(copy.tree)
    with Repository.open(origin.root) as repository:
        fresh = WorkingCopy(tmp_path / "fresh", repository, origin.sha())
        fresh.write()

        fresh.write_changes(copy.read_changes())

        assert tree_of(fresh.tree) == tree_of(copy.tree)
        assert fresh.diff() == copy.diff() != b""


def test_a_change_behind_a_link_of_the_commit_is_not_made(origin: GitRepo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    origin.link("folder", str(outside))
    commit = origin.commit()
    with Repository.open(origin.root) as repository:
        copy, fresh = (WorkingCopy(tmp_path / name, repository, commit) for name in ("first", "second"))
        copy.write()
        fresh.write()
        (copy.tree / "folder").unlink()
        (copy.tree / "folder").mkdir()
        (copy.tree / "folder/planted").write_text("x")
        chosen = [change for change in copy.read_changes() if change.path != b"folder"]

        with pytest.raises(WorkingCopyError, match="behind a link"):
            fresh.write_changes(chosen)

    assert [*outside.iterdir()] == []
