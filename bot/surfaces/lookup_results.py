"""The results of code lookups, as values that become JSON; each names its repository and the commit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Line = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
SourceKind = Literal["code", "test", "doc", "config"]

COMMIT = "The commit that this was read at."
NEXT = "The offset to ask with for the rest; null where nothing is left."
TOTAL = "How many there are in all; where that is not exact, at least so many."
NUMBERED = "The lines; each begins with its number and a tab."


class SurfaceValue(BaseModel):
    """A value that surfaces hand out: it does not change, and has no other fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class UnreadFile(SurfaceValue):
    """A file that is not indexed, and why."""

    path: str
    reason: str


class ReadCoverage(SurfaceValue):
    """How much of the code a "no" rests on."""

    commit: Annotated[str, Field(description=COMMIT)]
    files: Annotated[Count, Field(description="How many files were read.")]
    left_out: Annotated[dict[str, int], Field(description="How many files were not read, by reason.")]
    uncommitted: Annotated[tuple[str, ...], Field(description="Paths that differ in the working tree.")] = ()
    mentioned_in: Annotated[
        tuple[UnreadFile, ...], Field(description="Files that were not read, and contain the words.")
    ] = ()
    is_behind: Annotated[bool, Field(description="Whether newer commits are still being indexed.")] = False


class Lookup(SurfaceValue):
    """What every lookup says beside what it found."""

    repository: str
    commit: Annotated[str, Field(description=COMMIT)]
    total: Annotated[Count, Field(description=TOTAL)]
    is_total_exact: bool = True
    next: Annotated[Count | None, Field(description=NEXT)] = None
    note: Annotated[str, Field(description="What else there is to know of this result.")] = ""
    coverage: Annotated[
        ReadCoverage | None, Field(description="Where nothing was found, how much was read; null elsewhere.")
    ] = None


class FoundCode(SurfaceValue):
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


class CodeResult(Lookup):
    """Places in the code, the best first."""

    hits: tuple[FoundCode, ...] = ()


class MatchedLine(SurfaceValue):
    """A line that a pattern matches."""

    path: str
    line: Line
    text: str


class GrepResult(Lookup):
    """Lines that match: those of code first, then of tests, documents and data."""

    matches: tuple[MatchedLine, ...] = ()


class FileText(Lookup):
    """Lines of a file. `total` is how many it has; `next` is the first line of the rest."""

    path: str
    language: str = ""
    first_line: int
    last_line: int
    code: Annotated[str, Field(description=NUMBERED)]
    url: str | None = None


class ListedEntry(SurfaceValue):
    """A file or a folder; `lines` and `files` count what lies in a folder and below it."""

    path: str
    is_folder: bool = False
    files: Count = 1
    lines: Count = 0
    language: str = ""


class FolderListing(Lookup):
    """What lies in a folder, or the files whose paths match a pattern."""

    entries: tuple[ListedEntry, ...] = ()


class FoundSymbol(SurfaceValue):
    """A definition."""

    name: Annotated[str, Field(description="The name with those of the definitions around it: Session.send.")]
    kind: str
    path: str
    first_line: Line
    last_line: Line
    signature: str = ""
    doc: str = ""
    url: str | None = None


class SymbolResult(Lookup):
    """The definitions of a name; where there are none, names that begin so."""

    symbols: tuple[FoundSymbol, ...] = ()
    similar: tuple[str, ...] = ()


class NamedPlace(SurfaceValue):
    """A definition in short."""

    name: str
    path: str
    first_line: Line
    last_line: Line


class FoundCall(SurfaceValue):
    """A line that calls. `caller` is null at module level, `callee` where what is called is not defined here.

    It is not `is_certain` where the syntax does not tell which definition is meant.
    """

    path: str
    line: Line
    name: str
    caller: NamedPlace | None = None
    callee: NamedPlace | None = None
    is_certain: bool = True
    code: str = ""


class CallResult(Lookup):
    """Calls, those of code before those of tests, the certain ones first."""

    calls: tuple[FoundCall, ...] = ()


class FoundCommit(SurfaceValue):
    """A commit."""

    commit: str
    author: str
    date: Annotated[str, Field(description="The day, as YYYY-MM-DD.")]
    subject: str


class HistoryResult(Lookup):
    """The commits that changed a file, newest first; `last_changed` is the one that last wrote the line asked for."""

    path: str
    commits: tuple[FoundCommit, ...] = ()
    line: int = 0
    last_changed: FoundCommit | None = None


class ListedRepository(SurfaceValue):
    """A repository. `commit` is null before it is indexed; `warnings` say what is wrong with it."""

    repository: str
    commit: str | None = None
    branch: str | None = None
    indexed_at: Annotated[str | None, Field(description="When, in UTC.")] = None
    commits_behind: int | None = None
    files: Count = 0
    symbols: Count = 0
    warnings: tuple[str, ...] = ()


class RepositoryListing(SurfaceValue):
    """The repositories that may be asked about."""

    total: Count
    next: Annotated[Count | None, Field(description=NEXT)] = None
    repositories: tuple[ListedRepository, ...] = ()
