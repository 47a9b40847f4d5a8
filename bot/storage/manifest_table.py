"""Stores in Postgres the served generation of each repository's index: versions, and their pins."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from agent import Database
from bot.errors import InboxError
from indexer import (
    ListedRefs,
    Manifest,
    Pin,
    SegmentsUnavailable,
    decode_refs,
    decode_status,
    encode_refs,
    encode_status,
)

CHANNEL = "citebot_manifests"  # which every switch notifies

_COLUMNS = "repository, version, publication, listing, provenance, status"
_SELECT = f"SELECT {_COLUMNS} FROM manifests WHERE repository = :repository"
_NEWEST = "coalesce((SELECT max(version) FROM manifests WHERE repository = :repository), 0)"
_SWITCH = f"""INSERT INTO manifests ({_COLUMNS})
    SELECT :repository, CAST(:version AS BIGINT), :publication, :listing, :provenance, :status
    WHERE {_NEWEST} = CAST(:version AS BIGINT) - 1
    AND EXISTS (SELECT 1 FROM manifest_pins WHERE holder = :publication AND until > lease_clock())
    ON CONFLICT DO NOTHING RETURNING version"""
_NOTIFY = f"WITH switched AS ({_SWITCH}) SELECT pg_notify('{CHANNEL}', '') FROM switched"
_PIN = f"""INSERT INTO manifest_pins (holder, repository, version, until)
    SELECT :holder, :repository, {_NEWEST}, lease_clock() + :seconds
    ON CONFLICT (holder) DO UPDATE SET version = excluded.version, until = excluded.until RETURNING version"""
_FORGET = """DELETE FROM manifests WHERE repository = :repository AND version < :before AND version NOT IN (
    SELECT version FROM manifest_pins WHERE repository = :repository AND until > lease_clock())"""


class ManifestTable:
    """The manifests of a cluster. Pins end by the clock of the database; all methods raise `SegmentsUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def identify_cluster(self) -> str:
        """Return the id of the cluster, creating it if missing."""
        await self._rows(
            "INSERT INTO cluster (place, id) VALUES (1, :id) ON CONFLICT DO NOTHING RETURNING id", id=uuid.uuid4().hex
        )
        ((identity,),) = await self._rows("SELECT id FROM cluster")
        return str(identity)

    async def read(self, repository: str) -> Manifest | None:
        """Return the newest version."""
        rows = await self._rows(f"{_SELECT} ORDER BY version DESC LIMIT 1", repository=repository)
        return make_manifest(rows[0]) if rows else None

    async def list_versions(self) -> Mapping[str, int]:
        """Return the newest version of each repository."""
        rows = await self._rows("SELECT repository, max(version) FROM manifests GROUP BY repository")
        return {str(repository): int(version) for repository, version in rows}

    async def list_manifests(self, repository: str) -> Sequence[Manifest]:
        """List all kept versions, oldest first."""
        return [make_manifest(row) for row in await self._rows(f"{_SELECT} ORDER BY version", repository=repository)]

    async def switch(self, repository: str, expected_version: int, manifest: Manifest) -> bool:
        """Make a manifest the version after the expected one; False if that is not the newest, or no pin holds.

        Listeners are notified in the same transaction. The result is checked afterwards, because a
        statement whose connection broke is run twice.
        """
        version = expected_version + 1
        await self._rows(
            _NOTIFY,
            repository=repository,
            version=version,
            publication=manifest.publication,
            listing=manifest.listing,
            provenance=manifest.provenance,
            status=encode_status(manifest.status),
        )
        rows = await self._rows(f"{_SELECT} AND version = :version", repository=repository, version=version)
        return bool(rows) and make_manifest(rows[0]).publication == manifest.publication

    async def pin(self, repository: str, holder: str, seconds: float) -> Manifest | None:
        """Pin the newest version at once and return it; None if there is none, but the pin holds anyway."""
        ((version,),) = await self._rows(_PIN, repository=repository, holder=holder, seconds=seconds)
        rows = await self._rows(f"{_SELECT} AND version = :version", repository=repository, version=version)
        return make_manifest(rows[0]) if rows else None

    async def renew(self, holder: str, seconds: float) -> bool:
        """Extend a pin; False if it has expired."""
        sql = """UPDATE manifest_pins SET until = lease_clock() + :seconds
            WHERE holder = :holder AND until > lease_clock() RETURNING version"""
        return bool(await self._rows(sql, holder=holder, seconds=seconds))

    async def unpin(self, holder: str) -> None:
        """End a pin; an expired one is no error."""
        await self._rows("DELETE FROM manifest_pins WHERE holder = :holder RETURNING version", holder=holder)

    async def list_pinned(self, repository: str) -> Sequence[Pin]:
        """Return the valid pins."""
        sql = "SELECT holder, version FROM manifest_pins WHERE repository = :repository AND until > lease_clock()"
        rows = await self._rows(sql, repository=repository)
        return [Pin(holder=str(holder), version=int(version)) for holder, version in rows]

    async def forget(self, repository: str, before: int) -> None:
        """Delete old versions without pins, and expired pins."""
        await self._rows("DELETE FROM manifest_pins WHERE until <= lease_clock() RETURNING version")
        await self._rows(f"{_FORGET} RETURNING version", repository=repository, before=before)

    async def note_refs(self, repository: str, refs: ListedRefs) -> None:
        """Record the present refs of a repository."""
        sql = """INSERT INTO listed_refs (repository, refs) VALUES (:repository, :refs)
            ON CONFLICT (repository) DO UPDATE SET refs = excluded.refs RETURNING repository"""
        await self._rows(sql, repository=repository, refs=encode_refs(refs))

    async def read_refs(self, repository: str) -> ListedRefs:
        """Return the last recorded refs; empty without any."""
        rows = await self._rows("SELECT refs FROM listed_refs WHERE repository = :repository", repository=repository)
        return decode_refs(rows[0][0]) if rows else ListedRefs()

    async def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        try:
            return await self._database.rows(sql, values)
        except InboxError as error:
            raise SegmentsUnavailable(str(error)) from error


def make_manifest(row: Sequence[Any]) -> Manifest:
    """Return the manifest in a row of the table."""
    repository, version, publication, listing, provenance, status = row
    return Manifest(
        repository=repository,
        version=version,
        publication=publication,
        listing=listing,
        provenance=provenance,
        status=decode_status(status),
    )
