"""An object store by its address: S3, Google Cloud Storage, Azure, a folder, or memory."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from indexer.errors import SegmentsUnavailable
from indexer.installation import describe_extra

if TYPE_CHECKING:  # comes with the extra `cluster`
    from obstore.store import ObjectStore as Backend

SCHEMES = ("s3", "gs", "az", "file", "memory")
# Without TLS only where an endpoint is named that begins so, as that of a server in the same network.
_CLIENT = {"timeout": timedelta(seconds=30), "allow_http": True}
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_LISTED_AT_ONCE = 500
_DELETED_AT_ONCE = 500
# The stores' own words within a longer text.
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_FULL = re.compile(r"InsufficientStorage|QuotaExceeded|507 |No space left|quota|is full", re.IGNORECASE)
_FORBIDDEN = re.compile(r"AccessDenied|Permission denied|40[13] |Forbidden|Unauthorized", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """An object in the store's list; the time is the store's, `size` is in bytes."""

    key: str
    size: int
    modified_at: datetime


class Bucket:
    """Write-once objects of one bucket, or below a prefix in it.

    Raises `SegmentsUnavailable` if the store cannot be used. No error contains an address.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def put(self, key: str, data: bytes) -> bool:
        """Write a missing object; False if it exists, and stays unchanged."""
        from obstore import put_async
        from obstore.exceptions import AlreadyExistsError

        with _map_errors():
            try:
                await put_async(self._backend, key, data, mode="create")
            except AlreadyExistsError:
                return False
        return True

    async def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """Read a range of an object; `KeyError` if there is no such object."""
        from obstore import get_async, get_range_async

        with _map_errors(key):
            if end is None and not start:
                return bytes(await (await get_async(self._backend, key)).bytes_async())
            return bytes(await get_range_async(self._backend, key, start=start, end=end))

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """List the objects below a prefix."""
        import obstore

        with _map_errors():
            async for page in obstore.list(self._backend, prefix, chunk_size=_LISTED_AT_ONCE):
                for meta in page:
                    yield StoredObject(key=meta["path"], size=meta["size"], modified_at=meta["last_modified"])

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; a folder stops at the first missing one, so that another continues with the next."""
        from obstore import delete_async

        with _map_errors():
            for start in range(0, len(keys), _DELETED_AT_ONCE):
                batch = list(keys[start : start + _DELETED_AT_ONCE])
                try:
                    await delete_async(self._backend, batch)
                except FileNotFoundError:
                    for key in batch:
                        with suppress(FileNotFoundError):
                            await delete_async(self._backend, key)


def open_bucket(url: str, *, options: Mapping[str, Any] | None = None) -> Bucket:
    """Open the object store at an address; nothing is asked of it yet.

    If an address has no place for them, keys and regions come from the store's own variables.
    `options` are further ones of the store, for tests. Raises `SegmentsUnavailable`.
    """
    scheme = url.partition("://")[0]
    if scheme not in SCHEMES or "://" not in url or "@" in url:  # keys are no part of an address
        raise SegmentsUnavailable(
            "SEGMENTS_URL is not the address of an object store. Write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
            "az://ACCOUNT/CONTAINER/PREFIX or file:///FOLDER, without keys."
        )
    try:
        from obstore.store import LocalStore, MemoryStore, from_url
    except ModuleNotFoundError as error:
        raise SegmentsUnavailable(
            f"SEGMENTS_URL needs the extra `cluster`, which is not installed. {describe_extra('cluster')}"
        ) from error
    with _map_errors():
        if scheme == "memory":
            return Bucket(MemoryStore())
        if scheme == "file":
            return Bucket(LocalStore(url.removeprefix("file://"), mkdir=True))
        network: dict[str, Any] = {"client_options": _CLIENT, "retry_config": _RETRIES}
        return Bucket(from_url(url, **(network | dict(options or {}))))


@contextmanager
def _map_errors(key: str = "") -> Iterator[None]:
    """Map obstore's errors to sentences; it has no class for most errors of stores."""
    from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if key and not _NO_BUCKET.search(str(error)):
            raise KeyError(key) from error
        raise SegmentsUnavailable(
            "The bucket in SEGMENTS_URL does not exist. Create it, or correct the address."
        ) from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise _make_forbidden_error() from error
    except (BaseError, ValueError, OSError) as error:
        raise _explain_error(error) from error


def _explain_error(error: Exception) -> SegmentsUnavailable:
    text = str(error)
    if _NO_BUCKET.search(text):
        return SegmentsUnavailable("The bucket in SEGMENTS_URL does not exist. Create it, or correct the address.")
    if _FULL.search(text):
        return SegmentsUnavailable("The object store of SEGMENTS_URL is full. Make room, or raise its quota.")
    if _FORBIDDEN.search(text):
        return _make_forbidden_error()
    reason = text.partition("\n")[0].partition("?")[0][:200]  # some stores are asked with a signature behind that
    return SegmentsUnavailable(
        f"The object store of SEGMENTS_URL cannot be used ({reason}). Check that it runs and can be reached; "
        "what was downloaded is still served."
    )


def _make_forbidden_error() -> SegmentsUnavailable:
    return SegmentsUnavailable(
        "The object store of SEGMENTS_URL denies access. Check the keys; they need permission to read, write, list "
        "and delete."
    )
