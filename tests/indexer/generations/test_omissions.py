"""Counts of omitted files are true, whatever changed before."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.index import CodeIndex
from tests.fakes.repositories import GitRepo

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
CONTENTS = {
    "code": b"def handle():\n    return 1\n",
    "other code": b"def serve():\n    return 2\n",
    "binary": b"\0\1\2" * 100,
    "LFS pointer": POINTER.encode(),
    "too large": b"#" * 1_000_001,
}
KINDS = ("absent", "symlink", *CONTENTS)
PATHS = ("app/a.py", "app/b.py", "c.py", "logo.png", ".gitattributes")
ATTRIBUTES = ("*.md text\n", "a.py linguist-generated\n", "app/** linguist-vendored\n")
State = dict[str, str]
states = st.fixed_dictionaries({path: st.sampled_from(KINDS) for path in PATHS[:-1]}).flatmap(
    lambda files: st.sampled_from(("absent", *ATTRIBUTES)).map(lambda rules: files | {PATHS[-1]: rules})
)


def written(repo: GitRepo, state: State) -> None:
    """Commit a state."""
    for path, kind in state.items():
        (repo.root / path).unlink(missing_ok=True)
        if kind == "symlink":
            repo.link(path, "nowhere")
        elif kind != "absent":
            repo.write(path, CONTENTS.get(kind, kind.encode()))
    repo.commit()


async def counts(index: CodeIndex) -> dict[str, int]:
    await index.refresh()
    return (await index.status()).skipped


async def followed(folder: Path, history: list[State]) -> tuple[dict[str, int], dict[str, int]]:
    """The counts after all changes, taken in one by one, and those of an index built from scratch."""
    repo = GitRepo(folder / "shop")
    stepwise: dict[str, int] = {}
    index = await CodeIndex.open(repo.root, home=folder / "home")
    try:
        for state in history:
            written(repo, state)
            stepwise = await counts(index)
        await index.refresh(full=True)
        return stepwise, (await index.status()).skipped
    finally:
        await index.aclose()


@given(st.lists(states, min_size=2, max_size=5))
@settings(max_examples=10)
@pytest.mark.exhaustive
def test_the_counts_after_any_changes_are_those_of_an_index_made_anew(
    tmp_path_factory: pytest.TempPathFactory, history: list[State]
) -> None:
    stepwise, anew = asyncio.run(followed(tmp_path_factory.mktemp("omissions"), history))
    assert stepwise == anew
    last = history[-1]
    if last[".gitattributes"] in {"absent", ATTRIBUTES[0]}:
        reasons = {path: "binary" if path == "logo.png" and kind != "symlink" else kind for path, kind in last.items()}
        present = [reasons[path] for path in PATHS[:-1] if last[path] != "absent"]
        assert anew == Counter(reason for reason in present if reason not in {"code", "other code"})


async def test_a_file_that_stays_unfit_is_counted_once_however_often_it_changes(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        for number in range(3):
            repo.write("data.py", b"\0" * (100 + number))
            repo.commit()
            assert await counts(index) == {"binary": 1}
        repo.write("data.py", "rows = []\n")
        repo.commit()
        assert await counts(index) == {}
    finally:
        await index.aclose()
