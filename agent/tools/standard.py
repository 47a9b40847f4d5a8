"""The tools that citebot comes with."""

from __future__ import annotations

from agent.tools.files import ListDirectory, ReadFile
from agent.tools.history import ReadFileHistory
from agent.tools.registry import ToolRegistry
from agent.tools.search import Grep, SearchCodebase
from agent.tools.symbols import FindSymbol, GetCallees, GetCallers
from agent.tools.web import WebSearchTool


def make_tool_registry() -> ToolRegistry:
    """Return a registry with all of them."""
    return ToolRegistry(
        [
            SearchCodebase(),
            ReadFile(),
            ListDirectory(),
            FindSymbol(),
            GetCallers(),
            GetCallees(),
            Grep(),
            ReadFileHistory(),
            WebSearchTool(),
        ]
    )
