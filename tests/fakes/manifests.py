"""The manifests of a cluster without Postgres: in a SQLite file, which processes may share."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bot.storage.manifest_table import make_manifest
from indexer.errors import SegmentsUnavailable
from indexer.segments.manifest_store import (
    Manifest,
    Pin,
    decode_refs,
    encode_refs,
    encode_status,
)
from indexer.types import ListedRefs

_BUSY_SECONDS = 10.0
_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
_LAYOUT = """
CREATE TABLE IF NOT EXISTS cluster (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS manifests (
    repository TEXT NOT NULL, version INTEGER NOT NULL, publication TEXT NOT NULL, listing TEXT NOT NULL,
    provenance TEXT NOT NULL, status TEXT NOT NULL, PRIMARY KEY (repository, version)) STRICT;
CREATE TABLE IF NOT EXISTS pins (
    holder TEXT PRIMARY KEY, repository TEXT NOT NULL, version INTEGER NOT NULL, until REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS listed_refs (repository TEXT PRIMARY KEY, refs TEXT NOT NULL) STRICT;
"""
_COLUMNS = "repository, version, publication, listing, provenance, status"
_NEWEST = "coalesce((SELECT max(version) FROM manifests WHERE repository = :repository), 0)"


class ManifestFile:
    """Versions and pins in one file, which is made when it is missing; each call is a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def identify_cluster(self) -> str:
        """Return the id of the cluster."""
        await self._run("INSERT OR IGNORE INTO cluster VALUES (1, :id)", id=uuid.uuid4().hex)
        return str((await self._run("SELECT id FROM cluster"))[0][0])

    async def read(self, repository: str) -> Manifest | None:
        """Return the newest version."""
        sql = f"SELECT {_COLUMNS} FROM manifests WHERE repository = :repository ORDER BY version DESC LIMIT 1"
        return next((make_manifest(row) for row in await self._run(sql, repository=repository)), None)

    async def list_versions(self) -> Mapping[str, int]:
        """Return the newest version of each repository."""
        return dict(await self._run("SELECT repository, max(version) FROM manifests GROUP BY repository"))

    async def list_manifests(self, repository: str) -> Sequence[Manifest]:
        """Return all versions that are kept, oldest first."""
        sql = f"SELECT {_COLUMNS} FROM manifests WHERE repository = :repository ORDER BY version"
        return [make_manifest(row) for row in await self._run(sql, repository=repository)]

    async def switch(self, repository: str, expected_version: int, manifest: Manifest) -> bool:
        """Make a manifest the version after the expected one; False if that is not the newest, or no pin holds."""
        sql = f"""INSERT INTO manifests ({_COLUMNS})
            SELECT :repository, :expected + 1, :publication, :listing, :provenance, :status
            WHERE {_NEWEST} = :expected
            AND EXISTS (SELECT 1 FROM pins WHERE holder = :publication AND until > {_NOW})
            ON CONFLICT DO NOTHING RETURNING version"""
        rows = await self._run(
            sql,
            repository=repository,
            expected=expected_version,
            publication=manifest.publication,
            listing=manifest.listing,
            provenance=manifest.provenance,
            status=encode_status(manifest.status),
        )
        return bool(rows)

    async def pin(self, repository: str, holder: str, seconds: float) -> Manifest | None:
        """Pin the newest version at once and return it."""
        sql = f"""INSERT INTO pins SELECT :holder, :repository, {_NEWEST}, {_NOW} + :seconds WHERE true
            ON CONFLICT (holder) DO UPDATE SET version = excluded.version, until = excluded.until RETURNING version"""
        ((version,),) = await self._run(sql, repository=repository, holder=holder, seconds=seconds)
        sql = f"SELECT {_COLUMNS} FROM manifests WHERE repository = :repository AND version = :version"
        rows = await self._run(sql, repository=repository, version=version)
        return make_manifest(rows[0]) if rows else None

    async def renew(self, holder: str, seconds: float) -> bool:
        """Extend a pin; False if it has run out."""
        sql = f"UPDATE pins SET until = {_NOW} + :seconds WHERE holder = :holder AND until > {_NOW} RETURNING version"
        return bool(await self._run(sql, holder=holder, seconds=seconds))

    async def unpin(self, holder: str) -> None:
        """End a pin."""
        await self._run("DELETE FROM pins WHERE holder = :holder", holder=holder)

    async def list_pinned(self, repository: str) -> Sequence[Pin]:
        """Return the pins that hold."""
        sql = f"SELECT holder, version FROM pins WHERE repository = :repository AND until > {_NOW}"
        rows = await self._run(sql, repository=repository)
        return [Pin(holder=holder, version=version) for holder, version in rows]

    async def forget(self, repository: str, before: int) -> None:
        """Delete old versions without pins, and expired pins."""
        await self._run(f"DELETE FROM pins WHERE until <= {_NOW}")
        sql = """DELETE FROM manifests WHERE repository = :repository AND version < :before
            AND version NOT IN (SELECT version FROM pins WHERE repository = :repository)"""
        await self._run(sql, repository=repository, before=before)

    async def note_refs(self, repository: str, refs: ListedRefs) -> None:
        """Note which refs a repository has by now."""
        sql = "INSERT OR REPLACE INTO listed_refs VALUES (:repository, :refs)"
        await self._run(sql, repository=repository, refs=encode_refs(refs))

    async def read_refs(self, repository: str) -> ListedRefs:
        """Return what was noted last; nothing if nothing was."""
        rows = await self._run("SELECT refs FROM listed_refs WHERE repository = :repository", repository=repository)
        return decode_refs(rows[0][0]) if rows else ListedRefs()

    async def _run(self, sql: str, **values: Any) -> list[Any]:
        return await asyncio.to_thread(self._run_now, sql, values)

    def _run_now(self, sql: str, values: Mapping[str, Any]) -> list[Any]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
                db.executescript(_LAYOUT)
                db.execute("BEGIN IMMEDIATE")
                rows = db.execute(sql, values).fetchall()
                db.execute("COMMIT")
                return rows
        except (sqlite3.Error, OSError) as error:
            raise SegmentsUnavailable(
                f"The manifest {self._path} cannot be used ({error}). Check the file and its disk."
            ) from error
