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
        StorageLocked,
    )
    from indexer.git.local_head import LocalHead
    from indexer.git.repository import locate_repository
    from indexer.git.safe_paths import is_safe_path
    from indexer.index import CodeIndex
    from indexer.parser_pool.plain_files import PLAIN_REASONS
    from indexer.parser_pool.pool import ParserPool
    from indexer.remotes.addresses import Address
    from indexer.remotes.clone import RemoteClone, open_clones
    from indexer.remotes.remote_repository import RemoteRepository
    from indexer.secrets import redact_secrets
    from indexer.secrets.cached_redactor import CachedRedactor
    from indexer.store.catalog_schema import CATALOG_VERSION, create_catalog_tables
    from indexer.store.data_folder import (
        REPOSITORIES_FOLDER,
        IndexFolder,
        copy_database,
        copy_index,
        find_index_folder,
        list_index_folders,
        remove_index,
    )
    from indexer.subprocesses import find_editor, start_editor, start_git_async
    from indexer.text.globs import compile_globs
    from indexer.types import (
        CallSite,
        Definition,
        Drift,
        FileEntry,
        Filters,
        Hit,
        IndexStatus,
        Location,
        Progress,
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
    "CachedRedactor",
    "CallSite",
    "CodeIndex",
    "Definition",
    "Drift",
    "EmptyRepository",
    "FileEntry",
    "Filters",
    "Hit",
    "IndexDamaged",
    "IndexFolder",
    "IndexStatus",
    "IndexerError",
    "LocalHead",
    "Location",
    "NotIndexed",
    "ParserPool",
    "Progress",
    "RefreshReport",
    "RemoteClone",
    "RemoteRepository",
    "RepositoryError",
    "SearchMode",
    "StorageLocked",
    "WatchIntervals",
    "Watcher",
    "compile_globs",
    "copy_database",
    "copy_index",
    "create_catalog_tables",
    "find_editor",
    "find_index_folder",
    "is_safe_path",
    "list_index_folders",
    "locate_repository",
    "open_clones",
    "redact_secrets",
    "remove_index",
    "start_editor",
    "start_git_async",
]

# The same names by the module that defines them.
_MODULES = {
    "indexer.errors": "BadAddress BadPattern EmptyRepository IndexDamaged IndexerError NotIndexed RepositoryError"
    " StorageLocked",
    "indexer.git.local_head": "LocalHead",
    "indexer.git.repository": "locate_repository",
    "indexer.git.safe_paths": "is_safe_path",
    "indexer.index": "CodeIndex",
    "indexer.parser_pool.plain_files": "PLAIN_REASONS",
    "indexer.parser_pool.pool": "ParserPool",
    "indexer.subprocesses": "find_editor start_editor start_git_async",
    "indexer.remotes.addresses": "Address",
    "indexer.remotes.clone": "RemoteClone open_clones",
    "indexer.remotes.remote_repository": "RemoteRepository",
    "indexer.secrets": "redact_secrets",
    "indexer.secrets.cached_redactor": "CachedRedactor",
    "indexer.store.catalog_schema": "CATALOG_VERSION create_catalog_tables",
    "indexer.store.data_folder": "REPOSITORIES_FOLDER IndexFolder copy_database copy_index find_index_folder"
    " list_index_folders remove_index",
    "indexer.text.globs": "compile_globs",
    "indexer.types": "CallSite Definition Drift FileEntry Filters Hit IndexStatus Location Progress RefreshReport"
    " SearchMode",
    "indexer.watcher": "WatchIntervals Watcher",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
