"""Search for lines by pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from agent.evidence.coverage import deny
from agent.evidence.refs import make_lines_ref
from agent.lookups.lookup import Arguments, CodeLookup, Look, Offset, Path, clean_path
from agent.lookups.results import MAX_LINE, GrepResult, MatchedLine, cut_line
from agent.lookups.tool import SEARCH
from agent.text.escaping import format_count
from indexer.types import Match, Matches

MAX_COUNTED = 200  # lines of a pattern that are counted
LONGEST_LISTED = 160  # characters of a line that a model is shown
MAX_PATTERNS = 8
_MOST_PER_FILE = 5  # lines that a model is shown, as long as other files have some
_MOST_FILES = 10  # that are named of those of which no line is listed


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
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class Grep(CodeLookup[GrepArguments, GrepResult]):
    """Finds lines by patterns."""

    name = "grep"
    title = "Find lines"
    description = (
        "Find lines that match a regular expression (RE2; case-sensitive unless `ignore_case`), or several at once. "
        "Code is read before tests, documents and data. Use it for an exact text."
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
        matches = await look.code.grep(*expressions, path=clean_path(args.path), limit=MAX_COUNTED)
        page = look.take_page(matches.lines, args.limit, args.offset)
        listed = page if look.is_wide else _choose_matches(matches.lines, args.limit)
        look.head |= {"is_total_exact": matches.complete}
        files = len({one.location.path for one in matches.lines})
        found = f"{format_count(len(matches.lines), 'line')} in {format_count(files, 'file')}"
        some = f", of which {len(listed)} are listed" if len(listed) < len(matches.lines) else ""
        look.say(
            f"{found if files else 'No line matches'}{some}; {matches.files_searched} of "
            f"{format_count(matches.files, 'file')} read."
        )
        for pattern, count in zip(patterns, matches.counts, strict=False):
            if len(patterns) > 1:
                look.say(f"{pattern[:MAX_LINE]}: {f'over {MAX_COUNTED}' if count > MAX_COUNTED else count} lines")
        _explain_bounds(look, matches)
        if not matches.lines and not matches.is_out_of_time:
            look.deny(await deny(look.code, "No line matches", args.pattern, quote=str))
        for match in listed:
            text = match.text if look.is_wide else match.text.strip()[:LONGEST_LISTED]
            look.cite(make_lines_ref(match.location, "mention"), text)
        if not look.is_wide:
            look.head["next"] = None
            _name_others(look, matches.lines, listed)
        lines = (
            MatchedLine(path=one.location.path, line=one.location.start_line, text=cut_line(look.mask(one.text)))
            for one in page
        )
        return GrepResult(**look.head, matches=tuple(lines))


def _choose_matches(lines: Sequence[Match], most: int) -> list[Match]:
    """Return the lines to list: the first few of each file, and then more of them while there is room."""
    seen: Counter[str] = Counter()
    first: list[Match] = []
    for match in lines:
        seen[match.location.path] += 1
        if seen[match.location.path] <= _MOST_PER_FILE:
            first.append(match)
    chosen = {one.location for one in first[:most]}
    rest = (one.location for one in lines if one.location not in chosen)
    chosen.update(islice(rest, max(0, most - len(chosen))))
    return [one for one in lines if one.location in chosen]


def _name_others(look: Look, lines: Sequence[Match], listed: Sequence[Match]) -> None:
    """Say how many more lines which files have."""
    left = Counter(one.location.path for one in lines) - Counter(one.location.path for one in listed)
    if left:
        named = ", ".join(f"{path} ({count})" for path, count in list(left.items())[:_MOST_FILES])
        others = f" and {format_count(len(left) - _MOST_FILES, 'other file')}" if len(left) > _MOST_FILES else ""
        look.say(f"Further lines are in {named}{others}. Give a path or a narrower pattern.")


def _explain_bounds(look: Look, matches: Matches) -> None:
    """Say what was left out, why, and how to get it."""
    if matches.is_out_of_time:
        unread = matches.files - matches.files_searched
        look.note(f"The time for one search was used up: {format_count(unread, 'file')} were not read. Give a path.")
    if any(count > MAX_COUNTED for count in matches.counts):
        look.say(f"Only the first {MAX_COUNTED} lines of a pattern are counted. Give a path or a narrower pattern.")
    if matches.cut_files:
        names = ", ".join(matches.cut_files[:3])
        look.say(f"More lines match than are counted in {names}. Give that path and a narrower pattern.")
