"""Turns a commit into a searchable generation, and lists everything that other packages may use.

A public name is loaded on first use, so importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexer.lazy_names import load_lazily

if TYPE_CHECKING:
    from indexer.diffs.followed_lines import Push, open_push
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
    from indexer.git.permalinks import make_compare_link, make_permalink
    from indexer.git.repository import locate_repository, open_objects
    from indexer.git.safe_paths import is_safe_path
    from indexer.git.scratch_copy import ScratchCopy
    from indexer.index import CodeIndex
    from indexer.installation import describe_error, describe_extra
    from indexer.parser_pool.plain_files import PLAIN_REASONS
    from indexer.parser_pool.pool import ParserPool
    from indexer.parser_pool.process import ConfinedWorker
    from indexer.parser_pool.worker import serve_requests
    from indexer.parsing.ctags import find_ctags_version
    from indexer.parsing.installed import list_languages
    from indexer.refs.repository_refs import RepositoryRefs, describe_unknown
    from indexer.remotes.addresses import Address
    from indexer.remotes.clone import RemoteClone, open_clones
    from indexer.remotes.ref_list import RefTable, fits_branch
    from indexer.remotes.remote_repository import RemoteRepository
    from indexer.secrets import redact_secrets
    from indexer.secrets.cached_redactor import CachedRedactor
    from indexer.segments.bucket import Bucket, open_bucket
    from indexer.segments.local_generations import CacheCounts, LocalGenerations
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
    from indexer.segments.publisher import PublishedIndex, Publisher
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
    from indexer.store.fingerprint import name_formats
    from indexer.store.vector_place import remove_index
    from indexer.subprocesses import (
        find_editor,
        start_confined_async,
        start_editor,
        start_git_async,
    )
    from indexer.text.globs import compile_globs
    from indexer.types import (
        TELLING_FATES,
        CallSite,
        CitedLines,
        Definition,
        DeployMark,
        Drift,
        FileEntry,
        FileImport,
        Filters,
        FollowedLines,
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
    from indexer.watcher import Watcher, WatchIntervals, WatchStatus

__getattr__ = load_lazily(__name__)
