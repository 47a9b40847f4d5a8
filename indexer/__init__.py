"""Knows the code: from a commit to a searchable generation, and everything that other packages may use of it.

A public name is loaded when it is first asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexer.errors import (
        BadAddress,
        BadPattern,
        EmptyRepository,
        IndexDamaged,
        IndexerError,
        NotIndexed,
        RepositoryError,
        SegmentsUnavailable,
        StorageLocked,
        UnknownPath,
        UnknownRevision,
    )
    from indexer.git.local_head import LocalHead
    from indexer.git.repository import locate_repository, open_objects
    from indexer.git.safe_paths import is_safe_path
    from indexer.index import CodeIndex
    from indexer.installation import describe_error, describe_extra
    from indexer.parser_pool.confined_worker import ConfinedWorker
    from indexer.parser_pool.plain_files import PLAIN_REASONS
    from indexer.parser_pool.pool import ParserPool
    from indexer.parser_pool.worker import serve_requests
    from indexer.refs.repository_refs import RepositoryRefs, describe_unknown
    from indexer.remotes.addresses import Address
    from indexer.remotes.clone import RemoteClone, open_clones
    from indexer.remotes.ref_list import RefTable, fits_branch
    from indexer.remotes.remote_repository import RemoteRepository
    from indexer.secrets import redact_secrets
    from indexer.secrets.cached_redactor import CachedRedactor
    from indexer.segments.bucket import Bucket, open_bucket
    from indexer.segments.local_generations import CacheCounts, LocalGenerations
    from indexer.segments.manifest_file import ManifestFile
    from indexer.segments.manifest_store import (
        Manifest,
        Manifests,
        Pin,
        decode_refs,
        decode_status,
        encode_refs,
        encode_status,
        name_beside,
    )
    from indexer.segments.opened_generation import ReadingParts
    from indexer.segments.published_index import BuiltIndex, PublishedIndex
    from indexer.segments.publisher import Publisher
    from indexer.segments.shared_index import Follower, SharedIndex
    from indexer.segments.sweep import claim_bucket, sweep_segments
    from indexer.store.catalog_schema import CATALOG_VERSION, create_catalog_tables
    from indexer.store.chroma_server import check_chroma_server
    from indexer.store.data_folder import (
        REPOSITORIES_FOLDER,
        IndexFolder,
        copy_database,
        copy_index,
        find_index_folder,
        list_index_folders,
    )
    from indexer.store.vector_place import remove_index
    from indexer.subprocesses import (
        find_editor,
        start_confined_async,
        start_editor,
        start_git_async,
    )
    from indexer.text.globs import compile_globs
    from indexer.types import (
        CallSite,
        Definition,
        Drift,
        FileEntry,
        FileImport,
        Filters,
        Hit,
        IndexLimits,
        IndexStatus,
        ListedRefs,
        Location,
        NamedRef,
        Progress,
        RefKind,
        RefreshReport,
        SearchMode,
    )
    from indexer.watcher import Watcher, WatchIntervals

__all__ = [
    "CATALOG_VERSION",
    "PLAIN_REASONS",
    "REPOSITORIES_FOLDER",
    "Address",
    "BadAddress",
    "BadPattern",
    "Bucket",
    "BuiltIndex",
    "CacheCounts",
    "CachedRedactor",
    "CallSite",
    "CodeIndex",
    "ConfinedWorker",
    "Definition",
    "Drift",
    "EmptyRepository",
    "FileEntry",
    "FileImport",
    "Filters",
    "Follower",
    "Hit",
    "IndexDamaged",
    "IndexFolder",
    "IndexLimits",
    "IndexStatus",
    "IndexerError",
    "ListedRefs",
    "LocalGenerations",
    "LocalHead",
    "Location",
    "Manifest",
    "ManifestFile",
    "Manifests",
    "NamedRef",
    "NotIndexed",
    "ParserPool",
    "Pin",
    "Progress",
    "PublishedIndex",
    "Publisher",
    "ReadingParts",
    "RefKind",
    "RefTable",
    "RefreshReport",
    "RemoteClone",
    "RemoteRepository",
    "RepositoryError",
    "RepositoryRefs",
    "SearchMode",
    "SegmentsUnavailable",
    "SharedIndex",
    "StorageLocked",
    "UnknownPath",
    "UnknownRevision",
    "WatchIntervals",
    "Watcher",
    "check_chroma_server",
    "claim_bucket",
    "compile_globs",
    "copy_database",
    "copy_index",
    "create_catalog_tables",
    "decode_refs",
    "decode_status",
    "describe_error",
    "describe_extra",
    "describe_unknown",
    "encode_refs",
    "encode_status",
    "find_editor",
    "find_index_folder",
    "fits_branch",
    "is_safe_path",
    "list_index_folders",
    "locate_repository",
    "name_beside",
    "open_bucket",
    "open_clones",
    "open_objects",
    "redact_secrets",
    "remove_index",
    "serve_requests",
    "start_confined_async",
    "start_editor",
    "start_git_async",
    "sweep_segments",
]

# The same names by the module that defines them.
_MODULES = {
    "indexer.errors": "BadAddress BadPattern EmptyRepository IndexDamaged IndexerError NotIndexed RepositoryError"
    " SegmentsUnavailable StorageLocked UnknownPath UnknownRevision",
    "indexer.git.local_head": "LocalHead",
    "indexer.git.repository": "locate_repository open_objects",
    "indexer.git.safe_paths": "is_safe_path",
    "indexer.index": "CodeIndex",
    "indexer.installation": "describe_error describe_extra",
    "indexer.parser_pool.confined_worker": "ConfinedWorker",
    "indexer.parser_pool.plain_files": "PLAIN_REASONS",
    "indexer.parser_pool.pool": "ParserPool",
    "indexer.parser_pool.worker": "serve_requests",
    "indexer.subprocesses": "find_editor start_confined_async start_editor start_git_async",
    "indexer.refs.repository_refs": "RepositoryRefs describe_unknown",
    "indexer.remotes.addresses": "Address",
    "indexer.remotes.ref_list": "RefTable fits_branch",
    "indexer.remotes.clone": "RemoteClone open_clones",
    "indexer.remotes.remote_repository": "RemoteRepository",
    "indexer.secrets": "redact_secrets",
    "indexer.secrets.cached_redactor": "CachedRedactor",
    "indexer.segments.bucket": "Bucket open_bucket",
    "indexer.segments.local_generations": "CacheCounts LocalGenerations",
    "indexer.segments.manifest_file": "ManifestFile",
    "indexer.segments.manifest_store": "Manifest Manifests Pin decode_refs decode_status encode_refs encode_status"
    " name_beside",
    "indexer.segments.opened_generation": "ReadingParts",
    "indexer.segments.published_index": "BuiltIndex PublishedIndex",
    "indexer.segments.publisher": "Publisher",
    "indexer.segments.shared_index": "Follower SharedIndex",
    "indexer.segments.sweep": "claim_bucket sweep_segments",
    "indexer.store.catalog_schema": "CATALOG_VERSION create_catalog_tables",
    "indexer.store.data_folder": "REPOSITORIES_FOLDER IndexFolder copy_database copy_index find_index_folder"
    " list_index_folders",
    "indexer.store.chroma_server": "check_chroma_server",
    "indexer.store.vector_place": "remove_index",
    "indexer.text.globs": "compile_globs",
    "indexer.types": "CallSite Definition Drift FileEntry FileImport Filters Hit IndexLimits IndexStatus"
    " ListedRefs Location NamedRef Progress RefKind RefreshReport SearchMode",
    "indexer.watcher": "WatchIntervals Watcher",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
