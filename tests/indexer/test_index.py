"""The index from end to end: real repositories in, cited lines out, through changes, crashes and damage."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.evidence.definitions import list_members
from indexer.errors import BadPattern, IndexerError, NotIndexed, StorageLocked, UnknownPath
from indexer.generations.reader import IndexReader
from indexer.index import CodeIndex
from indexer.search.path_traits import read_path_traits
from indexer.search.snapshot import Snapshot
from indexer.store.catalog_schema import FOREVER
from indexer.store.data_folder import DataFolder, find_index_folder, list_index_folders, measure_folder
from indexer.store.vector_place import remove_index
from indexer.types import Drift, Filters, IndexLimits, Progress
from tests.fakes.repositories import GitRepo

RETRY = '''"""Retries."""


class RetryPolicy:
    """Decides when an event is sent again."""

    attempts = 3

    def next_delay(self, attempt: int) -> float:
        """Seconds to wait before an attempt."""
        return 2.0**attempt
'''
DELIVERY = '''from events.retry import RetryPolicy


def deliver(event: str) -> None:
    """Send an event, and again if that fails."""
    policy = RetryPolicy()
    policy.next_delay(1)
'''


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    repository = GitRepo(tmp_path / "shop")
    repository.write("events/retry.py", RETRY)
    repository.write("events/delivery.py", DELIVERY)
    repository.write("docs/events.md", "# Events\n\nEvents are sent at least once.\n")
    repository.write("queries/report.sql", "select count(*) from events;\n")
    repository.commit("first")
    return repository


@asynccontextmanager
async def opened(repository: GitRepo, home: Path, **options: object) -> AsyncIterator[CodeIndex]:
    index = await CodeIndex.open(repository.root, home=home, **options)  # type: ignore[arg-type]
    try:
        yield index
    finally:
        await index.aclose()


async def paths(reader: IndexReader) -> list[str]:
    return [entry.path for entry in await reader.files()]


async def test_a_question_finds_the_lines_at_the_indexed_commit(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        report = await index.refresh()
        reader = await index.pin()
        hits = await reader.search("where are event retries handled?")
    assert (report.commit, report.files, report.previous) == (repository.sha(), 4, None)
    assert reader.commit.sha == repository.sha()
    assert hits[0].location.path == "events/retry.py"
    assert "class RetryPolicy" in hits[0].text
    assert "RetryPolicy" in [symbol.name for symbol in hits[0].symbols]


async def test_a_question_before_the_first_index_is_told_so(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        with pytest.raises(NotIndexed, match="citebot index"):
            await index.pin()
        assert not await index.is_current()


async def test_callers_and_callees_are_named_with_their_lines(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        reader = await index.pin()
        (caller,) = await reader.callers("RetryPolicy")
        callees = await reader.callees("deliver")
    assert caller.caller is not None
    assert (caller.path, caller.line, caller.caller.symbol.name) == ("events/delivery.py", 6, "deliver")
    assert [(site.name, site.line, site.callee is not None) for site in callees] == [
        ("RetryPolicy", 6, True),
        ("next_delay", 7, True),
    ]


async def test_a_refresh_reads_only_what_changed_and_forgets_what_is_gone(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        old = await index.pin()
        repository.write("events/retry.py", RETRY.replace("RetryPolicy", "BackoffPolicy"))
        repository.rename("docs/events.md", "docs/delivery.md")
        repository.remove("queries/report.sql")
        repository.commit("second")
        assert not await index.is_current()
        report = await index.refresh()
        new = await index.pin()
        assert (report.changed, report.files) == (2, 3)
        assert await paths(new) == ["docs/delivery.md", "events/delivery.py", "events/retry.py"]
        assert [len(await new.definitions(name)) for name in ("RetryPolicy", "BackoffPolicy")] == [0, 1]
        assert "queries/report.sql" in await paths(old)
        assert [await each.folders() for each in (old, new)] == [
            {"docs": 1, "events": 2, "queries": 1},
            {"docs": 1, "events": 2},
        ]
        assert (await old.search("RetryPolicy"))[0].text.count("class RetryPolicy") == 1


async def test_files_that_change_again_and_again_are_refreshed_each_time(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        large = "\n".join(f"def still_{number}():\n" + "    call()\n" * 30 for number in range(300))
        repository.write("src/large.py", large)  # beside which a change is a small one
        repository.commit()
        await index.refresh()
        for number in range(4):
            repository.write("events/retry.py", RETRY + f"\n\nATTEMPTS = {number}\n")
            repository.commit()
            report = await index.refresh()
            assert report.changed == 1


async def test_refreshing_step_by_step_ranks_as_indexing_at_once(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "stepwise") as index:
        await index.refresh()
        repository.write("events/queue.py", DELIVERY.replace("deliver", "enqueue"))
        repository.remove("docs/events.md")
        repository.commit("second")
        await index.refresh()
        stepwise = await (await index.pin()).search("send an event again")
    async with opened(repository, tmp_path / "at-once") as index:
        await index.refresh()
        at_once = await (await index.pin()).search("send an event again")
    assert [(hit.location, hit.text) for hit in stepwise] == [(hit.location, hit.text) for hit in at_once]


async def test_nothing_is_left_for_the_first_search_after_a_refresh_to_work_out(
    repository: GitRepo, tmp_path: Path
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        repository.write("events/test_queue.py", DELIVERY.replace("deliver", "enqueue"))
        repository.commit("second")
        await index.refresh()
        snapshot = (await index.pin()).snapshot
        before = set(vars(snapshot))
        await (await index.pin()).search("send an event again")

    assert set(vars(snapshot)) == before
    assert snapshot.files.traits.tolist() == [read_path_traits(path).pack_flags() for path in snapshot.files.paths]


@pytest.mark.exhaustive
async def test_a_repository_too_large_to_compare_every_vector_ranks_by_the_nearest(
    repository: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        repository.write("events/queue.py", DELIVERY.replace("deliver", "enqueue"))
        repository.commit("second")
        await index.refresh()
        reader = await index.pin()
        exact = await reader.search("send an event again")
        monkeypatch.setattr("indexer.generations.reader.EXACT_UP_TO", 0)
        nearest = await reader.search("send an event again")
    assert [hit.location for hit in nearest] == [hit.location for hit in exact]
    assert [hit.score for hit in nearest] == pytest.approx([hit.score for hit in exact], abs=1e-4)


async def test_going_back_to_an_older_commit_brings_back_its_files(repository: GitRepo, tmp_path: Path) -> None:
    first = repository.sha()
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        repository.remove("events/retry.py")
        repository.commit("second")
        await index.refresh()
        repository.git("reset", "--quiet", "--hard", first)
        report = await index.refresh()
        assert (report.commit, "events/retry.py" in await paths(await index.pin())) == (first, True)


async def test_filters_apply_before_ranking(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        reader = await index.pin()

        async def found(filters: Filters) -> set[str]:
            return {hit.location.path for hit in await reader.search("events", filters=filters)}

        assert await found(Filters(source_types=("doc",))) == {"docs/events.md"}
        assert await found(Filters(folders=("queries",))) == {"queries/report.sql"}
        assert await found(Filters(patterns=("*.sql",))) == {"queries/report.sql"}
        assert await found(Filters(languages=("markdown",))) == {"docs/events.md"}
        assert await found(Filters(folders=("que",))) == set()
        for written in ("/queries/", "./queries", "queries/report.sql"):
            assert await found(Filters(folders=(written,))) == {"queries/report.sql"}
        assert await found(Filters(folders=(".",))) == await found(Filters()) > {"queries/report.sql"}


@pytest.mark.parametrize("glob", ["[z-a]", "x" * 1_001])
async def test_a_search_refuses_a_glob_that_cannot_be_read(repository: GitRepo, tmp_path: Path, glob: str) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        reader = await index.pin()
        with pytest.raises(BadPattern, match="cannot be read"):
            await reader.search("events", filters=Filters(patterns=("*.md", glob)))


async def test_include_and_exclude_globs_decide_what_is_indexed(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home", exclude=["docs/"]) as index:
        await index.refresh()
        assert "docs/events.md" not in await paths(await index.pin())
    async with opened(repository, tmp_path / "home", include=["docs/**"]) as index:
        assert not await index.is_current()
        await index.refresh()
        assert await paths(await index.pin()) == ["docs/events.md"]


@pytest.mark.parametrize("kind", ["files", "bytes", "chunks"])
async def test_what_is_over_a_limit_is_left_out_in_the_order_of_the_paths_and_told(
    repository: GitRepo, tmp_path: Path, kind: str
) -> None:
    most = {"files": 2, "chunks": 2, "bytes": len(DELIVERY) + len(RETRY) + 10}[kind]
    async with opened(repository, tmp_path / "home", limits=IndexLimits(**{kind: most})) as index:
        await index.refresh()
        first = await index.pin()
        status, coverage = await index.status(), await first.coverage()
        repository.remove("docs/events.md")
        repository.commit("one less")
        await index.refresh()
        second = await index.pin()

        assert await paths(first) == ["docs/events.md", "events/delivery.py"]
        assert status.skipped == coverage.skipped == {f"over the limit of {kind}": 2}
        assert "2 files of shop are not indexed: at most" in status.warnings[-1]
        assert await paths(second) == ["events/delivery.py", "events/retry.py"]
        assert (await index.status()).skipped == {f"over the limit of {kind}": 1}


class FewNames(IndexLimits):
    """Limits that the definitions and the calls of one small file exceed."""

    @property
    def names(self) -> int:
        return 3


class FewWords(IndexLimits):
    """Limits that are reached after one small file."""

    @property
    def words(self) -> int:
        return 5


class FewPostings(IndexLimits):
    """Limits that are reached after one small file."""

    @property
    def postings(self) -> int:
        return 5


@pytest.mark.parametrize(("limits", "kind"), [(FewNames, "names"), (FewWords, "words"), (FewPostings, "words")])
async def test_what_fits_into_few_chunks_is_bounded_by_its_names_and_words(
    repository: GitRepo, tmp_path: Path, limits: type[IndexLimits], kind: str
) -> None:
    async with opened(repository, tmp_path / "home", limits=limits()) as index:
        await index.refresh()
        status = await index.status()

        assert await paths(await index.pin()) == ["docs/events.md"]
        assert status.skipped == {f"over the limit of {kind}": 3}
        assert status.warnings[-1].endswith("or raise `max_index_chunks`.")


async def test_a_lower_limit_of_chunks_takes_nothing_away_until_all_is_indexed_anew(
    repository: GitRepo, tmp_path: Path
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    few = IndexLimits(chunks=2)
    async with opened(repository, tmp_path / "home", limits=few, include=["**"]) as index:  # all is parsed again
        await index.refresh()
        repository.write("events/retry.py", RETRY.replace("3", "4"))
        repository.commit("once more")
        await index.refresh()
        changed = await index.pin()
        await index.refresh(full=True)

        assert (len(await paths(changed)), (await changed.coverage()).skipped) == (4, {})
        assert await paths(await index.pin()) == ["docs/events.md", "events/delivery.py"]


async def test_progress_is_shown_before_anything_is_opened(repository: GitRepo, tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    def note(progress: Progress) -> None:
        seen.append((progress.stage, any((tmp_path / "home").rglob("chroma.sqlite3"))))

    async with opened(repository, tmp_path / "home") as index:
        await index.refresh(progress=note)

    assert (seen[0], seen[-1]) == (("listing", False), ("done", True))


async def test_reading_is_clipped_and_refuses_what_is_not_indexed(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        reader = await index.pin()
        passage = await reader.read("docs/events.md", 3, 99)
        assert (passage.text, passage.location.end_line) == ("Events are sent at least once.", 3)
        for path, line in (("missing.py", 1), ("docs/events.md", 50), ("../../etc/passwd", 1)):
            with pytest.raises(UnknownPath):
                await reader.read(path, line)


async def test_secrets_are_masked_in_everything_that_is_stored(repository: GitRepo, tmp_path: Path) -> None:
    secret = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zQ7Zz"
    repository.write("settings.py", f'TOKEN = "{secret}"\n')
    repository.commit("oops")
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        assert "REDACTED" in (await (await index.pin()).read("settings.py")).text
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()


@pytest.mark.exhaustive
async def test_a_deleted_vector_store_is_filled_without_reading_the_repository(
    repository: GitRepo, tmp_path: Path
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    (database,) = (tmp_path / "home").rglob("chroma.sqlite3")
    shutil.rmtree(database.parent)
    async with opened(repository, tmp_path / "home") as index:
        repository.commit("nothing new")
        report = await index.refresh()
        assert (report.changed, report.files) == (0, 4)
    async with opened(repository, tmp_path / "home") as index:
        repository.write("docs/more.md", "# More\n")
        repository.commit("third")
        assert (await index.refresh()).changed == 1


async def test_a_refresh_without_a_change_makes_nothing_anew(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        first = await index.refresh()
        vectors = {path: path.read_bytes() for path in (tmp_path / "home").rglob("vectors/**/*") if path.is_file()}
    async with opened(repository, tmp_path / "home") as index:
        again = await index.refresh()
        assert (again.commit, again.previous, again.changed, again.removed) == (first.commit, first.commit, 0, 0)
        assert (again.files, again.chunks) == (first.files, first.chunks)
        assert (await index.pin()).generation.id == 1
        full = await index.refresh(full=True)
        assert (full.changed, (await index.pin()).generation.id) == (4, 2)
    assert vectors


async def test_vectors_that_are_lost_come_back_although_nothing_has_changed(
    repository: GitRepo, tmp_path: Path
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    (database,) = (tmp_path / "home").rglob("chroma.sqlite3")
    shutil.rmtree(database.parent)
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM embeddings").fetchone() > (0,)


@pytest.mark.exhaustive
async def test_an_index_of_another_version_is_built_again_without_alarm(
    repository: GitRepo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    (root,) = (tmp_path / "home" / "repositories").iterdir()
    shutil.rmtree(DataFolder(root).snapshot(1))
    with closing(sqlite3.connect(DataFolder(root).catalog)) as db:
        db.execute("UPDATE generations SET provenance = '1/' || substr(provenance, 3)")
        db.commit()
    (root / "catalog.json").unlink()  # as every version does that writes to the catalog
    async with opened(repository, tmp_path / "home") as index:
        with pytest.raises(NotIndexed, match="another version"):
            await index.pin()
        assert not await index.is_current()
        report = await index.refresh()
        assert (report.changed, (await index.status()).warnings) == (4, ())
        assert (await (await index.pin()).search("RetryPolicy"))[0].location.path == "events/retry.py"
    assert not caplog.records


@pytest.mark.exhaustive
async def test_generations_that_share_files_are_counted_once(repository: GitRepo, tmp_path: Path) -> None:
    for number in range(100):
        repository.write(f"events/handler_{number}.py", DELIVERY.replace("deliver", f"handle_{number}"))
    repository.commit("many")
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        (root,) = (tmp_path / "home" / "repositories").iterdir()
        largest = max(file.stat().st_size for file in DataFolder(root).snapshot(1).iterdir())
        before = measure_folder(root) - (root / "catalog.sqlite-wal").stat().st_size
        repository.write("docs/events.md", "# Events\n")
        repository.commit("small")
        await index.refresh()
        after = measure_folder(root) - (root / "catalog.sqlite-wal").stat().st_size
        assert len(DataFolder(root).snapshots()) == 2
        assert after - before < largest


async def test_refreshes_at_once_follow_each_other(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        reports = await asyncio.gather(index.refresh(), index.refresh(), index.refresh())
        assert {report.files for report in reports} == {4}


async def test_old_generations_are_swept_but_not_those_being_read(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        held = await index.pin()
        for number in range(6):
            repository.write("events/counter.py", f"count = {number}\n")
            repository.commit(f"change {number}")
            await index.refresh()
        (root,) = (tmp_path / "home" / "repositories").iterdir()
        folders = DataFolder(root).snapshots()
        assert len(folders) == 5  # the one that is held, the current one and the last three before it
        assert str(held.generation.id) in folders
        assert "events/counter.py" not in await paths(held)
        assert await held.search("RetryPolicy")


async def test_progress_is_told_from_listing_to_done(repository: GitRepo, tmp_path: Path) -> None:
    seen: list[Progress] = []
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh(progress=seen.append)
    stages = [each.stage for each in seen]
    assert (stages[0], stages[-1]) == ("listing", "done")
    assert Progress(stage="parsing", done=0, total=4) in seen
    assert Progress(stage="parsing", done=4, total=4) in seen


async def test_drift_counts_commits_and_names_the_paths_that_changed(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        report = await index.refresh()
        cited = ["events/retry.py", "events/delivery.py", "docs/events.md"]
        before = await index.drift(report.commit, cited)
        repository.write("events/retry.py", RETRY.replace("3", "5"))
        repository.write("elsewhere.py", "x = 1\n")
        repository.remove("docs/events.md")
        repository.commit("second")
        repository.commit("third")
        after = await index.drift(report.commit, cited)
        unknown = await index.drift("1" * 40, cited)

    assert before == Drift(behind=0, changed=())
    assert after == Drift(behind=2, changed=("docs/events.md", "events/retry.py"))
    assert unknown == Drift(behind=None, changed=None)


async def test_status_tells_counts_age_and_commits_behind(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        assert (await index.status()).commit is None
        await index.refresh()
        repository.commit("second")
        status = await index.status()
    assert (status.files, status.commits_behind, status.branch) == (4, 1, "main")
    assert status.chunks >= 4
    assert status.symbols >= 3
    assert status.disk_bytes > 1000


@pytest.mark.parametrize("spec", ["nonsense", "nobody:model"])
async def test_an_unknown_embedder_is_named(repository: GitRepo, tmp_path: Path, spec: str) -> None:
    with pytest.raises(IndexerError, match=spec.partition(":")[0]):
        await CodeIndex.open(repository.root, home=tmp_path / "home", embedder=spec)


async def test_an_empty_commit_is_indexed_and_finds_nothing(tmp_path: Path) -> None:
    repository = GitRepo(tmp_path / "bare")
    repository.commit("nothing yet")
    async with opened(repository, tmp_path / "home") as index:
        report = await index.refresh()
        assert (report.files, await (await index.pin()).search("anything")) == (0, [])


@pytest.mark.exhaustive
async def test_what_a_killed_refresh_left_is_swept_without_another(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
    (root,) = (tmp_path / "home" / "repositories").iterdir()
    shutil.copytree(DataFolder(root).snapshot(1), DataFolder(root).snapshot(2))
    async with opened(repository, tmp_path / "home") as index:
        await index.sweep()
        assert set(DataFolder(root).snapshots()) == {"1"}
        assert await (await index.pin()).search("RetryPolicy")


@pytest.mark.exhaustive
async def test_what_a_whole_index_leaves_behind_is_swept_bit_by_bit(
    repository: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.index._KEEP_SECONDS", 0.0)
    monkeypatch.setattr("indexer.index._SWEPT_BESIDE", 1)
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        (root,) = (tmp_path / "home" / "repositories").iterdir()

        def dead() -> int:
            with closing(sqlite3.connect(DataFolder(root).catalog)) as db:
                (count,) = db.execute("SELECT count(*) FROM files WHERE removed < ?", (FOREVER,)).fetchone()
            return int(count)

        await index.refresh(full=True)
        first = dead()
        repository.commit("nothing new")
        await index.refresh()
        second = dead()
        await index.sweep()

        assert (second, dead()) == (first - 1, 0)
        assert await (await index.pin()).search("RetryPolicy")


@pytest.mark.exhaustive
async def test_sweeping_gives_disk_space_back(
    repository: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("indexer.index._KEEP_SECONDS", 0.0)
    noise = "\n".join(f"value_{number} = compute_{number * 7919}({number})" for number in range(4_000))
    repository.write("events/large.py", noise)
    repository.commit("large")
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        repository.remove("events/large.py")
        repository.commit("small again")
        await index.refresh()
        (root,) = (tmp_path / "home" / "repositories").iterdir()
        before = (await index.status()).disk_bytes
        await index.sweep()
        catalog = DataFolder(root).catalog
        assert (await index.status()).disk_bytes < before - 100_000
        with closing(sqlite3.connect(catalog)) as db:
            assert db.execute("PRAGMA freelist_count").fetchone() == (0,)


@pytest.mark.exhaustive
async def test_sweeping_leaves_a_refresh_of_another_process_alone(repository: GitRepo, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        (root,) = (tmp_path / "home" / "repositories").iterdir()
        with DataFolder(root).hold_as_writer(), pytest.raises(StorageLocked):
            await index.sweep()


async def test_an_index_is_found_by_its_repository_and_removed(repository: GitRepo, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(repository, home) as index:
        await index.refresh()
    (folder,) = list_index_folders(home)
    assert folder.name == find_index_folder(repository.root)
    assert folder.size > 1000
    remove_index(home, folder.name)
    assert list(list_index_folders(home)) == []


@pytest.mark.exhaustive
async def test_a_new_generation_is_at_hand_as_soon_as_it_can_be_seen(
    repository: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who asked at that very moment read all arrays back from the disk, and held them a second time."""
    loop, seen = asyncio.get_running_loop(), []

    def pinned(progress: Progress) -> None:
        if progress.stage == "done":
            seen.append(asyncio.run_coroutine_threadsafe(index.pin(), loop).result(10))

    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        repository.write("events/late.py", "def late() -> None: ...\n")
        sha = repository.commit("late")
        monkeypatch.setattr(Snapshot, "load", None)
        await index.refresh(progress=pinned)
        assert [each.commit.sha for each in seen] == [sha]
        assert (await index.pin()).snapshot is seen[0].snapshot
    finally:
        await index.aclose()


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.php", "<?php\nnamespace Shop\\Orders;\nclass Order { function pay() {} }\n", ["Orders"]),
        ("a.go", "package a\n\nfunc (s *Store) Get() {}\n\nfunc (s *Store) Put() {}\n", ["Get", "Put"]),
        ("a.cpp", "void Shop::open() {}\nint Shop::count() { return 1; }\n", ["open", "count"]),
        ("a.rb", "class Shop::Order\n  def pay\n  end\nend\n", ["Order"]),
        ("a.py", "class Order:\n    def pay(self):\n        pass\n\n\ndef ship():\n    pass\n", ["Order", "ship"]),
    ],
)
async def test_the_top_of_a_file_is_all_whose_parent_it_does_not_define(
    tmp_path: Path, path: str, text: str, names: list[str]
) -> None:
    repository = GitRepo(tmp_path / "shop")
    repository.write(path, text)
    repository.commit("first")
    async with opened(repository, tmp_path / "home") as index:
        await index.refresh()
        top = await list_members(await index.pin(), path)

    assert [one.symbol.name for one in top] == names
