"""From a commit to a new generation: parses, embeds and stores changes, then switches in one step."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from indexer.embedding.embedder import Embedder, EmbeddingInput
from indexer.git.objects import NOT_FETCHED, OVER, OVER_CHUNKS, OVER_NAMES, OVER_WORDS, Omission, TreeEntry
from indexer.git.repository import Repository
from indexer.parser_pool.parse_sources import Parsers
from indexer.parser_pool.wire_format import ParsedContents, SkippedFile
from indexer.search.centrality import score_centrality
from indexer.search.commit_history import CommitHistory, make_empty_history
from indexer.search.compaction import compact_if_needed, replace_centrality
from indexer.search.path_traits import read_path_traits
from indexer.search.segment import Floats
from indexer.search.snapshot import Snapshot
from indexer.search.snapshot_builder import SnapshotBuilder
from indexer.store.catalog import Catalog, Generation
from indexer.store.catalog_writer import CatalogWriter
from indexer.store.data_folder import DataFolder
from indexer.store.kept_parses import KeptParses
from indexer.store.vectors import ChromaCollection
from indexer.text.tokens import add_path
from indexer.types import Chunk, Commit, FileEntry, IndexLimits, ParsedFile, Progress, RefreshReport

_BATCH = 2_000  # chunks embedded at a time
_TELL_SECONDS = 0.5  # from one report of how far it has come to the next
_LARGE_CHANGE = 0.1  # share of the limit of bytes from which all files are counted again
_STALE_RANKS = 0.05  # share of changed chunks from which the call graph is ranked again

ProgressSink = Callable[[Progress], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshParts:
    """The inputs of a refresh; `provenance` is the fingerprint of format, rules and embedder.

    If the current generation `is_beside` the commit, it belongs to another branch, and the store
    only lends vectors.
    """

    repository: Repository
    folder: DataFolder
    catalog: Catalog
    store: ChromaCollection | None
    embedder: Embedder
    parsers: Parsers
    kept: KeptParses
    provenance: str
    limits: IndexLimits = field(default_factory=IndexLimits)
    is_beside: bool = False


def restore_vectors(parts: RefreshParts, current: tuple[Generation, Snapshot]) -> None:
    """Restore lost vectors of the current generation, without embedding anything again."""
    generation, snapshot = current
    keys = parts.catalog.map_chunk_keys(generation.id)
    if parts.store is None or parts.store.count() >= len(set(keys.values())):
        return
    ordinals = {keys[int(chunk)]: place for place, chunk in enumerate(snapshot.chunks.ids)}
    lost = sorted(parts.store.find_missing(list(ordinals)))
    parts.store.add(lost, snapshot.vectors(np.array([ordinals[key] for key in lost], dtype=np.int64)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshPlan:
    """The work of a refresh: catalog files to remove, tree entries to read, and entries that the rules leave out.

    All three concern the `touched` paths, or all paths if that is None.
    """

    removed: frozenset[int]
    entries: tuple[TreeEntry, ...]
    omissions: tuple[Omission, ...]
    touched: frozenset[str] | None
    previous: Snapshot | None


def build_generation(
    parts: RefreshParts,
    commit: Commit,
    *,
    current: tuple[Generation, Snapshot] | None,
    full: bool,
    ready: Callable[[int, Snapshot], None],
    progress: ProgressSink,
) -> RefreshReport:
    """Make a generation of a commit next to the current one and switch to it in one transaction.

    `ready` is called with the generation just before others can see it. If the process is killed,
    the current generation is unchanged, and stored vectors are found again.
    """
    started = time.monotonic()
    if not full:
        parts = replace(parts, limits=_keep_what_is_held(parts, current))
    plan = plan_refresh(parts, commit, None if full else current)
    with parts.catalog.begin_write() as writer:
        generation = writer.begin_generation(commit, provenance=parts.provenance)
        writer.remove_files(generation, plan.removed)
        build = _Build(parts, plan, writer, generation, progress)
        snapshot = build.run(update_history(parts, commit, current if plan.previous is not None else None))
        writer.leave_out(generation, [*plan.omissions, *build.unfit], instead_of=plan.touched)
        target = parts.folder.snapshot(generation)
        shutil.rmtree(target, ignore_errors=True)  # a killed refresh may have left it
        snapshot.save(target, parts.folder.snapshot(current[0].id) if current else None)
        snapshot.warm()
        ready(generation, snapshot)
    parts.kept.drop()
    progress(Progress(stage="done", done=len(plan.entries), total=len(plan.entries)))
    return RefreshReport(
        commit=commit.sha,
        previous=current[0].commit.sha if current else None,
        changed=len(plan.entries),
        removed=max(len(plan.removed) - len(plan.entries), 0),
        files=len(snapshot.files.paths),
        chunks=len(snapshot.chunks.ids),
        seconds=time.monotonic() - started,
    )


def _keep_what_is_held(parts: RefreshParts, current: tuple[Generation, Snapshot] | None) -> IndexLimits:
    """Return the limits, raised if a lower limit of chunks would remove existing ones."""
    if current is not None:
        held = len(current[1].chunks.ids)
    else:
        alive = parts.catalog.current()
        held = parts.catalog.count_rows(alive.id)["chunks"] if alive is not None else 0
    return replace(parts.limits, chunks=max(parts.limits.chunks, held))


def plan_refresh(parts: RefreshParts, commit: Commit, current: tuple[Generation, Snapshot] | None) -> RefreshPlan:
    """Find out which files to read: the difference from the current generation if git knows it, else everything."""
    if current is None or current[0].provenance != parts.provenance:
        listing = parts.repository.files(commit.sha, parts.limits)
        alive = parts.catalog.current()
        removed = frozenset(row.id for row in parts.catalog.files(alive.id)) if alive else frozenset()
        return RefreshPlan(
            removed=removed, entries=listing.entries, omissions=listing.omissions, touched=None, previous=None
        )
    generation, snapshot = current
    changes = parts.repository.compare_commits(generation.commit.sha, commit.sha)
    if changes is None:
        return _plan_from_listing(parts, commit, generation, snapshot)
    # Only the whole tree tells what of it is within the limits.
    is_large = sum(entry.size for entry in changes.entries) > parts.limits.bytes * _LARGE_CHANGE
    is_many = len(snapshot.files.paths) + len(changes.entries) > parts.limits.files
    if is_large or is_many or not {NOT_FETCHED, *OVER}.isdisjoint(generation.skipped):
        return _plan_from_listing(parts, commit, generation, snapshot)
    rows = (parts.catalog.file(generation.id, path) for path in changes.touched)
    removed = frozenset(row.id for row in rows if row is not None)
    return RefreshPlan(
        removed=removed,
        entries=changes.entries,
        omissions=changes.omissions,
        touched=changes.touched,
        previous=snapshot,
    )


def _plan_from_listing(parts: RefreshParts, commit: Commit, generation: Generation, snapshot: Snapshot) -> RefreshPlan:
    """Compare the whole tree with the catalog, as after a force-push or a change of attributes.

    Files that declare an encoding are read again, because the declaration may be new.
    """
    listing = parts.repository.files(commit.sha, parts.limits)
    wanted = {entry.path: entry.blob for entry in listing.entries if not entry.marks.encoding}
    rows = parts.catalog.files(generation.id)
    removed = frozenset(row.id for row in rows if wanted.get(row.entry.path) != row.blob)
    kept = {row.entry.path for row in rows if row.id not in removed}
    entries = tuple(entry for entry in listing.entries if entry.path not in kept)
    return RefreshPlan(removed=removed, entries=entries, omissions=listing.omissions, touched=None, previous=snapshot)


def update_history(parts: RefreshParts, commit: Commit, current: tuple[Generation, Snapshot] | None) -> CommitHistory:
    """Read new commit messages, or all of them if the current generation is no ancestor or knows few.

    For another branch, the messages of its generation are kept: they only help to rank, and reading all would take
    seconds.
    """
    if current is not None and current[1].history.is_rich:
        base = current[0].commit.sha
        newer = parts.repository.commit_messages(commit.sha, since=base, is_beside=parts.is_beside)
        if newer is not None:
            return current[1].history.prepend(newer)
    return make_empty_history().prepend(parts.repository.commit_messages(commit.sha) or [])


class _Build:
    """Builds one generation; `unfit` are the files with unindexable contents."""

    def __init__(
        self, parts: RefreshParts, plan: RefreshPlan, writer: CatalogWriter, generation: int, progress: ProgressSink
    ) -> None:
        self._parts = parts
        self._plan = plan
        self._writer = writer
        self._generation = generation
        self.unfit: list[Omission] = []
        self._progress = progress
        self._chunks = self._names = 0  # uses of names take no memory
        if plan.previous is not None:
            files = plan.previous.files
            kept = ~np.isin(files.ids, np.fromiter(plan.removed, dtype=np.int64))
            self._chunks, self._names = int(files.chunks[kept].sum()), int(files.definitions[kept].sum())
        self._assembly = SnapshotBuilder(plan.previous, dimensions=parts.embedder.dimensions)
        self._vectors = _VectorFeed(parts, is_first=plan.previous is None)

    def run(self, history: CommitHistory) -> Snapshot:
        total = len(self._plan.entries)
        blobs = self._parts.repository.iter_blobs(entry.blob for entry in self._plan.entries)
        sources = zip(self._plan.entries, (data for _, data in blobs), strict=True)
        repository = self._parts.repository
        parsed = self._parts.parsers.parse(sources, self._parts.kept, find_usual=lambda: repository.usual_encoding)
        self._progress(Progress(stage="parsing", done=0, total=total))
        told = time.monotonic()
        for done, (entry, contents) in enumerate(parsed, start=1):
            if isinstance(contents, SkippedFile):
                self.unfit.append(Omission(path=entry.path, reason=contents.reason))
            elif over := self._find_exceeded_limit(contents.parsed):
                rest = self._plan.entries[done - 1 :]
                self.unfit.extend(Omission(path=left.path, reason=over) for left in rest)
                break
            else:
                self._add(entry, contents)
            if done == total or time.monotonic() - told >= _TELL_SECONDS:
                told = time.monotonic()
                self._progress(Progress(stage="parsing", done=done, total=total))
        self._progress(Progress(stage="writing", done=0, total=0))
        vectors = self._vectors.finish()
        snapshot = self._assembly.build(self._plan.removed, vectors, history)
        # A small change moves the ranks little; ranking the whole graph again would take longer than the change.
        is_small = self._assembly.chunks_added <= _STALE_RANKS * len(snapshot.selection.chunks)
        if self._plan.previous is None or not is_small:
            return replace_centrality(snapshot, score_centrality(snapshot, self._writer.references(self._generation)))
        return compact_if_needed(snapshot)

    def _find_exceeded_limit(self, parsed: ParsedFile) -> str:
        """Name the limit that a file would exceed, or that earlier ones have reached; empty if there is none."""
        limits = self._parts.limits
        if self._chunks + len(parsed.chunks) > limits.chunks:
            return OVER_CHUNKS
        if self._names + parsed.count_names() > limits.names:
            return OVER_NAMES
        is_full = self._assembly.words >= limits.words or self._assembly.postings >= limits.postings
        return OVER_WORDS if is_full else ""

    def _add(self, entry: TreeEntry, contents: ParsedContents) -> None:
        parsed = contents.parsed
        self._chunks += len(parsed.chunks)
        self._names += parsed.count_names()
        keys = [make_content_key(entry.path, chunk) for chunk in parsed.chunks]
        file_entry = FileEntry(
            path=entry.path,
            language=parsed.language,
            source_type=read_path_traits(entry.path).source_type,
            lines=contents.lines,
        )
        file_id = self._writer.add_file(self._generation, file_entry, entry.blob, contents.packed)
        chunk_ids = self._writer.add_parsed(file_id, parsed, keys)
        self._assembly.add(file_id, file_entry, parsed, add_path(contents.bags, entry.path), chunk_ids)
        self._vectors.add(keys, [make_embedding_input(entry.path, chunk) for chunk in parsed.chunks])


class _VectorFeed:
    """Embeds chunks in batches, except known ones, and stores the new vectors if they are kept."""

    def __init__(self, parts: RefreshParts, *, is_first: bool) -> None:
        self._embedder = parts.embedder
        is_empty = is_first and parts.store is not None and parts.store.count() == 0
        self._known = None if is_empty else parts.store
        self._kept = None if parts.is_beside else parts.store
        self._keys: list[str] = []
        self._inputs: list[EmbeddingInput] = []
        self._done: list[NDArray[np.float16]] = []  # as they are stored beside the postings

    def add(self, keys: Sequence[str], inputs: Iterable[EmbeddingInput]) -> None:
        """Add the chunks of a file."""
        self._keys.extend(keys)
        self._inputs.extend(inputs)
        while len(self._keys) >= _BATCH:
            self._flush(_BATCH)

    def finish(self) -> Floats:
        """Return the vectors of everything added, in order and half precision; memory holds them once."""
        if self._keys:
            self._flush(len(self._keys))
        if self._kept is not None:
            self._kept.settle()
        vectors = np.empty((sum(map(len, self._done)), self._embedder.dimensions), dtype=np.float32)
        end = len(vectors)
        while self._done:
            batch = self._done.pop()
            vectors[end - len(batch) : end] = batch
            end -= len(batch)
        return vectors

    def _flush(self, count: int) -> None:
        keys, inputs = self._keys[:count], self._inputs[:count]
        del self._keys[:count], self._inputs[:count]
        missing = set(keys) if self._known is None else self._known.find_missing(keys)
        absent = [place for place, key in enumerate(keys) if key in missing]
        present = [place for place, key in enumerate(keys) if key not in missing]
        vectors = np.empty((len(keys), self._embedder.dimensions), dtype=np.float32)
        if absent:
            vectors[absent] = self._embedder.embed_documents([inputs[place] for place in absent])
            if self._kept is not None:
                self._kept.add([keys[place] for place in absent], vectors[absent])
        if self._known is not None and present:
            vectors[present] = self._known.get([keys[place] for place in present])
        self._done.append(vectors.astype(np.float16))


def make_content_key(path: str, chunk: Chunk) -> str:
    """Name a chunk by all inputs of its vector."""
    content = "\0".join((path, chunk.scope, *chunk.names, "", chunk.text))
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def make_embedding_input(path: str, chunk: Chunk) -> EmbeddingInput:
    """Make the text to embed for a chunk."""
    return EmbeddingInput(header=" ".join((path, chunk.scope, *chunk.names[:20])), body=chunk.text)
