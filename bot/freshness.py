"""Brings the index to HEAD before it is asked, showing how far it has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from bot.errors import RefreshStopped
from bot.ports import Index
from indexer.errors import IndexerError
from indexer.models import Progress, RefreshReport

log = logging.getLogger(__name__)

# A refresh of a few files is over before anybody wonders what is going on.
PATIENCE_SECONDS = 1.0
# A refresh reports several times a second; one that does not is left to end by itself.
STOP_SECONDS = 10.0


class Display(Protocol):
    """Where progress and remarks are shown."""

    def indexing(self, *, patience: float) -> AbstractContextManager[Callable[[Progress], None]]:
        """Show a refresh for as long as the context is open, beginning after `patience` seconds."""

    def note(self, text: str) -> None:
        """Say something beside the answer."""


class Stoppable:
    """A progress callback that ends the refresh it belongs to once it was told to stop.

    A thread cannot be cancelled, so a refresh in a worker thread is stopped where it reports.
    """

    def __init__(self, inner: Callable[[Progress], None]) -> None:
        self._inner = inner
        self._stopped = False

    def __call__(self, progress: Progress) -> None:
        """Pass the progress on, or raise `RefreshStopped`."""
        if self._stopped:
            raise RefreshStopped("Indexing was stopped. What was indexed before is still there.")
        self._inner(progress)

    def stop(self) -> None:
        """Make the next report the last."""
        self._stopped = True


async def keep_current(index: Index, display: Display) -> None:
    """Index HEAD if it is not what is indexed; if that fails, an earlier generation serves and this is said."""
    if await index.is_current():
        return
    indexed = (await index.status()).commit
    try:
        await refresh(index, display, patience=PATIENCE_SECONDS if indexed else 0)
    except IndexerError as reason:
        if indexed is None:
            raise
        display.note(f"Going on with what was indexed at {indexed[:7]}. {reason}")


async def refresh(index: Index, display: Display, *, full: bool = False, patience: float = 0) -> RefreshReport:
    """Index HEAD and pass its warnings on; cancelling this stops the work in its thread as well."""
    with display.indexing(patience=patience) as show:
        progress = Stoppable(show)
        work = asyncio.ensure_future(index.refresh(full=full, progress=progress))
        try:
            report = await asyncio.shield(work)
        except asyncio.CancelledError:
            # Cancelling would leave the thread at it, holding the lock that the next refresh needs.
            progress.stop()
            work.add_done_callback(_end)
            await asyncio.wait({work}, timeout=STOP_SECONDS)
            raise
    for warning in report.warnings:
        display.note(warning)
    return report


def _end(stopped: asyncio.Future[RefreshReport]) -> None:
    """Take note of how a stopped refresh ended; nobody waits for it any more."""
    error = None if stopped.cancelled() else stopped.exception()
    if error is not None and not isinstance(error, RefreshStopped):
        log.warning("The refresh that was stopped failed: %s", error)
