"""Tools that look through the whole repository: by meaning, and by pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from agent.evidence.refs import make_hit_ref, make_lines_ref
from agent.evidence.relaxed_search import search_relaxed
from agent.evidence.request_builders import LONGEST_QUERY, request_search
from agent.ports import Deps
from agent.tools.tool import MAX_LINE, SEARCH, Tool, ToolEvidence, ToolReport
from indexer.types import Matches

MAX_HITS = 20
MAX_LINES = 60
MAX_PATTERNS = 8
_FEWEST_LINES = 15  # of each of several patterns


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
            report.say("Nothing was found. Try other words, or grep for an exact text.")
        for hit in result.hits:
            report.show(make_hit_ref(hit), hit.text, about=hit.scope)
        for failure in result.failures:
            report.say(f"Part of the search failed: {failure}")
        return report.evidence()


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
        limit = max(_FEWEST_LINES, MAX_LINES // len(patterns))
        path = "" if args.path.strip() in {"", "."} else args.path.strip().removeprefix("./")
        matches = await deps.code.grep(*patterns, path=path, limit=limit)
        report = ToolReport(deps)
        files = len({one.location.path for one in matches.lines})
        found = f"{_count(len(matches.lines), 'line')} in {_count(files, 'file')}" if files else "No line matches"
        report.say(f"{found}; {matches.files_searched} of {_count(matches.files, 'file')} read.")
        for pattern, count in zip(patterns, matches.counts, strict=False):
            if len(patterns) > 1:
                report.say(f"{pattern[:MAX_LINE]}: {f'over {limit}' if count > limit else count} lines")
        _explain_bounds(report, matches, limit)
        for match in matches.lines:
            report.cite(make_lines_ref(match.location, "mention"), match.text)
        return report.evidence()


def _explain_bounds(report: ToolReport, matches: Matches, limit: int) -> None:
    """Say what was left out, why, and how to get it."""
    if matches.is_out_of_time:
        unread = matches.files - matches.files_searched
        report.say(f"The time for one search was used up: {_count(unread, 'file')} were not read. Give a path.")
    if any(count > limit for count in matches.counts):
        report.say(f"Only the first {limit} lines of a pattern are listed. Give a path or a narrower pattern.")
    if matches.cut_files:
        names = ", ".join(matches.cut_files[:3])
        report.say(f"More lines match than are listed in {names}. Give that path and a narrower pattern.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
