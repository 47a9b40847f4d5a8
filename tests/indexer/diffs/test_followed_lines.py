"""Cited lines followed through pushes of a real repository: what moved, what only looks different, what changed."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from indexer.diffs.followed_lines import open_push
from indexer.types import CitedLines, FollowedLines
from tests.fakes.repositories import GitRepo

RETRY = """def send(event, retries=3):
    for attempt in range(retries):
        if deliver(event, timeout=30):
            return True
        wait_before_next(attempt)
    return False
"""
FILLER = "".join(f"value_{number} = compute({number})\n" for number in range(20))


@pytest.fixture
def pushed(tmp_path: Path) -> GitRepo:
    """A repository with one function between others."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("src/send.py", FILLER + RETRY + FILLER)
    repository.write("src/other.py", FILLER.replace("value", "other"))
    repository.commit("first")
    return repository


SEND = CitedLines(path="src/send.py", start_line=21, end_line=26, words=frozenset({"retries", "3", "send"}))


def push(repository: GitRepo, *cited: CitedLines) -> tuple[FollowedLines, ...]:
    """Commit what was written, and follow lines from the commit before."""
    older = repository.sha()
    repository.commit("push")
    found = follow(repository, older, repository.sha(), *(cited or [SEND]))
    assert found is not None
    return found


def follow(repository: GitRepo, older: str, newer: str, *cited: CitedLines) -> tuple[FollowedLines, ...] | None:
    opened = open_push(repository.root, older, newer)
    if opened is None:
        return None
    with closing(opened) as push:
        return tuple(map(push.follow, cited))


@pytest.mark.parametrize(
    ("before", "after", "fate", "lines"),
    [
        ("value_3 = compute(3)\n", "", "moved", (20, 25)),
        ("    for attempt in", "    # Again and again.\n    for attempt in", "commented", (21, 27)),
        (RETRY, RETRY.replace("\n", "\r\n"), "reformatted", (21, 26)),
        (RETRY, RETRY.replace("    ", "\t"), "reformatted", (21, 26)),
        ("(event, timeout=30)", "(\n            event,\n            timeout=30,\n        )", "reformatted", (21, 29)),
        ("    return False\n", "    return (\n        False\n    )\n", "reformatted", (21, 28)),
        ("        return True", "        $ return True", "reformatted", (21, 26)),
        ("send(event, retries=3):", "send(event, retries=3):  # noqa: C901", "commented", (21, 26)),
        ("send(event, retries=3):", "send(event, retries=3):  # 3 are enough", "changed", (21, 26)),
        ("return False", "return send.failed", "changed", (21, 26)),
        ("    return False\n", "    return False()\n", "changed", (21, 26)),
        ("        wait_before_next(attempt)\n", "        pause(attempt)\n", "edited", (21, 26)),
        ("retries=3", "retries=5", "changed", (21, 26)),
        ("range(retries)", "range(retries - 1)", "changed", (21, 26)),
        (RETRY, "def send(event):\n    return post(event)\n", "changed", (21, 22)),
        (RETRY, "", "gone", (21, 26)),
    ],
)  # fmt: skip
def test_an_edit_is_told_by_what_it_does_to_the_claim(
    pushed: GitRepo, before: str, after: str, fate: str, lines: tuple[int, int]
) -> None:
    text = (FILLER + RETRY + FILLER).replace(before, after, 1)
    pushed.write("src/send.py", text)

    (found,) = push(pushed)

    assert (found.fate, (found.start_line, found.end_line)) == (fate, lines)


def test_lines_are_found_in_a_renamed_file_and_in_one_that_took_them(pushed: GitRepo) -> None:
    pushed.rename("src/other.py", "lib/names.py")
    pushed.write("src/send.py", FILLER + FILLER)
    pushed.write("lib/delivery.py", "import time\n\n\n" + RETRY)

    sent, other = push(pushed, SEND, CitedLines(path="src/other.py", start_line=4, end_line=6))

    assert sent == FollowedLines(path="lib/delivery.py", start_line=4, end_line=9, fate="moved")
    assert other == FollowedLines(path="lib/names.py", start_line=4, end_line=6, fate="moved")


def test_lines_that_come_again_twice_are_taken_for_neither(pushed: GitRepo) -> None:
    pushed.write("src/send.py", FILLER + FILLER)
    pushed.write("lib/one.py", RETRY)
    pushed.write("lib/two.py", "import time\n" + RETRY)

    (found,) = push(pushed)

    assert found.fate == "gone"


def test_names_and_contents_that_look_like_a_patch_are_only_contents(pushed: GitRepo) -> None:
    pushed.write('a "b"\tc.txt', "-- a/x\n++ b/y\n@@ -1 +1 @@\nindex 1..2\nkept\n")
    pushed.commit("odd")
    pushed.write('a "b"\tc.txt', "new\n-- a/z\n++ b/y\n@@ -1 +1 @@\nindex 1..2\nkept\n")
    pushed.git("config", "diff.noprefix", "true")
    pushed.git("config", "diff.interHunkContext", "50")

    kept, send = push(pushed, CitedLines(path='a "b"\tc.txt', start_line=5, end_line=5), SEND)

    assert (kept.fate, kept.start_line) == ("moved", 6)
    assert send.fate == "same"


def test_lines_are_followed_across_a_forced_push_and_not_from_a_commit_that_is_gone(pushed: GitRepo) -> None:
    older = pushed.sha()
    pushed.git("checkout", "--quiet", "--orphan", "other")
    pushed.write("src/send.py", "import os\n" + FILLER + RETRY + FILLER)
    pushed.commit("rewritten")
    head = pushed.sha()

    found, lost = follow(pushed, older, head, SEND), follow(pushed, "0" * 40, head, SEND)

    assert found is not None
    assert found[0].start_line == 22
    assert lost is None


def test_lines_that_no_edit_touched_are_the_same_bytes_afterwards(tmp_path: Path) -> None:
    """Of ranges of random files after random edits, none is called the same or moved that has another text."""
    rng, repository = random.Random(7), GitRepo(tmp_path / "random")
    texts = {f"f{number}.txt": [f"{number} {rng.randrange(40)}" for _ in range(120)] for number in range(8)}
    for name, lines in texts.items():
        repository.write(name, "\n".join(lines) + "\n")
    repository.commit("first")
    before = {name: list(lines) for name, lines in texts.items()}
    for lines in texts.values():
        for _ in range(12):
            at = rng.randrange(len(lines))
            lines[at : at + rng.randrange(3)] = [f"new {rng.randrange(99)}"] * rng.randrange(3)
    for name, lines in texts.items():
        repository.write(name, "\n".join(lines) + "\n")
    starts = [(name, rng.randrange(1, 100), rng.randrange(12)) for name in texts for _ in range(60)]
    cited = [CitedLines(path=name, start_line=first, end_line=first + more) for name, first, more in starts]

    followed = push(repository, *cited)

    untouched = [(one, there) for one, there in zip(cited, followed, strict=True) if there.fate in {"same", "moved"}]
    assert len(untouched) > 50
    for one, there in untouched:
        old, new = before[one.path][one.start_line - 1 : one.end_line], texts[there.path]
        assert new[there.start_line - 1 : there.end_line] == old
