"""The tools of the MCP server: every lookup, the list of repositories, and questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from agent import LOOKUPS, Arguments, CodeLookup, LookupResult
from bot.errors import BotError
from bot.markdown import to_one_line
from bot.surfaces.ask_events import Answered, NotAnswered, StageBegun
from bot.surfaces.code_lookups import At, ListArguments, Repository, RepositoryListing, add_place
from bot.surfaces.principals import Principal
from bot.surfaces.team_surfaces import SurfaceCore

LONGEST_QUESTION = 40_000

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A call of a tool: its person, its arguments, and a callback for progress."""

    core: SurfaceCore
    principal: Principal
    arguments: Any
    tell: Tell


@dataclass(frozen=True, kw_only=True, slots=True)
class McpTool:
    """A tool; all of them only read. `run` returns the result as a structure and as text."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[BaseModel]
    run: Callable[[ToolCall], Awaitable[tuple[BaseModel, str]]]


class NoAnswer(BotError):
    """A question came to no answer; the text says why."""


class AskArguments(Arguments):
    """A question."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION, description="A question about the code.")]
    repository: Repository = None
    at: At = None
    conversation: Annotated[
        str | None,
        Field(max_length=64, description="The `conversation` of an earlier answer, to continue it."),
    ] = None


async def _look_up(lookup: CodeLookup[Any, LookupResult], call: ToolCall) -> tuple[BaseModel, str]:
    found = await call.core.lookups.look_up(call.principal, lookup, call.arguments)
    return found.result, found.text


async def _list_repositories(call: ToolCall) -> tuple[BaseModel, str]:
    listing = await call.core.lookups.list_repositories(call.principal, call.arguments)
    lines = []
    for one in listing.repositories:
        at = f"at {one.commit[:12]}" if one.commit else "not indexed yet"
        branch = f" on {to_one_line(one.branch)}" if one.branch else ""
        behind = f", {one.commits_behind} commits behind" if one.commits_behind else ""
        lines.append(f"{to_one_line(one.repository)} {at}{branch}{behind}; {one.files:,} files")
        lines += [f"  {to_one_line(warning)}" for warning in one.warnings]
    rest = f"; offset={listing.next} has the next ones" if listing.next is not None else ""
    count = "1 repository" if listing.total == 1 else f"{listing.total} repositories"
    return listing, "\n".join([f"{count}{rest}.", *lines])


async def _ask(call: ToolCall) -> tuple[BaseModel, str]:
    """Ask the agent, and tell its stages until the answer is whole; being cancelled stops the run."""
    args: AskArguments = call.arguments
    run = call.core.questions.begin(
        call.principal,
        args.question,
        surface="mcp",
        repository=args.repository,
        at=args.at,
        conversation=args.conversation,
    )
    async with aclosing(run.stream()) as following:
        async for event in following:
            if isinstance(event, StageBegun):
                await call.tell(event.text)
            elif isinstance(event, NotAnswered):
                raise NoAnswer(event.text)
            elif isinstance(event, Answered):
                return event, _write_answer(event)
    raise AssertionError("a question ends with an answer, or with why there is none")


def _write_answer(answer: Answered) -> str:
    sources = [
        f"[{one.mark}] {to_one_line(one.path)}:{one.first_line}-{one.last_line}"
        f"{f'  {to_one_line(one.url)}' if one.url else ''}"
        if one.path
        else f"[{one.mark}] commit {one.commit[:12]}"
        for one in answer.citations
    ]
    freshness = answer.freshness or ", ".join(f"{name} at {sha[:12]}" for name, sha in answer.commits.items())
    return "\n\n".join(filter(None, [answer.text, "\n".join(sources), freshness]))


def make_tools() -> Mapping[str, McpTool]:
    """Return the tools by name."""
    lookups = (
        McpTool(
            name=each.name,
            title=each.title,
            description=each.description,
            arguments=add_place(each.arguments),
            result=each.result,
            run=partial(_look_up, each),
        )
        for each in LOOKUPS
    )
    others = (
        McpTool(
            name="list_repositories",
            title="List repositories",
            description="List the repositories, the commit of each, and its lag.",
            arguments=ListArguments,
            result=RepositoryListing,
            run=_list_repositories,
        ),
        McpTool(
            name="ask",
            title="Ask about the code",
            description=(
                "Answer a question about the code, every claim with its lines. Slower than a lookup, and may "
                "use a language model: for questions that need several lookups."
            ),
            arguments=AskArguments,
            result=Answered,
            run=_ask,
        ),
    )
    return {tool.name: tool for tool in (*lookups, *others)}
