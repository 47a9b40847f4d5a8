"""Reads one generation, unchanged by later indexing while it is pinned."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from indexer.errors import UnknownPath, VectorsUnavailable
from indexer.generations.generation_cache import CachedFile, make_cached_file
from indexer.generations.grep import READING_ORDER, grep_texts
from indexer.git.permalinks import make_permalink
from indexer.parsing.installed import count_unparsed
from indexer.parsing.packages import is_package_file, read_packages
from indexer.search.path_traits import list_packed_traits, read_source_type
from indexer.search.ranking import Mask, RankingWeights, rank_chunks
from indexer.text.globs import compile_globs
from indexer.text.notebooks import describe_cells, is_notebook
from indexer.types import (
    CallSite,
    Commit,
    Coverage,
    Definition,
    FileEntry,
    FileHistory,
    FileImport,
    Filters,
    Hit,
    LeftOut,
    Location,
    Matches,
    Passage,
    Registration,
    RegistrationKind,
    RegistrationSite,
    RepositoryOverview,
    SearchAim,
    SearchMode,
    Subclass,
    Symbol,
)

if TYPE_CHECKING:
    from indexer.embedding.embedder import Embedder
    from indexer.generations.generation_cache import FileListing, GenerationCache
    from indexer.generations.history_reader import HistoryReader
    from indexer.search.signals import Scores
    from indexer.search.snapshot import Snapshot
    from indexer.store.catalog import Catalog, Generation
    from indexer.store.vectors import ChromaCollection

log = logging.getLogger(__name__)

_MAX_PREFIXES = 4  # of one file
_DEEPEST = 4


def mount_routes(sites: Sequence[RegistrationSite]) -> list[RegistrationSite]:
    """Return registrations without mounts, each route below the paths of its file's mounts."""
    mounts = [site for site in sites if site.registration.kind == "mount"]
    by_file: dict[str, list[RegistrationSite]] = defaultdict(list)
    for path in {site.path for site in sites} if mounts else ():
        by_file[path] = [mount for mount in mounts if _is_module(path, mount.registration.handler)]
    routes: list[RegistrationSite] = []
    for site in sites:
        if site.registration.kind == "route":
            prefixes = _find_prefixes(site.path, by_file, depth=_DEEPEST)
            routes += [_put_before(prefix, site) for prefix in prefixes]
        elif site.registration.kind != "mount":
            routes.append(site)
    return routes


def _is_module(path: str, module: str) -> bool:
    """Whether a file is the module of a dotted name, or of the end of one."""
    stem = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f".{stem}".endswith(f".{module}") if module else False


def _find_prefixes(path: str, mounts: dict[str, list[RegistrationSite]], *, depth: int) -> list[str]:
    """Return the path prefixes at which a file is mounted, including those of surrounding files."""
    found = [
        f"{outer}{mount.registration.name.rstrip('/')}"
        for mount in mounts.get(path, ())
        if depth and mount.path != path
        for outer in _find_prefixes(mount.path, mounts, depth=depth - 1)
    ]
    return list(dict.fromkeys(found))[:_MAX_PREFIXES] or [""]


def _put_before(prefix: str, site: RegistrationSite) -> RegistrationSite:
    method, space, path = site.registration.name.rpartition(" ")
    name = f"{method}{space}{prefix}{path}" if prefix else site.registration.name
    return replace(site, registration=replace(site.registration, name=name))


EXACT_UP_TO = 200_000  # chunks; beyond this Chroma's index finds the nearest vectors
_MAX_NEIGHBOURS = 1_000
MAX_REGISTRATIONS = 5_000
_MAX_PACKAGE_FILES, _MAX_PACKAGES = 1_000, 200_000
UNSEARCHED = frozenset({"excluded", "secret-bearing", "binary", "LFS pointer", "submodule", "symlink"})


class IndexReader:
    """Search, text and call graph of one repository at one commit; blocking work runs in threads.

    Without a vector store all vectors are compared with a question's, however many there are.
    """

    def __init__(
        self,
        repository: str,
        web_url: str | None,
        *,
        generation: Generation,
        snapshot: Snapshot,
        catalog: Catalog,
        contents: GenerationCache,
        embedder: Embedder,
        open_store: Callable[[], ChromaCollection] | None,
        recipe: RankingWeights,
        past: HistoryReader,
    ) -> None:
        self._repository = repository
        self._web_url = web_url
        self._generation = generation
        self._snapshot = snapshot
        self._catalog = catalog
        self._contents = contents
        self._embedder = embedder
        self._open_store = open_store
        self._recipe = recipe
        self._past = past
        self._catch_up: Callable[[], Awaitable[bool]] | None = None
        self._lock_files: dict[str, CachedFile] = {}
        self._packages: dict[str, list[Registration]] = {}

    def follow(self, catch_up: Callable[[], Awaitable[bool]] | None) -> None:
        """Make each "no" wait for newer commits first; None: no longer."""
        self._catch_up = catch_up

    @property
    def repository(self) -> str:
        """The name that people call the repository by."""
        return self._repository

    @property
    def commit(self) -> Commit:
        """The pinned commit."""
        return self._generation.commit

    @property
    def generation(self) -> Generation:
        """The pinned generation."""
        return self._generation

    @property
    def snapshot(self) -> Snapshot:
        """The arrays for searches."""
        return self._snapshot

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
    ) -> Sequence[Hit]:
        """Rank chunks for the query, best first; `filters` apply before ranking, and may raise `BadPattern`."""
        return await asyncio.to_thread(self.search_now, query, limit=limit, filters=filters, mode=mode, aim=aim)

    def search_now(
        self,
        query: str,
        *,
        limit: int = 10,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        aim: SearchAim = "places",
        recipe: RankingWeights | None = None,
    ) -> list[Hit]:
        """Search in this thread, with other ranking weights if they are given; `search` does so in another thread."""
        if not self._snapshot.chunks.ids.size:
            return []
        mask = self._make_mask(filters) if filters is not None else None
        cosines = None if mode == "lexical" else self._score_cosines(query)
        ranked = rank_chunks(
            self._snapshot, query, cosines, mode=mode, aim=aim, mask=mask, limit=limit, recipe=recipe or self._recipe
        )
        return [self._hit(ordinal, score) for ordinal, score in ranked]

    def _score_cosines(self, query: str) -> Scores:
        vector = self._embedder.embed_query(query)
        chunks = self._snapshot.chunks.ids
        if len(chunks) <= EXACT_UP_TO or self._open_store is None:
            return self._snapshot.cosines(vector)
        try:
            nearest = self._open_store().find_nearest(vector, _MAX_NEIGHBOURS)
        except VectorsUnavailable as error:
            log.warning("All vectors of %s are compared with the question's. %s", self.repository, error)
            return self._snapshot.cosines(vector)
        # All other chunks share the cosine of the last of these, which ranks them lowest.
        scores = np.full(len(chunks), nearest[-1][1] if nearest else 0.0)
        ids = self._catalog.map_chunks_of_keys(self._generation.id, [key for key, _ in nearest])
        cosines = {chunk: cosine for key, cosine in nearest for chunk in ids.get(key, ())}
        places = np.flatnonzero(np.isin(chunks, np.fromiter(cosines, dtype=np.int64)))
        scores[places] = [cosines[chunk] for chunk in chunks[places].tolist()]
        return scores

    def _make_mask(self, filters: Filters) -> Mask | None:
        """Select the chunks that pass the filters; None if all do."""
        if filters == Filters():
            return None
        table = self._snapshot.files
        allowed = np.ones(len(table.paths), dtype=bool)
        if filters.languages:
            allowed &= [language in filters.languages for language in table.languages]
        if filters.source_types:
            allowed &= np.isin(table.traits, list_packed_traits(filters.source_types))
        if filters.folders:
            folders = _make_prefixes(filters.folders)
            allowed &= [f"{path}/".startswith(folders) for path in table.paths]
        if filters.patterns:
            globs = compile_globs(filters.patterns)
            allowed &= [globs.match_file(path) for path in table.paths]
        return allowed[self._snapshot.chunks.file]

    def _hit(self, ordinal: int, score: float) -> Hit:
        files, chunks = self._snapshot.files, self._snapshot.chunks
        file = int(chunks.file[ordinal])
        start, end = int(chunks.start[ordinal]), int(chunks.end[ordinal])
        location = Location(path=files.paths[file], start_line=start, end_line=end)
        symbols = [
            each for each in self._contents.outline(location.path) if each.start_line <= end and start <= each.end_line
        ]
        around = [each for each in symbols if each.start_line < start]
        return Hit(
            location=location,
            text=self._get_file(location.path).between(start, end),
            score=score,
            language=files.languages[file],
            source_type=read_source_type(int(files.traits[file])),
            scope=around[-1].qualified_name if around else "",
            symbols=tuple(each for each in symbols if each.start_line >= start),
        )

    async def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> Passage:
        """Read lines of an indexed file, clipped to its end; `UnknownPath` if there is no such file."""
        if (file := self._contents.get_cached_file(path)) is not None:
            return self._make_passage(file, start_line, end_line)
        return await asyncio.to_thread(self._read_now, path, start_line, end_line)

    def _read_now(self, path: str, start_line: int, end_line: int | None) -> Passage:
        file = self._contents.file(path) or self._find_lock_file(path)
        if file is None:
            raise self._make_unknown_path(path)
        return self._make_passage(file, start_line, end_line)

    def _find_lock_file(self, path: str) -> CachedFile | None:
        """Find a lock file, which is not part of the index; None for any other."""
        if path in self._lock_files:
            return self._lock_files[path]
        left_out = self._catalog.list_left_out([path])
        lines = self._past.read_lines(path) if [one.reason for one in left_out] == ["lock file"] else None
        if lines is None:
            return None
        entry = FileEntry(path=path, language="text", source_type="config", lines=len(lines))
        self._lock_files[path] = make_cached_file(entry, "\n".join(lines))
        return self._lock_files[path]

    def _make_passage(self, file: CachedFile, start_line: int, end_line: int | None) -> Passage:
        entry = file.entry
        last = entry.lines if end_line is None else min(end_line, entry.lines)
        location = Location(path=entry.path, start_line=max(start_line, 1), end_line=last)
        if location.start_line > max(last, 1):
            raise UnknownPath(
                f"{entry.path} has {entry.lines} lines at {self.commit.sha[:12]}; line {start_line} is beyond the end."
            )
        text = file.between(location.start_line, last)
        return Passage(location=location, text=text, language=entry.language)

    def _get_file(self, path: str) -> CachedFile:
        file = self._contents.file(path)
        if file is None:
            raise self._make_unknown_path(path)
        return file

    def _make_unknown_path(self, path: str) -> UnknownPath:
        return UnknownPath(f"{path} is not an indexed file at {self.commit.sha[:12]}.")

    async def definitions(self, name: str) -> Sequence[Definition]:
        """Find definitions by plain (`send`) or qualified (`Session.send`) name; exact case first."""
        known = self._contents.graph.read_remembered(name)
        return known if known is not None else await asyncio.to_thread(self._contents.graph.definitions, name)

    async def find_enclosing(self, location: Location) -> Sequence[Definition]:
        """The definitions around a location, outermost first."""
        return [
            Definition(path=location.path, symbol=each)
            for each in await self._get_outline(location.path)
            if each.start_line <= location.start_line and location.end_line <= each.end_line
        ]

    async def find_siblings(self, definition: Definition) -> Sequence[Definition]:
        """Find the definitions with the same parent in the same file, in file order.

        A parent that is defined elsewhere does not count: the type of a method in Go may be in another file, and the
        first word of the namespace `Shop.Orders` defines nothing.
        """
        outline = await self._get_outline(definition.path)
        names = {each.qualified_name for each in outline}

        def find_parent(symbol: Symbol) -> str:
            parent = symbol.parent
            while parent and parent not in names:
                parent = parent.rpartition(".")[0]
            return parent

        wanted = find_parent(definition.symbol)
        return [
            Definition(path=definition.path, symbol=each)
            for each in outline
            if find_parent(each) == wanted and each != definition.symbol
        ]

    async def complete_name(self, beginning: str, *, limit: int = 20) -> Sequence[str]:
        """Complete qualified names whose plain name (`send`) or last parts (`Session.se`) have a prefix."""
        names = self._catalog.list_qualified_names
        return await asyncio.to_thread(names, self._generation.id, beginning, limit) if beginning.strip(".") else ()

    async def list_central(self, *, limit: int = 20) -> Sequence[Definition]:
        """Return the definitions most used by the code, without tests, examples, documents and vendored code."""
        return await asyncio.to_thread(lambda: list(islice(self._iter_central(), limit)))

    def _iter_central(self) -> Iterator[Definition]:
        files, chunks, table = self._snapshot.files, self._snapshot.chunks, self._snapshot.definitions
        of_file = chunks.file[table.chunk]
        ranks = np.where((files.traits == 0)[of_file], chunks.rank[table.chunk], -1.0)
        for ordinal in np.argsort(-ranks, kind="stable").tolist():
            if ranks[ordinal] < 0:
                return
            path, chunk = str(files.paths[of_file[ordinal]]), table.chunk[ordinal]
            for symbol in self._contents.outline(path):
                is_in_chunk = chunks.start[chunk] <= symbol.start_line <= chunks.end[chunk]
                if is_in_chunk and self._snapshot.names.number(symbol.name.lower()) == table.names[ordinal]:
                    yield Definition(path=path, symbol=symbol)
                    break

    async def _get_outline(self, path: str) -> Sequence[Symbol]:
        known = self._contents.get_cached_outline(path)
        return known if known is not None else await asyncio.to_thread(self._contents.outline, path)

    async def callers(self, name: str, *, unresolved: bool = False) -> Sequence[CallSite]:
        """List the calls of a function or class; with `unresolved`, also calls whose target is unknown."""
        return await asyncio.to_thread(self._contents.graph.callers, name, unresolved=unresolved)

    async def callees(self, name: str) -> Sequence[CallSite]:
        """Return the calls that a function makes."""
        return await asyncio.to_thread(self._contents.graph.callees, name)

    async def list_file_imports(self) -> Sequence[FileImport]:
        """Return the imports of files from the repository, by path and line."""
        return await asyncio.to_thread(self._contents.graph.list_file_imports)

    async def subclasses(self, name: str) -> Sequence[Subclass]:
        """Return the types that inherit from one, implement it or mix it in, direct ones first."""
        return await asyncio.to_thread(self._contents.graph.subclasses, name)

    async def registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        """Return the files' registrations of some kinds, by path and line: routes, commands, options, settings."""
        return await asyncio.to_thread(self._read_registrations, kinds)

    def _read_registrations(self, kinds: Collection[RegistrationKind]) -> Sequence[RegistrationSite]:
        wanted = {*kinds, *(("mount",) if "route" in kinds else ())}
        found = self._catalog.registrations(self._generation.id, sorted(wanted), most=MAX_REGISTRATIONS)
        packages = self._read_packages(kinds) if {"dependency", "package"} & {*kinds} else []
        return [*(mount_routes(found) if "route" in kinds else found), *packages]

    def _read_packages(self, kinds: Collection[RegistrationKind]) -> list[RegistrationSite]:
        """Read the manifests, and lock files for questions about more than declarations."""
        paths = [entry.path for entry in self._contents.listing.entries]
        if "package" in kinds:
            paths += [one.path for one in self._catalog.list_left_out() if one.reason == "lock file"]
        chosen = sorted(filter(is_package_file, paths), key=lambda path: (path.count("/"), path))
        found: list[RegistrationSite] = []
        for path in chosen[:_MAX_PACKAGE_FILES]:
            if path not in self._packages:
                file = self._contents.file(path) or self._find_lock_file(path)
                self._packages[path] = read_packages(path, file.text) if file is not None else []
            found += (
                RegistrationSite(path=path, registration=one) for one in self._packages[path] if one.kind in kinds
            )
        return found[:_MAX_PACKAGES]

    async def files(self) -> Sequence[FileEntry]:
        """Every indexed file, by path."""
        return (await self._get_listing()).entries

    async def overview(self) -> RepositoryOverview:
        """Return the overview of the repository."""
        return await asyncio.to_thread(self._contents.describe_repository, self._repository)

    async def folders(self) -> Mapping[str, int]:
        """Count the indexed files in each folder and below it, without the top."""
        return (await self._get_listing()).folders

    async def _get_listing(self) -> FileListing:
        known = self._contents.listing_if_cached
        return known if known is not None else await asyncio.to_thread(lambda: self._contents.listing)

    async def grep(self, *patterns: str, path: str = "", limit: int = 50) -> Matches:
        """Find lines by patterns in RE2's syntax, `limit` for each, in all files, below a folder, or in one.

        Raises `BadPattern`.
        """
        return await asyncio.to_thread(self._grep, patterns, path.strip("/"), limit)

    def _grep(self, patterns: Sequence[str], path: str, limit: int) -> Matches:
        below = _make_prefixes([path])
        rows = [row for row in self._contents.listing.rows if f"{row.entry.path}/".startswith(below)]
        if path and not rows:
            raise UnknownPath(f"There is no indexed file or folder {path} at {self.commit.sha[:12]}.")
        rows.sort(key=lambda row: READING_ORDER.index(row.entry.source_type))
        # Not through the cache: texts that are read once would only evict those that are read again.
        texts = ((row.entry.path, self._catalog.text(row.blob)) for row in rows)
        return grep_texts(texts, *patterns, limit=limit, total=len(rows))

    async def history(self, path: str, *, line: int = 0, limit: int = 20) -> FileHistory:
        """Return the commits that touched an indexed file, and the one that last wrote a line; 0 means no line."""
        read = partial(self._past.read_file_history, make_unknown_path=self._make_unknown_path)
        return await asyncio.to_thread(read, path, line=line, limit=limit)

    @property
    def past(self) -> HistoryReader:
        """The history of the code up to the commit."""
        return self._past

    async def list_left_out(self) -> Sequence[LeftOut]:
        """Every path of the commit that is not indexed, and the reason."""
        return await asyncio.to_thread(self._catalog.list_left_out)

    async def coverage(self, *words: str) -> Coverage:
        """Return how much was read, and the unindexed files that contain one of the words.

        Files that may hold secrets, or that the operator excludes, are not searched: that would
        reveal them.
        """
        is_behind = await self._catch_up() if self._catch_up is not None else False
        return replace(await asyncio.to_thread(self._measure_coverage, words), is_behind=is_behind)

    def _measure_coverage(self, words: Sequence[str]) -> Coverage:
        # Of a million paths that are left out, those are looked up that have the words.
        found = self._past.find_files_with(words) if words and self._generation.skipped else ()
        return Coverage(
            files=len(self._contents.listing.entries),
            skipped=self._generation.skipped,
            uncommitted=self._past.list_uncommitted(),
            unparsed=count_unparsed(entry.language for entry in self._contents.listing.entries),
            holding=tuple(one for one in self._catalog.list_left_out(found) if one.reason not in UNSEARCHED),
        )

    def permalink(self, location: Location, commit: str = "") -> str | None:
        """A web address of the lines at the commit, or another one; None if the repository has no web host."""
        return make_permalink(self._web_url, commit or location.commit or self.commit.sha, location)

    def name_cells(self, location: Location) -> str:
        """Name the cells of a notebook that lines are in, such as `cell 7, lines 2-4`; empty for other files."""
        file = self._contents.get_cached_file(location.path) if is_notebook(location.path) else None
        return describe_cells(file.text, location.start_line, location.end_line) if file else ""


def _make_prefixes(folders: Sequence[str]) -> tuple[str, ...]:
    """Make prefixes for files and folders, with a slash at the end of folders."""
    names = (PurePosixPath(folder.strip("/")).as_posix() for folder in folders)
    return tuple("" if name == "." else f"{name}/" for name in names)
