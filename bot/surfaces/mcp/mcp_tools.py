"""The tools of the MCP server: what each is called, takes and returns, and the lookup or question behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from bot.errors import BotError
from bot.surfaces.ask_events import Answered, NotAnswered, StageBegun
from bot.surfaces.lookup_results import (
    CallResult,
    CodeResult,
    FileText,
    FolderListing,
    GrepResult,
    HistoryResult,
    RepositoryListing,
    SurfaceValue,
    SymbolResult,
)
from bot.surfaces.mcp.tool_arguments import (
    Arguments,
    AskArgs,
    CallArgs,
    GrepArgs,
    HistoryArgs,
    ListArgs,
    ReadArgs,
    RepositoriesArgs,
    SearchArgs,
    SymbolArgs,
)
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import SurfaceCore
from indexer import Filters

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool: by whom, with what, and how they are told what goes on meanwhile."""

    core: SurfaceCore
    principal: Principal
    arguments: Any
    tell: Tell


@dataclass(frozen=True, kw_only=True, slots=True)
class McpTool:
    """A tool; all of them only read."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[SurfaceValue]
    run: Callable[[ToolCall], Awaitable[SurfaceValue]]


class NoAnswer(BotError):
    """A question came to no answer; the text says why."""


async def search_code(call: ToolCall) -> CodeResult:
    """Search by meaning and words."""
    args: SearchArgs = call.arguments
    filters = Filters(
        languages=tuple(language.lower() for language in args.languages),
        source_types=tuple(args.kinds),
        folders=tuple(args.folders),
        patterns=tuple(args.globs),
    )
    return await call.core.lookups.search_code(
        call.principal,
        args.query,
        repository=args.repository,
        at=args.at,
        filters=filters,
        limit=args.limit,
        offset=args.offset,
    )


async def grep(call: ToolCall) -> GrepResult:
    """Find lines by a pattern."""
    args: GrepArgs = call.arguments
    return await call.core.lookups.grep(call.principal, **args.model_dump())


async def read_file(call: ToolCall) -> FileText:
    """Read lines of a file."""
    args: ReadArgs = call.arguments
    return await call.core.lookups.read_file(call.principal, **args.model_dump())


async def list_files(call: ToolCall) -> FolderListing:
    """List a folder, or files by a glob."""
    args: ListArgs = call.arguments
    return await call.core.lookups.list_files(
        call.principal,
        args.folder,
        pattern=args.glob,
        repository=args.repository,
        at=args.at,
        limit=args.limit,
        offset=args.offset,
    )


async def find_symbol(call: ToolCall) -> SymbolResult:
    """Find definitions."""
    args: SymbolArgs = call.arguments
    return await call.core.lookups.find_symbol(call.principal, **args.model_dump())


async def find_callers(call: ToolCall) -> CallResult:
    """Find who calls a function."""
    args: CallArgs = call.arguments
    return await call.core.lookups.find_callers(call.principal, **args.model_dump())


async def find_callees(call: ToolCall) -> CallResult:
    """Find what a function calls."""
    args: CallArgs = call.arguments
    return await call.core.lookups.find_callees(call.principal, **args.model_dump())


async def file_history(call: ToolCall) -> HistoryResult:
    """Read the commits of a file."""
    args: HistoryArgs = call.arguments
    return await call.core.lookups.file_history(call.principal, **args.model_dump())


async def list_repositories(call: ToolCall) -> RepositoryListing:
    """List what may be asked about."""
    args: RepositoriesArgs = call.arguments
    return await call.core.lookups.list_repositories(call.principal, limit=args.limit, offset=args.offset)


async def ask(call: ToolCall) -> Answered:
    """Ask the agent, and tell its stages until the answer is whole; being cancelled stops the run."""
    args: AskArgs = call.arguments
    events = call.core.questions.ask(
        call.principal,
        args.question,
        surface="mcp",
        repository=args.repository,
        at=args.at,
        conversation=args.conversation,
    )
    async with aclosing(events) as following:
        async for event in following:
            if isinstance(event, StageBegun):
                await call.tell(event.text)
            elif isinstance(event, NotAnswered):
                raise NoAnswer(event.text)
            elif isinstance(event, Answered):
                return event
    raise AssertionError("a question ends with an answer, or with why there is none")


_TOOLS = (
    McpTool(
        name="search_code",
        title="Search code",
        description="Search code, tests and documents by meaning and by words; the best places first. "
        "Use it when you do not know the exact name or text.",
        arguments=SearchArgs,
        result=CodeResult,
        run=search_code,
    ),
    McpTool(
        name="grep",
        title="Find lines",
        description="Find lines that match a regular expression (RE2), in code before tests and documents. "
        "Use it for an exact text.",
        arguments=GrepArgs,
        result=GrepResult,
        run=grep,
    ),
    McpTool(
        name="read_file",
        title="Read a file",
        description="Read lines of a file as they stand at the indexed commit, numbered.",
        arguments=ReadArgs,
        result=FileText,
        run=read_file,
    ),
    McpTool(
        name="list_files",
        title="List files",
        description="List a folder with how much is in it, or with `glob` the files below it that match.",
        arguments=ListArgs,
        result=FolderListing,
        run=list_files,
    ),
    McpTool(
        name="find_symbol",
        title="Find definitions",
        description="Find where a function, class, method or constant of a name is defined, with its signature.",
        arguments=SymbolArgs,
        result=SymbolResult,
        run=find_symbol,
    ),
    McpTool(
        name="find_callers",
        title="Find callers",
        description="List the lines that call a function, method or class; possible calls come last.",
        arguments=CallArgs,
        result=CallResult,
        run=find_callers,
    ),
    McpTool(
        name="find_callees",
        title="Find callees",
        description="List what a function or method calls, and where that is defined.",
        arguments=CallArgs,
        result=CallResult,
        run=find_callees,
    ),
    McpTool(
        name="file_history",
        title="History of a file",
        description="List the commits that changed a file, and with `line` the one that last wrote a line of it.",
        arguments=HistoryArgs,
        result=HistoryResult,
        run=file_history,
    ),
    McpTool(
        name="list_repositories",
        title="List repositories",
        description="List the repositories that can be asked about, the commit of each, and how far it is behind.",
        arguments=RepositoriesArgs,
        result=RepositoryListing,
        run=list_repositories,
    ),
    McpTool(
        name="ask",
        title="Ask about the code",
        description="Have a question about the code answered, every claim with the lines it was read from. "
        "Slower than a lookup, and may use a language model: for questions that take several.",
        arguments=AskArgs,
        result=Answered,
        run=ask,
    ),
)


def make_tools() -> Mapping[str, McpTool]:
    """Return the tools by name."""
    return {tool.name: tool for tool in _TOOLS}
