"""The tool that looks beyond the repository: off unless configured, approved each time, and searching only for what the
person wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from agent.lookups.tool import OUTSIDE, Tool, ToolEvidence, ToolReport
from agent.ports import Deps

MAX_PAGES = 5
NOTHING_LEFT = (
    "A web search may only use words that the person wrote in the question, and there are none in that query."
)
_WORD = re.compile(r"[\w.+#-]+")


class WebArguments(BaseModel):
    """What to look for on the web."""

    query: str = Field(min_length=1, description="Words of the person's question; all others are taken out.")


class WebSearchTool(Tool[WebArguments]):
    """Searches the public web."""

    name = "web_search"
    description = "Search the public web, for what the repository cannot tell. Only words of the question may be used."
    arguments = WebArguments
    label = "Searching the web for"
    argument_shown = "query"
    cost = OUTSIDE
    needs_approval = True
    source = "web"

    def is_available(self, deps: Deps) -> bool:
        """Whether a search engine is configured."""
        return deps.web is not None

    def describe_call(self, args: Mapping[str, Any], deps: Deps) -> str:
        """Show what would be sent; an empty search is none."""
        query = make_web_query(str(args.get("query", "")), deps.redact(deps.asked))
        return f"Search the web for: {query}" if query else ""

    async def run(self, args: WebArguments, deps: Deps) -> ToolEvidence:
        """Search with what is left of the query when everything the person did not write is taken out of it."""
        report = ToolReport(deps.redact)
        query = make_web_query(args.query, deps.redact(deps.asked))
        if not query or deps.web is None:
            report.say(NOTHING_LEFT)
            return report.evidence()
        pages = await deps.web.search(query, limit=MAX_PAGES)
        report.say(f"Searched the web for: {query}")
        for page in pages[:MAX_PAGES]:
            report.say(f"{page.title} <{page.url}>: {page.text}")
        if not pages:
            report.say("No page was found.")
        return report.evidence()


def make_web_query(query: str, asked: str) -> str:
    """Keep the words of a query that the person wrote: nothing that was read in the repository can leave with it."""
    allowed = {word.lower() for word in _WORD.findall(asked)}
    return " ".join(word for word in _WORD.findall(query) if word.lower() in allowed)[:200]
