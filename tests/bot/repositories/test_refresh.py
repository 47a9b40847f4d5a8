"""Bringing the index to HEAD: when it happens, what is said, and that it can be stopped."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bot.errors import RefreshStopped
from bot.repositories import refresh
from bot.repositories.refresh import PATIENCE_SECONDS, StoppableProgress, refresh_if_stale, refresh_index
from indexer.errors import NotARepository, StorageLocked, StorageUnwritable
from indexer.types import Progress
from tests.fakes.parts import FakeIndex
from tests.waiting import LIMIT_SECONDS, wait_for


class Seen:
    """A display that remembers what it was told."""

    def __init__(self) -> None:
        self.patience: list[float] = []
        self.stages: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:
        self.patience.append(patience)
        yield lambda progress: self.stages.append(progress.stage)

    def note(self, text: str) -> None:
        self.notes.append(text)


async def test_a_current_index_is_left_alone() -> None:
    index, seen = FakeIndex(), Seen()

    await refresh_if_stale(index, seen)

    assert (index.refreshes, seen.patience) == ([], [])


@pytest.mark.parametrize(("commit", "patience"), [(None, 0), ("f" * 40, PATIENCE_SECONDS)])
async def test_the_first_index_shows_at_once_and_later_ones_when_they_take_long(
    commit: str | None, patience: float
) -> None:
    seen = Seen()

    await refresh_if_stale(FakeIndex(commit=commit, current=False), seen)

    assert (seen.patience, seen.stages) == ([patience], ["parsing"])


async def test_without_an_earlier_index_the_error_is_raised() -> None:
    error = StorageUnwritable("The data folder is read-only.")

    with pytest.raises(StorageUnwritable):
        await refresh_if_stale(FakeIndex(commit=None, current=False, error=error), Seen())


class Contended(FakeIndex):
    """An index that another process is making: it is locked until that one has looked after it a few times."""

    def __init__(self, *, done_by_other: bool) -> None:
        super().__init__(commit=None, current=False, error=StorageLocked("Another citebot is indexing."))
        self._done_by_other = done_by_other
        self._looks = 3

    async def is_current(self) -> bool:
        self._looks -= 1
        if self._looks == 0:
            self._error = None
            self._current = self._done_by_other
        return self._current


@pytest.mark.parametrize(("done_by_other", "refreshes"), [(True, 2), (False, 3)])
async def test_the_first_index_of_another_process_is_waited_for(
    done_by_other: bool, refreshes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "LOOK_SECONDS", 0.0)
    index, seen = Contended(done_by_other=done_by_other), Seen()

    await wait_for(refresh_if_stale(index, seen), "refresh_if_stale(index, seen)")

    assert len(index.refreshes) == refreshes
    assert seen.notes == ["Another citebot is indexing this repository. Waiting until it has finished ..."]


async def test_waiting_for_another_process_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(refresh, "WAIT_SECONDS", 0.0)
    index = FakeIndex(commit=None, current=False, error=StorageLocked("Another citebot is indexing."))

    with pytest.raises(StorageLocked):
        await wait_for(refresh_if_stale(index, Seen()), "refresh_if_stale(index, Seen())")


async def test_a_repository_that_is_gone_is_answered_from_the_earlier_index() -> None:
    class Gone(FakeIndex):
        async def is_current(self) -> bool:
            raise NotARepository("The repository is no longer there.")

    seen = Seen()

    await refresh_if_stale(Gone(), seen)

    assert seen.notes == ["Using the index at 0123456. The repository is no longer there."]


async def test_warnings_of_a_refresh_are_passed_on() -> None:
    seen = Seen()

    await refresh_index(FakeIndex(warnings=("The clone is shallow.",)), seen)

    assert seen.notes == ["The clone is shallow."]


async def test_cancelling_waits_until_the_thread_has_stopped() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    index = FakeIndex(endless=True)
    work = asyncio.ensure_future(refresh_index(index, Seen()))
    await asyncio.to_thread(index.begun.wait, LIMIT_SECONDS)

    work.cancel()

    with pytest.raises(asyncio.CancelledError):
        await wait_for(work, "the end of work")
    assert isinstance(index.stopped_by, RefreshStopped)
    del work
    gc.collect()  # an error that nobody looked at is reported when its task is collected
    assert complaints == []


def test_progress_passes_until_it_is_stopped() -> None:
    seen: list[Progress] = []
    progress = Progress(stage="parsing", done=1, total=2)
    stoppable = StoppableProgress(seen.append)

    stoppable(progress)
    stoppable.stop()

    with pytest.raises(RefreshStopped):
        stoppable(progress)
    assert seen == [progress]
