"""Brings the index to HEAD before a question, and shows progress."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from bot.errors import RefreshStopped
from indexer import IndexerError, Progress, RefreshReport, StorageLocked

if TYPE_CHECKING:
    from bot.ports import RepositoryIndex

log = logging.getLogger(__name__)

# A refresh of a few files is over before anybody wonders what is in progress.
PATIENCE_SECONDS = 1.0
# A refresh reports several times a second; one that does not is left to end on its own.
STOP_SECONDS = 10.0
# How long the first index that another process makes is waited for, and how often it is looked for.
WAIT_SECONDS = 1800.0
LOOK_SECONDS = 0.3


class ProgressDisplay(Protocol):
    """Shows progress and remarks."""

    def show_indexing(self, *, patience: float) -> AbstractContextManager[Callable[[Progress], None]]:
        """Show a refresh for as long as the context is open, beginning after `patience` seconds."""

    def note(self, text: str) -> None:
        """Show a remark next to the answer."""


class LoggingDisplay:
    """A display for an unattended process: remarks are logged."""

    @contextmanager
    def show_indexing(self, *, patience: float) -> Iterator[Callable[[Progress], None]]:  # noqa: ARG002 - the port's
        """Show nothing."""
        yield lambda _: None

    def note(self, text: str) -> None:
        """Log a remark."""
        log.warning("%s", text)


class StoppableProgress:
    """A progress callback that ends the refresh it belongs to once `stop` was called.

    A thread cannot be cancelled, so a refresh in a worker thread stops at its next report.
    """

    def __init__(self, inner: Callable[[Progress], None]) -> None:
        self._inner = inner
        self._stopped = False

    def __call__(self, progress: Progress) -> None:
        """Pass the progress on, or raise `RefreshStopped`."""
        if self._stopped:
            raise RefreshStopped("Indexing was stopped. The previous index is still in use.")
        self._inner(progress)

    def stop(self) -> None:
        """Make the next report raise."""
        self._stopped = True


async def refresh_if_stale(index: RepositoryIndex, display: ProgressDisplay) -> None:
    """Index HEAD if necessary; if that fails, use an earlier generation, with a note."""
    try:
        if await index.is_current():
            return
        if (await index.status()).commit:
            await refresh_index(index, display, patience=PATIENCE_SECONDS)
        else:
            await _index_first(index, display)
    except IndexerError as reason:
        indexed = (await index.status()).commit
        if indexed is None:
            raise
        display.note(f"Using the index at {indexed[:7]}. {reason}")


async def _index_first(index: RepositoryIndex, display: ProgressDisplay) -> None:
    """Index for the first time; if another process is doing so, wait for it and use its index."""
    until = time.monotonic() + WAIT_SECONDS
    waits = False
    while not (waits and await index.is_current()):
        try:
            await refresh_index(index, display)
        except StorageLocked:
            if time.monotonic() > until:
                raise
            if not waits:
                display.note("Another citebot is indexing this repository. Waiting until it has finished ...")
            waits = True
            await asyncio.sleep(LOOK_SECONDS)
        else:
            return


async def refresh_index(
    index: RepositoryIndex,
    display: ProgressDisplay,
    *,
    full: bool = False,
    patience: float = 0,
    listener: Callable[[Progress], None] = lambda _: None,
) -> RefreshReport:
    """Index HEAD and pass on its warnings; cancelling this stops the work in its thread as well.

    The progress is shown, and passed to a listener, in that thread.
    """
    with display.show_indexing(patience=patience) as show:

        def report_progress(progress: Progress) -> None:
            show(progress)
            listener(progress)

        progress = StoppableProgress(report_progress)
        work = asyncio.ensure_future(index.refresh(full=full, progress=progress))
        try:
            report = await asyncio.shield(work)
        except asyncio.CancelledError:
            # Cancelling would leave the thread at it, holding the lock that the next refresh needs.
            progress.stop()
            work.add_done_callback(_log_failure)
            await asyncio.wait({work}, timeout=STOP_SECONDS)
            raise
    for warning in report.warnings:
        display.note(warning)
    return report


def _log_failure(stopped: asyncio.Future[RefreshReport]) -> None:
    """Log how a stopped refresh failed; nobody waits for it any more."""
    error = None if stopped.cancelled() else stopped.exception()
    if error is not None and not isinstance(error, RefreshStopped):
        log.warning("The refresh that was stopped failed: %s", error)
