"""Converts results of the index to the values that lookups return: pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime

from bot.surfaces.lookup_results import (
    FoundCall,
    FoundCode,
    FoundCommit,
    FoundSymbol,
    ListedEntry,
    ListedRepository,
    NamedPlace,
    ReadCoverage,
    UnreadFile,
)
from bot.surfaces.shown_code import cut_line, show_hit
from indexer import CallSite, Coverage, Definition, FileEntry, Hit, IndexStatus, Revision, UnknownPath

Mask = Callable[[str], str]

_LONGEST_SUBJECT = 200
_MOST_WARNINGS = 5
_MOST_NAMED = 50  # files


def describe_coverage(commit: str, coverage: Coverage) -> ReadCoverage:
    """Describe how much of the code a "no" rests on."""
    return ReadCoverage(
        commit=commit,
        files=coverage.files,
        left_out={reason: count for reason, count in sorted(coverage.skipped.items()) if count},
        uncommitted=coverage.uncommitted[:_MOST_NAMED],
        mentioned_in=tuple(UnreadFile(path=one.path, reason=one.reason) for one in coverage.holding[:_MOST_NAMED]),
        is_behind=coverage.is_behind,
    )


def describe_missing(error: Exception) -> ReadCoverage | None:
    """Describe how much of the code the error of a missing path rests on; None for any other."""
    if not isinstance(error, UnknownPath) or error.coverage is None:
        return None
    return describe_coverage(error.commit, error.coverage)


def describe_hit(hit: Hit, query: str, url: str | None, mask: Mask) -> FoundCode:
    """Describe a place that a search found; its symbol is the first that begins there, else the one around it."""
    return FoundCode(
        path=hit.location.path,
        first_line=hit.location.start_line,
        last_line=hit.location.end_line,
        symbol=hit.symbols[0].qualified_name if hit.symbols else hit.scope,
        language=hit.language,
        kind=hit.source_type,
        score=round(hit.score, 4),
        code=show_hit(mask(hit.text), hit.location.start_line, query),
        url=url,
    )


def describe_symbol(definition: Definition, url: str | None, mask: Mask) -> FoundSymbol:
    """Describe a definition."""
    symbol = definition.symbol
    return FoundSymbol(
        name=symbol.qualified_name,
        kind=symbol.kind,
        path=definition.path,
        first_line=symbol.start_line,
        last_line=symbol.end_line,
        signature=cut_line(mask(symbol.signature)),
        doc=cut_line(mask(symbol.doc)),
        url=url,
    )


def gather_calls(sites: Iterable[CallSite], code: Collection[str]) -> list[CallSite]:
    """Return each line that calls once: certain before possible, the files of code before others, by path and line."""
    best: dict[tuple[str, int, str], CallSite] = {}
    for site in sites:
        key = (site.path, site.line, site.name)
        if key not in best or (best[key].ambiguous and not site.ambiguous):
            best[key] = site
    return sorted(best.values(), key=lambda site: (site.ambiguous, site.path not in code, site.path, site.line))


def keep_below(sites: Iterable[CallSite], path: str) -> list[CallSite]:
    """Return the calls in a file, or below a folder; an empty path keeps all."""
    below = path.strip().removeprefix("./").strip("/")
    return [site for site in sites if not below or f"{site.path}/".startswith(f"{below}/")]


def describe_call(site: CallSite, code: str, mask: Mask) -> FoundCall:
    """Describe a call, with the line that makes it."""
    return FoundCall(
        path=site.path,
        line=site.line,
        name=site.name,
        caller=_name_place(site.caller),
        callee=_name_place(site.callee),
        is_certain=not site.ambiguous,
        code=cut_line(mask(code.strip())),
    )


def describe_commit(revision: Revision, mask: Mask) -> FoundCommit:
    """Describe a commit; people are named, their addresses are not."""
    return FoundCommit(
        commit=revision.sha,
        author=mask(revision.author)[:_LONGEST_SUBJECT],
        date=f"{datetime.fromtimestamp(revision.committed_at, UTC):%Y-%m-%d}",
        subject=mask(revision.subject)[:_LONGEST_SUBJECT],
    )


def list_folder(files: Sequence[FileEntry], folder: str) -> list[ListedEntry]:
    """List what lies in a folder: folders with what is below them, then files; nothing where there is no such one."""
    prefix = f"{folder}/" if folder else ""
    folders: dict[str, list[FileEntry]] = {}
    found: list[ListedEntry] = []
    for entry in files:
        if entry.path.startswith(prefix):
            name, slash, _ = entry.path.removeprefix(prefix).partition("/")
            if slash:
                folders.setdefault(name, []).append(entry)
            else:
                found.append(describe_file(entry))
    counted = [
        ListedEntry(path=f"{prefix}{name}", is_folder=True, files=len(own), lines=sum(one.lines for one in own))
        for name, own in folders.items()
    ]
    return [*counted, *found]


def describe_file(entry: FileEntry) -> ListedEntry:
    """Describe a file."""
    return ListedEntry(path=entry.path, lines=entry.lines, language=entry.language)


def describe_repository(status: IndexStatus, mask: Mask) -> ListedRepository:
    """Describe what is indexed of a repository; where it lies on disk is nobody's business."""
    indexed = datetime.fromtimestamp(status.indexed_at, UTC) if status.indexed_at is not None else None
    return ListedRepository(
        repository=status.repository,
        commit=status.commit,
        branch=status.branch,
        indexed_at=f"{indexed:%Y-%m-%dT%H:%M:%SZ}" if indexed else None,
        commits_behind=status.commits_behind,
        files=status.files,
        symbols=status.symbols,
        warnings=tuple(mask(warning) for warning in status.warnings[:_MOST_WARNINGS]),
    )


def _name_place(definition: Definition | None) -> NamedPlace | None:
    if definition is None:
        return None
    symbol = definition.symbol
    return NamedPlace(
        name=symbol.qualified_name, path=definition.path, first_line=symbol.start_line, last_line=symbol.end_line
    )
