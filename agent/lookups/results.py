"""Results of lookups as values that become JSON; each names its repository and the commit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.text.escaping import replace_control_characters
from indexer.errors import UnknownPath
from indexer.types import Coverage, Definition

Line = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
SourceKind = Literal["code", "test", "doc", "config"]

COMMIT = "The commit that this was read at."
NEXT = "The offset to ask with for the rest; null where nothing is left."
TOTAL = "How many there are in all; where that is not exact, at least so many."
MAX_LINE = 400  # characters
_MAX_NAMED = 50  # files
NUMBERED = "The lines; each begins with its number and a tab."


class Value(BaseModel):
    """An immutable part of a result, without other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class UnreadFile(Value):
    """A file that is not indexed, and why."""

    path: str
    reason: str


class ReadCoverage(Value):
    """The part of the code that a "no" covers."""

    commit: Annotated[str, Field(description=COMMIT)]
    files: Annotated[Count, Field(description="How many files were read.")]
    left_out: Annotated[dict[str, int], Field(description="How many files were not read, by reason.")]
    uncommitted: Annotated[tuple[str, ...], Field(description="Paths that differ in the working tree.")] = ()
    mentioned_in: Annotated[
        tuple[UnreadFile, ...], Field(description="Files that were not read, and contain the words.")
    ] = ()
    is_behind: Annotated[bool, Field(description="Whether newer commits are still being indexed.")] = False


class LookupResult(Value):
    """The common fields of all lookups."""

    repository: str
    commit: Annotated[str, Field(description=COMMIT)]
    total: Annotated[Count, Field(description=TOTAL)]
    is_total_exact: bool = True
    next: Annotated[Count | None, Field(description=NEXT)] = None
    note: Annotated[str, Field(description="What else there is to know of this result.")] = ""
    coverage: Annotated[
        ReadCoverage | None, Field(description="Where nothing was found, how much was read; null elsewhere.")
    ] = None


class FoundCode(Value):
    """Consecutive lines that a search found."""

    path: str
    first_line: Line
    last_line: Line
    symbol: str = ""
    language: str = ""
    kind: SourceKind = "code"
    score: float = 0.0
    code: Annotated[str, Field(description=NUMBERED)]
    url: str | None = None


class CodeResult(LookupResult):
    """Places in the code, best first."""

    hits: tuple[FoundCode, ...] = ()


class MatchedLine(Value):
    """A line that matches a pattern; `around` has it with the requested context."""

    path: str
    line: Line
    text: str
    around: Annotated[str, Field(description=NUMBERED)] = ""


class MatchedFile(Value):
    """A file, and its number of matching lines."""

    path: str
    lines: Count


class GrepResult(LookupResult):
    """Lines that match, or the files: code first, then tests, documents and data."""

    matches: tuple[MatchedLine, ...] = ()
    files: tuple[MatchedFile, ...] = ()


class FileText(LookupResult):
    """Lines of a file. `total` is their number in the file; `next` is the first line of the rest."""

    path: str
    language: str = ""
    first_line: int
    last_line: int
    code: Annotated[str, Field(description=NUMBERED)]
    url: str | None = None


class ListedEntry(Value):
    """A file or a folder; `lines` and `files` count everything below a folder."""

    path: str
    is_folder: bool = False
    files: Count = 1
    lines: Count = 0
    language: str = ""


class FolderListing(LookupResult):
    """The entries of a folder, or the files whose paths match a pattern."""

    entries: tuple[ListedEntry, ...] = ()


class FoundSymbol(Value):
    """A definition."""

    name: Annotated[str, Field(description="The name with those of the definitions around it: Session.send.")]
    kind: str
    path: str
    first_line: Line
    last_line: Line
    signature: str = ""
    doc: str = ""
    url: str | None = None


class SymbolResult(LookupResult):
    """The definitions of a name; if there are none, names with that prefix."""

    symbols: tuple[FoundSymbol, ...] = ()
    similar: tuple[str, ...] = ()


class NamedPlace(Value):
    """A short description of a definition."""

    name: str
    path: str
    first_line: Line
    last_line: Line


class FoundCall(Value):
    """A line that calls. `caller` is null at module level, `callee` if its definition is outside the repository.

    It is not `is_certain` if the syntax does not determine the definition.
    """

    path: str
    line: Line
    name: str
    caller: NamedPlace | None = None
    callee: NamedPlace | None = None
    is_certain: bool = True
    code: str = ""


class CallResult(LookupResult):
    """Calls, code before tests, certain ones first."""

    calls: tuple[FoundCall, ...] = ()


class FoundCommit(Value):
    """A commit."""

    commit: str
    author: str
    date: Annotated[str, Field(description="The day, as YYYY-MM-DD.")]
    subject: str


class HistoryResult(LookupResult):
    """The commits that changed a file, newest first; `last_changed` last wrote the requested line."""

    path: str
    commits: tuple[FoundCommit, ...] = ()
    line: int = 0
    last_changed: FoundCommit | None = None


class CommitListing(LookupResult):
    """Commits, newest first. `total` is exact if the whole history was counted."""

    commits: tuple[FoundCommit, ...] = ()


class ChangedFile(Value):
    """A changed file; `change` is the kind, with the numbers of lines."""

    path: str
    change: str


class ChangedLines(Value):
    """Consecutive lines of one side of a comparison, at their own commit."""

    side: Literal["removed", "added"]
    path: str
    commit: str
    first_line: int
    last_line: int
    symbol: str = ""
    code: Annotated[str, Field(description=NUMBERED)]


class ComparisonResult(LookupResult):
    """The difference between two commits: `facts` and `counts`, its files, and the most telling lines."""

    facts: dict[str, str] = {}
    counts: dict[str, int] = {}
    files: tuple[ChangedFile, ...] = ()
    lines: tuple[ChangedLines, ...] = ()


def describe_coverage(commit: str, coverage: Coverage) -> ReadCoverage:
    """Describe how much code a "no" covers."""
    return ReadCoverage(
        commit=commit,
        files=coverage.files,
        left_out={reason: count for reason, count in sorted(coverage.skipped.items()) if count},
        uncommitted=coverage.uncommitted[:_MAX_NAMED],
        mentioned_in=tuple(UnreadFile(path=one.path, reason=one.reason) for one in coverage.holding[:_MAX_NAMED]),
        is_behind=coverage.is_behind,
    )


def describe_missing(error: Exception) -> ReadCoverage | None:
    """Describe how much code the error of a missing path covers; None for any other."""
    if not isinstance(error, UnknownPath) or error.coverage is None:
        return None
    return describe_coverage(error.commit, error.coverage)


def name_place(definition: Definition | None) -> NamedPlace | None:
    """Describe a definition briefly."""
    if definition is None:
        return None
    symbol = definition.symbol
    return NamedPlace(
        name=symbol.qualified_name, path=definition.path, first_line=symbol.start_line, last_line=symbol.end_line
    )


def number_lines(text: str, first: int) -> str:
    """Prefix each line with its number and a tab."""
    if not text:
        return ""
    return "\n".join(f"{number}\t{cut_line(line)}" for number, line in enumerate(text.split("\n"), start=first))


def cut_line(line: str) -> str:
    """Return a line, or the beginning of an overlong one, without control characters."""
    shown = replace_control_characters(line[: MAX_LINE + 1].rstrip("\r"))
    return shown if len(shown) <= MAX_LINE else f"{shown[: MAX_LINE - 1]}…"
