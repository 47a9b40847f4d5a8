"""Snapshots made change by change: they rank as those made at once, share what stays, and do not grow for ever."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.search.compaction import compact, compact_if_needed, replace_centrality
from indexer.search.postings import PostingsStack
from indexer.search.ranking import RankingWeights, rank_chunks
from indexer.search.snapshot import Snapshot
from tests.fakes.bags import read_bags
from tests.indexer.search.test_ranking import EMBEDDER, PROJECT, Files, grown

QUESTIONS = ("RetryPolicy", "how does the session send a request?", "should_retry waits in test")
PATHS = (*PROJECT, "http/__init__.py", "examples/retry.py")
VERSIONS = (
    *PROJECT.values(),
    [("Session", "class Session:\n    pass\n"), ("", "# the session of tests\n"), ("close", "def close():\n    ...\n")],
    [],
)
State = dict[str, int | None]  # which version of each path there is
states = st.fixed_dictionaries({path: st.sampled_from((None, *range(len(VERSIONS)))) for path in PATHS})


class History:
    """A project that changes, and its snapshot, which follows."""

    def __init__(self) -> None:
        self.snapshot = grown(None, {})
        self.files: Files = {}
        self._next_id = 1

    def change(self, files: Files) -> None:
        """Take in what differs from the files before."""
        kept = {path for path, chunks in files.items() if self.files.get(path) == chunks}
        added = {path: chunks for path, chunks in files.items() if path not in kept}
        table = self.snapshot.files
        removed = frozenset(int(file) for file, path in zip(table.ids, table.paths, strict=True) if path not in kept)
        self.snapshot = compact_if_needed(grown(self.snapshot, added, removed, first=self._next_id))
        self.files = files
        self._next_id += len(added)

    def reload(self, folder: Path, before: Path | None) -> None:
        """Continue from what is stored."""
        self.snapshot.save(folder, before)
        self.snapshot = Snapshot.load(folder)


def files_of(state: State) -> Files:
    return {path: VERSIONS[version] for path, version in state.items() if version is not None}


def facts(snapshot: Snapshot) -> list[object]:
    """Everything that is told of files, chunks and definitions but their ids."""
    files, chunks, definitions = snapshot.files, snapshot.chunks, snapshot.definitions
    words = snapshot.names.words()
    return [
        *(column.tolist() for column in (files.paths, files.languages, files.traits, files.tokens)),
        *(column.tolist() for column in (chunks.file, chunks.start, chunks.end, chunks.tokens, chunks.rank)),
        *(column.tolist() for column in (definitions.chunk, definitions.is_type, definitions.lines)),
        [words[number] for number in definitions.names],
    ]


def read_words(snapshot: Snapshot) -> list[Counter[str]]:
    postings = [segment.terms for segment in snapshot.segments]
    return read_bags(PostingsStack(postings, snapshot.selection.chunks), snapshot.terms.words())


def assert_same(one: Snapshot, other: Snapshot) -> None:
    assert facts(one) == facts(other)
    assert read_words(one) == read_words(other)
    for question in QUESTIONS:
        vector = EMBEDDER.embed_query(question)
        cosines = [each.cosines(vector) for each in (one, other)]
        assert cosines[0].tolist() == cosines[1].tolist()
        for fusion in ("score", "rrf"):
            recipe = RankingWeights(fusion=fusion)
            ours = rank_chunks(one, question, cosines[0], recipe=recipe)
            theirs = rank_chunks(other, question, cosines[1], recipe=recipe)
            assert [ordinal for ordinal, _ in ours] == [ordinal for ordinal, _ in theirs]
            assert [score for _, score in ours] == pytest.approx([score for _, score in theirs])


@given(st.lists(states, min_size=1, max_size=6), st.sets(st.integers(0, 5)))
@pytest.mark.exhaustive
def test_any_sequence_of_changes_ranks_like_indexing_at_once(
    tmp_path_factory: pytest.TempPathFactory, history: list[State], reloaded: set[int]
) -> None:
    folders = tmp_path_factory.mktemp("generations")
    project = History()
    before: Path | None = None
    for number, state in enumerate(history):
        project.change(files_of(state))
        if number in reloaded:
            project.reload(folders / str(number), before)
            before = folders / str(number)
    shutil.rmtree(folders)
    assert_same(project.snapshot, grown(None, files_of(history[-1])))


def test_the_rank_of_chunks_is_kept_through_changes_and_merges() -> None:
    first = grown(None, PROJECT)
    ranks = np.arange(1, len(first.chunks.ids) + 1, dtype=np.float32)
    project = History()
    project.change(PROJECT)
    project.snapshot = replace_centrality(project.snapshot, ranks)
    changed = PROJECT | {"docs/retry.md": [("", "# Retries\n")]}
    project.change(changed)
    expected: dict[str, list[float]] = {path: [] for path in PROJECT} | {"docs/retry.md": [1.0]}
    for file, value in zip(first.chunks.file, ranks.tolist(), strict=True):
        path = first.files.paths[file]
        if path != "docs/retry.md":
            expected[path].append(value)
    for snapshot in (project.snapshot, compact(project.snapshot)):
        found: dict[str, list[float]] = {path: [] for path in changed}
        for file, value in zip(snapshot.chunks.file, snapshot.chunks.rank.tolist(), strict=True):
            found[snapshot.files.paths[file]].append(value)
        assert found == expected


def wide(files: int) -> Files:
    return {f"app/part_{n}.py": [(f"part_{n}", f"def part_{n}():\n    return {n}\n")] for n in range(files)}


def test_a_small_change_shares_the_rows_of_everything_else() -> None:
    project = History()
    project.change(wide(100))
    before = project.snapshot
    project.change(wide(100) | {"app/part_7.py": [("other", "def other(): ...\n")]})
    assert project.snapshot.segments[0] is before.segments[0]
    assert [segment.size for segment in project.snapshot.segments] == [100, 1]
    assert project.snapshot.terms is before.terms


def test_a_change_leaves_the_snapshot_before_it_as_it_was() -> None:
    project = History()
    project.change(wide(20))
    before = project.snapshot
    project.change(wide(19) | {"app/part_3.py": [("unheard", "def unheard():\n    return 'of'\n")]})
    assert_same(before, grown(None, wide(20)))
    assert rank_chunks(before, "unheard", None, mode="lexical") == []
    assert len(before.find_definitions("unheard")) == 0


def test_the_words_of_a_change_that_was_given_up_do_no_harm(tmp_path: Path) -> None:
    project = History()
    project.change(wide(20))
    grown(project.snapshot, {"app/given_up.py": [("abandoned", "def abandoned():\n    return 'forgotten'\n")]})
    assert rank_chunks(project.snapshot, "abandoned forgotten", None, mode="lexical") == []
    project.change(wide(20) | {"app/new.py": [("found", "def found():\n    return 'forgotten'\n")]})
    project.reload(tmp_path / "1", None)
    assert_same(project.snapshot, grown(None, project.files))
    assert len(rank_chunks(project.snapshot, "forgotten", None, mode="lexical")) == 1


@pytest.mark.exhaustive
def test_many_small_changes_leave_few_segments_few_dead_rows_and_few_words() -> None:
    project = History()
    files = wide(60)
    project.change(files)
    most = 0
    for number in range(200):
        path = f"app/part_{number * 7 % 60 if number % 2 else 5}.py"
        files = files | {path: [(f"change{number}", f"def change{number}():\n    return unique{number * 31}\n")]}
        project.change(files)
        most = max(most, len(project.snapshot.segments))
        assert sum(segment.size for segment in project.snapshot.segments) <= 60 / 0.875
    assert most <= 5
    assert len(project.snapshot.terms) <= 2 * len(grown(None, files).terms)
    assert len(project.snapshot.names) <= 2 * 60
    assert_same(project.snapshot, grown(None, files))


def test_a_saved_snapshot_is_read_back_as_it_was(tmp_path: Path) -> None:
    project = History()
    for files in (PROJECT, wide(20) | PROJECT, wide(19) | PROJECT):
        project.change(files)
    project.snapshot.save(tmp_path / "one")
    assert_same(Snapshot.load(tmp_path / "one"), project.snapshot)


def saved_twice(tmp_path: Path) -> Snapshot:
    """Two generations on disk, the later one beside the earlier."""
    project = History()
    project.change(wide(100))
    project.snapshot.save(tmp_path / "1")
    project.change(wide(99))
    project.change(wide(98) | PROJECT)
    project.snapshot.save(tmp_path / "2", tmp_path / "1")
    return project.snapshot


def test_generations_share_files_and_outlive_each_other(tmp_path: Path) -> None:
    snapshot = saved_twice(tmp_path)
    base = snapshot.segments[0].file
    assert (tmp_path / "1" / base).stat().st_ino == (tmp_path / "2" / base).stat().st_ino
    shutil.rmtree(tmp_path / "1")
    assert_same(Snapshot.load(tmp_path / "2"), snapshot)


def test_where_a_disk_has_no_links_everything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    snapshot = saved_twice(tmp_path)
    base = snapshot.segments[0].file
    assert (tmp_path / "1" / base).stat().st_ino != (tmp_path / "2" / base).stat().st_ino
    assert_same(Snapshot.load(tmp_path / "2"), snapshot)


def test_a_damaged_segment_is_an_error_and_no_other_snapshot(tmp_path: Path) -> None:
    snapshot = saved_twice(tmp_path)
    damaged = tmp_path / "2" / snapshot.segments[-1].file
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises((OSError, ValueError, KeyError, TypeError, EOFError)):
        Snapshot.load(tmp_path / "2")


def test_a_saved_snapshot_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    project = History()
    project.change(PROJECT)
    project.snapshot.save(tmp_path / "1")
    saved = (tmp_path / "1" / "snapshot.npy").read_bytes()
    saved = saved[: saved.rindex(b"citebot checksum")]  # anyone who writes it could write that as well
    name = project.snapshot.segments[0].name
    (tmp_path / "1" / "snapshot.npy").write_bytes(saved.replace(name.encode(), b"../" + name[3:].encode()))
    with pytest.raises(ValueError, match=r"\.\./"):
        Snapshot.load(tmp_path / "1")
