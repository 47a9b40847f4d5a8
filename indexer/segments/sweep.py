"""Deletes objects that no version, reader or publisher needs any more.

The store is listed first, and pins and versions are read afterwards. A publication pins before it
uploads and holds its pin until it has switched, so every listed object belongs to a visible pin, to
a visible version, or to nobody. A publication at another commit is next to the newest in the store,
shares objects with it, and pins it. No name is ever used again: an object without an owner never
gets one, so a sweep that was paused for hours does no harm either. Only publishers name objects,
each below its own id.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

from indexer.errors import SegmentsDamaged, SegmentsUnavailable
from indexer.segments.bucket import Bucket
from indexer.segments.listing import decode_listing
from indexer.segments.manifest_store import Manifest, Manifests, find_owner
from indexer.segments.publisher import name_prefix, read_listing

log = logging.getLogger(__name__)

GRACE = timedelta(hours=1)  # by the store's clock; a database that was restored may have lost a pin
MAX_BESIDE = 20  # commits of a repository beside its newest, which are published again when somebody asks
BESIDE_DAYS = timedelta(days=14)
_CLOCKS = "citebot-sweeps"
MARKER = "citebot-cluster"


async def claim_bucket(store: Bucket, cluster: str) -> None:
    """Write the cluster's id if there is none; `SegmentsUnavailable` if there is another one's.

    Two clusters with one bucket would each sweep away what the other has published.
    """
    if await store.put(MARKER, cluster.encode()):
        return
    if await store.read(MARKER) != cluster.encode():
        raise SegmentsUnavailable(
            "The bucket of SEGMENTS_URL belongs to another cluster, or to this one with another database. Use a "
            f"bucket or a prefix of its own; if nobody else uses this one, delete {MARKER} and what is beside it."
        )


async def sweep_segments(store: Bucket, manifests: Manifests, *, grace: timedelta = GRACE) -> int:
    """Delete unneeded objects of all repositories; return their number. Raises `SegmentsUnavailable`."""
    key = f"{_CLOCKS}/{uuid.uuid4().hex}"
    await store.put(key, b"")
    times = [each.modified_at async for each in store.list(_CLOCKS)]
    await store.delete([key])
    now = max(times)
    swept = 0
    for name in await _drop_old_beside(manifests, now):
        try:
            swept += await _sweep_repository(store, manifests, name, now - grace)
        except SegmentsDamaged as error:  # also of a later version: who cannot read what is needed deletes nothing
            log.warning("%s: nothing of it is swept: %s", name, error)
    return swept


async def _drop_old_beside(manifests: Manifests, now: datetime) -> Collection[str]:
    """Delete old or surplus publications at other commits than the newest; return the repositories."""
    beside: dict[str, list[Manifest]] = {}
    for name in await manifests.list_versions():
        manifest = await manifests.read(name) if find_owner(name) != name else None
        beside.setdefault(find_owner(name), []).extend([manifest] if manifest is not None else [])
    for published in beside.values():
        published.sort(key=lambda each: each.status.indexed_at or 0.0, reverse=True)
        for place, manifest in enumerate(published):
            age = now.timestamp() - (manifest.status.indexed_at or 0.0)
            is_old = place >= MAX_BESIDE or age > BESIDE_DAYS.total_seconds()
            await manifests.forget(manifest.repository, manifest.version + int(is_old))
    return beside.keys()


async def _sweep_repository(store: Bucket, manifests: Manifests, repository: str, before: datetime) -> int:
    """Sweep a repository; keep versions from the newest at the beginning on, because one of them may just be pinned."""
    first = await manifests.read(repository)
    stored = [each async for each in store.list(name_prefix(repository))]
    pins = await manifests.list_pinned(repository)
    names = [name for name in await manifests.list_versions() if find_owner(name) == repository]
    kept = [manifest for name in names for manifest in await manifests.list_manifests(name)]
    if first is None:
        return 0
    pinned = {pin.version for pin in pins}
    needed: set[str] = set()
    for manifest in kept:
        is_beside = manifest.repository != repository
        if is_beside or manifest.version >= first.version or manifest.version in pinned:
            needed |= await _list_keys(store, manifest)
    publishing = tuple(f"{name_prefix(repository)}/{pin.holder}/" for pin in pins)
    gone = [
        each.key
        for each in stored
        if each.key not in needed and each.modified_at < before and not each.key.startswith(publishing)
    ]
    await manifests.forget(repository, first.version)
    await store.delete(gone)
    if gone:
        log.info("%s: %d objects were swept", repository, len(gone))
    return len(gone)


async def _list_keys(store: Bucket, manifest: Manifest) -> set[str]:
    """List the objects of a version; `SegmentsDamaged` if its listing cannot be read."""
    data = await read_listing(store, manifest)
    listing = await asyncio.to_thread(decode_listing, data, manifest.listing)
    prefix = f"{name_prefix(find_owner(manifest.repository))}/{manifest.publication}"
    return {f"{prefix}/{manifest.listing}", *(bundle.key for bundle in listing.bundles)}
