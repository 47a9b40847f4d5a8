"""Migrations: a database comes to the newest layout as a whole, once, over a kept copy, or stays as it is."""

from __future__ import annotations

import json
import select
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agent.errors import SchemaError
from agent.persistence.migrations import Schema, list_copies, migrate_database
from tests.fakes.disks import ROOT, mounted
from tests.waiting import LIMIT_SECONDS

FIRST = "CREATE TABLE IF NOT EXISTS notes (text TEXT NOT NULL);"
ADDED = "ALTER TABLE notes ADD COLUMN IF NOT EXISTS author TEXT NOT NULL DEFAULT '';"
SCHEMA = Schema(
    name="note", steps={2: FIRST, 3: f"-- who wrote it\n{ADDED}\nCREATE INDEX by_author ON notes (author);"}
)
# Opens the database of the second argument with the steps of the first once it is told to, and says how that went.
OPENING = """
import json, sys
from pathlib import Path
from agent.persistence.migrations import Schema, migrate_database
steps = {int(number): sql for number, sql in json.loads(sys.argv[1]).items()}
print("ready", flush=True)
sys.stdin.readline()
migrate_database(Path(sys.argv[2]), Schema(name="note", steps=steps))
print("done", flush=True)
"""


def make_database(path: Path, sql: str = FIRST, *, layout: int = 1, notes: int = 1) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA journal_mode = WAL; {sql} PRAGMA user_version = {layout};")
        db.executemany("INSERT INTO notes VALUES (?)", [(f"note {number}",) for number in range(notes)])
        db.commit()
    return path


def read(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def state(path: Path) -> tuple[object, ...]:
    """The layout, all that is made of SQL, and all notes."""
    objects = read(path, "SELECT name, sql FROM sqlite_schema ORDER BY name")
    return read(path, "PRAGMA user_version")[0][0], objects, read(path, "SELECT * FROM notes")


def copy_of(path: Path, layout: int = 1) -> Path:
    return path.with_name(f"{path.name}.layout-{layout}")


def start(path: Path, steps: dict[int, str]) -> subprocess.Popen[str]:
    """A process that is ready to open the database."""
    command = [sys.executable, "-P", "-c", OPENING, json.dumps(steps), str(path)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_new_database_is_laid_out_and_nothing_is_copied(tmp_path: Path) -> None:
    migrate_database(tmp_path / "n.sqlite", SCHEMA)

    assert state(tmp_path / "n.sqlite")[0] == 3
    assert read(tmp_path / "n.sqlite", "PRAGMA auto_vacuum") == [(2,)]
    assert [path.name for path in tmp_path.iterdir()] == ["n.sqlite"]


def test_an_earlier_database_is_brought_up_and_a_copy_of_it_is_kept(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    before = state(path)

    migrate_database(path, SCHEMA)

    assert state(path)[::2] == (3, [("note 0", "")])
    assert state(copy_of(path)) == before
    assert list_copies(path) == [copy_of(path)]
    assert stat.S_IMODE(copy_of(path).stat().st_mode) == 0o600


def test_a_migrated_database_is_laid_out_as_a_new_one(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite", notes=0)

    migrate_database(path, SCHEMA)
    migrate_database(tmp_path / "new.sqlite", SCHEMA)

    assert state(path) == state(tmp_path / "new.sqlite")


def test_only_the_steps_that_are_missing_are_taken(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite", layout=2)

    migrate_database(path, Schema(name="note", steps={2: "DROP TABLE notes;", 3: ADDED}))

    assert state(path)[2] == [("note 0", "")]
    assert list_copies(path) == [copy_of(path, 2)]


def test_a_column_that_is_there_already_is_not_added_again(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'ann'")

    migrate_database(path, SCHEMA)

    assert state(path)[2] == [("note 0", "ann")]


def test_the_newest_layout_is_left_alone(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite", layout=3)

    migrate_database(path, Schema(name="note", steps={2: "DROP TABLE notes;", 3: "DROP TABLE notes;"}))

    assert state(path)[2] == [("note 0",)]
    assert list_copies(path) == []


@pytest.mark.parametrize("layout", [4, 99, 0, -1])
def test_a_layout_that_is_not_known_is_refused_and_left_as_it_is(tmp_path: Path, layout: int) -> None:
    path = make_database(tmp_path / "n.sqlite", layout=layout)
    before = state(path)

    with pytest.raises(SchemaError, match=rf"note database .* \(layout {layout}; this one takes 1 to 3\)") as refusal:
        migrate_database(path, SCHEMA)

    assert "move the file away to start over" in str(refusal.value)
    assert state(path) == before
    assert list_copies(path) == []


def test_a_program_that_is_older_again_names_the_copy_that_it_can_use(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite", layout=2)
    migrate_database(path, SCHEMA)

    with pytest.raises(SchemaError, match=rf"put back {copy_of(path, 2)}, which is how it was before"):
        migrate_database(path, Schema(name="note", steps={2: FIRST}))
    copy_of(path, 2).replace(path)
    migrate_database(path, Schema(name="note", steps={2: FIRST}))

    assert state(path)[::2] == (2, [("note 0",)])


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("CREATE TABLE more (n); INSERT INTO nowhere VALUES (1);", "no such table: nowhere"),
        ("DELETE FROM notes; INSERT INTO notes VALUES (NULL);", "NOT NULL constraint failed: notes.text"),
        ("CREATE TABLE more (n); CREATE TABLE more (n);", "table more already exists"),
        ("DROP TABLE notes; CREATE TABLE notes (;", "syntax error"),
    ],
)
def test_a_step_that_fails_half_way_leaves_everything_as_it_was(tmp_path: Path, step: str, reason: str) -> None:
    path = make_database(tmp_path / "n.sqlite")
    before = state(path)
    steps = {2: FIRST, 3: step.replace("; ", ";\n")}

    with pytest.raises(SchemaError, match=reason) as failure:
        migrate_database(path, Schema(name="note", steps=steps))

    assert "from layout 1 to 3" in str(failure.value)
    assert "Nothing was changed" in str(failure.value)
    assert state(path) == before
    migrate_database(path, SCHEMA)
    assert state(path)[0] == 3


def test_a_new_database_whose_layout_fails_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no such table"):
        migrate_database(tmp_path / "n.sqlite", Schema(name="note", steps={2: f"{FIRST}\nDROP TABLE nowhere;"}))

    assert read(tmp_path / "n.sqlite", "SELECT count(*) FROM sqlite_schema") == [(0,)]


def test_a_database_that_another_process_writes_to_is_waited_for(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            migrate_database(path, SCHEMA, wait_seconds=0.05)
        other.execute("ROLLBACK")

    assert state(path)[0] == 1
    assert list_copies(path) == []


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Let all of them continue at once, and return what each says."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes]


@pytest.mark.parametrize("is_new", [True, False], ids=["a new one", "an earlier one"])
def test_processes_that_start_at_once_lay_a_database_out_once(tmp_path: Path, is_new: bool) -> None:
    path = tmp_path / "n.sqlite" if is_new else make_database(tmp_path / "n.sqlite", notes=2_000)
    # Of a step that is taken twice the second time fails.
    steps = {2: FIRST, 3: "CREATE TABLE once (n);"}

    said = finish([start(path, steps) for _ in range(4)])

    assert said == ["done\n"] * 4
    assert read(path, "SELECT count(*) FROM notes") == [(0 if is_new else 2_000,)]
    assert len(list_copies(path)) == (0 if is_new else 1)


def test_a_kill_in_the_middle_leaves_the_last_state_and_the_next_start_goes_on(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    before = state(path)
    # It has changed the layout, and is busy for as long as it lives.
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    busy = f"CREATE TABLE half (n);\n{numbers}\nINSERT INTO half SELECT i FROM n WHERE i % 5000000 = 0 LIMIT 1000000;"
    process = start(path, {2: FIRST, 3: busy})
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    while not copy_of(path).exists():
        assert process.poll() is None
        select.select([], [], [], 0.01)

    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LIMIT_SECONDS)

    assert state(path) == before
    migrate_database(path, SCHEMA)
    assert state(path)[::2] == (3, [("note 0", "")])


def test_what_a_kill_left_of_a_copy_does_not_stand_in_the_way(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    before = state(path)
    for suffix in ("draft", "draft-journal"):
        path.with_name(f"{copy_of(path).name}.{suffix}").write_bytes(b"half of it")

    migrate_database(path, SCHEMA)

    assert state(copy_of(path)) == before
    assert not [file for file in tmp_path.iterdir() if "draft" in file.name]


def test_a_folder_in_which_no_copy_can_be_kept_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    path = make_database(tmp_path / "n.sqlite")
    before = state(path)
    copy_of(path).mkdir()  # where the copy must be
    (copy_of(path) / "file").touch()

    with pytest.raises(SchemaError, match=r"no copy of it could be kept before .*room for [\d,]+ bytes more"):
        migrate_database(path, SCHEMA)

    assert state(path) == before


# Brings a database up on a small disk of its own, and says what became of it.
ON_DISK = """
import os, sqlite3
from pathlib import Path
from agent.errors import SchemaError
from agent.persistence.migrations import Schema, migrate_database
path = Path(os.environ["CITEBOT_HOME"], "n.sqlite")
try:
    migrate_database(path, Schema(name="note", steps={2: "CREATE TABLE more (n);"}))
except (SchemaError, sqlite3.Error) as error:
    print(type(error).__name__, error)
print(sorted(file.name for file in path.parent.iterdir()))
print(*sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True).execute("PRAGMA user_version").fetchone())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the small disk is mounted at."""
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    (tmp_path / "program.py").write_text(ON_DISK, encoding="utf-8")
    return tmp_path / "home"


@pytest.mark.needs("mounts")
def test_a_disk_without_room_for_the_copy_is_named_and_nothing_is_changed(tmp_path: Path, home: Path) -> None:
    path = make_database(tmp_path / "n.sqlite", notes=60_000)
    script = f'cp {path} "$CITEBOT_HOME/"; "$0" -P {tmp_path / "program.py"}'

    done = mounted(f"size={path.stat().st_size + 600_000}", script, ROOT, home)

    assert done.stdout.startswith("SchemaError The note database"), done.stderr
    assert "no copy of it could be kept before (database or disk is full). Nothing was changed." in done.stdout
    assert done.stdout.endswith("['n.sqlite']\n1\n")


@pytest.mark.parametrize(
    ("journal", "says"),
    [("DELETE", "no copy of it could be kept before ([Errno 30]"), ("WAL", "unable to open database file")],
)
@pytest.mark.needs("mounts")
def test_a_folder_that_is_read_only_is_named_and_nothing_is_changed(
    tmp_path: Path, home: Path, journal: str, says: str
) -> None:
    path = make_database(tmp_path / "n.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
    remount = 'mount -o remount,ro "$CITEBOT_HOME"'
    script = f'cp {path} "$CITEBOT_HOME/"; {remount}; "$0" -P {tmp_path / "program.py"}'

    done = mounted("size=1m", script, ROOT, home)

    assert says in done.stdout, done.stderr
    assert done.stdout.endswith("\n['n.sqlite']\n1\n")
