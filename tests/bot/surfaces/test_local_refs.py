"""The surfaces of one person at this machine read other branches, tags and commits of a real repository."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import cast

import pytest

from bot.ports import Repositories
from bot.settings import RepositoryTable, Settings
from bot.surfaces.ask_events import Answered, AskEvent, NotAnswered
from bot.surfaces.local_core import open_local_core
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import SurfaceCore
from bot.surfaces.web.cited_code import CitedCode, CitedExcerpt
from indexer import UnknownPath, UnknownRevision
from tests.bot.surfaces.cores import SECRET, look_up
from tests.fakes.code import FakeCode
from tests.fakes.refs import FakeRefs
from tests.fakes.repositories import GitRepo
from tests.fakes.watched import Unseen

pytestmark = pytest.mark.exhaustive

ME = Principal(name="local:me", platform="local", person="me")


@pytest.fixture
def shop(tmp_path: Path) -> GitRepo:
    """A function that has another name on a branch."""
    shop = GitRepo(tmp_path / "shop")
    shop.write("src/pay.py", "def charge():\n    return 1\n")
    shop.commit("first")
    shop.branch("release-2.1")
    shop.write("src/pay.py", f'def charge_once():\n    return 2\n\n\nTOKEN = "{SECRET}"\n')
    shop.commit("once")
    shop.checkout("main")
    return shop


@pytest.fixture
async def core(shop: GitRepo, tmp_path: Path) -> AsyncIterator[SurfaceCore]:
    settings = Settings(home=tmp_path / "home", model="none")
    opening = open_local_core(settings, [RepositoryTable(path=shop.root)], Unseen(), say=lambda _: None)
    async with opening as core:
        yield core


async def ask(core: SurfaceCore, question: str, at: str | None = None) -> AskEvent:
    async with aclosing(core.questions.begin(ME, question, surface="mcp", at=at).stream()) as events:
        return [event async for event in events][-1]


async def test_every_lookup_reads_the_ref_that_it_is_given(core: SurfaceCore, shop: GitRepo) -> None:
    lookups, release = core.lookups, shop.sha("release-2.1")

    found = await look_up(lookups, ME, "find_symbol", name="charge_once", at="release-2.1")
    read = await look_up(lookups, ME, "read_file", path="src/pay.py", at=release[:10])
    lines = await look_up(lookups, ME, "grep", pattern="return", at="release-2.1")
    hits = await look_up(lookups, ME, "search_code", query="charge once", at="release-2.1")
    listed = await look_up(lookups, ME, "list_files", folder="src", at="release-2.1")
    calls = await look_up(lookups, ME, "find_callers", name="charge_once", at="release-2.1")
    callees = await look_up(lookups, ME, "find_callees", name="charge_once", at="release-2.1")
    history = await look_up(lookups, ME, "file_history", path="src/pay.py", at="release-2.1")
    newest = await look_up(lookups, ME, "find_symbol", name="charge_once", at="main")

    assert {one.commit for one in (found, read, lines, hits, listed, calls, callees, history)} == {release}
    assert [one.name for one in found.symbols] == ["charge_once"]
    assert "return 2" in read.code
    assert [one.text.strip() for one in lines.matches] == ["return 2"]
    assert [one.subject for one in history.commits] == ["once", "first"]
    assert (newest.commit, newest.total) == (shop.sha("main"), 0)
    assert SECRET not in read.code


async def test_a_resource_is_read_at_the_commit_that_a_result_has_named(core: SurfaceCore, shop: GitRepo) -> None:
    release = shop.sha("release-2.1")

    file = await core.lookups.read_at(ME, "shop", release, "src/pay.py")

    assert (file.commit, "return 2" in file.code) == (release, True)
    for commit in ("0" * 40, "release-2.1", "-x"):
        with pytest.raises(UnknownRevision, match="is not indexed at"):
            await core.lookups.read_at(ME, "shop", commit, "src/pay.py")
    with pytest.raises(UnknownPath):
        await core.lookups.read_at(ME, "shop", release, "src/gone.py")


async def test_a_ref_that_is_not_there_has_the_nearest_names(core: SurfaceCore) -> None:
    for name in ("release-2.2", "-x", "--upload-pack=x", "a..b", "\x00", "../main"):
        with pytest.raises(UnknownRevision, match=r"has no branch, tag or commit .* The nearest names are"):
            await look_up(core.lookups, ME, "find_symbol", name="charge", at=name)
    failed = await ask(core, "where is charge defined?", "release-2.2")

    assert isinstance(failed, NotAnswered)
    assert (failed.reason, "The nearest names are release-2.1" in failed.text) == ("unknown_ref", True)


async def test_a_question_is_answered_at_the_ref_that_comes_with_it_or_that_it_names(
    core: SurfaceCore, shop: GitRepo
) -> None:
    given = await ask(core, "where is charge_once defined?", "release-2.1")
    named = await ask(core, "on release-2.1, where is charge_once defined?")
    compared = await ask(core, "what changed between main and release-2.1?")

    for answered in (given, named):
        assert isinstance(answered, Answered)
        assert answered.commit == shop.sha("release-2.1")
        assert "Read shop at release-2.1, commit" in answered.freshness
    assert isinstance(compared, Answered)
    assert {one.commit for one in compared.citations if one.path} == {shop.sha("main"), shop.sha("release-2.1")}
    assert SECRET not in compared.text


async def test_the_page_shows_cited_lines_of_a_commit_that_is_not_indexed() -> None:
    refs = FakeRefs({"refs/heads/main": "a" * 40})
    cited = CitedCode(cast("Repositories", Nothing()), str, {"shop": refs})
    place = CitedExcerpt(repository="shop", commit="a" * 40, path="src/pay.py", first_line=1, last_line=1)

    shown = await cited.read(place)
    gone = await cited.read(CitedExcerpt(repository="web", commit="b" * 40, path="x.py", first_line=1, last_line=1))

    assert (shown.text, shown.begins, shown.problem) == (f"src/pay.py at {'a' * 40}", 1, "")
    assert "the index is at another commit now" in gone.problem


class Nothing:
    """A library whose repositories are indexed at a commit that nothing cites."""

    async def pin_existing(self, name: str) -> FakeCode:
        return FakeCode({})
