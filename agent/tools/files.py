"""Tools that open files and folders of the indexed commit, and read a file's history."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field, field_validator

from agent.evidence.coverage import explain_missing_paths, find_left_out
from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.refs import LONGEST_RANGE, make_lines_ref
from agent.history.commit_refs import describe_commit, make_commit_ref
from agent.ports import CodeSearch, Deps
from agent.repositories.joined_code import place_path
from agent.tools.tool import HISTORY, Tool, ToolEvidence, ToolReport
from indexer.errors import UnknownPath
from indexer.types import FileEntry, Location

MAX_ENTRIES = 200
MAX_RANGES = 12
LONGEST_PATH = 140
MAX_REVISIONS = 20
_OPEN_RANGE = 100  # lines from a start without an end
_NAMED_LANGUAGES = 4
_MOST_COMPARED = 2_000  # paths with one that there is not; each takes a tenth of a millisecond
_RANGE = re.compile(r"[Ll]?(\d{1,7})(?:\s?(?:-|–|:|,|\.\.)\s?[Ll]?(\d{1,7}))?")


class ReadArguments(BaseModel):
    """Lines of a file."""

    file_path: str = Field(min_length=1, description="The path from the root of the repository.")
    start: int = Field(default=1, ge=1, description="The first line.")
    end: int | None = Field(default=None, ge=1, description="The last line, at most 200 on; 100 lines without it.")
    ranges: list[str] = Field(
        default_factory=list, max_length=MAX_RANGES, description='Several ranges instead, such as ["10-40", "88"].'
    )

    @field_validator("ranges")
    @classmethod
    def _check_ranges(cls, written: list[str]) -> list[str]:
        parse_ranges(written)
        return written


class ReadFile(Tool[ReadArguments]):
    """Reads lines of an indexed file."""

    name = "read_file"
    description = "Read up to 200 lines of a file, or several ranges of it at once."
    arguments = ReadArguments
    label = "Reading"
    argument_shown = "file_path"
    only_reads = True

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the file with its lines."""
        ranges, start, end = args.get("ranges"), args.get("start"), args.get("end")
        lines = ",".join(map(str, ranges[:MAX_RANGES])) if isinstance(ranges, list) else ""
        if not lines and (start or end):
            lines = f"{start or 1}-{end}" if end else f"{start}-"
        return f"{str(args.get('file_path', ''))[:LONGEST_PATH]}{f':{lines[:60]}' if lines else ''}"

    async def run(self, args: ReadArguments, deps: Deps) -> ToolEvidence:
        """Read the lines as they stand at the indexed commit."""
        wanted = parse_ranges(args.ranges) if args.ranges else [_bound_range(args.start, args.end)]
        entry = await find_indexed_file(deps.code, args.file_path)
        report = ToolReport(deps)
        report.say(f"{entry.path} has {entry.lines} lines.")
        for start, end in wanted:
            if start > max(entry.lines, 1):
                report.say(f"There is no line {start}.")
                continue
            passage = await deps.code.read(entry.path, start, end)
            ref = make_lines_ref(passage.location, "lines", language=passage.language)
            shown = report.show(ref, passage.text)
            if shown < end and shown < entry.lines:
                report.say(f"Read on from line {shown + 1}." if shown >= start else f"Lines {start}-{end} did not fit.")
        last = wanted[-1][1]
        if args.end is not None and not args.ranges and last < min(args.end, entry.lines) and not report.is_full:
            report.say(f"At most {LONGEST_RANGE} lines are read at once. Read on from line {last + 1}.")
        evidence = report.evidence()
        if not evidence.refs and not report.is_full and all(start > max(entry.lines, 1) for start, _ in wanted):
            raise UnknownPath(f"{entry.path} has {entry.lines} lines; there is no line {wanted[0][0]}.")
        return evidence


def parse_ranges(written: Sequence[str]) -> list[tuple[int, int]]:
    """Read ranges such as `10-40` and `88`, in file order, those that touch as one; raises `ValueError`."""
    ranges: list[tuple[int, int]] = []
    for text in written:
        found = _RANGE.fullmatch(text.strip()[:LONGEST_RANGE])
        if found is None:
            raise ValueError(f"{text[:40]!r} is no range of lines. Write them as 10-40, or 88.")
        start = max(int(found[1]), 1)
        ranges.append(_bound_range(start, int(found[2]) if found[2] else start))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _bound_range(start: int, end: int | None) -> tuple[int, int]:
    if end is None:
        return start, start + _OPEN_RANGE - 1
    return start, min(max(end, start), start + LONGEST_RANGE - 1)


class ListArguments(BaseModel):
    """A folder."""

    path: str = Field(default="", description="The folder from the root of the repository; empty for the root.")
    skip: int = Field(default=0, ge=0, le=1_000_000, description="How many entries of the list to leave out.")


class ListDirectory(Tool[ListArguments]):
    """Lists a folder of the indexed commit."""

    name = "list_directory"
    description = "List the files and folders in a folder, with how many files and lines there are."
    arguments = ListArguments
    label = "Listing"
    argument_shown = "path"
    only_reads = True

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the folder."""
        return str(args.get("path") or "/")

    async def run(self, args: ListArguments, deps: Deps) -> ToolEvidence:
        """List folders with the number of files below them, then files; each file refers to its first line."""
        written = args.path.strip().strip("/").removeprefix("./").removesuffix("/.")
        folder = place_path(deps.code, "" if written == "." else written)
        prefix = f"{folder}/" if folder else ""
        below = [entry for entry in await deps.code.files() if entry.path.startswith(prefix)]
        if not below:
            raise UnknownPath(await explain_missing_paths(deps.code, [folder[:200]], quote=str))
        return _report_folder(deps, prefix, below, args.skip)


def _report_folder(deps: Deps, prefix: str, below: Sequence[FileEntry], skip: int) -> ToolEvidence:
    folders: dict[str, list[FileEntry]] = {}
    files: list[FileEntry] = []
    for entry in below:
        name, slash, _ = entry.path.removeprefix(prefix).partition("/")
        if slash:
            folders.setdefault(name, []).append(entry)
        else:
            files.append(entry)
    report = ToolReport(deps)
    report.say(
        f"{prefix or '/'}: {len(folders)} folders and {len(files)} files; {len(below)} files and "
        f"{sum(entry.lines for entry in below):,} lines in all, {_count_languages(below)}."
    )
    shown = list(folders.items())[skip : skip + MAX_ENTRIES]
    for name, inside in shown:
        report.say(f"{name}/ ({len(inside)} files, {sum(entry.lines for entry in inside):,} lines)")
    left = max(0, skip - len(folders))
    for entry in files[left : left + MAX_ENTRIES - len(shown)]:
        first = Location(path=entry.path, start_line=1, end_line=1)
        report.cite(make_lines_ref(first, "file", language=entry.language), f"{entry.language}, {entry.lines} lines")
    if skip + MAX_ENTRIES < len(folders) + len(files):
        report.say(f"More entries follow; ask with skip = {skip + MAX_ENTRIES}.")
    return report.evidence()


def _count_languages(entries: Sequence[FileEntry]) -> str:
    counts = Counter(entry.language or "other" for entry in entries)
    return ", ".join(f"{language} {count}" for language, count in counts.most_common(_NAMED_LANGUAGES))


async def find_indexed_file(code: CodeSearch, written: str) -> FileEntry:
    """Return the one file that a written path means; `UnknownPath` names similar ones."""
    entries = await code.files()
    path = written.strip().removeprefix("./")
    exact = next((entry for entry in entries if entry.path in {path, place_path(code, path)}), None)
    # A climbing path means nothing in a commit; its end must not be taken for some file that happens to fit.
    found = exact or (None if ".." in path.split("/") else FilePathLookup(entries, [path]).find(path))
    if found is None:
        if await find_left_out(code, path) is not None:
            raise UnknownPath(await explain_missing_paths(code, [path[:200]], quote=str))
        near = await asyncio.to_thread(find_similar_paths, path, [entry.path for entry in entries])
        hint = f" Similar: {', '.join(near)}." if near else " List its folder to see what there is."
        raise UnknownPath(f"{await explain_missing_paths(code, [path[:200]], quote=str)}{hint}")
    return found


def find_similar_paths(written: str, paths: Sequence[str]) -> Sequence[str]:
    """Return the paths most like one that there is not. To compare with very many would take seconds.

    So those in the same folder, and the files of the same name, are compared first, and others as far as there is room.
    """
    folder, _, name = written.casefold().rpartition("/")

    def is_elsewhere(path: str) -> bool:
        there, _, other = path.casefold().rpartition("/")
        return there != folder and other != name

    return difflib.get_close_matches(written, sorted(paths, key=is_elsewhere)[:_MOST_COMPARED], n=3, cutoff=0.5)


class HistoryArguments(BaseModel):
    """A file, or one line of it."""

    path: str = Field(min_length=1, description="The path from the root of the repository.")
    line: int = Field(default=0, ge=0, description="A line to blame; 0 for the file alone.")


class ReadFileHistory(Tool[HistoryArguments]):
    """Finds who changed a file, when, and why."""

    name = "file_history"
    description = (
        "List the commits that changed a file, and the one that last changed a line; repository_log has their messages."
    )
    arguments = HistoryArguments
    label = "Reading the history of"
    argument_shown = "path"
    cost = HISTORY
    only_reads = True

    async def run(self, args: HistoryArguments, deps: Deps) -> ToolEvidence:
        """List commits up to the indexed one, newest first; people are named, their addresses are not."""
        entry = await find_indexed_file(deps.code, args.path)
        history = await deps.code.history(entry.path, line=args.line, limit=MAX_REVISIONS)
        line = max(history.line, 1)
        ref = make_lines_ref(
            Location(path=entry.path, start_line=line, end_line=line), "lines", language=entry.language
        )
        report = ToolReport(deps)
        if history.last_changed is not None:
            report.cite(ref, f"line {line} was last changed by commit {history.last_changed.sha[:12]}")
        else:
            report.cite(
                ref, "commits that changed this file, newest first" if history.revisions else "no history is known"
            )
        changes = [history.last_changed] if history.last_changed is not None else []
        for revision in dict.fromkeys([*changes, *history.revisions]):
            report.cite(make_commit_ref(revision), describe_commit(revision))
        if not history.complete:
            report.say("Older commits are left out.")
        return report.evidence()
