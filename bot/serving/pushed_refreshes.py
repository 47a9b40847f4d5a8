"""Pushes that hosts report to any process: whichever process indexes is asked to bring the repository up to date."""

from __future__ import annotations

import asyncio
import logging

from bot.errors import InboxError
from bot.ports import RefreshJobs

log = logging.getLogger(__name__)


class PushedRefreshes:
    """Asks for the refresh of what was pushed, in tasks of a group. What cannot be asked for, the watcher finds."""

    def __init__(self, jobs: RefreshJobs | None, group: asyncio.TaskGroup) -> None:
        self._jobs = jobs
        self._group = group

    def notify(self, repository: str, ref: str, commit: str | None = None) -> None:  # noqa: ARG002 - the port's
        """Take note that a ref of a repository was pushed."""
        log.info("%s: %s was pushed", repository, ref)
        self._group.create_task(self._ask(repository))

    async def _ask(self, repository: str) -> None:
        try:
            if self._jobs is not None:
                await self._jobs.ask_for_refresh(repository)
        except InboxError as error:
            log.warning("%s waits to be looked at: %s", repository, error)
