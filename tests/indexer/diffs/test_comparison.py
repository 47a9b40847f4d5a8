"""Two commits of a real repository beside each other: files, lines, and what is only counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.errors import UnknownRevision
from indexer.types import ChangedPlace, Comparison, DiffQuery
from tests.fakes.repositories import GitRepo, run_git
from tests.indexer.git.test_history import pinned

PARSER = "def parse(text):\n    return text.split()\n\n\ndef clean(text):\n    return text\n"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    """Two releases, between which a file is changed, one renamed, one removed, and some are added."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("src/parser.py", PARSER)
    repository.write("src/gone.py", "GONE = 1\n")
    repository.write("src/old_name.py", "".join(f"VALUE_{n} = {n}\n" for n in range(20)))
    repository.write("README.md", "# Shop\n")
    repository.commit("first")
    repository.git("tag", "v1.0")
    repository.write(
        "src/parser.py", PARSER.replace("text.split()", 'text.split(",")').replace("text\n", "text or 0\n")
    )
    repository.remove("src/gone.py")
    repository.rename("src/old_name.py", "src/new_name.py")
    repository.write("tests/test_parser.py", "def test_parse():\n    pass\n")
    repository.write("README.md", "# Shop\n\nRead it.\n")
    repository.write("logo.png", b"\x89PNG\0\0")
    repository.write("shop_pb2.py", "MADE = 1\n")
    repository.write(".env", "SECRET=1\n")
    repository.commit("second")
    repository.git("tag", "v2.0")
    return repository


async def compare(repository: GitRepo, home: Path, query: DiffQuery) -> Comparison:
    async with pinned(repository, home) as code:
        return await code.past.compare(query)


def places(found: Comparison, path: str) -> list[ChangedPlace]:
    return [one for one in found.places if one.path == path]


async def test_files_are_listed_with_their_lines_the_code_first(repository: GitRepo, tmp_path: Path) -> None:
    found = await compare(repository, tmp_path / "home", DiffQuery(after="v1.0", until="2.0"))

    assert [(one.path, one.fate, one.former, one.added, one.removed) for one in found.files] == [
        ("src/parser.py", "changed", "", 2, 2),
        ("src/gone.py", "removed", "", 0, 1),
        ("src/new_name.py", "renamed", "src/old_name.py", 0, 0),
        ("tests/test_parser.py", "added", "", 2, 0),
        ("README.md", "changed", "", 2, 0),
    ]
    assert (found.older.name, found.newer.name, found.base) == ("v1.0", "v2.0", repository.sha("v1.0"))
    assert (found.ahead, found.behind, found.total, found.is_complete) == (1, 0, 5, True)
    assert dict(found.folded) == {"binary": 1, "generated": 1, "secret-bearing": 1}


async def test_places_have_the_lines_of_both_commits(repository: GitRepo, tmp_path: Path) -> None:
    found = await compare(repository, tmp_path / "home", DiffQuery(after="v1.0", until="v2.0"))

    first, second = places(found, "src/parser.py")
    assert (first.old_line, first.removed) == (2, ("    return text.split()",))
    assert (first.new_line, first.added) == (2, ('    return text.split(",")',))
    assert (second.old_line, second.new_line, second.added) == (6, 6, ("    return text or 0",))
    [gone] = places(found, "src/gone.py")
    assert (gone.removed, gone.removed_count, gone.added_count, gone.new_line) == (("GONE = 1",), 1, 0, 0)
    [more] = places(found, "README.md")
    assert (more.old_line, more.removed_count, more.new_line, more.added) == (1, 0, 2, ("", "Read it."))
    assert not places(found, "src/new_name.py")


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        (DiffQuery(after="v1.0", paths=("src",)), ["src/parser.py", "src/gone.py", "src/new_name.py"]),
        (DiffQuery(after="v1.0", paths=("src/old_name.py",)), ["src/new_name.py"]),
        (DiffQuery(after="v1.0", paths=("src/parser.py",), lines=(5, 6)), ["src/parser.py"]),
        (DiffQuery(after="v1.0", paths=("src/parser.py",), lines=(3, 4)), []),
        (DiffQuery(after="v1.0", paths=("sr",)), []),
        (DiffQuery(after="v1.0", paths=("../src", "-p", "--output=x")), []),
    ],
)
async def test_only_what_is_asked_about_is_compared(
    repository: GitRepo, tmp_path: Path, query: DiffQuery, paths: list[str]
) -> None:
    found = await compare(repository, tmp_path / "home", query)

    assert [one.path for one in found.files] == paths
    assert {one.path for one in found.places} <= set(paths)
    if query.lines == (5, 6):
        assert [one.new_line for one in found.places] == [6]


async def test_the_older_commit_comes_first_whichever_is_named_first(repository: GitRepo, tmp_path: Path) -> None:
    found = await compare(repository, tmp_path / "home", DiffQuery(after="v2.0", until="v1.0"))

    assert (found.older.name, found.newer.name, found.total) == ("v1.0", "v2.0", 5)


async def test_a_commit_does_not_differ_from_itself(repository: GitRepo, tmp_path: Path) -> None:
    found = await compare(repository, tmp_path / "home", DiffQuery(after="v2.0", until="main"))

    assert found.older.sha == found.newer.sha
    assert (found.files, found.places, found.total) == ((), (), 0)


async def test_branches_that_parted_are_compared_from_where_they_did(repository: GitRepo, tmp_path: Path) -> None:
    repository.branch("release-1.1", at="v1.0")
    repository.write("src/parser.py", PARSER + "\n\ndef fix():\n    pass\n")
    fixed = repository.commit("fix it")
    repository.checkout("main")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="main", until="release-1.1"))

    assert found.has_diverged
    assert (found.start, found.newer.sha, found.ahead, found.behind) == (repository.sha("v1.0"), fixed, 1, 1)
    assert [one.path for one in found.files] == ["src/parser.py"]
    assert found.places[0].added == ("", "", "def fix():", "    pass")


@pytest.mark.exhaustive
async def test_histories_without_a_common_commit_are_compared_as_they_are(repository: GitRepo, tmp_path: Path) -> None:
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.write("src/parser.py", PARSER)
    repository.commit("begin again")
    repository.checkout("main")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="other", until="v2.0"))

    assert (found.base, found.ahead, found.behind, found.is_shallow) == ("", None, None, False)
    assert "src/parser.py" in {one.path for one in found.files}


@pytest.mark.exhaustive
async def test_of_a_shallow_clone_that_is_said(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("src/more.py", "MORE = 1\n")
    repository.commit("third")
    run_git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository.root}", "shallow")
    async with pinned(repository_of(tmp_path / "shallow"), tmp_path / "home") as code:
        with pytest.raises(UnknownRevision, match=r"no tag, branch or commit 'v1\.0'"):
            await code.past.compare(DiffQuery(after="v1.0"))
        assert (await code.past.compare(DiffQuery(after="main"))).is_shallow


def repository_of(root: Path) -> GitRepo:
    return GitRepo(root)


@pytest.mark.parametrize(
    "name", ["-x", "--output=/tmp/x", "a..b", "v1.0..v2.0", "\x00", "\n", "../..", "@{1}", "^v1.0"]
)
async def test_what_is_no_name_is_never_handed_to_git(repository: GitRepo, tmp_path: Path, name: str) -> None:
    async with pinned(repository, tmp_path / "home") as code:
        for query in (DiffQuery(after=name), DiffQuery(after="v1.0", until=name)):
            with pytest.raises(UnknownRevision):
                await code.past.compare(query)


async def test_secrets_are_masked_also_where_only_a_part_of_one_differs(repository: GitRepo, tmp_path: Path) -> None:
    key = ["-----BEGIN RSA PRIVATE KEY-----", *(f"{'MIIEowIBAAKCAQEA' * 3}{n:02}" for n in range(8))]
    key.append("-----END RSA PRIVATE KEY-----")
    repository.write("src/keys.py", 'KEY = """\n' + "\n".join(key) + '\n"""\n')
    repository.commit("a key")
    repository.git("tag", "v3.0")
    key[4] = "MIIEowIBAAKCAQEA" * 3 + "zz"
    repository.write("src/keys.py", f'TOKEN = "{TOKEN}"\nKEY = """\n' + "\n".join(key) + '\n"""\n')
    repository.commit("another one")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="v3.0"))

    said = "\n".join(line for one in found.places for line in (*one.added, *one.removed))
    assert "MIIEowIBAAKCAQEA" not in said
    assert TOKEN not in said
    assert "[REDACTED" in said


@pytest.mark.exhaustive
async def test_hostile_names_and_contents_stay_names_and_contents(repository: GitRepo, tmp_path: Path) -> None:
    names = ("-p", "a\tb.py", "@@ -1,1 +1,1 @@", "src/*.py", "src/:(glob)x.py", "é.py")
    for name in names:
        repository.write(name, "1\n")
    repository.write("src/diff.py", "x\n")
    repository.commit("names")
    repository.git("tag", "v3.0")
    for name in names:
        repository.write(name, "2\n")
    repository.write("src/diff.py", "@@ -1 +1 @@\n@@ -7,9 +7,9 @@\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n")
    repository.commit("hostile")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="v3.0"))

    assert {"-p", "@@ -1,1 +1,1 @@", "src/*.py", "é.py", "src/diff.py"} <= {one.path for one in found.files}
    assert dict(found.folded) == {"unsafe path": 2}
    [place] = places(found, "src/diff.py")
    assert (place.removed_count, place.added_count) == (1, 5)
    assert [(one.removed, one.added) for one in places(found, "-p")] == [(("1",), ("2",))]
    assert all("\t" not in one.path for one in found.files)


@pytest.mark.exhaustive
async def test_long_files_and_long_lines_are_cut(repository: GitRepo, tmp_path: Path) -> None:
    repository.write("src/long.py", "".join(f"L{n} = {n}\n" for n in range(5_000)))
    repository.write("src/wide.py", f'W = "{"w " * 2_000}"\n')
    repository.write("src/huge.py", "".join(f"H{n}\n" for n in range(30_000)))
    repository.commit("long")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="v2.0"))

    [long], [wide] = places(found, "src/long.py"), places(found, "src/wide.py")
    assert (long.added_count, len(long.added)) == (5_000, 30)
    assert len(wide.added[0]) == 300
    assert not places(found, "src/huge.py")
    assert dict(found.folded)["too large"] == 1


@pytest.mark.exhaustive
async def test_many_files_are_counted_and_few_of_them_read(repository: GitRepo, tmp_path: Path) -> None:
    for number in range(700):
        repository.write(f"src/many/m{number}.py", f"M = {number}\n")
    repository.commit("many")

    found = await compare(repository, tmp_path / "home", DiffQuery(after="v2.0", limit=10))

    assert (found.total, len(found.places)) == (700, 10)
    assert len({one.path for one in found.places}) == 10
