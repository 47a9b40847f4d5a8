"""Commits by range, path, lines and text, the people behind them, and where lines come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.errors import UnknownRevision
from indexer.generations.history_reader import HistoryReader
from indexer.git.history import read_commits, read_origins
from indexer.index import CodeIndex
from indexer.types import CommitLog, Location, LogQuery
from tests.fakes.repositories import GitRepo
from tests.indexer.git.test_history import newest_two, pinned

BEN = "Ben Beispiel <ben@example.org>"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    return make_repository(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> tuple[GitRepo, Path]:
    """The repository and a data folder for its index, for tests that change neither."""
    folder = tmp_path_factory.mktemp("unchanged")
    return make_repository(folder), folder / "home"


def make_repository(folder: Path) -> GitRepo:
    repository = GitRepo(folder / "shop")
    repository.write("shop/pay.py", "RETRIES = 3\n\n\ndef pay() -> None:\n    pass\n")
    repository.commit("Pay for orders")
    repository.git("tag", "v1.0")
    repository.write("docs/pay.md", "How to pay.\n")
    repository.commit("Explain how to pay", author=BEN)
    repository.write("shop/pay.py", "RETRIES = 5\n\n\ndef pay() -> None:\n    pass\n")
    repository.commit("Try more often\n\nThree times were not enough\nfor the bank in Malmö.", author=BEN)
    repository.git("tag", "-a", "v1.1.0", "-m", "The second one")
    repository.write("shop/pay.py", "RETRIES = 5\n\n\ndef pay() -> None:\n    return refund()\n")
    repository.commit("Refund at once")
    return repository


async def ask(repository: GitRepo, home: Path, query: LogQuery) -> CommitLog:
    async with pinned(repository, home) as code:
        return await code.past.log(query)


def subjects(log: CommitLog) -> list[str]:
    return [one.subject for one in log.revisions]


async def test_the_newest_commits_come_first_with_their_files_and_messages(repository: GitRepo, tmp_path: Path) -> None:
    log = await ask(repository, tmp_path / "home", LogQuery(limit=2))

    assert subjects(log) == ["Refund at once", "Try more often"]
    assert (log.total, log.complete) == (4, False)
    assert log.revisions[1].paths == ("shop/pay.py",)
    assert log.revisions[1].body == "Three times were not enough\nfor the bank in Malmö."
    assert log.revisions[1].author == "Ben Beispiel"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (LogQuery(after="v1.0"), ["Refund at once", "Try more often", "Explain how to pay"]),
        (LogQuery(after="1.0", until="1.1"), ["Try more often", "Explain how to pay"]),
        (LogQuery(after="HEAD~2"), ["Refund at once", "Try more often"]),
        (LogQuery(after="v1.0", until="head^^"), ["Explain how to pay"]),
        (LogQuery(after="v1.1.0~"), ["Refund at once", "Try more often"]),
        (LogQuery(release="newest"), ["Try more often", "Explain how to pay"]),
        (LogQuery(release="v1.0"), ["Pay for orders"]),
        (LogQuery(after="v1.0", path="shop"), ["Refund at once", "Try more often"]),
        (LogQuery(path="docs/pay.md"), ["Explain how to pay"]),
        (LogQuery(path="shop/pay.py", lines=(1, 1)), ["Try more often", "Pay for orders"]),
        (LogQuery(path="shop/pay.py", lines=(4, 5)), ["Refund at once", "Pay for orders"]),
        (LogQuery(text="refund()"), ["Refund at once"]),
        (LogQuery(since=1_700_000_150), ["Refund at once"]),
        (LogQuery(since=1_700_000_030, before=1_700_000_130), ["Try more often", "Explain how to pay"]),
        (LogQuery(author="beispiel"), ["Try more often", "Explain how to pay"]),
        (LogQuery(author=".*"), []),
        (LogQuery(words=("MORE", "bank")), ["Try more often"]),
        (LogQuery(words=("more", "pay")), []),
        (LogQuery(words=("--all",), author="--help"), []),
    ],
)
async def test_a_log_has_what_was_asked_for(unchanged: tuple[GitRepo, Path], query: LogQuery, found: list[str]) -> None:
    log = await ask(*unchanged, query)

    assert subjects(log) == found
    assert (log.total, log.complete) == (len(found), True)


async def test_a_range_says_which_tags_it_lies_between(repository: GitRepo, tmp_path: Path) -> None:
    log = await ask(repository, tmp_path / "home", LogQuery(release="1.1"))

    assert log.after is not None
    assert log.until is not None
    assert (log.after.name, log.until.name, log.until.sha) == ("v1.0", "v1.1.0", repository.sha("v1.1.0^{commit}"))
    assert log.until.created_at == 1_700_000_180


@pytest.mark.parametrize(
    "written",
    [
        "9.9",
        "--output=/tmp/x",
        "HEAD~1~1",
        "v1.0..v1.1.0",
        "@{-1}",
        ":/Pay",
        "",
        "f" * 40,
    ],
)
async def test_a_name_that_is_no_tag_branch_or_commit_is_refused(unchanged: tuple[GitRepo, Path], written: str) -> None:
    async with pinned(*unchanged) as code:
        with pytest.raises(UnknownRevision, match=r"The newest tags are v1\.1\.0, v1\.0"):
            await code.past.log(LogQuery(after=written or "nowhere"))


@pytest.mark.parametrize("written", ["HEAD~4", "HEAD~99999", "v1.0^"])
async def test_there_is_nothing_before_the_first_commit(unchanged: tuple[GitRepo, Path], written: str) -> None:
    async with pinned(*unchanged) as code:
        with pytest.raises(
            UnknownRevision, match=r"There is no commit '.*': fewer than \d+ come before (HEAD|v1\.0)\."
        ):
            await code.past.log(LogQuery(after=written))


async def test_branches_and_shortened_commits_are_known_by_name(repository: GitRepo, tmp_path: Path) -> None:
    repository.git("branch", "stable", "v1.1.0")
    async with pinned(repository, tmp_path / "home") as code:
        by_branch = await code.past.log(LogQuery(after="stable"))
        by_commit = await code.past.log(LogQuery(after=repository.sha("v1.1.0^{commit}")[:8]))

    assert subjects(by_branch) == subjects(by_commit) == ["Refund at once"]


async def test_a_file_is_followed_through_its_former_names(repository: GitRepo, tmp_path: Path) -> None:
    repository.rename("shop/pay.py", "shop/payments.py")
    repository.commit("Name the file in full")

    log = await ask(repository, tmp_path / "home", LogQuery(path="shop/payments.py"))

    assert subjects(log) == ["Name the file in full", "Refund at once", "Try more often", "Pay for orders"]


async def test_what_came_after_the_indexed_commit_is_left_out(repository: GitRepo, tmp_path: Path) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        repository.write("docs/pay.md", "New.\n")
        repository.commit("Not indexed yet")
        log = await code.past.log(LogQuery())
        people = await code.past.people()

    assert subjects(log)[0] == "Refund at once"
    assert people.commits == 4


async def test_people_are_counted_by_lines_and_commits(repository: GitRepo, tmp_path: Path) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        of_file = await code.past.people("shop/pay.py")
        of_folder = await code.past.people("docs")
        of_all = await code.past.people()

    assert [(one.name, one.lines, one.commits) for one in of_file.people] == [
        ("Ada Example", 4, 2),
        ("Ben Beispiel", 1, 1),
    ]
    assert (of_file.lines, of_file.commits, of_file.complete) == (5, 3, True)
    assert [(one.name, one.first_at) for one in of_folder.people] == [("Ben Beispiel", 1_700_000_060)]
    assert [(one.name, one.commits) for one in of_all.people] == [("Ada Example", 2), ("Ben Beispiel", 2)]


async def test_lines_come_from_their_commits(repository: GitRepo, tmp_path: Path) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        origins = await code.past.origins(Location(path="shop/pay.py", start_line=1, end_line=5))

    assert [(one.revision.subject, one.lines, one.first_line) for one in origins] == [
        ("Pay for orders", 3, 2),
        ("Refund at once", 1, 5),
        ("Try more often", 1, 1),
    ]


async def test_a_shallow_clone_says_where_its_history_ends(repository: GitRepo, tmp_path: Path) -> None:
    index = await CodeIndex.open(newest_two(repository, tmp_path / "shallow"), home=tmp_path / "home")
    try:
        await index.refresh()
        past: HistoryReader = (await index.pin()).past
        log, people = await past.log(LogQuery()), await past.people()
    finally:
        await index.aclose()

    assert subjects(log) == ["Refund at once"]
    assert (log.complete, people.complete) == (False, False)
    assert log.horizon is not None
    assert log.horizon.sha == repository.sha("HEAD~1")


async def test_messages_and_names_are_masked_and_bounded(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("shop/pay.py", "RETRIES = 7\n")
    message = "Set DB_PASSWORD=tR4vq0ZkPw7nYb2X\n\nAlso DB_PASSWORD=tR4vq0ZkPw7nYb2X, and " + "word " * 400_000
    repository.write("message", message)
    repository.git("add", "shop")
    repository.git("commit", "--quiet", "--file=message", "--author=ada@example.org <ada@example.org>")
    async with pinned(repository, tmp_path / "home") as code:
        log = await code.past.log(LogQuery(limit=1))
        people = await code.past.people("shop")

    [newest] = log.revisions
    assert "tR4vq0" not in newest.subject + newest.body
    assert len(newest.body) <= 2_000
    assert newest.author == "ada"
    assert "ada" in {one.name for one in people.people}


async def test_no_text_to_look_for_is_an_option_of_git(repository: GitRepo, tmp_path: Path) -> None:
    trap = tmp_path / "written"
    log = await ask(repository, tmp_path / "home", LogQuery(text=f" --output={trap}"))

    assert log.revisions == ()
    assert not trap.exists()


async def test_a_mailmap_joins_the_names_of_one_person(repository: GitRepo, tmp_path: Path) -> None:
    repository.write(".mailmap", "Ben Beispiel <ben@example.org> <bb@example.org>\n")
    repository.commit("Join the names", author="bb <bb@example.org>")
    async with pinned(repository, tmp_path / "home") as code:
        people = await code.past.people()

    assert {one.name for one in people.people} == {"Ada Example", "Ben Beispiel"}


def test_output_that_is_cut_is_read_as_far_as_it_goes() -> None:
    assert list(read_commits(b"")) == []
    assert list(read_commits(b"\0abc\0Ann\0")) == []
    assert read_origins(b"") == []
    assert read_origins(b"0" * 40 + b" 1 1 1\nauthor Not Committed Yet\n\tx\n") == []
    assert read_origins(b"a" * 40 + b" 1 x 1\nauthor Ann\n\tx\n") == []
