"""Remote repositories are fetched and indexed: long histories, huge files, and names that file systems dislike."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.remotes.clone import RemoteClone
from indexer.remotes.remote_repository import RemoteRepository
from indexer.types import RefreshReport
from tests.fakes.git_host import GitHost, published, serving
from tests.fakes.repositories import GitRepo, run_git

COMMITS = 100_000
HUGE = 200_000_000  # bytes
SECONDS = 10  # far more than a refresh of a few files takes, far less than one that looks at all history or contents
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A repository that is written here, pushed to a host, and fetched from it."""

    work: GitRepo
    bare: Path
    clone: RemoteClone
    index: CodeIndex

    async def refreshed(self, *, full: bool = False) -> tuple[RefreshReport, IndexReader]:
        """Fetch and index the newest commit, and hold it."""
        await self.clone.newest()
        report = await self.index.refresh(full=full)
        return report, await self.index.pin()

    async def pushed(self) -> tuple[RefreshReport, IndexReader]:
        """Push what was written first."""
        self.work.commit()
        self.work.git("push", "--quiet", "origin", "HEAD")
        return await self.refreshed()


@pytest.fixture
def work(tmp_path: Path) -> GitRepo:
    work = GitRepo(tmp_path / "work")
    work.write("shop.py", "def sell() -> None: ...\n")
    return work


@asynccontextmanager
async def fetching(work: GitRepo, tmp_path: Path) -> AsyncIterator[Fetched]:
    """Publish what was written."""
    work.commit()
    async with serving(GitHost(tmp_path / "host", looks_around=False)) as host:
        bare = published(work.root, host, "shop.git")
        work.git("remote", "add", "origin", str(bare))
        clone = RemoteClone(RemoteRepository(name="shop", url=f"{host.url}/shop.git"), tmp_path / "home")
        await clone.prepare()
        index = await CodeIndex.open(clone.path, home=tmp_path / "home", name="shop")
        try:
            yield Fetched(work=work, bare=bare, clone=clone, index=index)
        finally:
            await index.aclose()


async def paths(reader: IndexReader) -> list[str]:
    return [entry.path for entry in await reader.files()]


def lengthen(bare: Path, start: str, tree: str, last_tree: str) -> str:
    """Add many commits to a host's branch, all with one tree but the last; return that one.

    They are packed here: git itself would take several seconds.
    """
    sha, packed = start, [struct.pack(">4sII", b"PACK", 2, COMMITS)]
    for number in range(COMMITS):
        who = f"Ada <ada@example.org> {1_700_000_000 + number} +0000"
        of = last_tree if number == COMMITS - 1 else tree
        data = f"tree {of}\nparent {sha}\nauthor {who}\ncommitter {who}\n\n".encode()
        sha = hashlib.sha1(b"commit %d\0" % len(data) + data).hexdigest()
        packed += [bytes((0x90 | len(data) & 15, len(data) >> 4)), zlib.compress(data, 1)]  # a commit, and its size
    pack = b"".join(packed)
    whole = pack + hashlib.sha1(pack).digest()
    subprocess.run(["git", "index-pack", "--stdin"], cwd=bare, input=whole, capture_output=True, check=True)
    run_git(bare, "update-ref", "refs/heads/main", sha)
    return sha


@pytest.mark.exhaustive
async def test_a_hundred_thousand_commits_are_no_work_for_a_refresh(work: GitRepo, tmp_path: Path) -> None:
    async with fetching(work, tmp_path) as shop:
        await shop.refreshed()
        start, tree = work.sha(), work.sha("HEAD^{tree}")
        work.write("till.py", "def open_till() -> None: ...\n")
        work.commit()
        work.git("push", "--quiet", "origin", "HEAD:side")
        tip = lengthen(shop.bare, start, tree, work.sha("HEAD^{tree}"))
        await shop.clone.newest()
        assert (await shop.index.status()).commits_behind == COMMITS

        report, reader = await shop.refreshed()
        whole, _ = await shop.refreshed(full=True)

        assert (report.changed, await paths(reader)) == (1, ["shop.py", "till.py"])
        assert (whole.changed, whole.commit, report.commit) == (2, tip, tip)
        assert max(report.seconds, whole.seconds) < SECONDS


@pytest.mark.exhaustive
async def test_a_huge_file_is_left_out_without_being_read(work: GitRepo, tmp_path: Path) -> None:
    with work.write("data.py").open("wb") as file:
        file.truncate(HUGE)
    work.git("config", "core.bigFileThreshold", "1m")  # git then takes it in, and hands it on, at one go
    async with fetching(work, tmp_path) as shop:
        first, reader = await shop.refreshed()
        skipped = (await shop.index.status()).skipped
        work.write("data.py", "rows = []\n")
        second, later = await shop.pushed()

        assert (await paths(reader), skipped) == (["shop.py"], {"too large": 1})
        assert (second.changed, await paths(later)) == (1, ["data.py", "shop.py"])
        assert first.seconds < SECONDS


async def test_submodules_links_and_lfs_pointers_are_left_out_until_they_are_files(
    work: GitRepo, tmp_path: Path
) -> None:
    library = GitRepo(tmp_path / "library")
    library.write("lib.py", "def lend() -> None: ...\n")
    library.commit()
    work.submodule("libs/library", library)
    work.link("alias.py", "shop.py")
    work.link("loop.py", "loop.py")
    work.link("passwords.py", "/etc/passwd")
    work.write("model.py", POINTER.format("4d7a"))
    async with fetching(work, tmp_path) as shop:
        _, first = await shop.refreshed()
        skipped = (await shop.index.status()).skipped
        work.remove("alias.py")
        work.write("alias.py", "from shop import sell\n")
        work.write("model.py", "class Model: ...\n")
        work.git("rm", "--quiet", "--cached", "libs/library")
        (work.root / "libs/library/.git").unlink()
        _, second = await shop.pushed()
        work.remove("shop.py")
        work.link("shop.py", "alias.py")
        work.write("model.py", POINTER.format("0000"))
        _, third = await shop.pushed()

        assert (await paths(first), skipped) == (
            [".gitmodules", "shop.py"],
            {"submodule": 1, "symlink": 3, "LFS pointer": 1},
        )
        assert await paths(second) == [".gitmodules", "alias.py", "libs/library/lib.py", "model.py", "shop.py"]
        assert await paths(third) == [".gitmodules", "alias.py", "libs/library/lib.py"]


async def test_names_that_differ_in_case_alone_are_files_of_their_own(work: GitRepo, tmp_path: Path) -> None:
    work.write("Shop.py", "def buy() -> None: ...\n")
    work.write("SHOP/till.py", "def open_till() -> None: ...\n")
    work.write("shop/till.py", "def close_till() -> None: ...\n")
    async with fetching(work, tmp_path) as shop:
        _, first = await shop.refreshed()
        texts = [(await first.read(path)).text for path in await paths(first)]
        found = {(await first.search(word))[0].location.path for word in ("open_till", "close_till")}
        work.remove("shop.py")
        work.write("Shop.py", "def barter() -> None: ...\n")
        _, second = await shop.pushed()

        names = ("open_till", "buy", "sell", "close_till")
        assert texts == [f"def {name}() -> None: ..." for name in names]
        assert await paths(first) == ["SHOP/till.py", "Shop.py", "shop.py", "shop/till.py"]
        assert found == {"SHOP/till.py", "shop/till.py"}
        assert await paths(second) == ["SHOP/till.py", "Shop.py", "shop/till.py"]
        assert (await second.read("Shop.py")).text == "def barter() -> None: ..."


async def test_names_that_are_no_utf8_are_followed_through_changes(work: GitRepo, tmp_path: Path) -> None:
    work.write(b"caf\xe9.py", "def brew() -> None: ...\n")
    work.write(b"caf\xe9/men\xfc.py", "def order() -> None: ...\n")
    async with fetching(work, tmp_path) as shop:
        _, first = await shop.refreshed()
        work.write(b"caf\xe9.py", "def roast() -> None: ...\n")
        (work.root / "caf\udce9/men\udcfc.py").unlink()
        report, second = await shop.pushed()

        assert await paths(first) == ["caf\\xe9.py", "caf\\xe9/men\\xfc.py", "shop.py"]
        assert (report.changed, await paths(second)) == (1, ["caf\\xe9.py", "shop.py"])
        assert (await second.search("roast"))[0].location.path == "caf\\xe9.py"
