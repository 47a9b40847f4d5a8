from __future__ import annotations

import os
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from indexer.errors import MissingObjects, RepositoryError
from indexer.git.file_selection import judge_content
from indexer.git.repository import Repository, TreeChanges
from tests.fakes.repositories import GitRepo, run_git


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return GitRepo(tmp_path / "project")


def removals(changes: TreeChanges) -> frozenset[str]:
    return changes.touched - {entry.path for entry in changes.entries}


def paths(repository: Repository, sha: str) -> list[str]:
    return [entry.path for entry in repository.files(sha).entries]


def contents(repository: Repository, sha: str) -> dict[str, bytes]:
    entries = repository.files(sha).entries
    blobs = repository.iter_blobs(entry.blob for entry in entries)
    return {entry.path: data for entry, (_, data) in zip(entries, blobs, strict=True)}


def delete_object(repo: GitRepo, sha: str) -> None:
    (repo.root / ".git" / "objects" / sha[:2] / sha[2:]).unlink()


# What it says of its files


def test_the_usual_encoding_is_that_of_most_files_that_are_not_utf8(repo: GitRepo) -> None:
    for number in range(5):
        repo.write(f"src/{number}.c", f"// Считает сумму заказа покупателя {number}\n".encode("koi8-r"))
        repo.write(f"lib/{number}.c", f"// größe {number}\n")
    repo.write("one.c", "// Prüft die Größe für alle Einträge, löscht überflüssige Schlüssel später\n".encode("cp1252"))
    repo.commit()

    assert Repository.open(repo.root).usual_encoding == "koi8-r"


# Finding a repository


def test_repository_is_found_from_a_folder_or_file_within(repo: GitRepo) -> None:
    inside = repo.write("src/deep/a.py", "a")
    for path in (repo.root, inside.parent, inside):
        with Repository.open(path) as repository:
            assert repository.root == repo.root
            assert repository.git_dir == repo.root / ".git"
            assert repository.name == "project"
            assert repository.web_url is None
            assert repository.warnings == ()


def test_linked_worktrees_have_their_own_head(repo: GitRepo, tmp_path: Path) -> None:
    repo.write("a.py", "a")
    repo.commit("first")
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "linked"))
    with Repository.open(tmp_path / "linked") as repository:
        assert repository.root == tmp_path / "linked"
        assert repository.commit().branch == "side"
        assert paths(repository, repo.sha()) == ["a.py"]


def test_name_and_web_address_come_from_the_remote(repo: GitRepo) -> None:
    repo.git("remote", "add", "aaa", "https://gitlab.com/other/copy.git")
    repo.git("remote", "add", "origin", "https://name:secret@github.com/owner/widgets.git")
    with Repository.open(repo.root) as repository:
        assert repository.web_url == "https://github.com/owner/widgets"
        assert repository.name == "widgets"


def test_any_remote_with_a_web_address_serves(repo: GitRepo) -> None:
    repo.git("remote", "add", "origin", "/srv/git/widgets.git")
    repo.git("remote", "add", "upstream", "git@gitlab.com:group/widgets.git")
    with Repository.open(repo.root) as repository:
        assert repository.web_url == "https://gitlab.com/group/widgets"


def test_repository_of_another_user_is_refused_with_the_command_to_trust_it(
    repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=":")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    with pytest.raises(RepositoryError, match=f"git config --global --add safe.directory '{repo.root}'"):
        Repository.open(repo.root)


@pytest.mark.needs("unprivileged")
def test_unreadable_git_directory_is_refused(repo: GitRepo) -> None:
    (repo.root / ".git").chmod(0)
    try:
        with pytest.raises(RepositoryError):
            Repository.open(repo.root)
    finally:
        (repo.root / ".git").chmod(0o700)


def test_damaged_configuration_is_refused_with_a_sentence(repo: GitRepo) -> None:
    (repo.root / ".git" / "config").write_text("[core\n")
    with pytest.raises(RepositoryError, match=r"bad config.*Check permissions and git's settings\."):
        Repository.open(repo.root)


def test_missing_git_command_is_said(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    with Repository.open(repo.root) as repository:
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(RepositoryError, match="Install git, and try again"):
            repository.commit()


# Commits


def test_commits_are_described(repo: GitRepo) -> None:
    sha = repo.commit("Add é\n\nbody")
    with Repository.open(repo.root) as repository:
        commit = repository.commit()
    assert (commit.sha, commit.branch, commit.subject) == (sha, "main", "Add é")
    assert commit.committed_at == 1_700_000_000


def test_commits_are_found_by_branch_tag_and_sha(repo: GitRepo) -> None:
    first = repo.commit("one")
    repo.git("tag", "-m", "tagged", "v1")
    repo.branch("feature/x")
    second = repo.commit("two")
    with Repository.open(repo.root) as repository:
        assert (repository.commit("main").sha, repository.commit("main").branch) == (first, "main")
        assert repository.commit("feature/x").branch == "feature/x"
        assert (repository.commit("v1").sha, repository.commit("v1").branch) == (first, None)
        assert repository.commit(second[:10]).sha == second


def test_a_secret_in_the_name_of_a_branch_is_masked(repo: GitRepo) -> None:
    token = "ghp_" + "x8Kd02mTqLw7RzYbN4sVfJ1hGc6UaEp9ioXM"
    repo.write("a.py", "A = 1\n")
    repo.commit("Begin")
    repo.git("checkout", "-q", "-b", f"try/{token}")

    with Repository.open(repo.root) as repository:
        assert repository.commit().branch == "try/[REDACTED:github]"


def test_detached_head_has_no_branch(repo: GitRepo) -> None:
    sha = repo.commit()
    repo.checkout(sha)
    with Repository.open(repo.root) as repository:
        assert repository.commit().branch is None


def test_unborn_branch_beside_others_is_told_from_an_empty_repository(repo: GitRepo) -> None:
    repo.commit()
    repo.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    with Repository.open(repo.root) as repository, pytest.raises(RepositoryError, match="Check out another one"):
        repository.commit()


@pytest.mark.parametrize("ref", ["nowhere", "", "--all", "0" * 40, "HEAD:a.py", "a b", "main\n"])
def test_unknown_names_are_refused(repo: GitRepo, ref: str) -> None:
    repo.write("a.py", "a")
    repo.commit()
    with Repository.open(repo.root) as repository, pytest.raises(RepositoryError, match="no branch, tag or commit"):
        repository.commit(ref)


def test_commits_between_are_counted_and_unknown_ones_are_not(repo: GitRepo) -> None:
    shas = [repo.commit(str(number)) for number in range(4)]
    with Repository.open(repo.root) as repository:
        assert repository.count_commits_between(shas[0], shas[3]) == 3
        assert repository.count_commits_between(shas[3], shas[0]) == 0
        assert repository.count_commits_between("0" * 40, shas[0]) is None


def test_shallow_clones_work_and_say_what_is_missing(repo: GitRepo, tmp_path: Path) -> None:
    repo.write("a.py", "a")
    old = repo.commit("one")
    repo.write("a.py", "b")
    new = repo.commit("two")
    run_git(tmp_path, "clone", "--quiet", "--depth=1", repo.root.as_uri(), "shallow")
    with Repository.open(tmp_path / "shallow") as repository:
        assert contents(repository, new) == {"a.py": b"b"}
        assert repository.compare_commits(old, new) is None
        assert repository.count_commits_between(old, new) is None
        assert "git fetch --unshallow" in repository.warnings[0]


# Files


def test_files_come_from_the_commit_and_not_from_the_working_tree(repo: GitRepo) -> None:
    repo.write("a.py", "committed")
    sha = repo.commit()
    repo.write("a.py", "changed")
    repo.write("b.py", "new")
    with Repository.open(repo.root) as repository:
        assert contents(repository, sha) == {"a.py": b"committed"}
        assert repository.files(sha).entries[0].size == len("committed")


def test_files_left_out_are_counted_by_reason(repo: GitRepo, tmp_path: Path) -> None:
    library = GitRepo(tmp_path / "library")
    library.commit()
    for path in ("a.py", "logo.png", "vendor/x.go", "api_pb2.py", "uv.lock", ".env", "app.min.js", "old/x.py"):
        repo.write(path, path)
    repo.write("empty.py", b"")
    repo.write("big.py", b"#" * 1_000_001)
    repo.link("link.py", "a.py")
    repo.link("loop", "loop")
    repo.submodule("library", library)
    sha = repo.commit()
    with Repository.open(repo.root, exclude=["old/"]) as repository:
        listing = repository.files(sha)
    assert [entry.path for entry in listing.entries] == [".gitmodules", "a.py", "empty.py"]
    assert Counter(each.reason for each in listing.omissions) == {
        "binary": 1, "vendored": 1, "generated": 1, "lock file": 1, "secret-bearing": 1, "minified": 1, "excluded": 1,
        "too large": 1, "symlink": 2, "submodule": 1,
    }  # fmt: skip


def test_included_globs_restrict_what_is_listed(repo: GitRepo) -> None:
    for path in ("src/a.py", "src/b.py", "docs/a.md"):
        repo.write(path, path)
    sha = repo.commit()
    with Repository.open(repo.root, include=["src/"], exclude=["b.py"]) as repository:
        assert paths(repository, sha) == ["src/a.py"]


def test_attributes_are_read_at_the_commit(repo: GitRepo) -> None:
    repo.write(".gitattributes", "*.tables.py linguist-generated\nvendor/ours/** linguist-vendored=false\n")
    repo.write("lib/.gitattributes", "*.tables.py -linguist-generated\n")
    for path in ("a.tables.py", "lib/b.tables.py", "vendor/ours/c.py", "vendor/theirs/d.py"):
        repo.write(path, path)
    sha = repo.commit()
    repo.write(".gitattributes", "* linguist-generated\n")
    with Repository.open(repo.root) as repository:
        assert paths(repository, sha) == [".gitattributes", "lib/.gitattributes", "lib/b.tables.py", "vendor/ours/c.py"]


def test_entries_carry_the_marks_that_content_rules_need(repo: GitRepo) -> None:
    repo.write(".gitattributes", "a.go linguist-generated=false\n")
    repo.write("a.go", "// Code generated by hand, really. DO NOT EDIT.\n")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        entry = repository.files(sha).entries[1]
        data = contents(repository, sha)["a.go"]
    assert judge_content(entry.path, data) == "generated"
    assert judge_content(entry.path, data, entry.marks) is None


def test_file_names_of_any_kind_are_listed_as_valid_text(repo: GitRepo) -> None:
    names = [
        b"with space.py",
        b"-line.py",
        b"caf\xe9.py",
        "ü.py".encode(),
        b'quo"te.py',
        b"a.py",
        b"A.py",
    ]
    for name in names:
        repo.write(name, name)
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        found = contents(repository, sha)
    assert found == {name.decode("utf-8", "backslashreplace"): name for name in names}
    assert "caf\\xe9.py" in found


def test_names_that_are_shown_alike_are_listed_once(repo: GitRepo) -> None:
    repo.write(b"caf\xe9.py", "bytes")
    repo.write("caf\\xe9.py", "backslash")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        listing = repository.files(sha)
    assert [entry.path for entry in listing.entries] == ["caf\\xe9.py"]
    assert Counter(each.reason for each in listing.omissions) == {"undecodable name": 1}


def test_lfs_pointers_are_told_by_their_content(repo: GitRepo) -> None:
    repo.write("model.txt", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        assert judge_content("model.txt", contents(repository, sha)["model.txt"]) == "LFS pointer"


# Contents


def test_blobs_are_read_in_the_order_asked_for(repo: GitRepo) -> None:
    for number in range(100):
        repo.write(f"{number:03}.py", f"{number}\n" * number * 50)
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        entries = repository.files(sha).entries[::-1] * 2
        read = list(repository.iter_blobs(entry.blob for entry in entries))
        assert [blob for blob, _ in read] == [entry.blob for entry in entries]
        assert [len(data) for _, data in read] == [entry.size for entry in entries]


def test_reading_can_stop_early_and_start_again(repo: GitRepo) -> None:
    for number in range(80):
        repo.write(f"{number:02}.py", str(number))
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        entries = repository.files(sha).entries
        assert next(repository.iter_blobs(entry.blob for entry in entries))[1] == b"0"
        assert next(repository.iter_blobs([entries[7].blob]))[1] == b"7"
        repository.close()
        assert next(repository.iter_blobs([entries[9].blob]))[1] == b"9"


def test_reading_recovers_when_its_process_was_killed(repo: GitRepo) -> None:
    repo.write("a.py", "a")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        blob = repository.files(sha).entries[0].blob
        list(repository.iter_blobs([blob]))
        process = repository._blobs._process
        assert process is not None
        assert process.proc is not None
        process.proc.kill()
        process.proc.wait()
        with pytest.raises(RepositoryError, match="Try again"):
            list(repository.iter_blobs([blob]))
        assert list(repository.iter_blobs([blob])) == [(blob, b"a")]


def test_missing_blobs_are_named_and_others_still_read(repo: GitRepo) -> None:
    repo.write("a.py", "a")
    repo.write("b.py", "b")
    repo.write("c.py", "c")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        first, second, third = repository.files(sha).entries
        delete_object(repo, first.blob)
        with pytest.raises(MissingObjects, match="Run git fsck"):
            list(repository.iter_blobs([first.blob, second.blob]))
        assert list(repository.iter_blobs([third.blob])) == [(third.blob, b"c")]
        with pytest.raises(MissingObjects, match=r"a\.py"):
            repository.files(sha)


def test_corrupt_blobs_are_reported_as_damage(repo: GitRepo) -> None:
    repo.write("a.py", "a" * 100)
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        blob = repository.files(sha).entries[0].blob
        place = repo.root / ".git" / "objects" / blob[:2] / blob[2:]
        place.chmod(0o600)
        place.write_bytes(place.read_bytes()[:-10])
        with pytest.raises(MissingObjects, match="missing or damaged"):
            list(repository.iter_blobs([blob]))


def test_missing_trees_and_commits_are_reported(repo: GitRepo) -> None:
    repo.write("src/a.py", "a")
    sha = repo.commit()
    delete_object(repo, repo.sha("HEAD:src"))
    with Repository.open(repo.root) as repository:
        with pytest.raises(MissingObjects):
            repository.files(sha)
        delete_object(repo, sha)
        with pytest.raises(MissingObjects, match="commit of HEAD"):
            repository.commit()


@pytest.mark.parametrize(
    ("options", "fetched", "missing"),
    [
        (("--bare", "--filter=blob:none"), set(), {"a.py", "src/b.py", "src/deep/c.py", "src/deep/d.py"}),
        (("--bare", "--filter=blob:limit=10"), {"a.py", "src/b.py", "src/deep/c.py"}, {"src/deep/d.py"}),
        (("--bare", "--filter=tree:2"), {"a.py"}, {"src/b.py", "src/deep"}),
        (("--filter=tree:0", "--sparse"), {"a.py"}, {"src/b.py", "src/deep/c.py", "src/deep/d.py"}),
        (("--filter=blob:none", "--sparse", "--depth=1"), {"a.py"}, {"src/b.py", "src/deep/c.py", "src/deep/d.py"}),
    ],
)
def test_partial_clones_are_read_as_far_as_they_go_without_fetching(
    repo: GitRepo, tmp_path: Path, options: tuple[str, ...], fetched: set[str], missing: set[str]
) -> None:
    sha = write_nested(repo)
    run_git(tmp_path, "clone", "--quiet", *options, repo.root.as_uri(), "partial")
    with Repository.open(tmp_path / "partial") as repository:
        listing = repository.files(sha)
        assert {entry.path for entry in listing.entries} == fetched
        assert {(one.path, one.reason) for one in listing.omissions} == {(path, "not fetched") for path in missing}
        if "src/b.py" not in fetched:
            with pytest.raises(MissingObjects, match="--refetch --no-filter"):
                list(repository.iter_blobs([repo.sha("HEAD:src/b.py")]))


def test_a_partial_clone_whose_remote_is_gone_is_still_known_for_one(repo: GitRepo, tmp_path: Path) -> None:
    sha = write_nested(repo)
    run_git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--sparse", repo.root.as_uri(), "partial")
    run_git(tmp_path / "partial", "remote", "remove", "origin")
    with Repository.open(tmp_path / "partial") as repository:
        assert [entry.path for entry in repository.files(sha).entries] == ["a.py"]


def test_a_clone_without_the_tree_of_the_commit_says_how_to_fetch_it(repo: GitRepo, tmp_path: Path) -> None:
    sha = write_nested(repo)
    run_git(tmp_path, "clone", "--quiet", "--bare", "--filter=tree:0", repo.root.as_uri(), "partial")
    with Repository.open(tmp_path / "partial") as repository, pytest.raises(MissingObjects, match="--no-filter"):
        repository.files(sha)


def write_nested(repo: GitRepo) -> str:
    """Commit files in folders, and let clones leave them out."""
    for path in ("a.py", "src/b.py", "src/deep/c.py"):
        repo.write(path, path[-4:])
    repo.write("src/deep/d.py", "more than ten bytes")
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return repo.commit()


# Changes


def test_changes_list_what_was_added_modified_and_removed(repo: GitRepo) -> None:
    for path in ("kept.py", "modified.py", "removed.py", "renamed.py"):
        repo.write(path, path)
    old = repo.commit()
    repo.write("modified.py", "more")
    repo.write("added.py", "new")
    repo.remove("removed.py")
    repo.rename("renamed.py", "deep/moved.py")
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        changes = repository.compare_commits(old, new)
        assert changes is not None
        assert {entry.path for entry in changes.entries} == {"modified.py", "added.py", "deep/moved.py"}
        assert removals(changes) == {"removed.py", "renamed.py"}


def test_changed_files_that_are_no_longer_wanted_count_as_removed(repo: GitRepo) -> None:
    for path in ("grown.py", "linked.py", "mode.py"):
        repo.write(path, path)
    old = repo.commit()
    repo.write("grown.py", b"#" * 1_000_001)
    repo.remove("linked.py")
    repo.link("linked.py", "grown.py")
    (repo.root / "mode.py").chmod(0o755)
    repo.write("image.png", "new")
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        changes = repository.compare_commits(old, new)
        assert changes is not None
        assert [entry.path for entry in changes.entries] == ["mode.py"]
        assert {"grown.py", "linked.py"} <= removals(changes)


def test_changes_apply_the_same_rules_as_a_listing(repo: GitRepo) -> None:
    shas = [repo.commit("empty")]
    repo.write("src/a.py", "1")
    repo.write("docs/a.md", "1")
    shas.append(repo.commit())
    repo.write("src/b.py", "2")
    repo.remove("docs/a.md")
    shas.append(repo.commit())
    with Repository.open(repo.root, include=["src/"]) as repository:
        known: dict[str, str] = {}
        for old, new in pairwise(shas):
            changes = repository.compare_commits(old, new)
            assert changes is not None
            known = {path: blob for path, blob in known.items() if path not in removals(changes)}
            known |= {entry.path: entry.blob for entry in changes.entries}
            assert known == {entry.path: entry.blob for entry in repository.files(new).entries}


def test_changes_between_equal_commits_are_none_at_all(repo: GitRepo) -> None:
    repo.write("a.py", "a")
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        changes = repository.compare_commits(sha, sha)
        assert changes is not None
        assert (removals(changes), changes.entries) == (frozenset(), ())


def test_changes_are_unknown_when_the_old_commit_is_gone(repo: GitRepo) -> None:
    sha = repo.commit()
    with Repository.open(repo.root) as repository:
        assert repository.compare_commits("0" * 40, sha) is None


def test_changes_are_unknown_when_attributes_changed(repo: GitRepo) -> None:
    old = repo.commit()
    repo.write("deep/.gitattributes", "* linguist-generated\n")
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        assert repository.compare_commits(old, new) is None


def test_changes_tell_what_they_leave_out_and_why(repo: GitRepo) -> None:
    for path in ("a.py", "b.py", "logo.png", "old.png"):
        repo.write(path, path)
    old = repo.commit()
    repo.write("b.py", b"#" * 1_000_001)
    repo.write("logo.png", "other")
    repo.remove("old.png")
    repo.remove("a.py")
    repo.link("a.py", "b.py")
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        changes = repository.compare_commits(old, new)
        assert changes is not None
        assert changes.touched == {"a.py", "b.py", "logo.png", "old.png"}
        assert {(each.path, each.reason) for each in changes.omissions} == {
            ("a.py", "symlink"),
            ("b.py", "too large"),
            ("logo.png", "binary"),
        }


def test_changes_are_unknown_where_two_names_may_be_shown_alike(repo: GitRepo) -> None:
    repo.write(rb"caf\xe9.py".decode(), "a")
    old = repo.commit()
    (Path(os.fsdecode(bytes(repo.root) + b"/caf\xe9.py"))).write_text("b")
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        assert repository.compare_commits(old, new) is None


def test_changes_are_judged_by_the_attributes_of_their_own_folders(repo: GitRepo) -> None:
    repo.write(".gitattributes", "*.tables.py linguist-generated\n")
    repo.write("lib/.gitattributes", "*.tables.py -linguist-generated\n")
    repo.write("lib/made/.gitattributes", "* linguist-generated\n")
    repo.write("made/.gitattributes", "* linguist-generated\n")
    touched = ("a.tables.py", "a.py", "lib/deep/b.tables.py", "lib/made/c.py", "made/in/d.py", "other/e.tables.py")
    old = repo.commit()
    for path in touched:
        repo.write(path, path)
    new = repo.commit()
    with Repository.open(repo.root) as repository:
        changes = repository.compare_commits(old, new)
        assert changes is not None
        assert [entry.path for entry in changes.entries] == ["a.py", "lib/deep/b.tables.py"]
        assert {entry.path for entry in changes.entries} == set(touched) & set(paths(repository, new))


# Shielding


def test_variables_of_a_surrounding_git_command_are_ignored(
    repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("a.py", "a")
    sha = repo.commit()
    other = GitRepo(tmp_path / "other")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(other.root / ".git"))
    with Repository.open(repo.root) as repository:
        assert repository.root == repo.root
        assert repository.commit().sha == sha
        assert contents(repository, sha) == {"a.py": b"a"}


def test_nothing_that_a_repository_configures_is_run(repo: GitRepo, tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    repo.write(".gitattributes", "*.py filter=trap diff=trap text\n")
    repo.write("a.py", "a")
    old = repo.commit()
    repo.write("a.py", "b")
    new = repo.commit()
    for name in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "diff.external",
        "gpg.program", "diff.trap.command", "diff.trap.textconv", "filter.trap.smudge", "filter.trap.clean",
        "filter.trap.process", "credential.helper", "pager.rev-list",
        "uploadpack.packObjectsHook", "alias.rev-list", "remote.origin.uploadpack",
    ):  # fmt: skip
        repo.git("config", name, str(trap))
    repo.git("config", "log.showSignature", "true")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "fsmonitor-watchman", "post-index-change"):
        (hooks / hook).symlink_to(trap)
    repo.git("config", "core.hooksPath", str(hooks))
    with Repository.open(repo.root) as repository:
        assert repository.commit().sha == new
        assert contents(repository, new)["a.py"] == b"b"
        assert repository.compare_commits(old, new) is not None
        assert repository.count_commits_between(old, new) == 1
    assert not (tmp_path / "sprung").exists()


def test_misleading_settings_do_not_change_what_is_read(repo: GitRepo) -> None:
    repo.write("a.py", "a")
    repo.write("ü.py", "ü")
    old = repo.commit("Grüße")
    repo.write("a.py", "b")
    new = repo.commit()
    for name, value in {
        "i18n.logOutputEncoding": "latin1", "core.quotePath": "true", "diff.relative": "true", "diff.noprefix": "true",
        "core.worktree": "/nonexistent", "log.date": "relative", "format.pretty": "oneline", "color.ui": "always",
        "core.abbrev": "4",
    }.items():  # fmt: skip
        repo.git("config", name, value)
    with Repository.open(repo.root / ".git") as repository:
        assert repository.commit(old).subject == "Grüße"
        assert contents(repository, old) == {"a.py": b"a", "ü.py": "ü".encode()}
        changes = repository.compare_commits(old, new)
        assert changes is not None
        assert [entry.path for entry in changes.entries] == ["a.py"]


def test_replaced_objects_are_read_as_they_were_committed(repo: GitRepo) -> None:
    repo.write("a.py", "genuine")
    sha = repo.commit()
    repo.write("b.py", "replacement")
    repo.commit()
    repo.git("replace", f"{sha}:a.py", "HEAD:b.py")
    with Repository.open(repo.root) as repository:
        assert contents(repository, sha) == {"a.py": b"genuine"}


def test_a_ref_is_resolved_to_the_same_commit_that_is_described(repo: GitRepo) -> None:
    sha = repo.commit("one")

    with Repository.open(repo.root) as repository:
        assert repository.resolve_ref() == repository.resolve_ref("refs/heads/main") == repository.commit().sha == sha


@pytest.mark.parametrize("ref", ["nowhere", "", "--all"])
def test_a_ref_that_is_none_is_refused_when_it_is_resolved(ref: str, repo: GitRepo) -> None:
    repo.commit("one")

    with Repository.open(repo.root) as repository, pytest.raises(RepositoryError):
        repository.resolve_ref(ref)
