"""A path that the commit no longer has is answered with what became of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.evidence.coverage import explain_missing_paths
from agent.evidence.refs import make_lines_ref
from agent.lookups.tool import ToolReport
from agent.questions.mentions import find_mentions
from indexer.index import CodeIndex
from indexer.types import Location
from tests.fakes.repositories import GitRepo


async def test_a_renamed_or_removed_file_is_named_with_the_commit_that_did_so(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    for name in ("first.py", "gone.py", "kept.py"):
        repo.write(name, f"def {name[:-3]}():\n    return 'one of several lines'\n")
    repo.commit()
    repo.git("mv", "first.py", "second.py")
    renamed = repo.commit("Rename it")
    repo.git("mv", "second.py", "third.py")
    repo.commit("Rename it again")
    (repo.root / "src").mkdir()
    repo.git("mv", "kept.py", "src/deep.py")
    repo.commit("Move it")
    repo.git("mv", "src/deep.py", "src/deeper.py")
    moved = repo.commit("Rename what is in a folder")
    repo.git("rm", "-q", "gone.py")
    removed = repo.commit("Remove it")
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        await index.refresh()
        text = await explain_missing_paths(await index.pin(), ["first.py", "gone.py", "deep.py", "never.py"])
    finally:
        await index.aclose()

    assert text.startswith(
        f"`first.py` was renamed to `third.py` in `{renamed[:7]}`. `gone.py` was removed in `{removed[:7]}`. "
        f"`deep.py` was renamed to `src/deeper.py` in `{moved[:7]}`. There is no `never.py` in the 2 files of"
    )


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("what is in +page.server.js?", "+page.server.js"),
        ("what does src/routes/(group)/page.tsx do?", "src/routes/(group)/page.tsx"),
        ("explain app/[id].tsx, please", "app/[id].tsx"),
        ("explain app/[[...slug]]/page.tsx", "app/[[...slug]]/page.tsx"),
        ("is it (see src/app.py) there?", "src/app.py"),
        ("look at [the docs](docs/a.md)", "docs/a.md"),
        ("routes/$user.tsx has it", "routes/$user.tsx"),
        ("what is in .env.local?", ".env.local"),
        ("explain config/.eslintrc.json.", "config/.eslintrc.json"),
    ],
)
def test_paths_that_frameworks_give_a_meaning_are_read_whole(question: str, path: str) -> None:
    assert [one.path for one in find_mentions(question).paths] == [path]


def test_lines_of_a_path_with_brackets_are_named_once() -> None:
    report = ToolReport(str)
    report.show(make_lines_ref(Location(path="app/[id].tsx", start_line=1, end_line=1), "lines"), "let x;", about="x")
    assert report.evidence().text.startswith("[app/[id].tsx:L1] x\n")
