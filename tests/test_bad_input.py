"""Odd input from people and disks is answered, or refused in a sentence that says what to do."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer.errors import IndexerError
from indexer.store.catalog import Catalog
from indexer.store.data_folder import measure_folder
from tests.fakes.citebot import Citebot, Done, calling, converse
from tests.fakes.disks import mounted
from tests.fakes.repositories import GitRepo, run_git
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent
QUESTION = "where are events sent again?"
RETRY = '''def send_again(event):
    """Send an event again."""
    return deliver(event)


def deliver(event):
    """Deliver one event."""
    return event
'''
BINARY = os.urandom(1_500_000)
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 12345\n"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in [name for name in os.environ if name.startswith(("CITEBOT_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def citebot(home: Path, capsys: pytest.CaptureFixture[str]) -> Citebot:
    return calling(capsys)


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    return shop(tmp_path / "shop")


def shop(root: Path) -> GitRepo:
    repo = GitRepo(root)
    repo.write("src/retry.py", RETRY)
    repo.write("README.md", "# Shop\n\nEvents are sent at least once.\n")
    repo.commit("first")
    return repo


def ask(citebot: Citebot, root: Path) -> Done:
    return citebot("ask", QUESTION, "--json", "--repo", os.fspath(root))


def talk(citebot: Citebot, root: Path) -> Done:
    return converse(citebot, QUESTION, "--repo", os.fspath(root))


def folder_of(home: Path) -> Path:
    """The data folder of the one repository that was indexed."""
    (folder,) = (home / "repositories").iterdir()
    return folder


def lose(repo: GitRepo, name: str) -> None:
    """Delete the object of a file."""
    sha = repo.sha(f"HEAD:{name}")
    (repo.root / ".git" / "objects" / sha[:2] / sha[2:]).unlink()


# Repositories


def test_what_is_no_repository_is_refused(citebot: Citebot, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    for path in (tmp_path / "plain", tmp_path / "nowhere", Path("/dev/null")):
        assert (
            "Give the path of one" in ask(citebot, path).complaint or "does not exist" in ask(citebot, path).complaint
        )


def test_a_repository_without_commits_is_refused_and_has_a_status(citebot: Citebot, tmp_path: Path) -> None:
    empty = GitRepo(tmp_path / "empty")

    for command in (["ask", "x"], ["search", "x", "--json"], ["index", "--json"], ["symbols", "x"]):
        assert "has no commit yet. Commit something" in citebot("--repo", str(empty.root), *command).complaint
    assert json.loads(citebot("status", "--json", "--repo", str(empty.root)).out)["commit"] is None


def bare(repo: GitRepo, place: Path) -> Path:
    run_git(place.parent, "clone", "--quiet", "--bare", str(repo.root), place.name)
    return place


def shallow(repo: GitRepo, place: Path) -> Path:
    repo.commit("second")
    run_git(place.parent, "clone", "--quiet", "--depth=1", repo.root.as_uri(), place.name)
    return place


def detached(repo: GitRepo, _: Path) -> Path:
    repo.checkout(repo.sha())
    return repo.root


def within_a_submodule(repo: GitRepo, place: Path) -> Path:
    GitRepo(place).submodule("lib", repo)
    return place / "lib" / "src"


@pytest.mark.parametrize("made", [bare, shallow, detached, within_a_submodule])
@pytest.mark.exhaustive
def test_unusual_repositories_are_answered(
    made: Callable[[GitRepo, Path], Path], citebot: Citebot, repo: GitRepo, tmp_path: Path
) -> None:
    assert "src/retry.py" in ask(citebot, made(repo, tmp_path / "other")).paths


@pytest.mark.parametrize(
    "name", [b"a b 'c' \"d\" $e", b"two\nlines", b"lat\xe9n", b"\x1b[31mred", b"-x", b"caf\xc3\xa9"]
)
@pytest.mark.exhaustive
def test_any_name_will_do_for_the_repository_and_the_data_folder(
    name: bytes, citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = shop(tmp_path / os.fsdecode(name))
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / f"home {name.decode(errors='replace')}"))

    assert "src/retry.py" in ask(citebot, repo.root).paths
    status = citebot("status", "--repo", os.fspath(repo.root))
    assert (status.code, status.err, status.out.count("\n"), "\x1b" in status.out) == (0, "", 6, False)
    citebot("status", "--json", "--repo", os.fspath(repo.root)).out.encode("ascii")


@pytest.mark.exhaustive
def test_a_data_folder_whose_name_is_no_text_is_refused(
    citebot: Citebot, repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITEBOT_HOME", os.fspath(tmp_path / os.fsdecode(b"lat\xe9n")))

    assert "is not UTF-8" in ask(citebot, repo.root).complaint


def test_any_file_names_are_listed_a_line_each(citebot: Citebot, repo: GitRepo) -> None:
    for name in (b"a b.py", b"lat\xe9n.py", b"-x.py", b"#1?.py"):
        repo.write(name, RETRY)
    repo.commit()

    found = citebot("symbols", "send_again", "--repo", str(repo.root))
    assert (found.code, found.out.count("\n")) == (0, 5)
    assert "\x1b" not in found.out
    assert citebot("ask", "where is send_again defined?", "--repo", str(repo.root)).code == 0


def test_files_that_hold_no_source_are_counted_and_passed_over(citebot: Citebot, repo: GitRepo, tmp_path: Path) -> None:
    repo.link("loop/again", ".")
    repo.link("first", "second")
    repo.link("second", "first")
    repo.write("model.py", LFS)
    repo.write("empty.py", "")
    repo.write("one_line.js", "a" * 900_000)
    repo.submodule("lib", shop(tmp_path / "lib"))
    repo.commit()

    assert "src/retry.py" in ask(citebot, repo.root).paths
    status = json.loads(citebot("status", "--json", "--repo", str(repo.root)).out)
    assert status["skipped"] == {"symlink": 3, "LFS pointer": 1, "minified": 1, "submodule": 1}


@pytest.mark.exhaustive
def test_huge_files_cost_no_memory(citebot: Citebot, repo: GitRepo) -> None:
    with repo.write("huge.py").open("wb") as file:
        file.truncate(200_000_000)
    repo.git("config", "core.compression", "1")
    repo.commit()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert "src/retry.py" in ask(citebot, repo.root).paths

    kilobytes = 1 if sys.platform == "linux" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / kilobytes < 150_000


@pytest.mark.exhaustive
def test_an_object_that_nobody_needs_may_be_missing(citebot: Citebot, repo: GitRepo) -> None:
    repo.write("photo.png", BINARY)
    repo.write("vendor/theirs.py", RETRY + "# vendored\n")
    repo.commit()
    lose(repo, "photo.png")
    lose(repo, "vendor/theirs.py")

    assert "src/retry.py" in ask(citebot, repo.root).paths


def test_a_partial_clone_says_what_it_lacks_until_that_is_fetched(
    citebot: Citebot, repo: GitRepo, tmp_path: Path
) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    run_git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--sparse", repo.root.as_uri(), "partial")
    place = tmp_path / "partial"
    about = ("ask", "what does src/retry.py do?", "--repo", str(place))

    assert "README.md" in citebot("search", "events", "--repo", str(place)).out
    assert "the clone is partial, and its contents were not fetched" in citebot(*about).out
    status = citebot("status", "--repo", str(place)).out
    assert "fetch --refetch --no-filter" in status

    run_git(place, "fetch", "--quiet", "--refetch", "--no-filter")
    assert "send_again" in citebot(*about).out
    assert "--refetch" not in citebot("status", "--repo", str(place)).out


def test_a_missing_file_is_named_and_the_earlier_index_serves(citebot: Citebot, repo: GitRepo) -> None:
    assert "src/retry.py" in ask(citebot, repo.root).paths
    repo.write("src/new.py", "new = 1\n")
    repo.commit()
    lose(repo, "src/new.py")

    done = ask(citebot, repo.root)

    assert "src/retry.py" in done.paths
    assert "Using the index at " in done.err
    assert "The contents of src/new.py are missing" in done.err
    assert "git fsck" in citebot("index", "--repo", str(repo.root)).complaint


@pytest.mark.exhaustive
def test_a_repository_without_its_head_is_answered_from_the_earlier_index(citebot: Citebot, repo: GitRepo) -> None:
    ask(citebot, repo.root)
    sha = repo.sha()
    (repo.root / ".git" / "objects" / sha[:2] / sha[2:]).unlink()

    assert "src/retry.py" in ask(citebot, repo.root).paths
    assert "the commit of HEAD" in citebot("status", "--repo", str(repo.root)).out


def test_globs_that_are_none_are_named(citebot: Citebot, repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITEBOT_EXCLUDE", "*.sql,!")

    assert "'!' cannot be read as a glob. Write it as in .gitignore" in ask(citebot, repo.root).complaint


# The data folder


@pytest.mark.exhaustive
def test_a_file_in_place_of_the_data_folder_is_named(citebot: Citebot, repo: GitRepo, home: Path) -> None:
    home.write_text("mine", encoding="utf-8")

    for command in (["ask", "x", "--json"], ["status", "--json"], ["index"], ["chat"]):
        complaint = citebot("--repo", str(repo.root), *command).complaint
        assert "Set CITEBOT_HOME to another folder." in complaint
    assert home.read_text(encoding="utf-8") == "mine"


@pytest.mark.needs("mounts")
@pytest.mark.exhaustive
def test_a_read_only_data_folder_is_named(repo: GitRepo, home: Path) -> None:
    done = mounted("ro", "citebot ask x --json", repo.root, home)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{home}/" in done.stderr
    assert "cannot be written to. Make it writable or set CITEBOT_HOME to another." in done.stderr


READ_ONLY = """
citebot index >/dev/null 2>&1 || exit 98
mount -o remount,ro "$CITEBOT_HOME"
citebot symbols send_again; echo "= $?"
echo 'def brand_new(): pass' >new.py; git add new.py; git -c user.name=a -c user.email=a@b commit -qm new
citebot ask 'where is `send_again` defined?'; echo "= $?"
"""


@pytest.mark.needs("mounts")
def test_a_whole_index_in_a_read_only_data_folder_answers(repo: GitRepo, home: Path) -> None:
    done = mounted("size=10m", READ_ONLY, repo.root, home)

    symbols, answer, _ = done.stdout.split("= ")
    assert "src/retry.py:1" in symbols
    assert answer.startswith("0\n`send_again` is defined in `src/retry.py`")
    assert "Using the index at " in done.stderr
    assert "cannot be written to" in done.stderr


FILL_UP = """
citebot index >/dev/null 2>&1 || exit 98
cat /dev/zero >"$CITEBOT_HOME/filler" 2>/dev/null
echo 'def brand_new(): pass' >new.py; git add new.py; git -c user.name=a -c user.email=a@b commit -qm new
citebot index --json; echo "= $?"
truncate -s -80K "$CITEBOT_HOME/filler"
citebot search 'send an event again'; echo "= $?"
rm "$CITEBOT_HOME/filler"
citebot symbols brand_new; echo "= $?"
"""


@pytest.mark.needs("mounts")
@pytest.mark.exhaustive
def test_a_full_disk_leaves_the_earlier_index_and_is_made_good_later(repo: GitRepo, home: Path) -> None:
    done = mounted("size=3m", FILL_UP, repo.root, home)

    refused, earlier, later, end = done.stdout.split("= ")
    assert refused == ""
    assert earlier.startswith("1\nsrc/retry.py:1-8")
    assert later.startswith("0\nnew.py:1")
    assert end == "0\n"
    complaint, *notes = done.stderr.splitlines()
    assert "room on the disk" in complaint
    assert any(note.startswith("Using the index at ") for note in notes)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "advice"), [("catalog.sqlite", "Delete the folder"), ("conversations.sqlite", "move")]
)
def test_data_of_another_version_is_left_alone(
    name: str, advice: str, citebot: Citebot, repo: GitRepo, home: Path
) -> None:
    talk(citebot, repo.root)
    (database,) = home.rglob(name)
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for noted in home.rglob("catalog.json"):  # as every version does that writes to the catalog
        noted.unlink()

    complaint = talk(citebot, repo.root).complaint

    assert "another version of citebot" in complaint
    assert advice in complaint


@contextmanager
def busy(folder: Path) -> Iterator[None]:
    """Another process that holds the data folder for writing."""
    code = (
        "import sys; from pathlib import Path; from indexer.store.data_folder import DataFolder\n"
        "with DataFolder(Path(sys.argv[1])).hold_as_writer(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        holder.communicate(timeout=LIMIT_SECONDS)


def test_while_another_citebot_indexes_the_earlier_index_serves(citebot: Citebot, repo: GitRepo, home: Path) -> None:
    ask(citebot, repo.root)
    repo.commit("second")

    with busy(folder_of(home)):
        answered = ask(citebot, repo.root)
        refused = citebot("index", "--json", "--repo", str(repo.root))

    assert "src/retry.py" in answered.paths
    assert "Using the index at " in answered.err
    assert "Another citebot is indexing this repository" in refused.complaint
    assert citebot("index", "--repo", str(repo.root)).code == 0


@pytest.mark.exhaustive
def test_questions_asked_at_once_about_a_new_repository_are_all_answered(repo: GitRepo, home: Path) -> None:
    command = [sys.executable, "-m", "bot", "search", "send an event again", "--json", "--repo", str(repo.root)]
    askers = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]

    said = [(*asker.communicate(timeout=LIMIT_SECONDS), asker.returncode) for asker in askers]

    assert [code for _, _, code in said] == [0, 0], said
    assert {json.loads(out)["hits"][0]["path"] for out, _, _ in said} == {"src/retry.py"}


@pytest.mark.exhaustive
def test_processes_that_start_at_once_share_one_catalog(tmp_path: Path) -> None:
    together = threading.Barrier(4)
    failures: list[Exception] = []

    def begin(path: Path) -> None:
        together.wait(LIMIT_SECONDS)
        try:
            Catalog(path).close()
        except IndexerError as error:
            failures.append(error)

    for number in range(5):
        threads = [threading.Thread(target=begin, args=(tmp_path / str(number) / "c.sqlite",)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_SECONDS)

    assert failures == []


@pytest.mark.exhaustive
def test_the_size_of_a_folder_is_told_while_files_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"12345")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")

    assert measure_folder(tmp_path) == 5


# Damage


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(5000))


def other_array(path: Path) -> None:
    np.save(path, np.frombuffer(b'["../../../catalog"]', dtype=np.uint8))


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("chroma.sqlite3", truncated),
        ("vectors/*/*.bin", garbage),
    ],
)
@pytest.mark.exhaustive
def test_a_damaged_vector_store_is_built_again(
    pattern: str,
    damage: Callable[[Path], Any],
    citebot: Citebot,
    repo: GitRepo,
    home: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(citebot, repo.root)
    for path in list(home.rglob(pattern)):
        damage(path)
    repo.write("src/more.py", "more = 1\n")
    repo.commit()

    done = ask(citebot, repo.root)

    assert "src/retry.py" in done.paths
    assert "Traceback" not in done.err
    assert pattern == "vectors" or caplog.messages[0].startswith("The vector store was damaged and was rebuilt")
    assert json.loads(citebot("status", "--json", "--repo", str(repo.root)).out)["commits_behind"] == 0


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("*.npy", garbage),
        ("snapshot.npy", other_array),
    ],
)
@pytest.mark.exhaustive
def test_a_damaged_generation_is_made_again_at_the_next_question(
    pattern: str,
    damage: Callable[[Path], Any],
    citebot: Citebot,
    repo: GitRepo,
    home: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(citebot, repo.root)
    for path in list(home.rglob(pattern)):
        damage(path)

    done = ask(citebot, repo.root)

    assert "src/retry.py" in done.paths
    assert "Traceback" not in done.err
    assert caplog.messages == ["The index was damaged and is being rebuilt."]
    assert "src/retry.py" in ask(citebot, repo.root).paths
    assert len(caplog.messages) == 1


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def zeroed(path: Path) -> None:
    """As a disk leaves a page that was never written."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))


def without_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE symbols")


@pytest.mark.parametrize(
    ("damage", "is_noted"), [(truncated, True), (garbage, False), (emptied, True), (without_a_table, False)]
)
@pytest.mark.exhaustive
def test_a_damaged_catalog_is_built_again_and_said_so_once(
    damage: Callable[[Path], Any],
    is_noted: bool,
    citebot: Citebot,
    repo: GitRepo,
    home: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(citebot, repo.root)
    damage(folder_of(home) / "catalog.sqlite")
    if not is_noted:  # as after a process that was killed
        (folder_of(home) / "catalog.json").unlink()

    done = ask(citebot, repo.root)

    assert "src/retry.py" in done.paths
    assert "Traceback" not in done.err
    assert damage is emptied or caplog.messages == ["The index was damaged and is being rebuilt."]
    assert "src/retry.py" in ask(citebot, repo.root).paths
    assert len(caplog.messages) <= 1


@pytest.mark.exhaustive
def test_the_status_of_a_damaged_index_says_so(citebot: Citebot, repo: GitRepo, home: Path) -> None:
    ask(citebot, repo.root)
    garbage(folder_of(home) / "catalog.sqlite")

    status = json.loads(citebot("status", "--json", "--repo", str(repo.root)).out)

    assert status["commit"] is None
    assert status["warnings"] == ["The index of shop was damaged, and is being rebuilt."]


@pytest.mark.parametrize("damage", [truncated, garbage, zeroed])
def test_damaged_conversations_say_how_to_bring_them_back_and_are_left_as_they_are(
    damage: Callable[[Path], Any], citebot: Citebot, repo: GitRepo, home: Path, tmp_path: Path
) -> None:
    talk(citebot, repo.root)
    assert citebot("backup", str(tmp_path / "b.tar.gz")).code == 0
    damage(home / "conversations.sqlite")
    before = (home / "conversations.sqlite").read_bytes()

    complaint = talk(citebot, repo.root).complaint

    assert f"{home / 'conversations.sqlite'} is damaged" in complaint
    assert "citebot restore FILE --force" in complaint
    assert (home / "conversations.sqlite").read_bytes() == before
    assert citebot("search", "send again", "--repo", str(repo.root)).code == 0
    assert citebot("restore", str(tmp_path / "b.tar.gz"), "--force").code == 0
    assert "src/retry.py" in talk(citebot, repo.root).out
