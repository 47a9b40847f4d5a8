"""The port of the manifest store: the served generation of each repository, as versions that may be pinned.

A publisher pins before it uploads, under the name of its publication, and a reader before it
downloads. So every object found by a sweep belongs to a version, to a pin, or to nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from indexer.types import IndexStatus, ListedRefs, PlainFile

_BESIDE = re.compile(r"(?P<repository>.+)@(?P<commit>[0-9a-f]{40}(?:[0-9a-f]{24})?)", re.DOTALL)


def name_beside(repository: str, commit: str) -> str:
    """Name the publication of a repository at another commit than its newest."""
    return f"{repository}@{commit}"


def find_owner(name: str) -> str:
    """Return the repository of a name, without the commit of another publication."""
    found = _BESIDE.fullmatch(name)
    return found["repository"] if found else name


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One published generation: the place of its listing, by publication and SHA-256, and its description for people.

    The hashes in a listing authenticate everything else, so the object store need not be trusted.
    """

    repository: str
    version: int
    publication: str
    listing: str
    provenance: str
    status: IndexStatus


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """A holder that keeps a version from being swept; a publisher's is 0 if nothing was published before."""

    holder: str
    version: int


class Manifests(Protocol):
    """Versions of repositories and pins on them. Pins end by the store's own clock; raises `SegmentsUnavailable`."""

    async def identify_cluster(self) -> str:
        """Return the id of this store's cluster, creating it if missing."""

    async def read(self, repository: str) -> Manifest | None:
        """Return the newest version."""

    async def list_versions(self) -> Mapping[str, int]:
        """Return the newest version of each repository."""

    async def list_manifests(self, repository: str) -> Sequence[Manifest]:
        """Return all kept versions, oldest first."""

    async def switch(self, repository: str, expected_version: int, manifest: Manifest) -> bool:
        """Make a manifest the version after the expected one (0: the first).

        False if another indexer was faster, or the pin that the publication holds has run out.
        """

    async def pin(self, repository: str, holder: str, seconds: float) -> Manifest | None:
        """Pin the newest version at once and return it; None if there is none, but the pin holds anyway."""

    async def renew(self, holder: str, seconds: float) -> bool:
        """Extend a pin; False if it has expired, and its objects may be gone."""

    async def unpin(self, holder: str) -> None:
        """End a pin; an expired one is no error."""

    async def list_pinned(self, repository: str) -> Sequence[Pin]:
        """Return the valid pins."""

    async def forget(self, repository: str, before: int) -> None:
        """Delete old versions without pins, and expired pins."""

    async def note_refs(self, repository: str, refs: ListedRefs) -> None:
        """Record the present refs of a repository, for machines without it."""

    async def read_refs(self, repository: str) -> ListedRefs:
        """Return the last recorded refs; empty without any."""


def encode_refs(refs: ListedRefs) -> str:
    """Write refs as text, for a store of manifests."""
    return json.dumps(asdict(refs))


def decode_refs(text: str) -> ListedRefs:
    """Read refs back."""
    fields = json.loads(text)
    return ListedRefs(commits=fields["commits"], followed=fields["followed"])


def encode_status(status: IndexStatus) -> str:
    """Write a status as text, for a store of manifests."""
    return json.dumps(asdict(status))


def decode_status(text: str) -> IndexStatus:
    """Decode a status; fields of a later version are ignored."""
    fields: dict[str, Any] = {name: each for name, each in json.loads(text).items() if name in IndexStatus.__slots__}
    plain = tuple(PlainFile(path=each["path"], reason=each["reason"]) for each in fields["plain_files"])
    lists = {name: tuple(fields.get(name, ())) for name in ("warnings", "branches")}
    return IndexStatus(**fields | {"plain_files": plain} | lists)
