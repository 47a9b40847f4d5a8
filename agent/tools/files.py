"""Tools that open files and folders of the indexed commit, and read a file's history."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, Field

from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.refs import LONGEST_RANGE, make_lines_ref
from agent.ports import Deps, SourceFiles
from agent.tools.tool import HISTORY, Tool, ToolEvidence, ToolReport
from indexer.errors import UnknownPath
from indexer.types import FileEntry, Location, Revision

MAX_ENTRIES = 200
MAX_REVISIONS = 20


class ReadArguments(BaseModel):
    """Lines of a file."""

    file_path: str = Field(min_length=1, description="The path from the root of the repository.")
    start: int = Field(default=1, ge=1, description="The first line.")
    end: int | None = Field(default=None, ge=1, description="The last line; at most 200 lines are returned.")


class ReadFile(Tool[ReadArguments]):
    """Reads lines of an indexed file."""

    name = "read_file"
    description = "Read up to 200 lines of a file."
    arguments = ReadArguments
    label = "Reading"
    argument_shown = "file_path"
    only_reads = True

    async def run(self, args: ReadArguments, deps: Deps) -> ToolEvidence:
        """Read the lines as they stand at the indexed commit."""
        entry = await find_indexed_file(deps.code, args.file_path)
        last = args.start + LONGEST_RANGE - 1
        end = last if args.end is None else min(max(args.end, args.start), last)
        passage = await deps.code.read(entry.path, args.start, end)
        report = ToolReport(deps)
        report.say(f"{entry.path} has {entry.lines} lines.")
        report.show(make_lines_ref(passage.location, "lines", language=passage.language), passage.text)
        return report.evidence()


class ListArguments(BaseModel):
    """A folder."""

    path: str = Field(default="", description="The folder from the root of the repository; empty for the root.")


class ListDirectory(Tool[ListArguments]):
    """Lists a folder of the indexed commit."""

    name = "list_directory"
    description = "List the files and folders in a folder."
    arguments = ListArguments
    label = "Listing"
    argument_shown = "path"
    only_reads = True

    async def run(self, args: ListArguments, deps: Deps) -> ToolEvidence:
        """List folders with the number of files below them, then files; each file refers to its first line."""
        folder = args.path.strip().strip("/").removeprefix("./").removesuffix("/.")
        prefix = "" if folder in {"", "."} else f"{folder}/"
        below = [entry for entry in await deps.code.files() if entry.path.startswith(prefix)]
        if not below:
            raise UnknownPath(f"There is no indexed folder {folder[:200]!r}.")
        return _report_folder(deps, prefix, below)


def _report_folder(deps: Deps, prefix: str, below: Sequence[FileEntry]) -> ToolEvidence:
    folders: dict[str, int] = {}
    files: list[FileEntry] = []
    for entry in below:
        name, slash, _ = entry.path.removeprefix(prefix).partition("/")
        if slash:
            folders[name] = folders.get(name, 0) + 1
        else:
            files.append(entry)
    report = ToolReport(deps)
    for name, count in list(folders.items())[:MAX_ENTRIES]:
        report.say(f"{name}/ ({count} files)")
    for entry in files[:MAX_ENTRIES]:
        first = Location(path=entry.path, start_line=1, end_line=1)
        report.cite(make_lines_ref(first, "file", language=entry.language), f"{entry.language}, {entry.lines} lines")
    if max(len(folders), len(files)) > MAX_ENTRIES:
        report.say(f"Only the first {MAX_ENTRIES} are listed, of {len(folders)} folders and {len(files)} files.")
    return report.evidence()


async def find_indexed_file(code: SourceFiles, written: str) -> FileEntry:
    """Return the one file that a written path means; `UnknownPath` names similar ones."""
    entries = await code.files()
    path = written.strip().removeprefix("./")
    exact = next((entry for entry in entries if entry.path == path), None)
    # A climbing path means nothing in a commit; its end must not be taken for some file that happens to fit.
    found = exact or (None if ".." in path.split("/") else FilePathLookup(entries, [path]).find(path))
    if found is None:
        paths = [entry.path for entry in entries]
        # It takes seconds where there are many files.
        near = await asyncio.to_thread(difflib.get_close_matches, path, paths, n=3, cutoff=0.5)
        hint = f" Similar: {', '.join(near)}." if near else " List its folder to see what there is."
        raise UnknownPath(f"There is no indexed file {path[:200]!r}.{hint}")
    return found


class HistoryArguments(BaseModel):
    """A file, or one line of it."""

    path: str = Field(min_length=1, description="The path from the root of the repository.")
    line: int = Field(default=0, ge=0, description="A line to blame; 0 for the file alone.")


class ReadFileHistory(Tool[HistoryArguments]):
    """Finds who changed a file, when, and why."""

    name = "file_history"
    description = "List the commits that changed a file, and the commit that last changed one of its lines."
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
            report.cite(ref, f"line {line} was last changed by {_format_revision(history.last_changed)}")
        else:
            report.cite(
                ref, "commits that changed this file, newest first" if history.revisions else "no history is known"
            )
        for revision in history.revisions:
            report.say(_format_revision(revision))
        if not history.complete:
            report.say("Older commits are left out.")
        return report.evidence()


def _format_revision(revision: Revision) -> str:
    day = datetime.fromtimestamp(revision.committed_at, UTC).date().isoformat()
    return f"{revision.sha[:12]} on {day} by {revision.author}: {revision.subject}"
