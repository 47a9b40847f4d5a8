"""Owners of a path come from CODEOWNERS: the last pattern that matches wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexer.git.code_owners import find_owners
from tests.fakes.repositories import GitRepo
from tests.indexer.git.test_history import pinned

OWNERS = """# Everything else
*            @shop/all
/docs/*      @writers ada@example.org   # not what lies deeper
*.py         @python
/shop/pay/   @bank @ada
/shop/open/
apps/a\\ b/   @spaces
!negated     @nobody
[            @broken
"""


@pytest.mark.parametrize(
    ("path", "owners", "line"),
    [
        ("README.md", ("@shop/all",), 2),
        ("docs/pay.md", ("@writers", "ada"), 3),
        ("docs/deep/pay.md", ("@shop/all",), 2),
        ("a/b/c.py", ("@python",), 4),
        ("shop/pay/retry.py", ("@bank", "@ada"), 5),
        ("apps/a b/x.go", ("@spaces",), 7),
        ("negated", ("@shop/all",), 2),
    ],
)
def test_the_last_pattern_that_matches_decides(path: str, owners: tuple[str, ...], line: int) -> None:
    found = find_owners(OWNERS, path, file="CODEOWNERS")

    assert found is not None
    assert (found.owners, found.location.start_line, found.location.path) == (owners, line, "CODEOWNERS")


def test_a_pattern_without_owners_takes_a_folder_away_from_them() -> None:
    assert find_owners(OWNERS, "shop/open/a.py", file="CODEOWNERS") is None


def test_the_heading_of_a_section_names_owners_for_its_lines() -> None:
    text = "[Docs][2] @writers\ndocs/\nlib/ @library\n"

    of_docs, of_library = (find_owners(text, path, file="x") for path in ("docs/a.md", "lib/a.rb"))

    assert of_docs is not None
    assert of_library is not None
    assert (of_docs.owners, of_library.owners) == (("@writers",), ("@library",))


async def test_the_file_is_read_at_the_indexed_commit(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/pay.py", "RETRIES = 3\n")
    repository.write(".github/CODEOWNERS", "*.py @python\n")
    repository.write("docs/CODEOWNERS", "* @nobody\n")
    repository.commit()
    repository.write(".github/CODEOWNERS", "*.py @uncommitted\n")
    async with pinned(repository, tmp_path / "home") as code:
        owned = await code.past.owners("shop/pay.py")
        unowned = await code.past.owners("README.md")

    assert owned is not None
    assert (owned.owners, owned.location.path) == (("@python",), ".github/CODEOWNERS")
    assert unowned is None
