"""The arguments of the MCP tools. Unknown ones are refused, and no text is taken for a number."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

LONGEST_QUESTION = 40_000
_REPOSITORY = "The repository, as list_repositories names it; it may be left out where there is only one."
_AT = (
    "A branch, a tag, a commit, or a pull request as #12, to read the code at; its newest commit without. "
    "The first time for each takes longer."
)

Repository = Annotated[str | None, Field(max_length=100, description=_REPOSITORY)]
At = Annotated[str | None, Field(min_length=1, max_length=200, description=_AT)]
Offset = Annotated[int, Field(ge=0, le=1_000_000, description="`next` of an earlier result, to see what follows it.")]
Path = Annotated[str, Field(max_length=1_000)]
Name = Annotated[str, Field(min_length=1, max_length=300, description="A plain or qualified name: send, Session.send.")]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[list[Word], Field(max_length=20)]


class Arguments(BaseModel):
    """What every tool takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchArgs(Arguments):
    """What to search for, and where."""

    query: Annotated[str, Field(min_length=1, max_length=1_000, description="What the code is about: words or names.")]
    repository: Repository = None
    at: At = None
    languages: Annotated[Words, Field(description="Only these languages, such as python.")] = []
    kinds: Annotated[list[Literal["code", "test", "doc", "config"]], Field(max_length=4)] = []
    folders: Annotated[Words, Field(description="Only below these folders.")] = []
    globs: Annotated[Words, Field(description="Only paths that match, as in .gitignore: **/*.sql.")] = []
    limit: Annotated[int, Field(ge=1, le=50)] = 8
    offset: Offset = 0


class GrepArgs(Arguments):
    """A pattern, and where to look for it."""

    pattern: Annotated[
        str,
        Field(min_length=1, max_length=480, description="A regular expression (RE2), matched line by line."),
    ]
    path: Annotated[Path, Field(description="A file or folder; empty for everywhere.")] = ""
    ignore_case: bool = False
    repository: Repository = None
    at: At = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class ReadArgs(Arguments):
    """Lines of a file."""

    path: Annotated[Path, Field(min_length=1, description="The path from the root of the repository.")]
    first_line: Annotated[int, Field(ge=1, le=10_000_000)] = 1
    limit: Annotated[int, Field(ge=1, le=400, description="How many lines.")] = 200
    repository: Repository = None
    at: At = None


class ListArgs(Arguments):
    """A folder, and which of its files."""

    folder: Annotated[Path, Field(description="The folder; empty for the root.")] = ""
    glob: Annotated[str, Field(max_length=200, description="All files below it that match, such as **/*.py.")] = ""
    repository: Repository = None
    at: At = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    offset: Offset = 0


class SymbolArgs(Arguments):
    """The name of a definition."""

    name: Name
    repository: Repository = None
    at: At = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    offset: Offset = 0


class CallArgs(Arguments):
    """The name of a function, method or class."""

    name: Name
    path: Annotated[Path, Field(description="Only calls in this file or folder; empty for all.")] = ""
    repository: Repository = None
    at: At = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    offset: Offset = 0


class HistoryArgs(Arguments):
    """A file, or one line of it."""

    path: Annotated[Path, Field(min_length=1, description="The path from the root of the repository.")]
    line: Annotated[int, Field(ge=0, le=10_000_000, description="A line, to see which commit last wrote it.")] = 0
    repository: Repository = None
    at: At = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    offset: Offset = 0


class RepositoriesArgs(Arguments):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=100)] = 50
    offset: Offset = 0


class AskArgs(Arguments):
    """A question."""

    question: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION, description="A question about the code.")]
    repository: Annotated[
        str | None, Field(max_length=100, description="The repository, where the question does not tell.")
    ] = None
    at: At = None
    conversation: Annotated[
        str | None,
        Field(max_length=64, description="To go on with an earlier answer: the `conversation` that came with it."),
    ] = None


def explain_arguments(error: ValidationError, model: type[Arguments]) -> str:
    """Say in one line what is wrong with the arguments of a call, and which there are."""
    problems = [_explain(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors(include_url=False)]
    return f"{'; '.join(problems[:5])}. The arguments are {', '.join(model.model_fields)}."


def _explain(place: tuple[Any, ...], kind: str, message: str) -> str:
    name = ".".join(str(part) for part in place)[:80]
    return f"{name!r} is no argument" if kind == "extra_forbidden" else f"{name}: {message[:200]}"
