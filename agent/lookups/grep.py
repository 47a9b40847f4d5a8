"""Search for lines by pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field

from agent.evidence.coverage import deny
from agent.evidence.refs import make_lines_ref
from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, Path, clean_path
from agent.lookups.read_file import make_unknown_path
from agent.lookups.results import MAX_LINE, GrepResult, MatchedFile, MatchedLine, cut_line, number_lines
from agent.lookups.tool import SEARCH
from agent.text.escaping import format_count
from indexer.errors import UnknownPath
from indexer.types import Location, Match, Matches

MAX_COUNTED = 200  # lines of a pattern that are counted where lines are listed ...
MAX_COUNTED_IN_FILES = 5_000  # ... and where they are not
LONGEST_LISTED = 160  # characters of a line that a model is shown
MAX_PATTERNS = 8
MAX_CONTEXT = 10  # lines on each side
_MAX_PER_FILE = 5  # lines that a model is shown, as long as other files have some
_MAX_FILES = 10  # that are named of those of which no line is listed


class GrepArguments(Arguments):
    """Patterns and where to look for them."""

    pattern: Annotated[
        str, Field(min_length=1, max_length=480, description="A regular expression (RE2), matched line by line.")
    ]
    more_patterns: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=480)], ...],
        Field(max_length=MAX_PATTERNS - 1, description="More patterns, found in the same pass."),
    ] = ()
    path: Annotated[Path, Field(description="A file or folder; empty for everywhere.")] = ""
    ignore_case: bool = False
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT, description="Lines to show before and after each.")] = 0
    output: Annotated[
        Literal["lines", "files", "count"],
        Field(description="The lines, or only the files with counts, or only the count."),
    ] = "lines"
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class Grep(CodeLookup[GrepArguments, GrepResult]):
    """Finds lines by patterns."""

    name = "grep"
    title = "Find lines"
    description = (
        "Find lines that match a regular expression (RE2; case-sensitive unless `ignore_case`), or several at once. "
        "Code comes before tests, documents and data. Use it for exact text; `context` shows surrounding lines."
    )
    arguments = GrepArguments
    result = GrepResult
    label = "Searching for"
    argument_shown = "pattern"
    cost = SEARCH

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the first pattern and the path, and count the others."""
        more, path = args.get("more_patterns"), str(args.get("path") or "")
        others = f" and {len(more)} more" if isinstance(more, list) and more else ""
        return f"{args.get('pattern', '')}{others}{f' in {path[:100]}' if path else ''}"

    async def find(self, args: GrepArguments, look: Look) -> GrepResult:
        """List the matching lines, each once, and say how much was read."""
        patterns = list(dict.fromkeys([args.pattern, *args.more_patterns]))
        expressions = [f"(?i:{one})" if args.ignore_case else one for one in patterns]
        most = MAX_COUNTED if args.output == "lines" else MAX_COUNTED_IN_FILES
        matches = await _search(look, expressions, clean_path(args.path), most)
        files = Counter(one.location.path for one in matches.lines)
        page: Sequence[Match] = ()
        if args.output == "lines":
            page = look.take_page(matches.lines, args.limit, args.offset)
        listed = page if look.is_wide else _choose_matches(matches.lines, args.limit) if page else ()
        look.head |= {"is_total_exact": matches.complete}
        found = f"{format_count(len(matches.lines), 'line')} in {format_count(len(files), 'file')}"
        some = f", of which {len(listed)} are listed" if 0 < len(listed) < len(matches.lines) else ""
        look.say(
            f"{found if files else 'No line matches'}{some}; {matches.files_searched} of "
            f"{format_count(matches.files, 'file')} read."
        )
        for pattern, count in zip(patterns, matches.counts, strict=False):
            if len(patterns) > 1:
                look.say(f"{pattern[:MAX_LINE]}: {f'over {most}' if count > most else count} lines")
        _explain_bounds(look, matches, most)
        if not matches.lines and not matches.is_out_of_time:
            look.deny(await deny(look.code, "No line matches", args.pattern, quote=str))
        await _show_matches(look, listed, args.context)
        counted = look.take_page(list(files.items()), args.limit, args.offset) if args.output == "files" else ()
        _show_files(look, matches.lines, dict(counted))
        if listed and not look.is_wide:
            look.head["next"] = None
            _name_others(look, matches.lines, listed)
        if args.output == "count":
            look.head["total"] = len(matches.lines)
        return GrepResult(
            **look.head,
            matches=tuple(await _describe_matches(look, page, args.context)),
            files=tuple(MatchedFile(path=path, lines=count) for path, count in counted),
        )


async def _search(look: Look, expressions: Sequence[str], path: str, most: int) -> Matches:
    try:
        return await look.code.grep(*expressions, path=path, limit=most)
    except UnknownPath as error:
        raise await make_unknown_path(look.code, path) from error


async def _show_matches(look: Look, listed: Sequence[Match], context: int) -> None:
    """List lines with their context; overlapping ones appear once."""
    if not context:
        for match in listed:
            text = match.text if look.is_wide else match.text.strip()[:LONGEST_LISTED]
            look.cite(make_lines_ref(match.location, "mention"), text)
        return
    places: list[Location] = []
    for at in (one.location for one in listed):
        start, end = max(1, at.start_line - context), at.end_line + context
        last = places[-1] if places else None
        if last is not None and last.path == at.path and last.start_line <= start <= last.end_line + 1:
            places[-1] = replace(last, end_line=end)
        else:
            places.append(Location(path=at.path, start_line=start, end_line=end))
    for place in places:
        passage = await look.code.read(place.path, place.start_line, place.end_line)
        look.show(make_lines_ref(passage.location, "lines", language=passage.language), passage.text)


def _show_files(look: Look, lines: Sequence[Match], counted: Mapping[str, int]) -> None:
    """List files by number of lines, with the first line of each."""
    first = {one.location.path: one for one in reversed(lines)}
    for path, count in counted.items():
        said = f"{first[path].text.strip()[:LONGEST_LISTED]}  (1 of {format_count(count, 'line')})"
        look.cite(make_lines_ref(first[path].location, "mention"), said)


async def _describe_matches(look: Look, page: Sequence[Match], context: int) -> list[MatchedLine]:
    """Return the lines of a page as values."""
    described: list[MatchedLine] = []
    for one in page:
        path, line, around = one.location.path, one.location.start_line, ""
        if context and look.is_wide:
            passage = await look.code.read(path, max(1, line - context), line + context)
            around = number_lines(look.mask(passage.text), passage.location.start_line)
        described.append(MatchedLine(path=path, line=line, text=cut_line(look.mask(one.text)), around=around))
    return described


def _choose_matches(lines: Sequence[Match], most: int) -> list[Match]:
    """Choose the lines to list: the first few of each file, then more as room allows."""
    seen: Counter[str] = Counter()
    first: list[Match] = []
    for match in lines:
        seen[match.location.path] += 1
        if seen[match.location.path] <= _MAX_PER_FILE:
            first.append(match)
    chosen = {one.location for one in first[:most]}
    rest = (one.location for one in lines if one.location not in chosen)
    chosen.update(islice(rest, max(0, most - len(chosen))))
    return [one for one in lines if one.location in chosen]


def _name_others(look: Look, lines: Sequence[Match], listed: Sequence[Match]) -> None:
    """Say which files have how many further lines."""
    left = Counter(one.location.path for one in lines) - Counter(one.location.path for one in listed)
    if left:
        named = ", ".join(f"{path} ({count})" for path, count in list(left.items())[:_MAX_FILES])
        others = f" and {format_count(len(left) - _MAX_FILES, 'other file')}" if len(left) > _MAX_FILES else ""
        look.say(f"Further lines are in {named}{others}. Give a path or a narrower pattern.")


def _explain_bounds(look: Look, matches: Matches, most: int) -> None:
    """Say what was omitted, why, and how to get it."""
    if matches.is_out_of_time:
        unread = matches.files - matches.files_searched
        look.note(f"The time for one search was used up: {format_count(unread, 'file')} were not read. Give a path.")
    if any(count > most for count in matches.counts):
        look.say(f"Only the first {most:,} lines of a pattern are counted. Give a path or a narrower pattern.")
    if matches.cut_files:
        names = ", ".join(matches.cut_files[:3])
        look.say(f"More lines match than are counted in {names}. Give that path and a narrower pattern.")
