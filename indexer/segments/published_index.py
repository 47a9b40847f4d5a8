"""An index that is built here and served elsewhere: every refresh ends with publishing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from indexer.generations.reader import IndexReader
from indexer.segments.manifest_store import Manifests
from indexer.segments.publisher import BuiltIndex, Publisher
from indexer.types import Drift, IndexStatus, Progress, RefreshReport


class PublishedIndex:
    """A repository's index on this machine. Not published is not indexed: the next refresh makes up for it."""

    def __init__(self, index: BuiltIndex, publisher: Publisher, manifests: Manifests) -> None:
        self._index = index
        self._publisher = publisher
        self._manifests = manifests

    @property
    def name(self) -> str:
        """The repository's name for people."""
        return self._index.name

    @property
    def web_url(self) -> str | None:
        """The project's page, which links lead to."""
        return self._index.web_url

    async def is_current(self) -> bool:
        """Whether the commit of the repository's ref is indexed here, and published."""
        return await self._index.is_current() and await self._is_published()

    async def _is_published(self) -> bool:
        manifest, status = await self._manifests.read(self.name), await self._index.status()
        if manifest is None:
            return False
        return (manifest.status.commit, manifest.status.indexed_at) == (status.commit, status.indexed_at)

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index the ref and publish that; with `full` everything is indexed, and sent, again."""
        report = await self._index.refresh(full=full, progress=progress)
        await self._publisher.publish(self._index, full=full)
        return report

    async def pin(self) -> IndexReader:
        """Hold what is indexed here."""
        return await self._index.pin()

    async def status(self) -> IndexStatus:
        """Describe what is indexed here; as long as it is not published, as if it were not."""
        status = await self._index.status()
        manifest = await self._manifests.read(self.name)
        if manifest is not None and manifest.status.commit == status.commit:
            return status
        return manifest.status if manifest is not None else replace(status, commit=None)

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """Find out what changed since a commit, in general and of the paths."""
        return await self._index.drift(commit, paths)

    async def sweep(self) -> None:
        """Delete old generations on this machine."""
        await self._index.sweep()
