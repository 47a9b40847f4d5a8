"""The data folder is its owner's alone: whatever the umask, whatever was there before, and said where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli import doctor
from bot.errors import FolderError
from bot.storage.data_folder_access import find_exposures, hold_shared_lock, secure_folder
from tests.fakes.citebot import Citebot
from tests.fakes.disks import ROOT
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS

# A clone and the database of a team, which `citebot serve` makes.
SERVED = """
import asyncio, sys
from pathlib import Path
from bot.storage.database import INBOX_FILE, open_database
from bot.errors import FolderError
from bot.storage.data_folder_access import hold_shared_lock
from bot.storage.data_folder_access import restrict_umask
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository

async def serve(home, url):
    async with open_database(home / INBOX_FILE) as database:
        await database.write("CREATE TABLE t (n INTEGER)")
        await RemoteClone(RemoteRepository(name="shop", url=url), home).newest()

restrict_umask()
asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
"""
ALL = (
    'umask "$1"; echo "where is parse_date?" | "$0" -m bot chat && "$0" -m bot backup b.tar.gz && '
    '"$0" -m bot doctor; "$0" -c "$2" "$CITEBOT_HOME" "$3" && '
    'CITEBOT_HOME="$CITEBOT_HOME.new" "$0" -m bot restore b.tar.gz'
)


def find_open(folder: Path) -> list[str]:
    """What others have any right to, the folder itself included."""
    paths = [folder, *folder.rglob("*")]
    return [f"{path.lstat().st_mode & 0o777:o} {path}" for path in paths if path.lstat().st_mode & 0o077]


@pytest.mark.parametrize("umask", ["000", "022"])
@pytest.mark.exhaustive
def test_whatever_citebot_makes_is_its_owners_alone(umask: str, tmp_path: Path, shop: Path) -> None:
    home = tmp_path / "fresh" / "home"
    (tmp_path / ".gitconfig").write_text("[core]\n\tsharedRepository = all\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CITEBOT_HOME": str(home), "HOME": str(tmp_path)}

    done = subprocess.run(
        ["sh", "-c", ALL, sys.executable, umask, SERVED, shop.as_uri()],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    made = {path.name for path in home.rglob("*")}
    assert {"conversations.sqlite", "inbox.sqlite", "catalog.sqlite", "chroma.sqlite3", "HEAD", "in_use.lock"} <= made
    restored = home.with_name("home.new")
    assert (restored / "conversations.sqlite").is_file()
    assert find_open(home) == find_open(restored) == find_open(tmp_path / "b.tar.gz") == []


def test_a_folder_that_was_open_is_closed_at_the_start_and_said_once(
    citebot: Citebot, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)

    assert citebot("status").code == citebot("status").code == 0

    assert find_open(home) == []
    (said,) = caplog.messages
    assert f"files and folders in {home} were open to others" in said


def test_links_are_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir(mode=0o755)
    outside.write_text("", encoding="utf-8")
    outside.chmod(0o644)
    (home / "link").symlink_to(outside)

    secure_folder(home)

    assert outside.stat().st_mode & 0o777 == 0o644


AS_ROOT = pytest.mark.needs("root")


@pytest.fixture
def planted() -> Iterator[Path]:
    """A folder of another user, which everybody can get at and write in."""
    with tempfile.TemporaryDirectory() as around:
        Path(around).chmod(0o755)
        folder = Path(around, "planted")
        folder.mkdir()
        os.chown(folder, 12_345, 12_345)
        folder.chmod(0o777)
        yield folder


@AS_ROOT
def test_a_folder_of_another_user_is_refused_and_left_as_it_is(planted: Path) -> None:
    os.seteuid(23_456)
    try:
        with pytest.raises(FolderError, match=f"The data folder {planted} belongs to the user 12345"):
            hold_shared_lock(planted)
    finally:
        os.seteuid(0)

    assert planted.stat().st_mode & 0o777 == 0o777
    assert list(planted.iterdir()) == []


@AS_ROOT
def test_root_is_told_whose_folder_it_uses(planted: Path, caplog: pytest.LogCaptureFixture) -> None:
    secure_folder(planted)

    assert f"The data folder {planted} belongs to the user 12345, not to the one that runs this." in caplog.messages


def test_parents_that_let_others_replace_the_folder_are_told(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    home = loose / "inner" / "home"
    home.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    assert find_exposures(home) == []

    loose.chmod(0o777)
    assert find_exposures(home) == [f"The data folder {home} can be replaced: everybody may write in {loose}."]
    loose.chmod(0o1777)  # as /tmp
    assert find_exposures(home) == []


async def test_doctor_tells_of_a_folder_that_is_open_to_others(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o750)

    found = await doctor.check_data_folder(tmp_path / "home")

    assert [each.level for each in found[1:]] == ["warning"]
    assert "is open to others (mode 0750)" in found[1].what


def test_a_shared_clone_of_a_team_is_closed_as_well(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "home" / "repositories" / "shop")
    repo.write("a.py", "a = 1\n")
    repo.commit()

    secure_folder(tmp_path / "home")

    assert find_open(tmp_path / "home") == []
