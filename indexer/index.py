"""The index of a repository: opening, refreshing, and pinning a generation to read."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.checksums import is_whole
from indexer.embedding.factory import open_embedder
from indexer.embedding.static_name import STATIC
from indexer.errors import DamagedCatalog, DamagedVectors, IndexDamaged, NotIndexed, RepositoryError, StorageError
from indexer.git.objects import NOT_FETCHED, OVER, describe_limits, describe_partial
from indexer.git.repository import Repository
from indexer.parser_pool.parse_sources import Parsers
from indexer.parser_pool.plain_files import PlainFiles
from indexer.store.catalog import Catalog, Generation, LiveCatalog
from indexer.store.data_folder import (
    REPOSITORIES_FOLDER,
    DataFolder,
    make_utf8_folder,
    measure_folder,
    name_index_folder,
    note_attempt,
)
from indexer.store.fingerprint import is_readable_fingerprint, make_fingerprint
from indexer.store.kept_parses import KeptParses
from indexer.store.vector_place import VectorPlace
from indexer.types import Commit, Drift, IndexLimits, IndexStatus, NamedRef, PlainFile, Progress, RefreshReport

if TYPE_CHECKING:
    from pydantic import SecretStr

    from indexer.embedding.embedder import Embedder
    from indexer.generations.generation_cache import GenerationCache
    from indexer.generations.history_reader import DeployMarks
    from indexer.generations.pipeline import RefreshParts
    from indexer.generations.reader import IndexReader
    from indexer.parser_pool.pool import ParserPool
    from indexer.search.ranking import Fusion
    from indexer.search.snapshot import Snapshot
    from indexer.store.vectors import ChromaCollection

log = logging.getLogger(__name__)

_KEEP_RETIRED = 3  # generations; other processes may still be reading the last ones
_KEEP_SECONDS = 600.0
_SWEPT_BESIDE = 500  # files that a refresh sweeps; the next push waits for it
_DAMAGED = "The index was damaged and is being rebuilt."
_REBUILT = "The vector store was damaged and was rebuilt."


class CodeIndex:
    """One repository's index on disk. Readers continue with their generation while a refresh makes the next.

    One that is beside a `main` one is at a commit off the followed branch, and shares its open
    parts.
    """

    def __init__(
        self,
        repository: Repository,
        folder: DataFolder,
        embedder: Embedder,
        *,
        vectors: VectorPlace,
        parsers: Parsers,
        provenance: str,
        fusion: Fusion,
        ref: str,
        limits: IndexLimits,
        main: CodeIndex | None = None,
    ) -> None:
        self._repository = repository
        self._folder = folder
        self._embedder = embedder
        self._vectors = vectors
        self._parsers = parsers
        self._provenance = provenance
        self._fusion = fusion
        self._ref = ref
        self._limits = limits
        self._main = main
        self._catalogs = LiveCatalog(folder)
        self._store: ChromaCollection | None = None
        self._held: tuple[Generation, Snapshot] | None = None
        self._made: dict[int, Snapshot] = {}  # by a refresh that is not over
        self._contents: GenerationCache | None = None
        self._readers: weakref.WeakSet[IndexReader] = weakref.WeakSet()
        self._refreshing = asyncio.Lock()
        self._warnings: list[str] = []
        self._find_ref: Callable[[str], Awaitable[NamedRef]] | None = None
        self._read_marks: DeployMarks | None = None

    @classmethod
    async def open(
        cls,
        repository_path: Path,
        *,
        home: Path,
        embedder: str = "static",
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        large: Sequence[str] = (),
        fusion: Fusion = "score",
        api_key: SecretStr | None = None,
        base_url: str | None = None,
        ref: str = "HEAD",
        name: str | None = None,
        web_url: str | None = None,
        parser_pool: ParserPool | None = None,
        chroma_url: str | None = None,
        limits: IndexLimits | None = None,
    ) -> CodeIndex:
        """Open the index of the repository around a path; nothing is indexed yet.

        `home` is the data folder of all repositories, `ref` the branch to index; `name` and `web_url` override the
        values from the repository's remotes; indexes may share a `parser_pool`, which they then do not close;
        `chroma_url` is a server that keeps the vectors instead of the data folder. Raises `RepositoryError`,
        `StorageError` or `EmbedderError`.
        """

        def open_index() -> CodeIndex:
            repository = Repository.open(repository_path, include=include, exclude=exclude, large=large)
            try:
                chosen = open_embedder(embedder, api_key=api_key, base_url=base_url)
                folder = DataFolder(make_utf8_folder(home) / REPOSITORIES_FOLDER / name_index_folder(repository))
                # Only now, as the folder is named after the repository's own name.
                repository.name = name or repository.name
                repository.web_url = web_url or repository.web_url
                return cls(
                    repository,
                    folder,
                    chosen,
                    vectors=VectorPlace(folder, chroma_url),
                    parsers=Parsers(PlainFiles(home), parser_pool),
                    provenance=make_fingerprint(chosen, include, exclude, large),
                    fusion=fusion,
                    ref=ref,
                    limits=limits or IndexLimits(),
                )
            except BaseException:
                repository.close()
                raise

        return await asyncio.to_thread(open_index)

    def open_beside(self, folder: DataFolder, commit: str) -> CodeIndex:
        """Open an index of another commit in a separate folder; it must be closed before this one."""
        beside = CodeIndex(
            self._repository,
            folder,
            self._embedder,
            vectors=self._vectors,
            parsers=self._parsers,
            provenance=self._provenance,
            fusion=self._fusion,
            ref=commit,
            limits=self._limits,
            main=self,
        )
        beside._find_ref, beside._read_marks = self._find_ref, self._read_marks
        beside._held = self._held  # it begins as a copy of this one, whose arrays are in memory already
        return beside

    def find_refs_by(self, find_ref: Callable[[str], Awaitable[NamedRef]]) -> None:
        """Set the resolver of names that the repository itself lacks."""
        self._find_ref = find_ref

    def read_deployed_by(self, read_marks: DeployMarks) -> None:
        """Set the reader of the marks of deployed commits."""
        self._read_marks = read_marks

    @property
    def name(self) -> str:
        """The repository's name for people."""
        return self._repository.name

    @property
    def folder(self) -> DataFolder:
        """The folder of the index."""
        return self._folder

    @property
    def repository(self) -> Repository:
        """The indexed repository."""
        return self._repository

    @property
    def ref(self) -> str:
        """The indexed ref: a branch, or HEAD."""
        return self._ref

    @property
    def provenance(self) -> str:
        """The fingerprint of all inputs of a generation except the commit."""
        return self._provenance

    @property
    def is_read(self) -> bool:
        """Whether anybody in this process has pinned one of its generations."""
        return len(self._readers) > 0

    @property
    def web_url(self) -> str | None:
        """The project's page, the base of links."""
        return self._repository.web_url

    async def aclose(self) -> None:
        """Close all open parts."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._main is not None:
            self._catalogs.close()
            return
        self._drop_store()
        self._parsers.close()
        with suppress(StorageError):  # another process that writes will note it itself
            if not (catalog := self._catalogs.get()).is_noted():
                with self._folder.hold_as_writer():
                    catalog.note()
        self._catalogs.close()
        self._repository.close()

    async def pin(self) -> IndexReader:
        """Pin the newest finished generation; `NotIndexed` if there is none, or it is damaged."""
        await asyncio.to_thread(_import_readers)
        from indexer.generations.generation_cache import GenerationCache
        from indexer.generations.history_reader import HistoryReader
        from indexer.generations.reader import IndexReader
        from indexer.search.ranking import RankingWeights

        catalog = await asyncio.to_thread(self._catalogs.get)
        generation, snapshot = await asyncio.to_thread(self._get_current, catalog)
        if self._contents is None or not self._contents.is_of(catalog, generation.id):
            self._contents = GenerationCache(catalog, generation.id)
        reader = IndexReader(
            self._repository.name,
            self._repository.web_url,
            generation=generation,
            snapshot=snapshot,
            catalog=catalog,
            contents=self._contents,
            embedder=self._embedder,
            open_store=self._open_store if self._main is None else None,
            recipe=RankingWeights(fusion=self._fusion),
            past=HistoryReader(
                self._repository, generation.commit.sha, self._contents, self._find_ref, self._read_marks
            ),
        )
        self._readers.add(reader)
        return reader

    def _get_current(self, catalog: Catalog | None = None) -> tuple[Generation, Snapshot]:
        catalog = catalog or self._catalogs.get()
        generation = None if catalog.is_damaged else catalog.current()
        if generation is None and (catalog.is_damaged or self._catalogs.was_damaged):
            raise self._describe_damage()
        if generation is None:
            raise NotIndexed(f"{self._repository.name} has not been indexed yet. Run: citebot index")
        if self._held is None or self._held[0] != generation:
            self._held = (generation, self._made.get(generation.id) or self._load(generation))
        return self._held

    def _load(self, generation: Generation) -> Snapshot:
        if not is_readable_fingerprint(generation.provenance):
            raise NotIndexed(f"The index of {self._repository.name} was made by another version. Run: citebot index")
        from indexer.search.snapshot import Snapshot

        try:
            return Snapshot.load(self._folder.snapshot(generation.id))
        except (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError) as error:
            log.info("The arrays of generation %d cannot be read: %s", generation.id, error)
            raise self._describe_damage() from error

    def _describe_damage(self) -> IndexDamaged:
        return IndexDamaged(f"The index of {self._repository.name} was damaged, and is being rebuilt.")

    async def is_current(self) -> bool:
        """Whether the newest generation has the commit of the repository's ref and the present inputs."""
        return await asyncio.to_thread(self._is_current)

    def _is_current(self) -> bool:
        head = self._repository.resolve_ref(self._ref)
        try:
            current, _ = self._get_current()
        except NotIndexed:  # or damaged, and must be made again
            return False
        is_same = (current.commit.sha, current.provenance) == (head, self._provenance)
        return is_same and not self._has_fetched_more(current)

    def _has_fetched_more(self, generation: Generation) -> bool:
        """Whether a partial clone now has files that it lacked at indexing."""
        missing = generation.skipped.get(NOT_FETCHED, 0)
        return missing > 0 and missing != self._repository.count_missing_files(generation.commit.sha, self._limits)

    async def refresh(self, *, full: bool = False, progress: Callable[[Progress], None] | None = None) -> RefreshReport:
        """Index the ref: what changed since the current generation, or everything with `full`.

        `progress` is called from a worker thread. `StorageLocked` if another process is at it.
        """
        async with self._refreshing:
            return await asyncio.to_thread(self._refresh, full, progress or (lambda _: None))

    def _refresh(self, full: bool, progress: Callable[[Progress], None]) -> RefreshReport:
        started = time.monotonic()
        commit = self._repository.commit(self._ref)
        with self._folder.hold_as_writer():
            if full or (counts := self._count_unchanged(commit)) is None:
                return self._index(commit, full, progress)
            return RefreshReport(
                commit=commit.sha,
                previous=commit.sha,
                changed=0,
                removed=0,
                files=counts["files"],
                chunks=counts["chunks"],
                seconds=time.monotonic() - started,
            )

    def _count_unchanged(self, commit: Commit) -> dict[str, int] | None:
        """Return the counts of the current generation if a refresh would change nothing.

        Loads nothing: without changes, loading would take longer than the rest of the command.
        """
        generation, counts = self._count_current()
        if generation is None or (generation.commit, generation.provenance) != (commit, self._provenance):
            return None
        is_within = counts["files"] <= self._limits.files and OVER.isdisjoint(generation.skipped)
        is_loaded = self._held is not None and self._held[0] == generation
        if (
            not is_within
            or self._has_fetched_more(generation)
            or not (is_loaded or _is_saved_whole(self._folder.snapshot(generation.id)))
        ):
            return None
        has_vectors = self._main is not None or self._store is not None or self._vectors.is_intact()
        return counts if has_vectors else None

    def _count_current(self) -> tuple[Generation | None, dict[str, int]]:
        """Read the newest generation and its counts; none of a damaged catalog."""
        catalog, nothing = self._catalogs.get(), {"files": 0, "chunks": 0, "symbols": 0}
        try:
            generation = None if catalog.is_damaged else catalog.current()
            return generation, catalog.count_rows(generation.id) if generation is not None else nothing
        except DamagedCatalog:
            return None, nothing

    def _index(self, commit: Commit, full: bool, progress: Callable[[Progress], None]) -> RefreshReport:
        progress(Progress(stage="listing", done=0, total=0))  # to import and open what is needed takes seconds
        with (
            closing(KeptParses(self._folder.kept_parses)) as kept,
            note_attempt(self._folder.attempt, commit.sha, full=full, kept=kept.count),
        ):
            try:
                report = self._write(commit, full, progress, kept)
            except DamagedCatalog as error:
                log.info("%s", error)
                report = self._write(commit, True, progress, kept)
            self._sweep(most=_SWEPT_BESIDE)
        return report

    def _write(
        self, commit: Commit, full: bool, progress: Callable[[Progress], None], kept: KeptParses
    ) -> RefreshReport:
        from indexer.generations.pipeline import build_generation

        self._catalogs.renew()
        current = None if full and not self._catalogs.was_damaged else self._get_sound_generation()
        try:
            # The arrays of a generation must be available as soon as it can be seen.
            ready = self._made.__setitem__
            parts = self._make_parts(current, kept)
            report = build_generation(parts, commit, current=current, full=full, ready=ready, progress=progress)
            self._get_current()
        except StorageError:
            self._drop_store()
            raise
        finally:
            self._made.clear()
        self._catalogs.was_damaged = False
        return report

    def _get_sound_generation(self) -> tuple[Generation, Snapshot] | None:
        try:
            return self._get_current()
        except IndexDamaged:
            log.warning(_DAMAGED)
            self._warnings.append(_DAMAGED)
        except NotIndexed:
            pass
        return None

    def _make_parts(self, current: tuple[Generation, Snapshot] | None, kept: KeptParses) -> RefreshParts:
        from indexer.generations.pipeline import RefreshParts, restore_vectors

        open_before = self._store
        parts = RefreshParts(
            repository=self._repository,
            folder=self._folder,
            catalog=self._catalogs.get(),
            store=self._open_sound_store() if self._main is None else self._main.lend_store(),
            embedder=self._embedder,
            parsers=self._parsers,
            kept=kept,
            provenance=self._provenance,
            limits=self._limits,
            is_beside=self._main is not None,
        )
        # A store is as whole as it was when it was opened; looking again would take longer than a small refresh.
        is_new = self._main is None and parts.store is not open_before
        if is_new and current is not None and current[0].provenance == parts.provenance:
            restore_vectors(parts, current)
        return parts

    def _open_sound_store(self) -> ChromaCollection:
        """Open the vector store, replacing a damaged one by an empty one: vectors can be made again."""
        if self._store is not None:  # it was sound when it was opened, and counting takes its time
            return self._store
        try:
            store = self._open_store()
            store.count()
        except DamagedVectors as error:
            log.warning("%s (%s)", _REBUILT, error)
            self._warnings.append(_REBUILT)
            self._drop_store()
            self._vectors.clear()
            store = self._open_store()
        return store

    def _drop_store(self) -> None:
        """Close a store that could not be written; it is reopened on demand."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def lend_store(self) -> ChromaCollection | None:
        """Open the vectors for a side index, which adds none to them.

        Those of the bundled embedder are computed again, which takes less time than opening a
        store.
        """
        return None if self._embedder.name.startswith(STATIC) else self._open_store()

    def _open_store(self) -> ChromaCollection:
        if self._store is None:
            self._store = self._vectors.open(self._embedder)
        return self._store

    async def sweep(self) -> None:
        """Delete old generations, and leftovers of killed refreshes; `StorageLocked` while one runs."""
        async with self._refreshing:
            work = asyncio.ensure_future(asyncio.to_thread(self._sweep_alone))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                await asyncio.wait({work})  # what it works with is closed next
                raise

    def _sweep_alone(self) -> None:
        with self._folder.hold_as_writer():
            self._sweep()
            self._catalogs.get().shrink()

    def _sweep(self, *, most: int = -1) -> None:
        """Delete unread generations: not pinned here, and either old or too many."""
        held = {reader.generation.id for reader in self._readers}
        catalog = self._catalogs.get()
        retired = catalog.list_retired()
        recent = {each for each, since in retired[-_KEEP_RETIRED:] if time.time() - since < _KEEP_SECONDS}
        gone = [each for each, _ in retired if each not in held and each not in recent]
        with catalog.begin_write() as writer:
            unused = writer.sweep(gone, most=most)
        if unused and self._main is None:
            self._open_store().remove(sorted(unused))
        current = catalog.current()
        kept = {str(each) for each, _ in retired if each not in gone} | ({str(current.id)} if current else set())
        for name, path in self._folder.snapshots().items():
            if name not in kept:
                self._folder.remove(path)

    async def status(self) -> IndexStatus:
        """Describe the index, without waiting for a refresh."""
        return await asyncio.to_thread(self._status)

    def _status(self) -> IndexStatus:
        generation, counts = self._count_current()
        is_lost = generation is None and (self._catalogs.get().is_damaged or self._catalogs.was_damaged)
        damage = (str(self._describe_damage()),) if is_lost else ()
        behind: int | None = None
        problems: tuple[str, ...] = ()
        if generation is not None:
            try:
                head = self._repository.resolve_ref(self._ref)
                behind = self._repository.measure_drift(generation.commit.sha, head, ()).behind
            except RepositoryError as error:  # it is damaged or gone
                problems = (str(error),)
        name, skipped = self._repository.name, generation.skipped if generation else {}
        reasons = self._parsers.map_plain_reasons() if generation else {}
        plain = self._catalogs.get().list_paths_of(generation.id, reasons) if generation and reasons else []
        lacking = describe_partial(name, self._repository.root, skipped)
        over = describe_limits(name, skipped, self._limits)
        return IndexStatus(
            repository=self._repository.name,
            path=str(self._repository.root),
            commit=generation.commit.sha if generation else None,
            branch=generation.commit.branch if generation else None,
            indexed_at=generation.indexed_at if generation else None,
            commits_behind=behind,
            **counts,
            embedder=self._embedder.name,
            disk_bytes=measure_folder(self._folder.root),
            skipped=skipped,
            plain_files=tuple(PlainFile(path=path, reason=reasons[blob]) for path, blob in plain),
            warnings=(*self._repository.warnings, *self._warnings, *damage, *problems, *lacking, *over),
            branches=(),
        )

    async def drift(self, commit: str, paths: Sequence[str]) -> Drift:
        """Find the changes since a commit, in all and in the paths, using only the local repository."""
        return await asyncio.to_thread(self._measure_drift_now, commit, paths)

    def _measure_drift_now(self, commit: str, paths: Sequence[str]) -> Drift:
        try:
            head = self._repository.resolve_ref(self._ref)
        except RepositoryError as error:
            log.warning("%s: %s", self.name, error)
            return Drift(behind=None, changed=None)
        drift = self._repository.measure_drift(commit, head, paths)
        return replace(drift, uncommitted=self._list_uncommitted(head, paths))

    def _list_uncommitted(self, head: str, paths: Sequence[str]) -> tuple[str, ...]:
        """List the changed paths of the working tree, if the followed branch is checked out."""
        try:
            is_followed = self._ref == "HEAD" or self._repository.resolve_ref() == head
            return self._repository.working_tree.list_uncommitted(paths) if is_followed else ()
        except RepositoryError as error:  # nothing is known of a working tree whose commit cannot be read
            log.warning("%s: %s", self.name, error)
            return ()


def _import_readers() -> None:
    """Import the readers' modules; they take a tenth of a second, which an empty refresh can save."""
    from indexer.generations import generation_cache, history_reader, reader  # noqa: F401


def _is_saved_whole(folder: Path) -> bool:
    """Whether the saved arrays of a generation are complete and unchanged."""
    try:
        files = {path.name for path in folder.iterdir() if is_whole(path)}
        segments = re.findall(rb'"([0-9a-f]{32})"', (folder / "snapshot.npy").read_bytes())
    except OSError:
        return False
    return files >= {"snapshot.npy", "history.npy", *(f"{name.decode()}.npy" for name in segments)}
