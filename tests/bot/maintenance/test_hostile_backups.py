"""Files that are no backup of ours, or were made to do harm: refused with a sentence, and nothing is touched."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.errors import BackupError
from bot.maintenance.backup import (
    NAME,
    BackupManifest,
    BackupMember,
    restore_backup,
)
from bot.storage.database import open_database

pytestmark = pytest.mark.exhaustive

CONTENT = b"# typed\n+where?\n"
PROMPTS = BackupMember(name="console_history", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
Change = Callable[[tarfile.TarInfo], None]


def listed(*members: BackupMember) -> bytes:
    return BackupManifest(made_at=0.0, indexes=True, members=members).to_bytes()


def entry(name: str, content: bytes = CONTENT, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    header = tarfile.TarInfo(name)
    header.size = len(content)
    for field, value in fields.items():
        setattr(header, field, value)
    return header, content


def archive(path: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for header, content in entries:
            made.addfile(header, io.BytesIO(content))
    return path


def everything(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name != "in_use.lock")


def refused(file: Path, home: Path) -> str:
    """What is said of a backup; the data folder must be as it was."""
    home.mkdir(exist_ok=True)
    (home / "console_history").write_text("mine", encoding="utf-8")
    around = everything(home.parent)
    with pytest.raises(BackupError) as caught:
        restore_backup(file, home, force=True)
    assert everything(home.parent) == around
    assert (home / "console_history").read_text(encoding="utf-8") == "mine"
    return str(caught.value)


def test_a_whole_one_is_restored(tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name))

    restore_backup(file, tmp_path / "home", force=False)

    assert (tmp_path / "home" / PROMPTS.name).read_bytes() == CONTENT
    assert (tmp_path / "home" / PROMPTS.name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "data",
    [b"", b"not compressed at all", gzip.compress(b""), gzip.compress(b"no archive" * 500), gzip.compress(b"x")[:8]],
    ids=["empty", "plain", "nothing", "no archive", "cut off"],
)
def test_a_file_that_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(data)

    assert "is not a backup of citebot" in refused(tmp_path / "b", tmp_path / "home")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere: No such file or directory" in refused(tmp_path / "nowhere", tmp_path / "home")


def test_another_archive_is_refused(tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry("etc/passwd"))

    assert "is not a backup of citebot. Nothing was restored." in refused(file, tmp_path / "home")


@pytest.mark.parametrize("length", [0.3, 0.6, 0.95])
def test_a_backup_that_was_cut_off_is_refused(length: float, tmp_path: Path) -> None:
    noise = bytes(hashlib.sha256(str(number).encode()).digest()[0] for number in range(50_000))
    member = BackupMember(name="console_history", size=len(noise), sha256=hashlib.sha256(noise).hexdigest())
    file = archive(tmp_path / "b", entry(NAME, listed(member)), entry(member.name, noise))
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * length)])

    assert "Nothing was restored." in refused(file, tmp_path / "home")


def test_a_member_that_is_missing_or_damaged_is_named(tmp_path: Path) -> None:
    missing = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)))
    damaged = archive(tmp_path / "c", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name, CONTENT[::-1]))

    assert "is not whole: console_history is missing" in refused(missing, tmp_path / "home")
    assert "is damaged: console_history is not what was saved" in refused(damaged, tmp_path / "home")


@pytest.mark.parametrize(
    "name",
    [
        "../escaped", "/etc/cron.d/escaped", "inbox.sqlite-wal", "in_use.lock", "",
        "repositories/a/vectors/0/index_metadata.pickle",
        "repositories/a/generations/1/x.pickle", "console_history\n", "repositories/a\\..\\b/catalog.sqlite",
    ],
)  # fmt: skip
def test_what_citebot_never_saves_is_refused_by_name(name: str, tmp_path: Path) -> None:
    declared = archive(tmp_path / "b", entry(NAME, listed(replace(PROMPTS, name=name))), entry(name))
    smuggled = archive(tmp_path / "c", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name), entry(name))

    assert "which citebot never saves" in refused(declared, tmp_path / "home")
    assert "Nothing was restored." in refused(smuggled, tmp_path / "home")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_what_is_no_plain_file_is_refused(kind: bytes, tmp_path: Path) -> None:
    odd = entry(PROMPTS.name, b"", type=kind, linkname="/etc/passwd")
    file = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), odd)

    assert "Nothing was restored." in refused(file, tmp_path / "home")


def test_a_file_that_comes_twice_is_refused(tmp_path: Path) -> None:
    twice = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name), entry(PROMPTS.name))
    listed_twice = archive(tmp_path / "c", entry(NAME, listed(PROMPTS, PROMPTS)), entry(PROMPTS.name))

    assert "which its list of contents does not" in refused(twice, tmp_path / "home")
    assert "lists a file twice" in refused(listed_twice, tmp_path / "home")


def test_a_file_larger_than_declared_is_not_unpacked(tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name, bytes(50_000_000)))

    assert "as something else than it declares" in refused(file, tmp_path / "home")


@pytest.mark.parametrize("bomb", ["path", "comment"])
def test_a_header_that_swells_is_not_read_to_its_end(bomb: str, tmp_path: Path) -> None:
    swollen = entry(PROMPTS.name, pax_headers={bomb: "a" * 40_000_000})
    with tarfile.open(tmp_path / "b", "w:gz", format=tarfile.PAX_FORMAT) as made:
        for header, content in (entry(NAME, listed(PROMPTS)), swollen):
            made.addfile(header, io.BytesIO(content))

    assert "holds more than it declares" in refused(tmp_path / "b", tmp_path / "home")


def test_what_follows_the_archive_is_not_read(tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name))
    file.write_bytes(file.read_bytes() + gzip.compress(bytes(200_000_000)))

    restore_backup(file, tmp_path / "home", force=False)

    assert (tmp_path / "home" / PROMPTS.name).read_bytes() == CONTENT


def test_more_than_the_disk_holds_is_refused_first(tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry(NAME, listed(replace(PROMPTS, size=2**60))), entry(PROMPTS.name))

    assert "Make room first." in refused(file, tmp_path / "home")


def test_a_backup_of_another_version_is_refused_as_such(tmp_path: Path) -> None:
    other = json.loads(listed(PROMPTS)) | {"form": 2}
    file = archive(tmp_path / "b", entry(NAME, json.dumps(other).encode()), entry(PROMPTS.name))

    assert "was made by another version of citebot (form 2, this one reads 1)" in refused(file, tmp_path / "home")


def packed(path: Path, *databases: tuple[str, Path]) -> Path:
    """A backup whose list of contents is right, whatever its databases are."""
    contents = {name: database.read_bytes() for name, database in databases}
    members = [
        BackupMember(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    ]
    return archive(path, entry(NAME, listed(*members)), *(entry(name, content) for name, content in contents.items()))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The messages of a team, as citebot makes them."""

    async def fill() -> None:
        async with open_database(tmp_path / "made.sqlite") as opened_database:
            for number in range(500):
                await opened_database.write("INSERT INTO turns VALUES (?, 't', '{}', 0)", (str(number),))

    asyncio.run(fill())
    return tmp_path / "made.sqlite"


def test_a_database_that_citebot_made_is_restored(database: Path, tmp_path: Path) -> None:
    restore_backup(packed(tmp_path / "b", ("inbox.sqlite", database)), tmp_path / "home", force=False)

    assert (tmp_path / "home" / "inbox.sqlite").read_bytes() == database.read_bytes()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON turns BEGIN DELETE FROM feedback; END", "the trigger 't'"),
        ("CREATE VIEW v AS SELECT load_extension('x')", "the view 'v'"),
        ("CREATE VIRTUAL TABLE words USING fts5(text)", "the table 'words"),
        ("CREATE TABLE more (n INTEGER)", "the table 'more'"),
        ("CREATE INDEX i ON turns (abs(at))", "the index 'i'"),
        ("DROP TABLE feedback; CREATE TABLE feedback (run_id, x AS (abs(1)))", "the table 'feedback'"),
        ("ALTER TABLE turns ADD COLUMN more CHECK (more > 1)", "the table 'turns'"),
        ("PRAGMA user_version = 99", "of another version of citebot (form 99)"),
    ],
)
def test_a_database_with_more_in_it_than_citebot_makes_is_refused(
    sql: str, says: str, database: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.executescript(sql)

    for name in ("inbox.sqlite", "conversations.sqlite", "repositories/a/catalog.sqlite"):
        said = refused(packed(tmp_path / "b", (name, database)), tmp_path / "home")
        assert f"holds {name}" in said
        assert said.endswith("Nothing was restored.")
    assert says in refused(packed(tmp_path / "b", ("inbox.sqlite", database)), tmp_path / "home")


def damage_page(data: bytes) -> bytes:
    return data[:8192] + bytes(4096) + data[12_288:]


@pytest.mark.parametrize(
    "damage",
    [damage_page, lambda data: data[:-5000], lambda data: data + bytes(4096), lambda data: b"x" * len(data),
     lambda data: data[:50] + b"\xff" * 20 + data[70:]],
    ids=["zeroed page", "cut off", "more behind it", "garbage", "header"],
)  # fmt: skip
def test_a_damaged_database_is_refused_and_named(
    damage: Callable[[bytes], bytes], database: Path, tmp_path: Path
) -> None:
    database.write_bytes(damage(database.read_bytes()))

    said = refused(packed(tmp_path / "b", ("inbox.sqlite", database)), tmp_path / "home")

    assert "holds inbox.sqlite" in said


@given(place=st.integers(0, 10_000), patch=st.binary(min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_backup_with_any_bytes_changed_is_whole_or_refused(place: int, patch: bytes, tmp_path: Path) -> None:
    file = archive(tmp_path / "b", entry(NAME, listed(PROMPTS)), entry(PROMPTS.name))
    data = bytearray(file.read_bytes())
    data[place % len(data) : place % len(data) + len(patch)] = patch
    file.write_bytes(data)
    try:
        restore_backup(file, tmp_path / "home", force=True)
    except BackupError:
        return
    assert (tmp_path / "home" / PROMPTS.name).read_bytes() == CONTENT
