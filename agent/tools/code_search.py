"""Tools that look through the whole repository: by meaning, and by pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel, Field

from agent.evidence.coverage import deny
from agent.evidence.refs import make_hit_ref, make_lines_ref
from agent.evidence.requests import LONGEST_QUERY, request_search
from agent.evidence.search import search_relaxed
from agent.ports import Deps
from agent.prompts.evidence_lines import find_core
from agent.questions.terms import find_content_terms, match_terms
from agent.text.escaping import format_count
from agent.tools.tool import MAX_LINE, SEARCH, Tool, ToolEvidence, ToolReport
from indexer.types import Hit, Match, Matches

MAX_HITS = 20
MAX_COUNTED = 200  # lines of a pattern that are counted
MAX_LINES = 20  # that are listed, of all patterns together
LONGEST_LISTED = 160  # characters of a line
MAX_PATTERNS = 8
_MOST_PER_FILE = 5  # lines that are listed, as long as other files have some
_MOST_FILES = 10  # that are named of those of which no line is listed
_BEST_CHARS = 900  # of the best hit, around the words of the query
_HIT_CHARS = 400  # of each other


class SearchArguments(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, description="What the code is about, in words or names.")
    n_results: int = Field(default=8, ge=1, le=MAX_HITS, description="How many places.")


class SearchCodebase(Tool[SearchArguments]):
    """Ranks the code by a text."""

    name = "search_codebase"
    description = (
        "Search the code, tests and documents by meaning and by words; returns the best places with their text."
    )
    arguments = SearchArguments
    label = "Searching"
    argument_shown = "query"
    cost = SEARCH
    only_reads = True

    async def run(self, args: SearchArguments, deps: Deps) -> ToolEvidence:
        """Search in the mode that works, best hits first."""
        request = request_search(args.query[:LONGEST_QUERY], reasoning="a tool call")
        result = await search_relaxed(deps.code, request, limit=args.n_results)
        report = ToolReport(deps)
        if not result.hits:
            nothing = (await deny(deps.code, "No match was found", quote=str)).text
            report.say(f"{nothing} Try other words, or grep for an exact text.")
        for number, hit in enumerate(result.hits):
            _show_excerpt(report, hit, args.query, most=_BEST_CHARS if number == 0 else _HIT_CHARS)
        for failure in result.failures:
            report.say(f"Part of the search failed: {failure}")
        return report.evidence()


def _show_excerpt(report: ToolReport, hit: Hit, query: str, *, most: int) -> None:
    """Show the lines of a hit that have most of the words that were searched for."""
    ref, lines = make_hit_ref(hit), hit.text.split("\n")
    terms = find_content_terms(query[:LONGEST_QUERY])
    start, end = find_core(lines, [match_terms(line, terms) for line in lines], most)
    is_cut = end - start < len(lines)
    whole = f"from lines {ref['start_line']}-{ref['end_line']}" if is_cut else ""
    first = ref["start_line"]
    ref["start_line"], ref["end_line"] = first + start, first + end - 1
    report.show(ref, "\n".join(lines[start:end]), about=", ".join(filter(None, [hit.scope, whole])))


class GrepArguments(BaseModel):
    """Patterns and where to look for them."""

    pattern: str = Field(min_length=1, description="A regular expression in RE2 syntax, matched line by line.")
    more_patterns: list[str] = Field(
        default_factory=list, max_length=MAX_PATTERNS - 1, description="More patterns, found in the same pass."
    )
    path: str = Field(default="", description="A file or folder to look in; empty for everywhere.")


class Grep(Tool[GrepArguments]):
    """Finds lines by patterns."""

    name = "grep"
    description = (
        "Find lines that match a regular expression (RE2, case-sensitive; (?i) ignores case), or several at once. "
        "Code is read before tests, documents and data."
    )
    arguments = GrepArguments
    label = "Searching for"
    argument_shown = "pattern"
    cost = SEARCH
    only_reads = True

    def describe_target(self, args: Mapping[str, Any]) -> str:
        """Name the first pattern and the path, and count the others."""
        more, path = args.get("more_patterns"), str(args.get("path") or "")
        others = f" and {len(more)} more" if isinstance(more, list) and more else ""
        return f"{args.get('pattern', '')}{others}{f' in {path[:100]}' if path else ''}"

    async def run(self, args: GrepArguments, deps: Deps) -> ToolEvidence:
        """List the matching lines, each once, and say how much was read."""
        patterns = list(dict.fromkeys([args.pattern, *args.more_patterns]))
        path = "" if args.path.strip() in {"", "."} else args.path.strip().removeprefix("./")
        matches = await deps.code.grep(*patterns, path=path, limit=MAX_COUNTED)
        report = ToolReport(deps)
        listed = _choose_matches(matches.lines)
        files = len({one.location.path for one in matches.lines})
        found = (
            f"{format_count(len(matches.lines), 'line')} in {format_count(files, 'file')}"
            if files
            else "No line matches"
        )
        some = f", of which {len(listed)} are listed" if len(listed) < len(matches.lines) else ""
        report.say(f"{found}{some}; {matches.files_searched} of {format_count(matches.files, 'file')} read.")
        for pattern, count in zip(patterns, matches.counts, strict=False):
            if len(patterns) > 1:
                report.say(f"{pattern[:MAX_LINE]}: {f'over {MAX_COUNTED}' if count > MAX_COUNTED else count} lines")
        _explain_bounds(report, matches)
        for match in listed:
            report.cite(make_lines_ref(match.location, "mention"), match.text.strip()[:LONGEST_LISTED])
        _name_others(report, matches.lines, listed)
        return report.evidence()


def _choose_matches(lines: Sequence[Match]) -> list[Match]:
    """Return the lines to list: the first few of each file, and then more of them while there is room."""
    seen: Counter[str] = Counter()
    first: list[Match] = []
    for match in lines:
        seen[match.location.path] += 1
        if seen[match.location.path] <= _MOST_PER_FILE:
            first.append(match)
    chosen = {one.location for one in first[:MAX_LINES]}
    rest = (one.location for one in lines if one.location not in chosen)
    chosen.update(islice(rest, max(0, MAX_LINES - len(chosen))))
    return [one for one in lines if one.location in chosen]


def _name_others(report: ToolReport, lines: Sequence[Match], listed: Sequence[Match]) -> None:
    """Say how many more lines which files have."""
    left = Counter(one.location.path for one in lines) - Counter(one.location.path for one in listed)
    if left:
        named = ", ".join(f"{path} ({count})" for path, count in list(left.items())[:_MOST_FILES])
        others = f" and {format_count(len(left) - _MOST_FILES, 'other file')}" if len(left) > _MOST_FILES else ""
        report.say(f"Further lines are in {named}{others}. Give a path or a narrower pattern.")


def _explain_bounds(report: ToolReport, matches: Matches) -> None:
    """Say what was left out, why, and how to get it."""
    if matches.is_out_of_time:
        unread = matches.files - matches.files_searched
        report.say(f"The time for one search was used up: {format_count(unread, 'file')} were not read. Give a path.")
    if any(count > MAX_COUNTED for count in matches.counts):
        report.say(f"Only the first {MAX_COUNTED} lines of a pattern are counted. Give a path or a narrower pattern.")
    if matches.cut_files:
        names = ", ".join(matches.cut_files[:3])
        report.say(f"More lines match than are counted in {names}. Give that path and a narrower pattern.")
