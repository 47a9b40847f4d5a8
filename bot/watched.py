"""Repositories that are watched: what is amiss with one of them is told with its status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from agent.ports import CodeSearch
from bot.ports import Repositories
from indexer.models import Drift, IndexStatus, Progress, RefreshReport


class StatusSource(Protocol):
    """Who watches them."""

    def sentence(self, repository: str) -> str:
        """Say what is wrong with a repository or worth knowing; empty if all is well."""


class WatchedRepositories:
    """Repositories whose status says what their watch has to say."""

    def __init__(self, repositories: Repositories, watch: StatusSource) -> None:
        self._repositories = repositories
        self._watch = watch

    def list_names(self) -> Sequence[str]:
        """Name them all."""
        return self._repositories.list_names()

    async def status(self, name: str) -> IndexStatus:
        """Describe what is indexed, and what keeps it from being the newest."""
        status = await self._repositories.status(name)
        sentence = self._watch.sentence(name)
        return replace(status, warnings=(*status.warnings, sentence)) if sentence else status

    async def drift(self, name: str, commit: str, paths: Sequence[str]) -> Drift:
        """What happened in a repository since a commit, and to which of the paths."""
        return await self._repositories.drift(name, commit, paths)

    async def refresh(
        self, name: str, *, full: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> RefreshReport:
        """Index the newest commit of a repository."""
        return await self._repositories.refresh(name, full=full, progress=progress)

    async def pin_existing(self, name: str) -> CodeSearch:
        """Hold what is indexed of a repository by now."""
        return await self._repositories.pin_existing(name)
