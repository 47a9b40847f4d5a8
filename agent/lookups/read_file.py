"""Lines of a file, and the file that a written path means."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from agent.evidence.coverage import explain_missing_paths, find_left_out
from agent.evidence.path_lookup import FilePathLookup
from agent.evidence.refs import LONGEST_RANGE, make_lines_ref
from agent.lookups.lookup import ROOT_PATH, Arguments, CodeLookup, Look, Path
from agent.lookups.results import FileText, number_lines
from agent.ports import CodeSearch
from agent.repositories.joined_code import place_path
from indexer.errors import UnknownPath
from indexer.types import FileEntry, Location, Passage

MAX_RANGES = 12
MAX_LINES = 600  # that are read at once
LONGEST_PATH = 140
_OPEN_RANGE = 100  # lines that a model reads from a start without an end
_MAX_COMPARED = 2_000  # paths with one that there is not; each takes a tenth of a millisecond
_RANGE = re.compile(r"[Ll]?([0-9]{1,7})(?: ?(?:-|–|:|,|\.\.) ?[Ll]?([0-9]{1,7}))?")

LineNumber = Annotated[int, Field(ge=1, le=10_000_000)]


class ReadArguments(Arguments):
    """Lines of a file."""

    path: Annotated[
        Path, Field(min_length=1, validation_alias=AliasChoices("path", "file_path"), description=ROOT_PATH)
    ]
    first_line: Annotated[LineNumber, Field(validation_alias=AliasChoices("first_line", "start"))] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_LINES, description="How many lines.")] = 200
    end: Annotated[LineNumber | None, Field(description="The last line, instead of `limit`.")] = None
    ranges: Annotated[
        tuple[Annotated[str, Field(pattern=f"^{_RANGE.pattern}$")], ...],
        Field(max_length=MAX_RANGES, description='Several ranges instead, such as ["10-40", "88"].'),
    ] = ()


class ReadFile(CodeLookup[ReadArguments, FileText]):
    """Reads lines of an indexed file; an unambiguous end of its path is enough."""

    name = "read_file"
    title = "Read a file"
    description = "Read lines of a file as of the indexed commit, numbered; or several ranges of it at once."
    arguments = ReadArguments
    result = FileText
    label = "Reading"
    argument_shown = "path"
    room = 30_000

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the file with its lines."""
        ranges, start, end = args.get("ranges"), args.get("first_line", args.get("start")), args.get("end")
        lines = ",".join(map(str, ranges[:MAX_RANGES])) if isinstance(ranges, list) else ""
        if not lines and (start or end):
            lines = f"{start or 1}-{end}" if end else f"{start}-"
        path = str(args.get("path", args.get("file_path", "")))[:LONGEST_PATH]
        return f"{path}{f':{lines[:60]}' if lines else ''}"

    async def find(self, args: ReadArguments, look: Look) -> FileText:
        """Read the lines."""
        is_open = not look.is_wide and not {"limit", "end"} & args.model_fields_set
        last = args.end or args.first_line + (_OPEN_RANGE if is_open else args.limit) - 1
        wanted = parse_ranges(args.ranges) or [(args.first_line, _bound_end(args.first_line, last))]
        text = await read_lines(look, await find_indexed_file(look.code, args.path), wanted)
        if not args.ranges and wanted[0][1] < min(last, text.total) and not look.is_full:
            look.say(f"At most {MAX_LINES} lines are read at once. Read on from line {wanted[0][1] + 1}.")
        return text


async def read_lines(look: Look, entry: FileEntry, wanted: Sequence[tuple[int, int]]) -> FileText:
    """Read ranges of an indexed file."""
    look.say(f"{entry.path} has {entry.lines} lines.")
    passages: list[Passage] = []
    for start, end in wanted:
        if start > entry.lines:
            look.note(f"There is no line {start}.")
            continue
        passage = await look.code.read(entry.path, start, end)
        passages.append(passage)
        shown = _show_passage(look, passage)
        if shown < end and shown < entry.lines:
            look.say(f"Read on from line {shown + 1}." if shown >= start else f"Lines {start}-{end} did not fit.")
    first = passages[0].location.start_line if passages else wanted[0][0]
    last = passages[-1].location.end_line if passages else first - 1
    look.head |= {"total": entry.lines, "next": last + 1 if passages and last < entry.lines else None}
    codes = [number_lines(look.mask(one.text), one.location.start_line) for one in passages]
    return FileText(
        **look.head,
        path=entry.path,
        language=entry.language,
        first_line=first,
        last_line=last,
        code="\n".join(codes),
        url=look.code.permalink(passages[0].location) if passages else None,
    )


def _show_passage(look: Look, passage: Passage) -> int:
    """Show lines in pieces that can be cited whole, and return the last line that fits."""
    lines, start = look.mask(passage.text).split("\n"), passage.location.start_line
    shown = start - 1
    for first in range(start, max(passage.location.end_line, start) + 1, LONGEST_RANGE):
        last = min(first + LONGEST_RANGE - 1, passage.location.end_line)
        at = Location(path=passage.location.path, start_line=first, end_line=last)
        text = "\n".join(lines[first - start : first - start + LONGEST_RANGE])
        shown = look.show(make_lines_ref(at, "lines", language=passage.language), text)
        if shown < last:
            break
    return shown


def parse_ranges(written: Sequence[str]) -> list[tuple[int, int]]:
    """Read ranges such as `10-40` and `88`, in file order, joining adjacent ones; raises `ValueError`."""
    ranges: list[tuple[int, int]] = []
    for text in written:
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text[:40]!r} is no range of lines. Write them as 10-40, or 88.")
        start = max(int(found[1]), 1)
        ranges.append((start, _bound_end(start, int(found[2] or start))))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _bound_end(start: int, end: int) -> int:
    return min(max(end, start), start + MAX_LINES - 1)


async def find_indexed_file(code: CodeSearch, written: str) -> FileEntry:
    """Return the one file that a written path means; `UnknownPath` names similar ones."""
    entries = await code.files()
    path = written.strip().removeprefix("./")
    exact = next((entry for entry in entries if entry.path in {path, place_path(code, path)}), None)
    # A climbing path means nothing in a commit; its end must not be taken for some file that happens to fit.
    found = exact or (None if ".." in path.split("/") else FilePathLookup(entries, [path]).find(path))
    if found is None:
        raise await make_unknown_path(code, path)
    return found


async def make_unknown_path(code: CodeSearch, path: str) -> UnknownPath:
    """Make the error for an unindexed path: the reason, or the most similar files and folders."""
    text = await explain_missing_paths(code, [path[:200]], quote=str)
    if await find_left_out(code, path) is not None:
        return UnknownPath(text)
    return UnknownPath(f"{text} {await name_similar(code, path) or 'List its folder to see what there is.'}")


async def name_similar(code: CodeSearch, path: str) -> str:
    """Name the files and folders most similar to a path; empty if there are none."""
    paths = [*(entry.path for entry in await code.files()), *await code.folders()]
    near = await asyncio.to_thread(find_similar_paths, path, paths)
    return f"Similar: {', '.join(near)}." if near else ""


def find_similar_paths(written: str, paths: Sequence[str]) -> Sequence[str]:
    """Return the paths most like a missing one; a bare name is compared with names.

    Comparing with very many would take seconds, so files in the same folder or of the same name
    come first, and others as room allows.
    """
    folder, slash, name = written.casefold().rpartition("/")
    if not slash:
        named = {path.rpartition("/")[2]: path for path in reversed(paths)}
        near = difflib.get_close_matches(written, list(named)[-_MAX_COMPARED:], n=3, cutoff=0.6)
        return [named[one] for one in near]

    def is_elsewhere(path: str) -> bool:
        there, _, other = path.casefold().rpartition("/")
        return there != folder and other != name

    return difflib.get_close_matches(written, sorted(paths, key=is_elsewhere)[:_MAX_COMPARED], n=3, cutoff=0.5)
