"""Lookups in the code for one person: what they may see of it, masked, a page at a time, at one commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from agent import (
    CodeSearch,
    Denial,
    deny,
    explain_missing_paths,
    explain_no_calls,
    explain_undefined,
    find_indexed_file,
    normalize_name,
)
from bot.surfaces.described_results import (
    describe_call,
    describe_commit,
    describe_coverage,
    describe_file,
    describe_hit,
    describe_repository,
    describe_symbol,
    gather_calls,
    keep_below,
    list_folder,
)
from bot.surfaces.lookup_results import (
    CallResult,
    CodeResult,
    FileText,
    FolderListing,
    GrepResult,
    HistoryResult,
    ListedEntry,
    ListedRepository,
    MatchedLine,
    RepositoryListing,
    SymbolResult,
)
from bot.surfaces.principals import Principal
from bot.surfaces.shown_code import cut_line, number_lines
from bot.surfaces.visible_code import VisibleCode, look_again
from indexer import (
    CallSite,
    FileEntry,
    Filters,
    IndexerError,
    Location,
    SearchMode,
    UnknownPath,
    UnknownRevision,
)

MOST_HITS = 50  # of one search
MOST_MATCHES = 200  # lines of a pattern that are counted
MOST_LINES = 400  # of a file at once
MOST_RESOURCE_LINES = 2_000  # of a file that is read as a whole
MOST_COMMITS = 200  # of a file
MOST_SIMILAR = 5  # names
SHORTEST_COMMIT = 7  # characters by which a commit is named
_COMMIT = re.compile(r"[0-9a-f]{40,64}")

T = TypeVar("T")


class CodeLookups(VisibleCode):
    """Looks things up for a person, in the code that they may see.

    All methods raise `UnknownRepository`, `LimitReached`, or an `IndexerError` whose text is the sentence to show.
    """

    @look_again
    async def search_code(
        self,
        principal: Principal,
        query: str,
        *,
        repository: str | None = None,
        at: str | None = None,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        limit: int = 8,
        offset: int = 0,
    ) -> CodeResult:
        """Rank the places that a query is about; of those that a search finds, the first fifty can be seen."""
        wanted = min(offset + limit + 1, MOST_HITS)
        async with self.open_code(principal, repository, at) as code:
            hits = await code.search(query, limit=wanted, filters=filters, mode=mode)
            page, following = take_page(hits, limit, offset)
            found = [describe_hit(hit, query, code.permalink(hit.location), self.mask) for hit in page]
            no = None if hits else await deny(code, "No match was found", quote=str)
            return CodeResult(
                **_name(code, no),
                total=len(hits),
                is_total_exact=len(hits) < wanted,
                next=following,
                hits=tuple(found),
            )

    @look_again
    async def grep(
        self,
        principal: Principal,
        pattern: str,
        *,
        path: str = "",
        ignore_case: bool = False,
        repository: str | None = None,
        at: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> GrepResult:
        """Find the lines that a pattern in RE2's syntax matches, everywhere, below a folder or in one file."""
        async with self.open_code(principal, repository, at) as code:
            expression = f"(?i:{pattern})" if ignore_case else pattern
            matches = await code.grep(expression, path=clean_path(path), limit=MOST_MATCHES)
            page, following = take_page(matches.lines, limit, offset)
            if matches.is_out_of_time:
                said = {**_name(code), "note": "The time was used up before all was read: give a path."}
            else:
                no = None if matches.lines else await deny(code, "No line matches", pattern, quote=str)
                said = _name(code, no)
            return GrepResult(
                **said,
                total=len(matches.lines),
                is_total_exact=matches.complete,
                next=following,
                matches=tuple(
                    MatchedLine(
                        path=one.location.path, line=one.location.start_line, text=cut_line(self.mask(one.text))
                    )
                    for one in page
                ),
            )

    @look_again
    async def read_file(
        self,
        principal: Principal,
        path: str,
        *,
        repository: str | None = None,
        at: str | None = None,
        first_line: int = 1,
        limit: int = 200,
    ) -> FileText:
        """Read lines of a file, from one on; the end of a path will do where only one file has it."""
        async with self.open_code(principal, repository, at) as code:
            entry = await find_indexed_file(code, path)
            return await self._read(code, entry, first_line, min(limit, MOST_LINES))

    async def read_at(self, principal: Principal, repository: str, commit: str, path: str) -> FileText:
        """Read a whole file, as far as one may be read at once, at a commit; `UnknownRevision` if that is gone."""
        async with self._open_commit(principal, repository, commit) as code:
            held = code.commit.sha
            entry = next((one for one in await code.files() if one.path == path), None)
            if entry is None:
                raise UnknownPath(f"There is no indexed file {path[:200]!r} in {repository} at {held}.")
            return await self._read(code, entry, 1, MOST_RESOURCE_LINES)

    @asynccontextmanager
    async def _open_commit(self, principal: Principal, repository: str, commit: str) -> AsyncIterator[CodeSearch]:
        """Hold a repository at a commit that a result has named."""
        async with self.open_code(principal, repository) as newest:
            held = newest.commit.sha
        gone = f"{repository} is not indexed at {commit[:40]!r} any more, but at {held}. Read that instead."
        if len(commit) >= SHORTEST_COMMIT and held.startswith(commit):
            yield newest
            return
        if not _COMMIT.fullmatch(commit):
            raise UnknownRevision(gone)
        try:
            code = await self.library.pin(repository, at=commit)
        except UnknownRevision as error:
            raise UnknownRevision(gone) from error
        yield code

    async def _read(self, code: CodeSearch, entry: FileEntry, first: int, limit: int) -> FileText:
        last = min(entry.lines, first + limit - 1)
        is_there = first <= last
        text = self.mask((await code.read(entry.path, first, last)).text) if is_there else ""
        place = Location(path=entry.path, start_line=first, end_line=last)
        return FileText(
            **_name(code),
            total=entry.lines,
            next=last + 1 if is_there and last < entry.lines else None,
            note="" if is_there else f"{entry.path} has {entry.lines} lines; there is no line {first}.",
            path=entry.path,
            language=entry.language,
            first_line=first,
            last_line=max(last, first - 1),
            code=number_lines(text, first),
            url=code.permalink(place) if is_there else None,
        )

    @look_again
    async def list_files(
        self,
        principal: Principal,
        folder: str = "",
        *,
        pattern: str = "",
        repository: str | None = None,
        at: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> FolderListing:
        """List what lies in a folder; with a pattern, as in .gitignore, the files below it whose paths match."""
        async with self.open_code(principal, repository, at) as code:
            files, within = await code.files(), clean_path(folder)
            entries = await asyncio.to_thread(_find_entries, files, within, pattern)  # there may be very many files
            if within and not entries and not pattern:
                raise UnknownPath(await explain_missing_paths(code, [within[:200]], quote=str))
            page, following = take_page(entries, limit, offset)
            no = None if entries else await deny(code, f"No path matches {pattern[:200]}", quote=str)
            return FolderListing(**_name(code, no), total=len(entries), next=following, entries=tuple(page))

    @look_again
    async def find_symbol(
        self,
        principal: Principal,
        name: str,
        *,
        repository: str | None = None,
        at: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> SymbolResult:
        """Find the definitions of a plain or qualified name; where there are none, names that begin so."""
        async with self.open_code(principal, repository, at) as code:
            wanted = normalize_name(name)
            found = await code.definitions(wanted)
            similar = () if found else await code.complete_name(wanted, limit=MOST_SIMILAR)
            page, following = take_page(found, limit, offset)
            no = None if found else await explain_undefined(code, wanted[:200])
            return SymbolResult(
                **_name(code, no),
                total=len(found),
                next=following,
                symbols=tuple(describe_symbol(one, code.permalink(one.location), self.mask) for one in page),
                similar=tuple(similar),
            )

    @look_again
    async def find_callers(
        self,
        principal: Principal,
        name: str,
        *,
        path: str = "",
        repository: str | None = None,
        at: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> CallResult:
        """Find where a function or class is called, in all files or below a path."""
        async with self.open_code(principal, repository, at) as code:
            wanted = normalize_name(name)
            sites = keep_below(await code.callers(wanted, unresolved=True), path)
            return await self._list_calls(code, wanted, sites, limit, offset)

    @look_again
    async def find_callees(
        self,
        principal: Principal,
        name: str,
        *,
        path: str = "",
        repository: str | None = None,
        at: str | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> CallResult:
        """Find what a function calls, in all its definitions or those below a path."""
        async with self.open_code(principal, repository, at) as code:
            wanted = normalize_name(name)
            sites = keep_below(await code.callees(wanted), path)
            return await self._list_calls(code, wanted, sites, limit, offset)

    async def _list_calls(
        self, code: CodeSearch, name: str, sites: Sequence[CallSite], limit: int, offset: int
    ) -> CallResult:
        files = {one.path for one in await code.files() if one.source_type == "code"}
        calls = gather_calls(sites, files)
        page, following = take_page(calls, limit, offset)
        lines = [(await code.read(one.path, one.line, one.line)).text for one in page]
        no = None if calls else await explain_no_calls(code, name[:200], f"No call is known for {name[:200]}")
        return CallResult(
            **_name(code, no),
            total=len(calls),
            next=following,
            calls=tuple(describe_call(one, line, self.mask) for one, line in zip(page, lines, strict=True)),
        )

    @look_again
    async def file_history(
        self,
        principal: Principal,
        path: str,
        *,
        line: int = 0,
        repository: str | None = None,
        at: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> HistoryResult:
        """Read which commits changed a file, and which one last wrote a line of it; line 0 asks for none."""
        async with self.open_code(principal, repository, at) as code:
            entry = await find_indexed_file(code, path)
            history = await code.history(entry.path, line=line, limit=min(offset + limit + 1, MOST_COMMITS))
            page, following = take_page(history.revisions, limit, offset)
            last = history.last_changed
            return HistoryResult(
                **_name(code),
                total=len(history.revisions),
                is_total_exact=history.complete,
                next=following,
                note="" if history.revisions else "No history is known.",
                path=entry.path,
                commits=tuple(describe_commit(one, self.mask) for one in page),
                line=history.line,
                last_changed=describe_commit(last, self.mask) if last is not None else None,
            )

    async def list_repositories(self, principal: Principal, *, limit: int = 50, offset: int = 0) -> RepositoryListing:
        """List the repositories that a person may ask about, and how far each is indexed."""
        await self.count(principal)
        visible = self.list_visible(principal)
        page, following = take_page(visible, limit, offset)
        return RepositoryListing(
            total=len(visible), next=following, repositories=tuple([await self._describe(name) for name in page])
        )

    async def _describe(self, name: str) -> ListedRepository:
        """Describe a repository; one that cannot be read does not hide the others."""
        try:
            return describe_repository(await self.library.status(name), self.mask).model_copy(
                update={"repository": name}
            )
        except IndexerError as error:
            return ListedRepository(repository=name, warnings=(self.mask(str(error)),))


def take_page(found: Sequence[T], limit: int, offset: int) -> tuple[Sequence[T], int | None]:
    """Return a page of what was found, and the offset of the next one; None where nothing is left."""
    end = offset + limit
    return found[offset:end], end if end < len(found) else None


def clean_path(path: str) -> str:
    """Return a path as the index writes it; empty for the top."""
    written = path.strip().removeprefix("./").strip("/")
    return "" if written == "." else written


def _find_entries(files: Sequence[FileEntry], folder: str, pattern: str) -> list[ListedEntry]:
    """Return what lies in a folder, or with a pattern the files below it that match."""
    if not pattern:
        return list_folder(files, folder)
    from indexer import compile_globs  # pathspec takes its time to import

    globs = compile_globs((pattern,))
    prefix = f"{folder}/" if folder else ""
    return [describe_file(one) for one in files if one.path.startswith(prefix) and globs.match_file(one.path)]


def _name(code: CodeSearch, no: Denial | None = None) -> dict[str, Any]:
    """Name the repository and the commit that a result was read at, and of a "no" how much it rests on."""
    named = {"repository": code.repository, "commit": code.commit.sha}
    if no is None:
        return named
    return {**named, "note": no.text, "coverage": describe_coverage(code.commit.sha, no.coverage)}
