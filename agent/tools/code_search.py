"""Tools that look through the whole repository: by meaning, and by pattern."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agent.evidence.refs import make_hit_ref, make_lines_ref
from agent.evidence.relaxed_search import search_relaxed
from agent.evidence.request_builders import LONGEST_QUERY, request_search
from agent.ports import Deps
from agent.tools.tool import SEARCH, Tool, ToolEvidence, ToolReport

MAX_HITS = 20
MAX_LINES = 60


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
    """A pattern and where to look for it."""

    pattern: str = Field(min_length=1, description="A regular expression in RE2 syntax, matched line by line.")
    path: str = Field(default="", description="A file or folder to look in; empty for everywhere.")


class Grep(Tool[GrepArguments]):
    """Finds lines by a pattern."""

    name = "grep"
    description = "Find lines that match a regular expression (RE2, case-sensitive; (?i) ignores case)."
    arguments = GrepArguments
    label = "Searching for"
    argument_shown = "pattern"
    cost = SEARCH
    only_reads = True

    async def run(self, args: GrepArguments, deps: Deps) -> ToolEvidence:
        """List the matching lines by path."""
        matches = await deps.code.grep(args.pattern, path=args.path, limit=MAX_LINES)
        report = ToolReport(deps)
        if not matches.lines:
            report.say(f"No line matches in {matches.files_searched} files.")
        for match in matches.lines:
            report.cite(make_lines_ref(match.location, "mention"), match.text)
        if not matches.complete:
            report.say("The search stopped at its bounds; there may be more. Narrow the pattern or the path.")
        return report.evidence()
