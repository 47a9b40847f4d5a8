"""The data folder saved in one file and brought back: all that is in it, beside others at work, never in halves."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import ormsgpack
import pytest

from agent.persistence.checkpointer import open_saver
from agent.persistence.evidence_store import EvidenceStore
from bot.app import App
from bot.errors import BackupError
from bot.maintenance.backup import restore_backup
from bot.settings import RepositoryTable, Settings
from bot.storage.data_folder_access import hold_exclusive_lock
from bot.storage.database import INBOX_FILE, open_database
from bot.storage.turn_records import TurnRecord, TurnRecordStore
from indexer.store.data_folder import DataFolder, find_index_folder
from tests.fakes.citebot import Citebot
from tests.fakes.clock import FakeClock
from tests.fakes.disks import ROOT, mounted
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS, block_for

RECORD = TurnRecord(repository="demo", commit="0" * 40, route="fast", model=None, seconds=1.0)


async def _filled(home: Path) -> None:
    """A conversation, and a rated turn."""
    async with open_saver(home / "conversations.sqlite") as saver:
        await EvidenceStore(saver).of("t").keep("e1", "the text of the evidence")
    async with open_database(home / INBOX_FILE) as database:
        records = TurnRecordStore(database, FakeClock())
        await records.keep("run", "t", RECORD)
        await records.rate("run", "ann", "good")


@pytest.fixture
def full(home: Path) -> Path:
    """A data folder in which everything is: an index, a conversation, a rating, what was typed."""
    asyncio.run(_filled(home))
    (home / "console_history").write_text("# 2026-01-01\n+where is it?\n", encoding="utf-8")
    return home


@pytest.fixture
def saved(full: Path, citebot: Citebot, tmp_path: Path) -> Path:
    """A backup of it."""
    assert citebot("backup", str(tmp_path / "saved.tar.gz")).code == 0
    return tmp_path / "saved.tar.gz"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another data folder, which is the one meant once this is asked for."""
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def dumped(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as db:
        return list(db.iterdump())


def contents(home: Path) -> dict[str, bytes]:
    """Every file but locks and digests, by path; of databases what is in them."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and not name.endswith((".lock", "-wal", "-shm", "/catalog.json")) and "/vectors/" not in name:
            found[name] = repr(dumped(path)).encode() if path.suffix == ".sqlite" else path.read_bytes()
    return found


def test_everything_comes_back_and_answers(saved: Path, full: Path, citebot: Citebot, elsewhere: Path) -> None:
    before = contents(full)

    assert citebot("restore", str(saved), "--json").answer["indexes"] == 1

    assert contents(elsewhere) == before
    assert {"conversations.sqlite", INBOX_FILE, "console_history"} < set(before)
    assert [row["rating"] for row in citebot("feedback", "--json").answer["feedback"]] == ["good"]
    found = citebot("search", "parse a date", "--json")
    assert (found.err, found.answer["hits"][0]["path"]) == ("", "shop/dates.py")  # nothing was indexed again
    assert sorted(path.name for path in elsewhere.iterdir() if path.name.startswith(".")) == []


@pytest.mark.exhaustive
def test_a_restored_conversation_makes_nothing_but_plain_values_of_what_it_reads(
    saved: Path, elsewhere: Path, citebot: Citebot, tmp_path: Path
) -> None:
    assert citebot("restore", str(saved)).code == 0
    planted = tmp_path / "planted"
    call = ormsgpack.Ext(0, ormsgpack.packb(("os", "mkdir", str(planted))))
    checkpoint = ormsgpack.packb({"id": "1", "v": 4, "channel_values": {"x": call}})

    async def read() -> None:
        async with open_saver(elsewhere / "conversations.sqlite") as saver:
            await saver.write("INSERT INTO checkpoints VALUES ('t', '', '1', NULL, 'msgpack', ?, '{}')", (checkpoint,))
            async with saver.open_checkpoints() as checkpoints:
                await checkpoints.aget_tuple({"configurable": {"thread_id": "t"}})

    asyncio.run(read())

    assert not planted.exists()


@pytest.mark.exhaustive
def test_a_restored_index_goes_on_with_the_next_commit(
    citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = GitRepo(tmp_path / "own")
    repo.write("a.py", "def first() -> None:\n    pass\n")
    repo.commit()
    monkeypatch.setenv("CITEBOT_REPO", str(repo.root))
    assert citebot("index").code == citebot("backup", "b.tar.gz").code == 0
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "elsewhere"))
    assert citebot("restore", "b.tar.gz").code == 0

    repo.write("b.py", "def second() -> None:\n    pass\n")
    repo.commit()
    assert citebot("index", "--json").answer["changed"] == 1  # only what is new was read
    assert citebot("symbols", "second", "--json").code == citebot("symbols", "first", "--json").code == 0


def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_beside_it(saved: Path, tmp_path: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"home", "saved.tar.gz"}


@pytest.mark.exhaustive
def test_without_indexes_those_that_are_there_stay(full: Path, citebot: Citebot, tmp_path: Path) -> None:
    before = contents(full)
    assert citebot("backup", "small.tar.gz", "--no-indexes", "--json").answer["indexes"] == 0
    (full / "console_history").unlink()

    assert citebot("restore", "small.tar.gz", "--force").code == 0

    assert contents(full) == before


@pytest.mark.exhaustive
def test_a_log_of_the_database_before_is_not_taken_for_that_of_the_restored(
    saved: Path, full: Path, citebot: Citebot
) -> None:
    before = contents(full)
    with closing(sqlite3.connect(full / INBOX_FILE)) as db:  # as a process that was killed leaves it
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("DELETE FROM feedback")
        db.commit()
        log = (full / f"{INBOX_FILE}-wal").read_bytes()
    (full / f"{INBOX_FILE}-wal").write_bytes(log)

    assert citebot("restore", str(saved), "--force").code == 0
    assert contents(full) == before


@pytest.fixture
def writing(full: Path) -> Iterator[threading.Event]:
    """Another connection that adds a row to both of two tables in one transaction, again and again."""
    ended, begun = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(full / INBOX_FILE, isolation_level=None, timeout=LIMIT_SECONDS)) as db:
            db.executescript("DELETE FROM turns; DELETE FROM feedback")
            for number in count():
                if ended.is_set():
                    break
                db.execute("BEGIN")
                db.execute("INSERT INTO turns VALUES (?, 't', '{}', 0)", (number,))
                db.execute("INSERT INTO feedback VALUES (?, 'ann', 'good', 0)", (number,))
                db.execute("COMMIT")
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        block_for(begun, "a row is written")
        yield begun
    finally:
        ended.set()
        thread.join()


@pytest.mark.exhaustive
def test_what_is_saved_while_others_write_is_of_one_moment(
    writing: threading.Event, full: Path, citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.clear()
    assert citebot("backup", "busy.tar.gz").code == 0
    block_for(writing, "another row is written, since the writer is not held up")
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "elsewhere"))
    assert citebot("restore", "busy.tar.gz").code == 0

    with closing(sqlite3.connect(tmp_path / "elsewhere" / INBOX_FILE)) as db:
        (left,) = db.execute("SELECT count(*) FROM turns").fetchone()
        assert db.execute("SELECT count(*) FROM feedback").fetchone() == (left,)
        assert left > 0


@pytest.mark.exhaustive
def test_a_refresh_under_way_keeps_no_index_from_being_saved(full: Path, shop: Path, citebot: Citebot) -> None:
    with DataFolder(full / "repositories" / find_index_folder(shop)).hold_as_writer():
        assert citebot("backup", "b.tar.gz", "--json").answer["indexes"] == 1


async def test_a_restore_is_refused_while_a_citebot_runs(saved: Path, full: Path, shop: Path) -> None:
    before = contents(full)

    async with App.open(Settings.load(), RepositoryTable(path=shop)):
        with pytest.raises(BackupError, match="Another citebot is using"):
            restore_backup(saved, full, force=True)

    assert contents(full) == before


@pytest.mark.exhaustive
def test_a_citebot_is_refused_while_a_backup_is_restored(full: Path, citebot: Citebot) -> None:
    with hold_exclusive_lock(full):
        assert "is being restored" in citebot("status").complaint
    assert citebot("status").code == 0


def test_a_data_folder_that_holds_something_is_not_overwritten(saved: Path, full: Path, citebot: Citebot) -> None:
    before = contents(full)

    assert "add --force" in citebot("restore", str(saved)).complaint
    assert contents(full) == before


@pytest.mark.exhaustive
def test_an_existing_file_is_not_overwritten(saved: Path, citebot: Citebot) -> None:
    before = saved.read_bytes()

    assert "or replace it with --force" in citebot("backup", str(saved)).complaint
    assert saved.read_bytes() == before
    assert citebot("backup", str(saved), "--force").code == 0


@pytest.mark.exhaustive
def test_an_empty_data_folder_is_nothing_to_save(citebot: Citebot, elsewhere: Path, tmp_path: Path) -> None:
    assert "There is nothing to save in" in citebot("backup", "b.tar.gz").complaint
    assert not (tmp_path / "b.tar.gz").exists()
    assert not elsewhere.exists()


@pytest.mark.exhaustive
def test_places_where_nothing_can_be_written_are_sentences(full: Path, citebot: Citebot, tmp_path: Path) -> None:
    assert "is a folder. Name a file" in citebot("backup", str(tmp_path)).complaint
    assert f"The folder {tmp_path / 'nowhere'} does not exist. Make it" in citebot("backup", "nowhere/b.gz").complaint


@pytest.mark.exhaustive
def test_a_damaged_database_is_named_and_no_backup_made(full: Path, citebot: Citebot, tmp_path: Path) -> None:
    (full / INBOX_FILE).write_bytes(b"no database at all" * 100)

    assert f"{INBOX_FILE} is damaged" in citebot("backup", "b.tar.gz").complaint
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


@pytest.mark.needs("root")
@pytest.mark.exhaustive
def test_a_database_of_another_user_is_named_and_no_backup_made(full: Path, tmp_path: Path) -> None:
    os.chown(full / INBOX_FILE, 65_534, 65_534)
    (full / INBOX_FILE).chmod(0o600)
    powerless = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable, "-m", "bot"]

    done = subprocess.run(
        [*powerless, "backup", "b.tar.gz"], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{INBOX_FILE} cannot be read." in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


@pytest.mark.exhaustive
def test_what_a_killed_restore_moved_away_is_put_back(saved: Path, full: Path, citebot: Citebot) -> None:
    before = contents(full)
    (full / ".restoring" / "old").mkdir(parents=True)
    (full / INBOX_FILE).rename(full / ".restoring" / "old" / INBOX_FILE)

    assert "add --force" in citebot("restore", str(saved)).complaint
    assert contents(full) == before


@pytest.mark.needs("mounts")
@pytest.mark.exhaustive
def test_a_full_disk_makes_no_backup_and_loses_nothing(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    repo.write("a.py", "def first() -> None:\n    pass\n")
    repo.commit()
    script = (
        'citebot index >&2; head -c 2000000 /dev/urandom >"$CITEBOT_HOME/console_history"; '
        'citebot backup "$CITEBOT_HOME/b.tar.gz"; ls -A "$CITEBOT_HOME"; citebot search first'
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "small"))
        done = mounted("size=6m", script, repo.root, tmp_path / "small")

    assert "The disk is full: " in done.stderr, done.stderr
    assert "b.tar.gz" not in done.stdout
    assert ".citebot-" not in done.stdout
    assert "a.py:1-2" in done.stdout


@pytest.mark.needs("mounts")
@pytest.mark.exhaustive
def test_a_disk_without_room_is_told_before_anything_is_restored(saved: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "small"))
        script = f'citebot restore "{saved}"; ls -A "$CITEBOT_HOME"'
        done = mounted("size=1m", script, tmp_path, tmp_path / "small")

    assert "Make room first." in done.stderr, done.stderr
    assert done.stdout.split() == ["in_use.lock"]
