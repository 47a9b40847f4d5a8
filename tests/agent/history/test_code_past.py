"""The past of code as the agent asks for it: the reader of an index and the fake agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.ports import CodeSearch
from indexer.errors import UnknownRevision
from indexer.index import CodeIndex
from indexer.types import Coverage, Location, LogQuery, Revision
from tests.fakes.code import FakeCode
from tests.fakes.repositories import GitRepo

FILES = {
    "CODEOWNERS": "/shop/ @shop/payments\n",
    "shop/pay.py": "def pay():\n    return 1\n",
    "docs/pay.md": "How to pay.\n",
}


@pytest.fixture(params=["reader", "fake"])
async def code(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CodeSearch]:
    """Two commits: one with everything, by Ada, and one that touched the prose, by Ben."""
    if request.param == "fake":
        ben = Revision(sha="b" * 40, author="Ben", committed_at=2, subject="Word it better", paths=("docs/pay.md",))
        ada = Revision(sha="a" * 40, author="Ada Example", committed_at=1, subject="Pay", paths=tuple(sorted(FILES)))
        yield FakeCode(FILES, commits=(ben, ada), omissions={"libs/bank": "submodule"})
        return
    other = GitRepo(tmp_path / "bank")
    other.write("bank.c")
    other.commit()
    repository = GitRepo(tmp_path / "shop")
    for path, text in FILES.items():
        repository.write(path, "Pay so.\n" if path.endswith(".md") else text)
    repository.submodule("libs/bank", other)
    repository.commit("Pay")
    repository.write("docs/pay.md", FILES["docs/pay.md"])
    repository.commit("Word it better", author="Ben <ben@example.org>")
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        yield await index.pin()
    finally:
        await index.aclose()


@pytest.mark.parametrize(
    ("query", "subjects", "complete"),
    [
        (LogQuery(), ["Word it better", "Pay"], True),
        (LogQuery(limit=1), ["Word it better"], False),
        (LogQuery(path="shop/pay.py"), ["Pay"], True),
        (LogQuery(path="docs"), ["Word it better", "Pay"], True),
    ],
)
async def test_commits_are_listed_newest_first(
    code: CodeSearch, query: LogQuery, subjects: list[str], complete: bool
) -> None:
    log = await code.past.log(query)

    assert [one.subject for one in log.revisions] == subjects
    assert log.complete == complete
    assert log.total == (2 if query.limit == 1 else len(subjects))


async def test_a_tag_that_is_not_here_is_refused(code: CodeSearch) -> None:
    with pytest.raises(UnknownRevision, match=r"There is no tag, branch or commit '1\.0'"):
        await code.past.log(LogQuery(after="1.0"))


async def test_people_are_counted(code: CodeSearch) -> None:
    everywhere, of_folder = await code.past.people(), await code.past.people("shop")
    newest = (await code.past.log(LogQuery(limit=1))).revisions[0].sha

    assert [(one.name, one.commits) for one in everywhere.people] == [("Ada Example", 1), ("Ben", 1)]
    assert [one.name for one in of_folder.people] == ["Ada Example"]
    assert everywhere.people[1].newest == newest
    assert (everywhere.commits, everywhere.lines, everywhere.complete) == (2, 0, True)


async def test_lines_have_an_origin_an_owner_and_no_release(code: CodeSearch) -> None:
    [origin] = await code.past.origins(Location(path="shop/pay.py", start_line=1, end_line=2))
    owners = await code.past.owners("shop/pay.py")

    assert (origin.revision.author, origin.lines) == ("Ada Example", 2)
    assert owners is not None
    assert (owners.owners, owners.location.path) == (("@shop/payments",), "CODEOWNERS")
    assert await code.past.owners("docs/pay.md") is None


async def test_paths_that_are_not_indexed_are_known(code: CodeSearch) -> None:
    assert [(one.path, one.reason) for one in await code.list_left_out()] == [("libs/bank", "submodule")]
    assert await code.coverage("bank") == Coverage(files=len(await code.files()), skipped={"submodule": 1})
